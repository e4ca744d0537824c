"""What is forgotten about requests: how many, how long, what is no plan, and what was returned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from grounds import not_to_be_done, operations
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.execution.children import Children
from interlock.execution.view import ExecutionView
from interlock.resources.actions import Decision, DeleteResource
from interlock.resources.job import Job
from interlock.resources.work import PythonWork, Work
from support.simulation.request_world import RequestWorld

REST = Seam("interlock.execution.decide", "_rest")
WORK = Seam("interlock.execution.orders", "_work")

LIMIT = "As many Jobs as may be are unfinished for one target, and not one more."
TIME = "What is over stays until its time has come and all that belongs to it is over."
RESULTS = "A function is told what the steps before it returned, as it was recorded."

Rest = Callable[[ExecutionView, Job, datetime], Decision]


# How many


@mutation(
    LIMIT,
    Seam("interlock.admission.pending_limit", "check_room"),
    caught_by="PendingLimited",
    in_worlds=operations(RequestWorld),
)
def one_more_is_taken(really: Any) -> Any:
    return lambda job, there, most: really(job, there - 1, most)


@mutation(
    "A Job that is over takes nobody's place.",
    Seam("interlock.admission.pending_limit", "PendingLimit.decided"),
    caught_by="PendingLimited",
    in_worlds=operations(RequestWorld),
)
def who_is_over_is_counted_on(really: Any) -> Any:
    def decided(self: Any, before: Any, after: Any) -> None:
        if before is None or after is None:
            really(self, before, after)

    return decided


# How long


@mutation(TIME, REST, caught_by="KeptForItsTime", in_worlds=operations(RequestWorld))
def it_goes_before_its_time(really: Rest) -> Rest:
    return lambda view, job, now: really(view, job, now + timedelta(days=1))


@mutation(TIME, REST, caught_by="KeptForItsTime", in_worlds=operations(RequestWorld))
def it_goes_before_its_parts(really: Rest) -> Rest:
    return lambda view, job, now: really(replace(view, children=Children()), job, now)


@mutation(TIME, REST, caught_by="KeptForItsTime", in_worlds=operations(RequestWorld))
def it_goes_before_what_it_is_a_part_of(really: Rest) -> Rest:
    return lambda view, job, now: really(replace(view, has_open_parent=False), job, now)


@mutation(
    "What has had its time goes.",
    REST,
    caught_by="KeptForItsTime",
    in_worlds=operations(RequestWorld),
)
def it_never_goes(really: Rest) -> Rest:
    def rest(view: ExecutionView, job: Job, now: datetime) -> Decision:
        found = really(view, job, now)
        kept = tuple(one for one in found.actions if not isinstance(one, DeleteResource))
        return replace(found, actions=kept)

    return rest


# What is no plan


@mutation(
    "Steps that a worker makes are checked as those of people are.",
    Seam("interlock.resources.checks.operations", "check_steps"),
    caught_by="BadRequestsFail",
    in_worlds=not_to_be_done(RequestWorld),
)
def any_steps_will_do(_: Any) -> Any:
    return lambda *_: None


# What was returned


@mutation(RESULTS, WORK, caught_by="ResultsAreHandedOn", in_worlds=operations(RequestWorld))
def nobody_is_told_what_was_returned(really: Any) -> Any:
    return _with_results(really, lambda _: {})


@mutation(RESULTS, WORK, caught_by="ResultsAreHandedOn", in_worlds=operations(RequestWorld))
def results_are_told_of_other_steps(really: Any) -> Any:
    return _with_results(
        really,
        lambda known: dict(
            zip(known, (*list(known.values())[1:], *list(known.values())[:1]), strict=True)
        ),
    )


def _with_results(really: Any, change: Callable[[dict[str, str]], dict[str, str]]) -> Any:
    def work_of(job: Job, index: int, work: Work) -> Work:
        made: Work = really(job, index, work)
        return replace(made, results=change(made.results)) if isinstance(made, PythonWork) else made

    return work_of
