"""What is forgotten about things of others: whose they are, what they were granted, what lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.kube.pods.models import BatchJob
from interlock.kube.webhook.review import Verdict
from interlock.resources.adopted import QUEUE_LABEL
from interlock.resources.queue import QueueSpec, StopPolicy
from interlock.resources.values.amounts import Amount
from support.simulation.adopted_world import AdoptedWorld, RivalAdoptedWorld
from support.simulation.faults import CALM
from support.simulation.script import (
    ApplyQueue,
    ChangeTheirs,
    CreateTheirs,
    Step,
)

GRANT = "What is of others runs by a grant alone, and no more of it than was granted."
QUIET = "What a batch Job holds it holds until none of its pods lives."
THEIRS = "What is of others stays theirs."
FOLLOWS = "The Job that stands for an object follows that."

_FREE = QueueSpec(resources={"tasks": Amount.read(4)})
_HELD = replace(_FREE, stop=StopPolicy.HOLD)
_LONG = ("work", "100000")
#: One that nobody let in is let run by its owner, for longer than anybody waits.
PAST_THE_QUEUE = (
    Step(1.0, ApplyQueue("blue", _HELD)),
    Step(60.0, CreateTheirs(name="theirs", command=_LONG, queue="blue", priority="none")),
    Step(120.0, ChangeTheirs("theirs", {"spec": {"suspend": False}})),
)


@mutation(
    GRANT,
    Seam("interlock.kube.pods.manifest", "arm_batch_job"),
    caught_by="LetRunByGrant",
    in_worlds=AdoptedWorld,
)
def a_batch_job_runs_as_many_pods_as_it_likes(really: Callable[..., Any]) -> Any:
    def arm(job: BatchJob, now: Any) -> Any:
        patch = really(job, now)
        patch["spec"].pop("parallelism", None)
        return patch

    return arm


@mutation(
    GRANT,
    Seam("interlock.kube.adoption.decide", "_went_past"),
    caught_by="StandsForIt",
    in_worlds=lambda seed: AdoptedWorld(seed, PAST_THE_QUEUE, CALM),
)
def who_goes_past_a_queue_is_let_run(_: Any) -> Any:
    return lambda _: False


@mutation(
    GRANT,
    Seam("interlock.kube.webhook.holding", "_hold_pod"),
    caught_by="LetRunByGrant",
    in_worlds=AdoptedWorld,
)
def a_new_pod_is_not_held_back(_: Any) -> Any:
    return lambda _: Verdict()


@mutation(
    QUIET,
    Seam("interlock.kube.pods.batch", "BatchJobs._lives"),
    caught_by="HeldUntilQuiet",
    in_worlds=AdoptedWorld,
)
def pods_that_live_are_not_waited_for(_: Any) -> Any:
    return lambda *_: False


@mutation(
    QUIET,
    Seam("interlock.kube.pods.batch_reporting", "_is_quiet"),
    Seam("interlock.kube.pods.batch_reporting", "_settled_at"),
    caught_by="LetRunByGrant",
    in_worlds=AdoptedWorld,
    seen_in=2,
)
def pods_that_are_about_to_be_made_are_not_waited_for(_: Any, __: Any) -> Any:
    return lambda _: True, lambda job: job.metadata.creation_timestamp


@mutation(
    QUIET,
    Seam("interlock.kube.pods.stopping", "let_go"),
    caught_by="HeldUntilQuiet",
    in_worlds=RivalAdoptedWorld,
    most_worlds=400,
    seen_in=54,
)
def whoever_lets_go_looks_not_at_the_attempt(really: Callable[..., Any]) -> Any:
    async def let_go(mirror: Any, held: Any, check: Any) -> None:
        newest = await mirror.objects.get(*held.place)
        await really(mirror, newest, check)

    return let_go


@mutation(
    "What is stopped is looked for by the name that it has.",
    Seam("interlock.control.applier", "_stop"),
    caught_by="HeldUntilQuiet",
    in_worlds=RivalAdoptedWorld,
    most_worlds=400,
    seen_in=430,
)
def an_attempt_is_looked_for_by_our_name_alone(really: Callable[..., Any]) -> Any:
    return lambda action: replace(really(action), object="")


@mutation(
    "What is left of the attempt before goes before the next is launched.",
    Seam("interlock.execution.composing", "past_reports"),
    caught_by="Settles",
    in_worlds=RivalAdoptedWorld,
    most_worlds=400,
    seen_in=236,
)
def what_is_left_stays_once_the_next_is_on_record(really: Callable[..., Any]) -> Any:
    return lambda view, recorded: [] if recorded.active else really(view, recorded)


@mutation(
    THEIRS,
    Seam("interlock.kube.pods.models", "BatchJob.asked_parallelism"),
    caught_by="StaysTheirs",
    in_worlds=AdoptedWorld,
)
def nobody_gets_its_parallelism_back(_: Any) -> Any:
    return property(lambda self: self.spec.parallelism)


@mutation(
    THEIRS,
    Seam("interlock.kube.pods.stopping", "Stopping._suspend"),
    caught_by="StaysTheirs",
    in_worlds=AdoptedWorld,
)
def a_batch_job_that_is_stopped_is_deleted(really: Callable[..., Any]) -> Any:
    async def suspend(self: Any, job: BatchJob) -> bool:
        is_there = await really(self, job)
        if is_there and job.is_adopted:
            await self._jobs.objects.delete(*job.place, uid=job.metadata.uid, grace_s=None)
        return bool(is_there)

    return suspend


@mutation(
    FOLLOWS,
    Seam("interlock.kube.adoption.adopter", "Adopter._is_there"),
    caught_by="StandsForIt",
    in_worlds=RivalAdoptedWorld,
)
def what_a_mirror_does_not_know_is_gone(_: Any) -> Any:
    async def is_there(self: Any, place: Any, uid: str) -> bool:
        known = self._known(place)
        return known is not None and known.metadata.uid == uid

    return is_there


@mutation(
    FOLLOWS,
    Seam("interlock.kube.adoption.adopter", "Adopter.begin"),
    caught_by="StandsForIt",
    in_worlds=AdoptedWorld,
    most_worlds=400,
)
def a_new_leader_looks_at_nothing(_: Any) -> Any:
    return lambda _: None


@mutation(
    FOLLOWS,
    Seam("interlock.kube.adoption.decide", "is_part_of_another"),
    Seam("interlock.kube.webhook.holding", "_is_part"),
    caught_by="Settles",
    in_worlds=AdoptedWorld,
)
def a_part_is_queued_by_itself(_: Any, __: Any) -> Any:
    return lambda _: False, lambda _: False


#: A batch Job that its owner takes out of the Queue, and puts in again.
LABELLED_AGAIN = (
    Step(1.0, ApplyQueue("blue", _FREE)),
    Step(60.0, CreateTheirs(name="theirs", command=("work", "1"), queue="red")),
    Step(120.0, ChangeTheirs("theirs", {"metadata": {"labels": {QUEUE_LABEL: None}}})),
    Step(300.0, ChangeTheirs("theirs", {"metadata": {"labels": {QUEUE_LABEL: "blue"}}})),
)


@mutation(
    FOLLOWS,
    Seam("interlock.kube.pods.informer", "Informer._bury"),
    caught_by="StandsForIt",
    in_worlds=lambda seed: AdoptedWorld(seed, LABELLED_AGAIN, CALM),
)
def what_has_lost_its_label_is_gone_for_good(really: Callable[..., None]) -> Any:
    return lambda self, uid, _: really(self, uid, 1 << 64)
