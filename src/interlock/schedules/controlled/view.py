"""The view of a ControlledJob: what a decision about it may depend on."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.schedules.controlled.plan import Timetable
from interlock.schedules.controlled.runs import Run


class ControlledView(Struct, frozen=True, kw_only=True):
    """A ControlledJob, its plan, and the Jobs that it owns."""

    controlled: ControlledJob
    #: All that name it as the owner that manages them, by its identity and not by its name.
    jobs: tuple[Job, ...] = ()
    #: What those of them are that are over: nothing about them changes any more.
    over: Mapping[str, Run] = {}
    #: What tells one template from another, and one plan.
    template_hash: str
    schedule_hash: str
    #: None when the plan cannot be read: then `flaw` says why.
    timetable: Timetable | None = None
    flaw: str = ""
    #: What is wrong with calendars that it names: nothing new is started meanwhile.
    calendar_problem: str = ""
    #: Jobs that were seen to go, as they were last: what they came to is known.
    gone: tuple[Job, ...] = ()
    #: The version of the store up to which everything about Jobs was heard.
    heard_to: int = 0
    #: Names that Jobs of others have.
    foreign: frozenset[str] = frozenset()
