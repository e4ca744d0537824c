"""What is forgotten where a quota is granted: room, proof, order, what was asked, who is woken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from grounds import queued
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.admission.ready_timers import Clock
from interlock.resources.admission import EvictionCause
from interlock.resources.job import Job
from interlock.resources.queue import Member, Queue, StopPolicy
from interlock.resources.ready_gate import ReadyPolicy
from interlock.resources.transitions import is_admitted, is_evicting
from support.simulation.queue_world import GateWorld, PreemptionWorld, QueueWorld, RivalQueueWorld

MOST_TASKS = Seam("interlock.admission.queues.demands", "most_tasks")
CHARGED = Seam("interlock.resources.queue", "charged")
IS_DONE = Seam("interlock.admission.queues.known", "KnownQueues.is_done")
LETS_IN = Seam("interlock.admission.queues.cycle", "_open")
LINE_PLACE = Seam("interlock.admission.queues.lines", "place_of")
QUOTA_VIEW = Seam("interlock.admission.queues.demands", "quota_view")
DRAINED = Seam("interlock.admission.eviction", "_drained")

FITS = "No more is granted of a quota than it has."
PROOF = "A grant counts until it is proven given back."
ORDER = "Room goes to those who came first, of all who fit."
ALONE = "What was granted is all that a Job may use."
WOKEN = "Whoever could be let in is looked at."
CAUSE = "A Job is put back for a cause alone."


@mutation(FITS, MOST_TASKS, caught_by="QuotaKept", in_worlds=queued(QueueWorld))
def room_is_ignored(_: Any) -> Any:
    return lambda _, wanted, __: wanted


@mutation(FITS, CHARGED, caught_by="QuotaKept", in_worlds=queued(QueueWorld))
def holders_count_for_one_task(really: Any) -> Any:
    return lambda holder, job: really(replace(holder, tasks=1), job)


@mutation(PROOF, IS_DONE, caught_by="QuotaKept", in_worlds=queued(QueueWorld))
def nobody_holds_for_long(_: Any) -> Any:
    return lambda *_: True


@mutation(
    PROOF,
    Seam("interlock.resources.transitions", "tasks_left"),
    caught_by="QuotaKept",
    in_worlds=queued(QueueWorld),
)
def tasks_that_run_are_not_counted(_: Any) -> Any:
    def tasks_left(job: Job, granted: int) -> int:
        return max(0, granted - len(job.status.execution.active))

    return tasks_left


@mutation(FITS, LETS_IN, caught_by="QuotaKept", in_worlds=queued(QueueWorld))
def a_stopped_queue_lets_jobs_in(_: Any) -> Any:
    return lambda known, member: known.queue(member.queue)


@mutation(
    "What a Queue allows is never taken back to what it allowed before.",
    LETS_IN,
    Seam("interlock.admission.queues.seats", "_newest"),
    caught_by="QuotaKept",
    in_worlds=queued(RivalQueueWorld),
    most_worlds=400,
)
def an_old_queue_is_believed(_: Any, really: Callable[..., Member]) -> Any:
    def lets_in(known: Any, member: Member) -> Queue | None:
        queue: Queue | None = known.queue(member.queue)
        return queue if queue is not None and queue.spec.stop is StopPolicy.NONE else None

    def newest(known: Any, queue: Queue, member: Member | None, seat: int) -> Member:
        return really(known, queue, None, seat)

    return lets_in, newest


@mutation(ORDER, LINE_PLACE, caught_by="QueueInOrder", in_worlds=queued(QueueWorld))
def the_newest_is_first(really: Any) -> Any:
    def place_of(job: Job) -> Any:
        place = really(job)
        return place._replace(sequence=-place.sequence)

    return place_of


@mutation(
    ORDER,
    Seam("interlock.admission.queues.cycle", "_held_up"),
    caught_by="QueueInOrder",
    in_worlds=queued(QueueWorld),
)
def a_strict_line_lets_others_pass(_: Any) -> Any:
    return lambda _, other: other


@mutation(
    ALONE,
    Seam("interlock.admission.queues.demands", "QuotaView.grant"),
    caught_by="QuotaKept",
    in_worlds=queued(QueueWorld),
)
def what_was_granted_need_not_be_what_is_asked(really: Any) -> Any:
    return property(lambda self: self.holder or object.__new__(_Anything))


class _Anything:
    queue, token, tasks = "", 0, 1


@mutation(
    ALONE,
    Seam("interlock.execution.launching", "choose"),
    caught_by="QuotaKept",
    in_worlds=queued(QueueWorld),
)
def more_tasks_start_than_were_granted(really: Any) -> Any:
    def choose(job: Job, execution: Any, capacity: int, now: datetime) -> Any:
        admission = replace(job.status.admission, quota=None)
        free = replace(job, status=replace(job.status, admission=admission))
        return really(free, execution, capacity, now)

    return choose


@mutation(
    WOKEN,
    Seam("interlock.admission.queues.desk", "_leaves_room"),
    caught_by="Settles",
    in_worlds=queued(QueueWorld),
)
def room_that_comes_free_wakes_nobody(_: Any) -> Any:
    return lambda *_: False


@mutation(
    WOKEN,
    Seam("interlock.admission.queues.desk", "QueueDesk.needing"),
    caught_by="Settles",
    in_worlds=queued(QueueWorld),
    most_worlds=400,
    seen_in=20,
)
def a_free_lock_wakes_no_queue(_: Any) -> Any:
    return lambda *_: ()


@mutation(CAUSE, DRAINED, caught_by="PutBackForCause", in_worlds=queued(QueueWorld))
def a_queue_that_holds_is_drained(really: Callable[..., Any]) -> Any:
    def drained(job: Job, queue: Queue | None, system: Any, now: datetime) -> Any:
        if queue is not None and queue.spec.stop is not StopPolicy.NONE:
            spec = replace(queue.spec, stop=StopPolicy.HOLD_AND_DRAIN)
            queue = replace(queue, spec=spec)
        return really(job, queue, system, now)

    return drained


@mutation(
    "Whoever is over is taken off the record.",
    Seam("interlock.admission.queues.record", "decide_quota"),
    caught_by="QuotaKept",
    in_worlds=queued(QueueWorld),
)
def nobody_is_taken_off(really: Callable[..., Any]) -> Any:
    def decide_quota(view: Any, now: datetime) -> Any:
        record = view.record
        is_idle = not view.outcome.parts
        if record is not None and len(view.kept) < len(record.status.holders) and is_idle:
            view = replace(view, kept=record.status.holders, over_since=None)
        return really(view, now)

    return decide_quota


def _is_running(job: Job) -> bool:
    return is_admitted(job) and not is_evicting(job)


@mutation(
    CAUSE,
    Seam("interlock.admission.queues.preemption", "_possible"),
    caught_by="PutBackForCause",
    in_worlds=PreemptionWorld,
    most_worlds=400,
    seen_in=11,
)
def everybody_makes_room_for_everybody(_: Any) -> Any:
    return lambda _, __, holdings: (one for one in holdings if _is_running(one.job))


NOTHING = "Where a Queue says so nobody is let in beside a Job that was not ready yet."


@mutation(
    NOTHING,
    Seam("interlock.admission.queues.demands", "is_ready"),
    caught_by="AllOrNothing",
    in_worlds=GateWorld,
    most_worlds=400,
    seen_in=10,
)
def everybody_counts_as_ready(_: Any) -> Any:
    return lambda *_: True


@mutation(
    "Tries are counted one by one.",
    Seam("interlock.admission.ready_timers", "tries_of"),
    caught_by="AllOrNothing",
    in_worlds=GateWorld,
    most_worlds=400,
)
def every_try_counts_twice(really: Callable[[Job], int]) -> Any:
    return lambda job: 2 * really(job) + 1


@mutation(
    CAUSE,
    Seam("interlock.admission.eviction", "clock_of"),
    caught_by="PutBackForCause",
    in_worlds=GateWorld,
    most_worlds=400,
)
def who_is_ready_is_late_too(_: Any) -> Any:
    def clock_of(job: Job, policy: ReadyPolicy) -> Clock | None:
        admitted_at = job.status.admission.admitted_at
        if not policy.is_on or admitted_at is None:
            return None
        return Clock(admitted_at + policy.timeout, EvictionCause.WAIT_FOR_START)

    return clock_of
