"""What is forgotten where a Job is put back: proof, giving back, rounds, whose order it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from grounds import put_back
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.resources.actions import Decision, RecordAdmission
from interlock.resources.admission import AdmissionStatus
from interlock.resources.job import Job, JobStatus
from interlock.resources.tasks import ExecutionStatus
from support.simulation.eviction_world import EvictionWorld

DECIDE_EVICTION = Seam("interlock.admission.eviction", "decide_eviction")
MOVED = Seam("interlock.resources.transitions", "moved")
NEXT_ROUND = Seam("interlock.resources.tasks", "next_round")

PROOF = "A Job that is put back holds everything until its attempts are proven gone."
WHOLE = "A Job that waits again has given back all it held."

Decide = Callable[..., Decision]
Moved = Callable[[Job, AdmissionStatus, ExecutionStatus, datetime], JobStatus | None]


def _writing(really: Decide, change: Callable[[AdmissionStatus], AdmissionStatus]) -> Decide:
    def decide_eviction(job: Job, now: datetime, *more: Any) -> Decision:
        decision = really(job, now, *more)
        actions = tuple(
            RecordAdmission(each.job, change(each.admission))
            for each in decision.actions
            if isinstance(each, RecordAdmission)
        )
        return replace(decision, actions=actions)

    return decide_eviction


@mutation(PROOF, DECIDE_EVICTION, caught_by="PutBackWhole", in_worlds=put_back(EvictionWorld))
def evicting_gives_back_at_once(really: Decide) -> Decide:
    def change(admission: AdmissionStatus) -> AdmissionStatus:
        is_begun = admission.eviction is not None and admission.eviction.ended_at is None
        return replace(admission, epoch=admission.epoch + 1) if is_begun else admission

    return _writing(really, change)


@mutation(
    PROOF,
    Seam("interlock.admission.eviction", "_put_back"),
    MOVED,
    caught_by="PutBackWhole",
    in_worlds=put_back(EvictionWorld),
    seen_in=90,
)
def attempts_are_not_waited_for(put_back: Decide, moved: Moved) -> tuple[Decide, Moved]:
    def _without_tasks(job: Job) -> Job:
        execution = replace(job.status.execution, active=())
        return replace(job, status=replace(job.status, execution=execution))

    def planted_put_back(job: Job, *more: Any) -> Decision:
        decision = put_back(_without_tasks(job), *more)
        actions = tuple(
            RecordAdmission(job, each.admission)
            for each in decision.actions
            if isinstance(each, RecordAdmission)
        )
        return replace(decision, actions=actions)

    def planted_moved(
        job: Job, admission: AdmissionStatus, execution: ExecutionStatus, now: datetime
    ) -> JobStatus | None:
        if admission.evictions > job.status.admission.evictions:
            execution = replace(execution, active=())
        return moved(job, admission, execution, now)

    return planted_put_back, planted_moved


@mutation(WHOLE, DECIDE_EVICTION, caught_by="PutBackWhole", in_worlds=put_back(EvictionWorld))
def what_waits_again_is_still_a_holder(really: Decide) -> Decide:
    def change(admission: AdmissionStatus) -> AdmissionStatus:
        is_over = admission.eviction is not None and admission.eviction.ended_at is not None
        return replace(admission, epoch=admission.epoch - 1) if is_over else admission

    return _writing(really, change)


@mutation(
    "An attempt of one round is never taken for that of another.",
    Seam("interlock.execution.launching", "first_attempt"),
    caught_by="RecordedFirst",
    in_worlds=put_back(EvictionWorld),
)
def every_round_counts_from_zero(_: Any) -> Callable[[int], int]:
    return lambda _: 0


@mutation(
    "What succeeded before a Job was put back is not done again.",
    NEXT_ROUND,
    caught_by="PutBackWhole",
    in_worlds=put_back(EvictionWorld),
    seen_in=110,
)
def a_new_round_forgets_what_is_done(
    _: Any,
) -> Callable[[ExecutionStatus], ExecutionStatus]:
    return lambda execution: ExecutionStatus(round=execution.round + 1)


@mutation(
    "Nothing of a Job is begun while it is put back.",
    Seam("interlock.execution.decide", "is_evicting"),
    caught_by="PutBackWhole",
    in_worlds=put_back(EvictionWorld),
)
def evicting_jobs_go_on(_: Any) -> Callable[[Job], bool]:
    return lambda _: False


@mutation(
    "An order to put a Job back is for one round alone.",
    Seam("interlock.admission.eviction", "is_ordered_back"),
    caught_by="PutBackWhole",
    in_worlds=put_back(EvictionWorld),
)
def an_order_is_heeded_again_and_again(_: Any) -> Callable[[Job], bool]:
    return lambda job: "interlock.dev/requeue" in job.metadata.annotations
