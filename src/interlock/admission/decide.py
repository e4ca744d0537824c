"""Whether a Job may start, and who is granted a claim.

A claim is a record that says who holds how much of something: a lock, a share of a quota. Why two
control planes that both believe they lead cannot let in more than fits:

- A grant is a compare-and-set on the claim's record. It names the Job, its uid, its *epoch* and how
  much; and it is made only where all that the record's holders were granted, as far as they are not
  proven done, leaves so much room. So at no version does a record grant more than fits, beside what
  Jobs were granted that asked for it whether it fits or not.
- A Job is admitted by a compare-and-set on itself, from a version that is waiting and has the epoch
  of its grants. It gives grants back by raising its epoch, which is a compare-and-set on itself
  too; so it is either admitted with a grant or has given it back, never both.
- A holder is dropped from a record only on a fact that cannot become untrue: the Job of that uid is
  over, or is gone, or its epoch has passed the grant's (`claims/proof.py`). An old view of such a
  fact is as good as a new one. So at the moment a Job is admitted, each of its grants is still in
  its record.
- The epoch of a Job that may be running is never raised. A Job that is put back after it was
  admitted is *being evicted* first: it keeps its epoch, and with it every grant, until its attempts
  are proven gone. Then one write makes it wait again and raises its epoch. Whoever reads a raised
  epoch knows by that alone that nothing of the earlier one runs.

None of this asks what is claimed, or whether the record belongs to a namespace or to the cluster.

Why Jobs never wait in a ring: the order of priority and creation is one for all lines, a grant goes
only to a Job that is first in every line it stands in and fits everywhere (`claims/candidates.py`),
and a Job with some of its claims gives them back as soon as another is not free for it. So whoever
waits for another to end holds nothing that a third could wait for.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.admission.claims.claim import ClaimView
from interlock.admission.claims.slots import SLOTS
from interlock.admission.lines import may_be_granted
from interlock.admission.view import JobView, RecordView
from interlock.errors import Problem
from interlock.resources.actions import (
    Action,
    CreateResource,
    Decision,
    RecordAdmission,
    RecordStatus,
)
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    QuotaGrant,
    RefusalReason,
    SlotGrant,
    Wait,
    WaitReason,
)
from interlock.resources.ancestry import wait_for_ever
from interlock.resources.door.checking import problems_of_spec
from interlock.resources.job import Job, order_of_acceptance
from interlock.resources.metadata import Resource
from interlock.resources.modes import problems_for_mode
from interlock.resources.schedule import why_told_to_stop
from interlock.resources.test_bed import SlotHolder
from interlock.resources.transitions import has_ended, was_admitted
from interlock.resources.waits import log_words

#: A Job that is not in its schedule's books is written down as waiting for that after this time:
#: it hardly ever takes as long, and a write less is a write less.
BOOKS_EXPECTED_WITHIN = timedelta(seconds=5)
#: The same for a Job that waits for room in its Queue alone. `why` works that out of the lines and
#: knows it at once; most who join a Queue that has room never have it written down.
ROOM_EXPECTED_WITHIN = timedelta(seconds=1)
#: And in the default Queue: when many Jobs are due at once, a write for each is dear, and tells
#: nothing that `why` does not.
DEFAULT_ROOM_EXPECTED_WITHIN = timedelta(seconds=10)
#: What was not heard yet of a Job that holds a claim is heard by then, or listened for again.
LISTENS_FOR = timedelta(seconds=5)


def decide_job(view: JobView, now: datetime) -> Decision:
    """Let a Job in, refuse it, or write down what it waits for.

    An order to go away comes first, then what holds the Job back by itself, then its claims: a
    Job that cannot start anyway must not stand in a line or hold a place.
    """
    job = view.job
    if job.status.admission.phase is not AdmissionPhase.WAITING or has_ended(job):
        return Decision()
    refused = _refusal(view, now)
    if refused is not None:
        return refused
    held_back = _held_back(job, now)
    if not view.in_books:
        return _wait_for_books(view, held_back, now)
    if held_back:
        return _wait(view, held_back)
    blocked = tuple(claim for claim in view.claims if not claim.is_free)
    turned_away = _turned_away(job, blocked, now)
    if turned_away is not None:
        return turned_away
    quota = view.quota
    kept_out = (quota.wait,) if quota is not None and quota.refusal is not None else ()
    if blocked or kept_out or view.has_stray_grant:
        waits = (*(claim.wait for claim in blocked), *kept_out)
        return _replacing(view, _wait(view, waits), now)
    if quota is not None and quota.grant is None:
        return _wait_for_room(view, quota.wait, now)
    if all(claim.grant is not None for claim in view.claims):
        return _admit(view, now)
    # Every claim that is missing is free: its own decision will grant it.
    if not may_be_granted(job):
        return _wait(view, ())
    return Decision(wake_at=_deadline(job))


def _wait_for_books(view: JobView, held_back: tuple[Wait, ...], now: datetime) -> Decision:
    """Wait for the schedule to write the Job down; at first without a word."""
    created = view.job.metadata.creation_timestamp or now
    if not held_back and now < created + BOOKS_EXPECTED_WITHIN:
        return Decision(wake_at=created + BOOKS_EXPECTED_WITHIN)
    return _wait(view, (*held_back, Wait(reason=WaitReason.NOT_IN_BOOKS)))


def _wait_for_room(view: JobView, wait: Wait, now: datetime) -> Decision:
    """Wait for the quota's own decision; at first without a word."""
    job = view.job
    admission, eviction = job.status.admission, job.status.admission.eviction
    joined = (eviction and eviction.ended_at) or job.metadata.creation_timestamp or now
    patience = DEFAULT_ROOM_EXPECTED_WITHIN if job.spec.queue is None else ROOM_EXPECTED_WITHIN
    told_at = joined + patience
    # What it has said, or holds, may be true no more.
    is_clear = not admission.waits and may_be_granted(job)
    if is_clear and now < told_at and all(claim.grant is None for claim in view.claims):
        deadline = _deadline(job)
        return Decision(wake_at=told_at if deadline is None else min(told_at, deadline))
    return _wait(view, (wait,))


def _refusal(view: JobView, now: datetime) -> Decision | None:
    job = view.job
    spec, name = job.spec, job.metadata.name
    if job.is_going:
        return _refuse(job, RefusalReason.DELETED_BEFORE_START, "deleted before it started", now)
    if spec.kill_at is not None and spec.kill_at <= now:
        return _refuse(job, RefusalReason.KILLED_BEFORE_START, why_told_to_stop(job), now)
    newer = job.status.admission.replaced_by
    if newer:
        return _refuse(job, RefusalReason.REPLACED, f"job/{newer} takes the place of {name}", now)
    problems = _problems_of(view)
    if problems:
        # It would hold its claims and never get anywhere: nobody may have to wait for it.
        told = "; ".join(map(str, problems[:3]))
        return _refuse(job, RefusalReason.INVALID, f"its definition is not good: {told}", now)
    if view.held_above is not None and spec.target is not None:
        message = wait_for_ever(spec.target.path, view.held_above.metadata.name)
        return _refuse(job, RefusalReason.INVALID, message, now)
    if spec.start_by is not None and spec.start_by <= now and not was_admitted(job):
        message = f"could not start by {spec.start_by:%Y-%m-%dT%H:%M:%SZ}"
        return _refuse(job, RefusalReason.START_DEADLINE_PASSED, message, now)
    return None


def _problems_of(view: JobView) -> tuple[Problem, ...]:
    if view.is_checked:
        return ()
    spec = view.job.spec
    return problems_of_spec(spec) or problems_for_mode(spec, view.mode)


def _turned_away(job: Job, blocked: tuple[ClaimView, ...], now: datetime) -> Decision | None:
    """Refuse a Job that finds a line too long as it joins, or that would have to wait and must not.

    How long a line may be is asked once: whoever stands in it is not sent away by later ones. What
    was put back was let in once: it waits, whatever it asked for when it was new.
    """
    if was_admitted(job):
        return None
    full = next((claim for claim in blocked if claim.is_full), None)
    if full is not None and not job.status.admission.sequence:
        who = "1 Job waits" if full.ahead == 1 else f"{full.ahead} Jobs wait"
        message = f"{who} for {full.ask.said} already"
        return _refuse(job, RefusalReason.QUEUE_FULL, message, now)
    taken = next((claim for claim in blocked if claim.is_forbidden), None)
    if taken is not None:
        message = f"{taken.ask.said} is taken, and the Job must not wait for it"
        return _refuse(job, taken.ask.kind.forbidden, message, now)
    return None


def _refuse(job: Job, reason: RefusalReason, message: str, now: datetime) -> Decision:
    admission = replace(
        _seen(job),
        phase=AdmissionPhase.REFUSED,
        waits=(),
        refused_at=now,
        refusal=reason,
        message=message,
    )
    return Decision((RecordAdmission(job, admission),), reason=message)


def _held_back(job: Job, now: datetime) -> tuple[Wait, ...]:
    spec = job.spec
    waits = []
    if spec.suspend:
        waits.append(Wait(reason=WaitReason.SUSPENDED))
    if not spec.active:
        waits.append(Wait(reason=WaitReason.DEACTIVATED))
    if spec.start_after is not None and spec.start_after > now:
        waits.append(Wait(reason=WaitReason.NOT_YET_DUE, until=spec.start_after))
    planned = spec.slots
    if planned is not None and planned.test_bed is None:
        by = planned.scheduling or ""
        waits.append(Wait(reason=WaitReason.IN_PLAN if by else WaitReason.UNCLAIMED, key=by))
    requeue = job.status.admission.requeue
    if requeue is not None and requeue.at is not None and requeue.at > now:
        waits.append(Wait(reason=WaitReason.BACKOFF, until=requeue.at))
    return tuple(waits)


def _wait(view: JobView, waits: tuple[Wait, ...]) -> Decision:
    """Write down the waits, and give back what is held; do nothing if all that is so already."""
    job = view.job
    admission = replace(_seen(job), waits=waits)
    must_give_back = (
        view.has_stray_grant
        or any(claim.grant is not None for claim in view.claims)
        or (view.quota is not None and view.quota.holder is not None)
    )
    # A Job that only waits for a claim's own decision keeps what it has.
    if must_give_back and (waits or view.has_stray_grant):
        admission = replace(admission, epoch=admission.epoch + 1)
    moments = [wait.until for wait in waits if wait.until is not None]
    wake_at = min((m for m in (*moments, _deadline(job)) if m is not None), default=None)
    if admission == job.status.admission:
        return Decision(wake_at=wake_at)
    return Decision((RecordAdmission(job, admission),), wake_at, log_words(waits))


def _replacing(view: JobView, waiting: Decision, now: datetime) -> Decision:
    """Mark everyone whom the Job replaces, then wait for them to be gone."""
    if not view.rivals:
        return waiting
    newer = view.job.metadata.name
    marks: list[Action] = [_replaced(rival, newer, now) for rival in view.rivals]
    reason = f"replaces {', '.join(rival.metadata.name for rival in view.rivals[:5])}"
    # Looked at again at once: a long line is replaced part by part.
    return Decision((*waiting.actions, *marks), now, reason)


def _replaced(rival: Job, newer: str, now: datetime) -> RecordAdmission:
    if rival.status.admission.phase is not AdmissionPhase.WAITING:
        # It may be running: it holds what it holds until that is proven over.
        return RecordAdmission(rival, replace(rival.status.admission, replaced_by=newer))
    message = f"job/{newer} takes the place of {rival.metadata.name}"
    refused = _refuse(rival, RefusalReason.REPLACED, message, now).actions[0]
    assert isinstance(refused, RecordAdmission)
    return RecordAdmission(rival, replace(refused.admission, replaced_by=newer))


def _admit(view: JobView, now: datetime) -> Decision:
    job = view.job
    grants = tuple(_grant(claim) for claim in view.claims if claim.ask.kind is not SLOTS)
    slots = next((_slots(claim) for claim in view.claims if claim.ask.kind is SLOTS), None)
    part = view.quota.grant if view.quota is not None else None
    quota = None
    if part is not None and view.quota is not None:
        quota = QuotaGrant(
            queue=part.queue,
            token=part.token,
            tasks=part.tasks,
            awaits_ready=view.quota.awaits_ready,
            awaits_places=view.quota.awaits_places,
        )
    admission = replace(
        _seen(job),
        phase=AdmissionPhase.ADMITTED,
        waits=(),
        grants=grants,
        quota=quota,
        slots=slots,
        admitted_at=now,
    )
    told = [f"{grant.key} (fence {grant.token})" for grant in grants]
    told += [f"room for {quota.tasks} in queue {quota.queue}"] if quota is not None else []
    told += [f"{', '.join(slots.ids)} of test bed {slots.test_bed}"] if slots is not None else []
    reason = f"may start; holds {', '.join(told)}" if told else "may start"
    return Decision((RecordAdmission(job, admission),), reason=reason)


def _grant(claim: ClaimView) -> Grant:
    assert claim.grant is not None
    return Grant(key=claim.ask.name, token=claim.grant.token)


def _slots(claim: ClaimView) -> SlotGrant:
    holder = claim.grant
    assert isinstance(holder, SlotHolder)
    return SlotGrant(test_bed=claim.ask.name, token=holder.token, ids=holder.slots)


def _seen(job: Job) -> AdmissionStatus:
    """The Job's admission with its place in the order of creation, once and for all."""
    admission = job.status.admission
    return (
        admission if admission.sequence else replace(admission, sequence=order_of_acceptance(job))
    )


def _deadline(job: Job) -> datetime | None:
    start_by = None if was_admitted(job) else job.spec.start_by
    moments = (start_by, job.spec.kill_at)
    return min((moment for moment in moments if moment is not None), default=None)


def decide_claim(view: RecordView, now: datetime) -> Decision:
    """Drop holders that are proven done and grant the claim to the next, in one write.

    One grant a write, so that the version of the record that it replaces can be its token.
    """
    candidate = view.candidate if view.candidate is not None and view.candidate.has_way else None
    kind, record = view.kind, view.record
    if record is None:
        made = kind.new_record(candidate.ask) if candidate is not None else None
        if candidate is None or made is None:
            return Decision()
        return Decision((CreateResource(made),), reason=f"first use of {candidate.ask.said}")
    if record.is_going:
        return Decision()
    holders, newest = view.kept, None
    reasons = _drops(view, record)
    if candidate is not None:
        newest = candidate.ask
        holder = kind.granted(record, newest, candidate.job, now, holders)
        holders = (*holders, holder)
        reasons.append(f"grants {newest.name} to {holder.job} (fence {holder.token})")
    if holders != kind.holders(record):
        written = kind.written(record, holders, newest, now)
        return Decision((RecordStatus(record, written),), reason="; ".join(reasons))
    if view.is_unheard:
        # That its Job is gone is not news again when the rest is heard: nobody else would look.
        return Decision(wake_at=now + LISTENS_FOR)
    if holders or view.is_wanted:
        return Decision()
    return kind.retire(record, now)


def _drops(view: RecordView, record: Resource) -> list[str]:
    gone = [holder.job for holder in view.kind.holders(record) if holder not in view.kept]
    return [f"takes {view.kind.name_of(record)} back from {', '.join(gone)}"] if gone else []
