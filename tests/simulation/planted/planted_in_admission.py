"""What is forgotten where Jobs are let in: limits, proof, order, tokens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from grounds import busy, forged
from msgspec.structs import replace
from mutation import Seam, mutation

from interlock.admission.claims.claim import COUNT, ClaimView, Holder
from interlock.admission.claims.proof import Jobs
from interlock.admission.lines import Place
from interlock.admission.view import JobView, RecordView
from interlock.resources.actions import Action, Decision, RecordStatus
from interlock.resources.job import Job
from interlock.resources.lock import Lock, LockStatus
from interlock.resources.metadata import Key
from support.simulation.world import RivalWorld, World

IS_FREE = Seam("interlock.admission.claims.claim", "ClaimView.is_free")
IS_DONE = Seam("interlock.admission.claims.proof", "is_done")
DECIDE_JOB = Seam("interlock.admission.decide", "decide_job")
DECIDE_CLAIM = Seam("interlock.admission.decide", "decide_claim")
PLACE_OF = Seam("interlock.admission.lines", "place_of")

LIMIT = "A lock has no more holders than its limit."
PROOF = "A lock is let go only on proof that its holder has ended or never began."
ORDER = "Locks are granted by priority, then in the order of creation."
TOKENS = "The token of a lock only ever rises, also when its record was made anew."

Decide = Callable[[Any, datetime], Decision]
IsDone = Callable[[Holder, Key, Jobs], bool]


# Limits


@mutation(LIMIT, IS_FREE, caught_by="NeverTwice", in_worlds=busy(World))
def limit_is_ignored(_: object) -> property:
    return property(lambda _: True)


@mutation(LIMIT, IS_FREE, caught_by="NeverTwice", in_worlds=busy(World))
def limit_is_off_by_one(_: object) -> property:
    def is_free(self: ClaimView) -> bool:
        return self.grant is not None or self.held.get(COUNT, 0) <= self.limits[COUNT]

    return property(is_free)


@mutation(
    "A Job with several locks is let in with all of them or none.",
    DECIDE_JOB,
    caught_by="NeverTwice",
    in_worlds=busy(World),
)
def one_lock_of_several_is_enough(really: Decide) -> Decide:
    def decide_job(view: JobView, now: datetime) -> Decision:
        granted = tuple(claim for claim in view.claims if claim.grant is not None)
        return really(replace(view, claims=granted or view.claims), now)

    return decide_job


# Proof


def _is_done_when(really: IsDone, done: Callable[[Job], bool]) -> IsDone:
    def is_done(holder: Holder, key: Key, jobs: Jobs) -> bool:
        job = jobs.get(key)
        is_ours = job is not None and job.metadata.uid == holder.uid
        return really(holder, key, jobs) or (is_ours and job is not None and done(job))

    return is_done


@mutation(PROOF, IS_DONE, caught_by="NeverTwice", in_worlds=busy(World))
def deleting_frees_the_lock(really: IsDone) -> IsDone:
    return _is_done_when(really, lambda job: job.is_going)


@mutation(PROOF, IS_DONE, caught_by="NeverTwice", in_worlds=busy(World))
def unknown_frees_the_lock(really: IsDone) -> IsDone:
    return _is_done_when(really, lambda job: job.status.phase == "Unknown")


@mutation(PROOF, IS_DONE, caught_by="NeverTwice", in_worlds=busy(World))
def stopping_frees_the_lock(really: IsDone) -> IsDone:
    return _is_done_when(really, lambda job: job.status.execution.stopping_for is not None)


@mutation(PROOF, IS_DONE, caught_by="NeverTwice", in_worlds=busy(World))
def backoff_frees_the_lock(really: IsDone) -> IsDone:
    return _is_done_when(really, lambda job: job.status.phase == "RetryBackoff")


@mutation(PROOF, IS_DONE, caught_by="NeverTwice", in_worlds=busy(RivalWorld))
def not_seen_is_taken_for_gone(really: IsDone) -> IsDone:
    def is_done(holder: Holder, key: Key, jobs: Jobs) -> bool:
        return jobs.get(key) is None or really(holder, key, jobs)

    return is_done


@mutation(
    "Who says that it was let in with something else holds nothing beside that.",
    Seam("interlock.admission.claims.proof", "_is_disowned"),
    caught_by="Settles",
    in_worlds=forged(World),
)
def what_is_forged_holds_for_ever(_: object) -> Callable[..., bool]:
    return lambda *_: False


@mutation("Who has ended holds no lock.", IS_DONE, caught_by="Settles", in_worlds=busy(World))
def nobody_ever_leaves(_: IsDone) -> Callable[..., bool]:
    return lambda *_: False


# Order

PlaceOf = Callable[[Job], Place]


@mutation(ORDER, PLACE_OF, caught_by="InOrder", in_worlds=busy(World))
def last_comes_first(really: PlaceOf) -> PlaceOf:
    def place_of(job: Job) -> Place:
        place = really(job)
        return place._replace(sequence=-place.sequence)

    return place_of


@mutation(ORDER, PLACE_OF, caught_by="InOrder", in_worlds=busy(World), seen_in=60)
def priority_is_ignored(really: PlaceOf) -> PlaceOf:
    return lambda job: really(job)._replace(rank=0)


@mutation(ORDER, PLACE_OF, caught_by="InOrder", in_worlds=busy(World))
def order_is_by_name(really: PlaceOf) -> PlaceOf:
    return lambda job: really(job)._replace(sequence=0)


# Tokens


def _with_tokens(really: Decide, token: Callable[[RecordView], int]) -> Decide:
    def decide_claim(view: RecordView, now: datetime) -> Decision:
        decision = really(view, now)
        actions = tuple(_retold(action, view, token(view)) for action in decision.actions)
        return replace(decision, actions=actions)

    return decide_claim


def _retold(action: Action, view: RecordView, token: int) -> Action:
    if not isinstance(action, RecordStatus):
        return action
    assert isinstance(action.status, LockStatus)
    known = view.record.status.holders if isinstance(view.record, Lock) else ()
    holders = tuple(h if h in known else replace(h, token=token) for h in action.status.holders)
    return replace(action, status=replace(action.status, holders=holders, last_token=token))


@mutation(TOKENS, DECIDE_CLAIM, caught_by="TokensRise", in_worlds=busy(World))
def tokens_stay_the_same(really: Decide) -> Decide:
    return _with_tokens(really, lambda _: 1)


@mutation(
    TOKENS,
    DECIDE_CLAIM,
    Seam("interlock.admission.claims.locks", "IDLE_LOCK_KEPT"),
    caught_by="TokensRise",
    in_worlds=busy(World),
)
def tokens_begin_anew_with_the_record(really: Decide, _: timedelta) -> tuple[Decide, timedelta]:
    def token(view: RecordView) -> int:
        return view.record.status.last_token + 1 if isinstance(view.record, Lock) else 1

    return _with_tokens(really, token), timedelta(seconds=1)


# What is let in


@mutation(
    "No Job is let in that cannot be run.",
    Seam("interlock.admission.decide", "problems_of_spec"),
    caught_by="Settles",
    in_worlds=busy(World),
    seen_in=14,
)
def bad_definitions_are_let_in(_: object) -> Callable[..., tuple[()]]:
    return lambda _: ()
