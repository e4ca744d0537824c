"""Promises about clock changes: what a gap swallows of a ControlledJob is told, or run after it.

What a gap swallows is worked out here, from the definitions as they were committed, with the
clockwork and without anything of the room that decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.resources.controlled_job import (
    ActionRecord,
    ControlledAction,
    ControlledJob,
    ControlledJobSpec,
)
from interlock.resources.schedule import written_moment
from interlock.store.contract import EventType
from interlock.store.watching import Change
from interlock.timing.plans import Action, Turn
from interlock.timing.ticks import OnGap
from support.simulation.schedule_judging import PROMPT, SchedulePromise
from support.simulation.truth import Truth
from support.simulation.window_promises import plan_of, window_at

#: A gap is looked for no longer ago than worlds last.
_LONG = timedelta(hours=12)


class GapsAreTold(SchedulePromise):
    """A start or stop that falls into a gap is told as skipped, once, or happens after it."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        #: What was told as skipped since the books of each ControlledJob began anew.
        self._told: dict[tuple[str, str], list[tuple[datetime, Action]]] = {}
        #: Those that were excepted from their plan at some time: it cannot be told what was due.
        self._excepted: dict[str, None] = {}

    def scheduled(self, change: Change) -> None:
        """Hold what is told as skipped against what gaps swallow."""
        before, after = change.before, change.event.resource
        if not isinstance(after, ControlledJob) or change.event.type is EventType.DELETED:
            return
        if after.spec.overrides:
            self._excepted[after.metadata.uid] = None
        if not isinstance(before, ControlledJob):
            return
        books = after.status.books
        if before.status.books.schedule_hash != books.schedule_hash:
            self._told.pop((after.metadata.uid, books.schedule_hash), None)
        known = before.status.action_history
        for record in after.status.action_history:
            if record.type is ControlledAction.SKIPPED and record not in known:
                self._check_skip(after, record)

    def _check_skip(self, controlled: ControlledJob, record: ActionRecord) -> None:
        name, uid = controlled.metadata.name, controlled.metadata.uid
        now = self.truth.moment
        # Clocks may be ahead.
        for turn in swallowed(controlled.spec, now - _LONG, now + _LONG):
            if f"the {turn.action.value} of {written_moment(turn.at)}" in record.message:
                break
        else:
            raise self.broken(f"{name} tells what no gap swallows: {record.message}", name)
        told = self._told.setdefault((uid, controlled.status.books.schedule_hash), [])
        if (turn.at, turn.action) in told:
            raise self.broken(f"{name} tells twice: {record.message}", name)
        told.append((turn.at, turn.action))

    def calm(self, now: datetime) -> None:
        """What gaps swallowed a while ago is told; what is run after them was."""
        for controlled in self.truth.schedules.values():
            is_plain = controlled.metadata.uid not in self._excepted
            if is_plain and isinstance(controlled, ControlledJob) and not controlled.is_going:
                self._check(controlled, now - PROMPT)

    def _check(self, controlled: ControlledJob, until: datetime) -> None:
        spec, name, books = controlled.spec, controlled.metadata.name, controlled.status.books
        if books.since is None or any(each.exclude or each.only for each in spec.events):
            return
        for turn in swallowed(replace(spec, on_gap=OnGap.SKIP), books.since, until):
            window = window_at(spec, turn.at)
            if spec.on_gap is OnGap.SKIP:
                would_matter = (window is not None) is (turn.action is Action.STOP)
                told = self._told.get((controlled.metadata.uid, books.schedule_hash), ())
                if would_matter and (turn.at, turn.action) not in told:
                    what = f"the {turn.action.value} of {turn.wall} of {name}"
                    raise self.broken(f"{what} fell into a gap, and nobody tells", name)
            elif turn.action is Action.START and window is not None:
                self._check_run(controlled, turn)

    def _check_run(self, controlled: ControlledJob, turn: Turn) -> None:
        """A window that opens after a gap is on record, as long as it is the newest."""
        window, record = window_at(controlled.spec, self.truth.moment), controlled.status.window
        if window is None or window.start != turn.at or controlled.spec.suspend:
            return
        if record is None or record.start != turn.at:
            name = controlled.metadata.name
            raise self.broken(f"the start of {turn.wall} of {name} was not made up for", name)


def swallowed(spec: ControlledJobSpec, begin: datetime, end: datetime) -> Iterator[Turn]:
    """What gaps swallow of a definition after a moment and until another."""
    plan = plan_of(spec)
    while turns := plan.next_in_gap(begin, end):
        yield from turns
        begin = turns[0].at
