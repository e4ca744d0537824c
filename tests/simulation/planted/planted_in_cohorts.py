"""What is forgotten where Queues lend to each other: limits, who has left, who comes along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.resources.queue import Member
from interlock.resources.ready_gate import BlockScope
from support.simulation.queue_world import CohortWorld, RivalCohortWorld

LENT = "Queues of a cohort use no more together than they have, and each no more than it may."
MOVED = "A Queue that moves takes along what its Jobs hold, and is granted from one record."
SETTLED = "A Queue gets to where its definition says."


@mutation(
    LENT,
    Seam("interlock.admission.queues.ledger", "Ledger._free_of"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def what_others_use_of_it_is_lent_again(_: Any) -> Any:
    def free_of(self: Any, terms: Any, name: str, used: int) -> int:
        most: int = terms.most.get(name, terms.keeps[name] + self._lendable[name])
        return max(0, most - used)

    return free_of


@mutation(
    LENT,
    Seam("interlock.admission.queues.seats", "_newest"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def nobody_keeps_to_what_it_may_borrow(really: Callable[..., Member]) -> Any:
    return lambda *args: replace(really(*args), borrowing=None)


@mutation(
    LENT,
    Seam("interlock.admission.queues.ledger", "_Terms"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def what_is_not_lent_is_lent(really: Callable[..., Any]) -> Any:
    def terms(member: Member) -> Any:
        made = really(member)
        made.keeps = dict.fromkeys(made.keeps, 0)
        return made

    return terms


@mutation(
    MOVED,
    Seam("interlock.admission.queues.seats", "_taken_along"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def nobody_comes_along(_: Any) -> Any:
    return lambda *_: ()


@mutation(
    MOVED,
    Seam("interlock.admission.queues.seats", "_is_marked"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=800,
)
def a_queue_moves_before_it_has_left(_: Any) -> Any:
    return lambda *_: True


@mutation(
    MOVED,
    Seam("interlock.admission.queues.seats", "live"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def who_has_left_is_granted_more(_: Any) -> Any:
    return tuple


@mutation(
    MOVED,
    Seam("interlock.admission.queues.seats", "_was_taken_in"),
    caught_by="QuotaKept",
    in_worlds=RivalCohortWorld,
    most_worlds=800,
)
def the_old_record_forgets_them_too_soon(_: Any) -> Any:
    return lambda *_: True


@mutation(
    SETTLED,
    Seam("interlock.admission.queues.desk", "concerned"),
    caught_by="QuotaKept",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def a_step_of_a_move_wakes_nobody(_: Any) -> Any:
    return lambda *_: ()


@mutation(
    "A Job of another Queue makes room where that uses more than its own, for whom it has lent it.",
    Seam("interlock.admission.queues.preemption", "_possible"),
    caught_by="PutBackForCause",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def everybody_makes_room_in_a_cohort(_: Any) -> Any:
    return lambda _, __, holdings: holdings


@mutation(
    "A Job of another Queue makes room where that uses more than its own.",
    Seam("interlock.admission.queues.preemption", "_may_go"),
    caught_by="PutBackForCause",
    in_worlds=CohortWorld,
    most_worlds=400,
)
def who_has_borrowed_nothing_makes_room_too(_: Any) -> Any:
    return lambda *_: True


@mutation(
    "Where a Queue says so nobody is let in beside a Job of its cohort that was never ready.",
    Seam("interlock.admission.queues.cycle", "_Cycle._close_gates"),
    caught_by="AllOrNothing",
    in_worlds=CohortWorld,
    most_worlds=800,
)
def a_gate_of_a_cohort_is_closed_for_its_own_queue_alone(really: Callable[..., None]) -> Any:
    def close_gates(self: Any, holders: Any) -> None:
        for front in self._fronts.values():
            if front.member.scope is BlockScope.COHORT:
                front.member = replace(front.member, scope=BlockScope.QUEUE)
        really(self, holders)

    return close_gates
