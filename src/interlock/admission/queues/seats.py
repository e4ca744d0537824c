"""Seats: in which record the Jobs of a Queue are granted their parts, and how a Queue moves.

A Queue has a record of its own. One of a cohort has its seat in the record that the cohort shares;
its own says so. Why at no time two records grant to Jobs of the same Queue, whoever decides on
however old a view:

    1. The record that the Queue leaves marks it as left: from here on nothing is granted there.
       Its own record does so in the write of the next step.
    2. The Queue's own record names the new one, with a number above all before, once it is seen
       that the old one was left.
    3. The new record takes the Queue in under that number, and with it copies of all who hold a
       part in the old one. Nothing is granted there since it was left, so a view of it that shows
       that has all who are left of them. (Where the new one is the Queue's own record, this is the
       write of step 2.)
    4. The old record drops its copies, once it is seen that the Queue was taken in. The mark stays.

- A record takes a Queue in only by a number above that of its mark. So whoever still believes that
  the Queue was to come here before it left finds the mark, by the compare-and-set that every
  write is. A record with marks alone is removed; one that is made anew has another uid, and a seat
  names the uid.
- A Queue's own record is removed only when the Queue is gone, and its numbers are versions of the
  store, which only rise.
- A grant that counts is in one of the two records at any time, and until step 4 maybe in both:
  it is counted too often for a while, and never too little.

What one Queue lent another stays with that one until its Jobs are gone; the cohort that was left
has less then, and grants nothing until enough of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from interlock.admission.queues.known import KnownQueues, record_key
from interlock.admission.ready_timers import gate_of
from interlock.resources.job import Job
from interlock.resources.queue import (
    Member,
    Queue,
    QueueQuota,
    QuotaHolder,
    Seat,
    cohort_name,
    member_of,
    quota_name,
    record_wanted,
    records_for,
)
from interlock.resources.ready_gate import policy_text


class Seating(Struct, frozen=True, kw_only=True):
    """Which Queues a record has, as it is to be written."""

    members: tuple[Member, ...] = ()
    seat: Seat | None = None
    #: Who comes along with the Queues that come, and whose holders have gone elsewhere.
    arrivals: tuple[QuotaHolder, ...] = ()
    moved_away: frozenset[str] = frozenset()


def seat_of(known: KnownQueues, queue: str) -> Seat:
    """Where a Queue has its seat, as far as that is known."""
    own = known.quotas.get(record_key(quota_name(queue)))
    return _seat(own, queue)


def _seat(own: QueueQuota | None, queue: str) -> Seat:
    seat = own.status.seat if own is not None else None
    return Seat(record=quota_name(queue)) if seat is None else seat


def home_of(known: KnownQueues, queue: str) -> str:
    """The name of the record in which the Jobs of a Queue are granted their parts."""
    return seat_of(known, queue).record


def records_of(known: KnownQueues, queue: str) -> Iterator[QueueQuota]:
    """The records in which a Job of a Queue may have its part: the first is the Queue's home."""
    own = known.quotas.get(record_key(quota_name(queue)))
    for name in records_for(own, queue):
        record = known.quotas.get(record_key(name))
        if record is not None:
            yield record


def holder_of(known: KnownQueues, job: Job, queue: str) -> QuotaHolder | None:
    """What a Job was granted of a Queue in its present epoch."""
    uid, epoch = job.metadata.uid, job.status.admission.epoch
    for record in records_of(known, queue):
        found = known.part_of(record, uid, epoch)
        if found is not None and found.queue == queue:
            return found
    return None


def concerned(known: KnownQueues, record: QueueQuota) -> Iterator[str]:
    """The records that a change of who has its seat in one matters to."""
    seat = record.status.seat
    if seat is not None:
        yield from (name for name in (seat.record, seat.came_from) if name)
    for queue in _queues_of(known, record):
        yield quota_name(queue)
        other = seat_of(known, queue)
        yield from (name for name in (other.record, other.came_from) if name)


def _queues_of(known: KnownQueues, record: QueueQuota) -> tuple[str, ...]:
    """The Queues that a record is, was, or is to be of."""
    names = dict.fromkeys(member.queue for member in record.status.members)
    if record.spec.queue is not None:
        names[record.spec.queue] = None
    if record.spec.cohort is not None:
        names.update(dict.fromkeys(known.cohort(record.spec.cohort)))
        names.update(dict.fromkeys(known.seated(record.metadata.name)))
    return tuple(names)


def is_wanted(known: KnownQueues, name: str, has_line: bool) -> bool:
    """Whether a record that is not there has to be made."""
    cohort = name.removeprefix(cohort_name(""))
    if cohort != name:
        return any(_is_there(known.queue(queue)) for queue in known.cohort(cohort))
    queue = known.queue(name.removeprefix(quota_name("")))
    return _is_there(queue) and queue is not None and (has_line or queue.spec.cohort is not None)


def _is_there(queue: Queue | None) -> bool:
    return queue is not None and not queue.is_going


def seating_of(known: KnownQueues, record: QueueQuota) -> Seating:
    """Which Queues a record is to have, with the next step of those that move."""
    if record.spec.queue is not None:
        return _own(known, record, record.spec.queue)
    return _shared(known, record)


def _own(known: KnownQueues, record: QueueQuota, name: str) -> Seating:
    """The record of a single Queue: its seat, or where that is."""
    queue, seat = known.queue(name), _seat(record, name)
    own = record.metadata.name
    member = member_of(record, name)
    if queue is not None:
        seat = _moved(known, record, queue, seat) or seat
    if seat.record != own:
        # What is left of its time here goes where the Queue is, and goes here once it is there.
        left = (replace(member, left=True),) if member is not None else ()
        away = frozenset((name,)) if _was_taken_in(known, name, seat) else frozenset()
        return Seating(members=left, seat=seat, moved_away=away)
    arrivals = tuple(_taken_along(known, record, name, seat.came_from))
    members = (_newest(known, queue, member, seat.number),) if queue is not None else ()
    if queue is None and member is not None:
        members = (member,)
    return Seating(members=members, seat=seat if seat.number else None, arrivals=arrivals)


def _moved(known: KnownQueues, record: QueueQuota, queue: Queue, seat: Seat) -> Seat | None:
    """The next seat of a Queue, where it is to move and has left where it was."""
    own, wanted = record.metadata.name, record_wanted(queue)
    came_from = seat.record
    if seat.record != own:
        home = known.quotas.get(record_key(seat.record))
        if home is None or home.metadata.uid != seat.uid:
            # Removed, since nobody held anything there: whoever had not come yet is where it was.
            came_from = seat.came_from
        elif queue.version <= seat.version or not _is_marked(home, queue, seat):
            # Where it was removed and made anew it comes back to where it was, under a new number.
            return None
    elif not _wants_elsewhere(queue, own, seat):
        return None
    target = record if wanted == own else known.quotas.get(record_key(wanted))
    if target is None or target.is_going:
        return None
    return Seat(
        record=wanted,
        uid=target.metadata.uid,
        number=max(record.version, seat.number + 1),
        version=queue.version,
        came_from=came_from,
    )


def _is_marked(home: QueueQuota, queue: Queue, seat: Seat) -> bool:
    """Whether a record had taken a Queue in, and grants nothing to its Jobs any more."""
    member = member_of(home, queue.metadata.name)
    return member is not None and member.left and member.seat == seat.number


def _wants_elsewhere(queue: Queue, home: str, seat: Seat) -> bool:
    """Whether a Queue is to move; not as it was before what is known of it here."""
    return queue.version > seat.version and record_wanted(queue) != home and not queue.is_going


def _shared(known: KnownQueues, record: QueueQuota) -> Seating:
    """The record of a cohort: who is in it, who has left, and who comes."""
    members: list[Member] = []
    arrivals: list[QuotaHolder] = []
    away: list[str] = []
    for name in _queues_of(known, record):
        member, queue = member_of(record, name), known.queue(name)
        seat = seat_of(known, name)
        is_here = seat.record == record.metadata.name and seat.uid == record.metadata.uid
        comes = is_here and (member is None or seat.number > member.seat)
        if comes and queue is not None:
            source = known.quotas.get(record_key(seat.came_from))
            if not _has_left(source, name, seat):
                members += [member] if member is not None else []
                continue
            arrivals += _taken_along(known, record, name, seat.came_from)
            joined = _newest(known, queue, None, seat.number)
            members.append(replace(joined, left=_leaves(known, queue, record, seat)))
        elif member is not None:
            leaves = member.left or _leaves(known, queue, record, seat, member)
            if leaves or queue is None:
                members.append(replace(member, left=leaves))
            else:
                members.append(_newest(known, queue, member, member.seat))
            if member.left and seat.number > member.seat and _was_taken_in(known, name, seat):
                away.append(name)
    return Seating(members=tuple(members), arrivals=tuple(arrivals), moved_away=frozenset(away))


def _leaves(
    known: KnownQueues,
    queue: Queue | None,
    record: QueueQuota,
    seat: Seat,
    member: Member | None = None,
) -> bool:
    """Whether a Queue is to be marked as one that has left."""
    if queue is None:
        # It was there at that version: who has heard all up to it does not find it any more.
        return member is not None and known.queues.version >= member.version
    if seat.record != record.metadata.name or seat.uid != record.metadata.uid:
        # Its own record, which a person may have removed, does not say that it is here.
        return True
    return _wants_elsewhere(queue, record.metadata.name, seat)


def is_needed_by_others(known: KnownQueues, own: QueueQuota) -> bool:
    """Whether the own record of a Queue says where somebody holds a part, or may be granted one."""
    seat, queue = own.status.seat, own.spec.queue
    if seat is None or seat.record == own.metadata.name:
        return False
    for name in (seat.record, seat.came_from):
        record = known.quotas.get(record_key(name)) if name else None
        if record is None or (name == seat.record and record.metadata.uid != seat.uid):
            continue
        member = member_of(record, queue or "")
        if member is not None and not member.left:
            return True
        if any(holder.queue == queue for holder in record.status.holders):
            return record.key != own.key
    return False


def _has_left(source: QueueQuota | None, queue: str, seat: Seat) -> bool:
    """Whether the record from which a Queue comes grants nothing to it any more.

    Its own says so by the seat itself, which is written there.
    """
    if source is None or seat.came_from == quota_name(queue):
        return True
    member = member_of(source, queue)
    return member is None or member.left


def _was_taken_in(known: KnownQueues, queue: str, seat: Seat) -> bool:
    """Whether the record in which a Queue has its seat has taken it in, and all who came along."""
    if seat.record == quota_name(queue):
        return True
    home = known.quotas.get(record_key(seat.record))
    if home is None or home.metadata.uid != seat.uid:
        return False
    member = member_of(home, queue)
    return member is not None and member.seat >= seat.number


def _taken_along(
    known: KnownQueues, record: QueueQuota, queue: str, source: str
) -> Iterator[QuotaHolder]:
    """Those who hold a part in the record that a Queue has left, and are not here yet."""
    left = known.quotas.get(record_key(source)) if source != record.metadata.name else None
    if left is None:
        return
    here = {(holder.uid, holder.epoch) for holder in record.status.holders}
    for holder in left.status.holders:
        is_ours = holder.queue == queue and (holder.uid, holder.epoch) not in here
        if is_ours and not known.is_done(holder):
            yield holder


def _newest(known: KnownQueues, queue: Queue, member: Member | None, seat: int) -> Member:
    """What is to be known of a Queue: the newest there is."""
    is_here = member is not None and member.seat == seat and not member.left
    # What holds for all Queues changes with no version of this one.
    is_same = member is not None and member.ready == policy_text(known.system)
    if member is not None and is_here and is_same and member.version == queue.version:
        return member
    policy = gate_of(queue, known.system)
    spec = queue.spec
    newest = Member(
        queue=queue.metadata.name,
        version=queue.version,
        limits=spec.resources,
        borrowing=spec.borrowing_limit,
        lending=spec.lending_limit,
        order=spec.order,
        stop=spec.stop,
        blocks=policy.is_on and policy.blocks,
        ready=policy_text(known.system),
        scope=policy.scope,
        seat=seat,
    )
    if member is None:
        return newest
    is_same = replace(member, version=newest.version, seat=seat) == newest
    if member.version > queue.version or is_same:
        return member if is_here else replace(member, seat=seat, left=False)
    return newest


def live(members: Iterable[Member]) -> tuple[Member, ...]:
    """Those that have not left."""
    return tuple(member for member in members if not member.left)
