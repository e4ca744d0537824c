"""The skips that a status tells: the newest few, and how many there were in all."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from interlock.resources.job_config import JobConfigStatus, Skip, SkipReason
from interlock.resources.schedule import written_moment
from interlock.schedules.configs.catch_up import is_like, joined

#: So many are told in a status, and in a line of the log.
TOLD = 10
_IN_WORDS = 3


class SkipBook:
    """Takes down skips and runs in their order."""

    def __init__(self, status: JobConfigStatus) -> None:
        self._skips = list(status.skips)
        self.skipped = status.skipped
        #: A Job lies between the last skip and the next: they are not told as one.
        self._is_parted = _was_run_since(status)

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The newest skips, newest last."""
        return tuple(self._skips[-TOLD:])

    def run(self) -> None:
        """A due time became a Job."""
        self._is_parted = True

    def skip(self, skip: Skip) -> None:
        """One or more due times became none."""
        self.skipped += max(skip.count, 1)
        last = self._skips[-1] if self._skips else None
        may_join = last is not None and not self._is_parted and is_like(last, skip)
        if last is not None and may_join and skip.reason is not SkipReason.SCHEDULE_CHANGED:
            self._skips[-1] = joined(last, skip)
        else:
            self._skips.append(skip)
        self._is_parted = False


def _was_run_since(status: JobConfigStatus) -> bool:
    if not status.skips or status.last_scheduled is None:
        return False
    last = status.skips[-1]
    return status.last_scheduled > (last.until or last.at)


def in_words(runs: Iterable[datetime], skips: Iterable[Skip], verb: str = "lets run") -> str:
    """One line about what is done for due times, and which are skipped."""
    parts = [f"{verb} what is due at {written_moment(at)}" for at in islice(runs, _IN_WORDS)]
    for skip in islice(skips, _IN_WORDS):
        until = f" to {written_moment(skip.until)}" if skip.until is not None else ""
        message = f" ({skip.message})" if skip.message else ""
        parts.append(f"skips {written_moment(skip.at)}{until}: {skip.reason}{message}")
    return "; ".join(parts)
