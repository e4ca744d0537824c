"""What is forgotten about the default Queue: that it is asked, who is woken, whom it concerns."""

from __future__ import annotations

from typing import Any

from mutation import Seam, mutation

from interlock.admission.queues.desk import QueueDesk
from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.job import Job
from support.simulation.queue_world import MachineWorld

ASKED = "A process that names no Queue asks the default one while that is there."


@mutation(
    ASKED,
    Seam("interlock.admission.queues.demands", "KnownQueues.default_now"),
    caught_by="QuotaKept",
    in_worlds=MachineWorld,
)
def nobody_asks_the_default_queue(_: Any) -> Any:
    return property(lambda _: "")


@mutation(
    "Whoever asks the default Queue since it is there stands in its line.",
    Seam("interlock.admission.queues.desk", "QueueDesk.asked_anew"),
    caught_by="Settles",
    in_worlds=MachineWorld,
    most_worlds=400,
    seen_in=311,
)
def nobody_joins_the_line_of_a_new_default_queue(_: Any) -> Any:
    return lambda *_: ()


@mutation(
    "What was let in before there was a default Queue is none of its Jobs.",
    Seam("interlock.admission.queues.desk", "QueueDesk.queue_of"),
    caught_by="PutBackForCause",
    in_worlds=MachineWorld,
    most_worlds=400,
    seen_in=41,
)
def the_default_queue_drains_who_holds_nothing_of_it(_: Any) -> Any:
    def queue_of(desk: QueueDesk, job: Job) -> Any:
        return desk._known.queue(job.spec.queue or DEFAULT_QUEUE)

    return queue_of
