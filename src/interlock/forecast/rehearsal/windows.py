"""Windows of ControlledJobs that are left out: a history tells them when they would have begun.

Nothing is stored about a window that a calendar or an exception leaves out. It is told by the same
plan that the decisions ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from interlock.forecast.rehearsal.lines import written
from interlock.forecast.rehearsal.simulated_loop import SimHandle
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.metadata import Key, Resource
from interlock.schedules.calendars import read_calendar
from interlock.schedules.controlled.plan import Timetable, calendars_named, timetable_of
from interlock.timing.due import IN_GAP
from interlock.timing.flaws import UnreadableError
from interlock.timing.plans import Action, Turn
from interlock.timing.ticks import OnGap

#: Finds a stored object.
Get = Callable[[Key], Resource | None]
#: Has something happen at a moment.
CallAt = Callable[[datetime, Callable[[], None]], SimHandle]
#: Writes a line about an object: event, reason, detail.
Note = Callable[[Key, str, str, str], None]


class SkippedWindows:
    """Waits for the windows that are left out, of every ControlledJob that may have some."""

    def __init__(self, get: Get, call_at: CallAt, note: Note) -> None:
        self._get = get
        self._call_at = call_at
        self._note = note
        self._armed: dict[Key, SimHandle] = {}
        self._named: dict[Key, dict[Key, None]] = {}

    def heard(self, before: Resource | None, after: Resource, now: datetime) -> None:
        """Take in a change of a ControlledJob or of a Calendar."""
        if isinstance(after, ControlledJob):
            was = before.metadata.generation if before is not None else 0
            if was != after.metadata.generation:
                self._plan(after.key, now)
        elif isinstance(after, Calendar):
            for key in self._named.get(after.key, ()):
                self._plan(key, now)

    def _plan(self, key: Key, now: datetime) -> None:
        """Begin anew to wait for what is left out."""
        if key in self._armed:
            self._armed.pop(key).cancel()
        controlled = self._get(key)
        if not isinstance(controlled, ControlledJob):
            return
        spec = controlled.spec
        for name in calendars_named(spec):
            self._named.setdefault(Key("Calendar", key.namespace, name), {})[key] = None
        if spec.suspend or spec.overrides or calendars_named(spec) or spec.on_gap is OnGap.SKIP:
            self._wait(key, self._skipped(controlled, now))

    def _skipped(self, controlled: ControlledJob, now: datetime) -> Iterator[Turn]:
        namespace = controlled.metadata.namespace
        stored = {
            name: self._get(Key("Calendar", namespace, name))
            for name in calendars_named(controlled.spec)
        }
        found = {
            name: read_calendar(one).calendar
            for name, one in stored.items()
            if isinstance(one, Calendar)
        }
        try:
            table = timetable_of(
                controlled, {name: one for name, one in found.items() if one is not None}
            )
        except UnreadableError:
            return iter(())
        return (turn for turn in table.upcoming(now) if _is_told(turn, table))

    def _wait(self, key: Key, turns: Iterator[Turn]) -> None:
        # One start at a time: there may be no end of those that happen.
        turn = next(turns, None)
        if turn is not None:
            self._armed[key] = self._call_at(turn.at, lambda: self._tell(key, turn, turns))

    def _tell(self, key: Key, turn: Turn, turns: Iterator[Turn]) -> None:
        if turn.skipped is not None and self._get(key) is not None:
            what = "due" if turn.action is Action.START else "the stop due"
            detail = f"{what} {written(turn.at)}, {turn.skipped}"
            self._note(key, "Skipped", _reason(turn.skipped), detail)
        if self._get(key) is not None:
            self._wait(key, turns)


def _is_told(turn: Turn, table: Timetable) -> bool:
    """Whether it is a start; of what clocks swallow, whether it makes a difference."""
    is_start = turn.action is Action.START
    if turn.skipped is None or not turn.skipped.startswith(IN_GAP):
        return is_start
    return is_start is (table.state_at(turn.at).window is None)


def _reason(told: str) -> str:
    """One word for why a window is left out."""
    for start, reason in _REASONS:
        if told.startswith(start):
            return reason
    return "Calendar"


#: How it begins to be told, and the word for it.
_REASONS = (
    ("suspended", "Suspended"),
    ("on hold", "Hold"),
    ("skipped", "Override"),
    (IN_GAP, "ClockChange"),
)
