"""The move of Calendars: they do nothing by themselves, so one on each side does no harm."""

from __future__ import annotations

from interlock.modes.cli.errors import AnswerError
from interlock.modes.cli.kinds import CALENDARS
from interlock.modes.cli.moving import marks
from interlock.modes.cli.moving.judging import MOVED, THERE_ALREADY, WOULD_MOVE, Verdict
from interlock.modes.cli.moving.settling import REFUSALS, Bearings, Say, refusal, taken
from interlock.modes.cli.moving.sides import Thing


class CalendarMover:
    """Copies Calendars, and knows of which the cluster has others."""

    def __init__(self, bearings: Bearings, say: Say) -> None:
        self._source, self._goal = bearings.source, bearings.goal
        self._namespace = bearings.namespace
        self._say = say
        #: By namespace and name.
        self.others: set[tuple[str, str]] = set()

    def run(self, *, dry_run: bool = False) -> None:
        """Copy all that the cluster does not have."""
        for calendar in self._source.all(CALENDARS, self._namespace):
            self._copy(calendar, dry_run=dry_run)

    def _copy(self, calendar: Thing, *, dry_run: bool) -> None:
        there = self._goal.read(calendar)
        if there is not None:
            is_same = there["spec"] == calendar["spec"]
            is_copy = marks.annotation(there, marks.MOVED_FROM) == calendar["metadata"]["uid"]
            if is_same or is_copy:
                self._say(calendar, THERE_ALREADY, "")
            else:
                self._refuse(calendar, taken(calendar))
            return
        copy = marks.plain_copy_of(calendar)
        try:
            if dry_run:
                self._goal.check(copy)
            else:
                self._goal.create(copy)
        except AnswerError as error:
            if error.status not in REFUSALS:
                raise
            self._refuse(calendar, refusal(error))
        else:
            self._say(calendar, WOULD_MOVE if dry_run else MOVED, "")

    def _refuse(self, calendar: Thing, verdict: Verdict) -> None:
        metadata = calendar["metadata"]
        self.others.add((metadata["namespace"], metadata["name"]))
        self._say(calendar, *verdict)
