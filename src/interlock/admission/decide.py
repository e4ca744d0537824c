"""Whether a Job may start, and who is granted a lock.

Why two control planes that both believe they lead cannot let in too many:

- A grant is a compare-and-set on the key's record. It names the Job, its uid and its *epoch*.
- A Job is admitted by a compare-and-set on itself, from a version that is waiting and has the epoch
  of its grants. It gives grants back by raising its epoch, which is a compare-and-set on itself
  too; so it is either admitted with a grant or has given it back, never both.
- A holder is dropped from a record only on a fact that cannot become untrue: the Job of that uid is
  over, or is gone, or its epoch has passed the grant's. An old view of such a fact is as good as a
  new one. So at the moment a Job is admitted, each of its grants is still in its record.

Why Jobs never wait in a ring: the order of priority and creation is one for all lines, a grant goes
only to a Job that is first in every line it stands in, and a Job with some of its locks gives them
back as soon as it is not first for another.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.admission.view import JobView, KeyView, LockView
from interlock.resources.actions import (
    Action,
    CreateResource,
    Decision,
    DeleteResource,
    RecordAdmission,
    RecordStatus,
)
from interlock.resources.admission import (
    AdmissionPhase,
    AdmissionStatus,
    Grant,
    RefusalReason,
    Wait,
    WaitReason,
)
from interlock.resources.checks import problems_of_spec
from interlock.resources.job import Job, WhenTaken
from interlock.resources.lock import Holder, Lock, LockSpec, lock_name
from interlock.resources.metadata import Metadata
from interlock.resources.modes import problems_for_mode
from interlock.resources.schedule import why_told_to_stop
from interlock.resources.transitions import has_ended, is_admitted, was_admitted

#: A Job that is not in its schedule's books is written down as waiting for that after this time:
#: it hardly ever takes as long, and a write less is a write less.
BOOKS_EXPECTED_WITHIN = timedelta(seconds=5)
#: A record that nobody holds or wants is removed after this time.
IDLE_LOCK_KEPT = timedelta(minutes=10)
#: What was not heard yet of a Job that holds a lock is heard by then, or listened for again.
LISTENS_FOR = timedelta(seconds=5)


def decide_job(view: JobView, now: datetime) -> Decision:
    """Let a Job in, refuse it, or write down what it waits for.

    An order to go away comes first, then what holds the Job back by itself, then its locks: a
    Job that cannot start anyway must not stand in a line or hold a place.
    """
    job = view.job
    if has_ended(job) or is_admitted(job):
        return Decision()
    refused = _refusal(view, now)
    if refused is not None:
        return refused
    held_back = _held_back(job, now)
    if not view.in_books:
        return _wait_for_books(view, held_back, now)
    if held_back:
        return _wait(view, held_back)
    blocked = tuple(key for key in view.keys if not key.is_free)
    # What was put back was let in once: it waits, whatever it asked for when it was new.
    refusable = () if was_admitted(job) else blocked
    is_new = not job.status.admission.sequence
    full = next((key for key in refusable if key.is_full and is_new), None)
    if full is not None:
        who = "1 Job waits" if full.ahead == 1 else f"{full.ahead} Jobs wait"
        message = f"{who} for lock {full.request.key} already"
        return _refuse(job, RefusalReason.QUEUE_FULL, message, now)
    forbidden = (k for k in refusable if k.request.when_taken is WhenTaken.FORBID and k.is_taken)
    taken = next(forbidden, None)
    if taken is not None:
        message = f"lock {taken.request.key} is taken, and the Job must not wait for it"
        return _refuse(job, RefusalReason.LOCK_FORBIDDEN, message, now)
    if blocked or view.has_stray_grant:
        waits = tuple(Wait(reason=WaitReason.LOCK_TAKEN, key=k.request.key) for k in blocked)
        return _replacing(view, _wait(view, waits), now)
    if all(key.grant is not None for key in view.keys):
        return _admit(view, now)
    # Every lock that is missing is free: its own decision will grant it.
    if not stands_in_line(job):
        return _wait(view, ())
    return Decision(wake_at=_deadline(job))


def _wait_for_books(view: JobView, held_back: tuple[Wait, ...], now: datetime) -> Decision:
    """Wait for the schedule to write the Job down; at first without a word."""
    created = view.job.metadata.creation_timestamp or now
    if not held_back and now < created + BOOKS_EXPECTED_WITHIN:
        return Decision(wake_at=created + BOOKS_EXPECTED_WITHIN)
    return _wait(view, (*held_back, Wait(reason=WaitReason.NOT_IN_BOOKS)))


def stands_in_line(job: Job) -> bool:
    """Whether the Job may be granted locks, by what is stored and without a clock.

    A Job with a `startAfter` has to be written down as due first: so every reader of the store
    sees the same line, whatever its clock says.
    """
    admission = job.status.admission
    if admission.phase is not AdmissionPhase.WAITING or job.is_going or job.spec.suspend:
        return False
    if job.spec.start_after is None:
        return True
    is_due = all(wait.reason is not WaitReason.NOT_YET_DUE for wait in admission.waits)
    return admission.sequence > 0 and is_due


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
    problems = problems_of_spec(spec) or problems_for_mode(spec, view.mode)
    if problems:
        # It would hold its locks and never get anywhere: nobody may have to wait for it.
        told = "; ".join(map(str, problems[:3]))
        return _refuse(job, RefusalReason.INVALID, f"its definition is not good: {told}", now)
    if spec.start_by is not None and spec.start_by <= now and not was_admitted(job):
        message = f"could not start by {spec.start_by:%Y-%m-%dT%H:%M:%SZ}"
        return _refuse(job, RefusalReason.START_DEADLINE_PASSED, message, now)
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
    if spec.start_after is not None and spec.start_after > now:
        waits.append(Wait(reason=WaitReason.NOT_YET_DUE, until=spec.start_after))
    return tuple(waits)


def _wait(view: JobView, waits: tuple[Wait, ...]) -> Decision:
    """Write down the waits, and give back what is held; do nothing if all that is so already."""
    job = view.job
    admission = replace(_seen(job), waits=waits)
    must_give_back = view.has_stray_grant or any(key.grant is not None for key in view.keys)
    # A Job that only waits for the lock's own decision keeps what it has.
    if must_give_back and (waits or view.has_stray_grant):
        admission = replace(admission, epoch=admission.epoch + 1)
    moments = [wait.until for wait in waits if wait.until is not None]
    wake_at = min((m for m in (*moments, _deadline(job)) if m is not None), default=None)
    if admission == job.status.admission:
        return Decision(wake_at=wake_at)
    return Decision((RecordAdmission(job, admission),), wake_at, _waits_in_words(waits))


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
    if is_admitted(rival):
        return RecordAdmission(rival, replace(rival.status.admission, replaced_by=newer))
    message = f"job/{newer} takes the place of {rival.metadata.name}"
    refused = _refuse(rival, RefusalReason.REPLACED, message, now).actions[0]
    assert isinstance(refused, RecordAdmission)
    return RecordAdmission(rival, replace(refused.admission, replaced_by=newer))


def _admit(view: JobView, now: datetime) -> Decision:
    job = view.job
    grants = tuple(_grant(key) for key in view.keys)
    admission = replace(
        _seen(job), phase=AdmissionPhase.ADMITTED, waits=(), grants=grants, admitted_at=now
    )
    told = ", ".join(f"{grant.key} (fence {grant.token})" for grant in grants)
    reason = f"may start; holds {told}" if told else "may start"
    return Decision((RecordAdmission(job, admission),), reason=reason)


def _grant(key: KeyView) -> Grant:
    assert key.grant is not None
    return Grant(key=key.request.key, token=key.grant.token)


def _seen(job: Job) -> AdmissionStatus:
    """The Job's admission with its place in the order of creation, once and for all."""
    admission = job.status.admission
    return admission if admission.sequence else replace(admission, sequence=job.version)


def _deadline(job: Job) -> datetime | None:
    start_by = None if was_admitted(job) else job.spec.start_by
    moments = (start_by, job.spec.kill_at)
    return min((moment for moment in moments if moment is not None), default=None)


def _waits_in_words(waits: tuple[Wait, ...]) -> str:
    words = {
        WaitReason.SUSPENDED: "is suspended",
        WaitReason.NOT_YET_DUE: "is not due yet",
        WaitReason.NOT_IN_BOOKS: "is not in its schedule's books",
        WaitReason.LOCK_TAKEN: "waits for lock",
    }
    if not waits:
        return "is due"
    return ", ".join(f"{words[wait.reason]} {wait.key}".rstrip() for wait in waits)


def decide_lock(view: LockView, now: datetime) -> Decision:
    """Drop holders that are proven done and grant the lock to the next, in one write.

    One grant a write: the token is the version of the record that the grant replaces, so it rises
    with every grant by itself, also after the record was removed and made again. A record that
    came from another store may know of a higher one: then that is what has to be topped.
    """
    candidate = view.candidate
    fits = candidate is not None and candidate.has_way
    lock = view.lock
    if lock is None:
        return _make_record(view) if fits else Decision()
    if lock.is_going:
        return Decision()
    holders, reasons = view.kept, _drops(lock, view.kept)
    status = lock.status
    if candidate is not None and candidate.has_way:
        holder = Holder(
            job=candidate.job.metadata.name,
            uid=candidate.job.metadata.uid,
            epoch=candidate.job.status.admission.epoch,
            token=max(lock.version, lock.status.last_token + 1),
            granted_at=now,
            job_version=candidate.job.version,
        )
        holders = (*holders, holder)
        reasons.append(f"grants {view.key} to {holder.job} (fence {holder.token})")
        status = replace(status, limit=candidate.request.limit, last_token=holder.token)
    if holders != lock.status.holders:
        idle_since = None if holders else now
        written = replace(status, holders=holders, idle_since=idle_since)
        return Decision((RecordStatus(lock, written),), reason="; ".join(reasons))
    return _retire(view, lock, now)


def _drops(lock: Lock, kept: tuple[Holder, ...]) -> list[str]:
    gone = [holder.job for holder in lock.status.holders if holder not in kept]
    return [f"takes {lock.spec.key} back from {', '.join(gone)}"] if gone else []


def _make_record(view: LockView) -> Decision:
    metadata = Metadata(name=lock_name(view.key), namespace=view.namespace)
    record = Lock(metadata=metadata, spec=LockSpec(key=view.key))
    return Decision((CreateResource(record),), reason=f"first use of lock {view.key}")


def _retire(view: LockView, lock: Lock, now: datetime) -> Decision:
    """Remove a record that nobody has needed for a while."""
    if view.is_unheard:
        # That its Job is gone is not news again when the rest is heard: nobody else would look.
        return Decision(wake_at=now + LISTENS_FOR)
    if lock.status.holders or view.is_wanted:
        return Decision()
    if lock.status.last_token >= lock.version:
        # It came from another store, and it alone knows which tokens were given out there.
        return Decision()
    idle_since = lock.status.idle_since or lock.metadata.creation_timestamp
    if idle_since is None or now < idle_since + IDLE_LOCK_KEPT:
        return Decision(wake_at=(idle_since or now) + IDLE_LOCK_KEPT)
    return Decision((DeleteResource(lock),), reason=f"lock {view.key} is not needed any more")
