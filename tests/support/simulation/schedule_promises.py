"""The promises that are checked where there are schedules."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.resources.controlled_job import (
    ControlledJob,
)
from interlock.resources.job import Job
from interlock.resources.job_config import (
    JobConfig,
)
from interlock.resources.metadata import Resource
from interlock.resources.transitions import has_ended
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.due_promises import (
    EveryDueTimeAccounted,
    MissedByTheRule,
    OncePerDueTime,
)
from support.simulation.gap_promises import GapsAreTold
from support.simulation.judge import Promise
from support.simulation.people_promises import DeedsAreTold, PeopleAreHeeded
from support.simulation.promises import PROMISES, NeverLost
from support.simulation.schedule_judging import (
    owner_of,
)
from support.simulation.window_promises import AlarmsAreTrue, OneAtATime, WindowsKept


class NeverLostButBySchedule(NeverLost):
    """What was acknowledged stays; a schedule stops and clears away what it made, and no more."""

    def wrote(self, change: Change) -> None:
        """Let the room revise and remove Jobs of schedules where it may."""
        before, after = change.before, change.event.resource
        is_gone = change.event.type is EventType.DELETED
        if isinstance(before, Job) and isinstance(after, Job) and owner_of(before):
            if self._is_cleared_away(before, is_gone or after.is_going):
                return
            same = {"kill_at": after.spec.kill_at, "locks": after.spec.locks}
            revised = replace(before, spec=replace(before.spec, **same))
            change = replace(change, before=revised)
        super().wrote(change)

    def _is_cleared_away(self, before: Job, goes: bool) -> bool:
        if not goes:
            return False
        if owner_of(before) in self.truth.removed or has_ended(before):
            return True
        # A stray: made from an old view, and never let in.
        return before.status.admission.admitted_at is None


class SchedulesSettle(Promise):
    """Once trouble is over no schedule is in trouble, and none that is suspended runs anything."""

    def settled(self) -> None:
        """Everything was suspended, and is at rest."""
        for resource in self.truth.schedules.values():
            trouble = _trouble(resource)
            if trouble:
                name = resource.metadata.name
                raise self.broken(f"{name} is in trouble: {trouble}", name)


def _trouble(resource: Resource) -> str:
    if isinstance(resource, JobConfig | ControlledJob) and resource.status.trouble is not None:
        return resource.status.trouble.message
    return ""


#: Every promise that is checked where there are schedules.
SCHEDULE_PROMISES: tuple[type[Promise], ...] = (
    PeopleAreHeeded,
    DeedsAreTold,
    *(NeverLostButBySchedule if each is NeverLost else each for each in PROMISES),
    OncePerDueTime,
    OneAtATime,
    EveryDueTimeAccounted,
    MissedByTheRule,
    WindowsKept,
    GapsAreTold,
    AlarmsAreTrue,
    SchedulesSettle,
)
