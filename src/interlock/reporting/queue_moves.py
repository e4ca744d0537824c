"""What Jobs went through in their Queues: let in, ready, put back; counted as changes are heard.

A Job that stands still costs nothing: only what its changes say is looked at, and kept are numbers
by Queue and priority. Who has ended or is gone leaves nothing behind but these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from interlock.control.metrics import Durations
from interlock.control.reconciler import Change
from interlock.reporting.queue_why import queued_at
from interlock.resources.admission import Eviction
from interlock.resources.job import Job
from interlock.resources.metadata import Condition, ConditionStatus
from interlock.resources.readiness import ReadyReason, pods_ready
from interlock.resources.transitions import has_ended

#: The upper ends of buckets, in seconds: 1, then 2.5 doubling, 14 in all.
ENDS = (1.0, *(2.5 * 2**at for at in range(13)))
#: So many priorities are told apart of a Queue, and so many Queues; all others are `OTHER`.
MOST_PRIORITIES = 16
MOST_QUEUES = 1_000
OTHER = "other"


class LetIn(Struct, frozen=True):
    """A Job was let in, so long after it began to wait."""

    waited: timedelta


class Ready(Struct, frozen=True):
    """A Job became ready for the first time since it was let in."""

    since_queued: timedelta
    since_let_in: timedelta


class Evicted(Struct, frozen=True):
    """A Job is being put back."""

    reason: str
    cause: str
    #: How long it had been ready, where it was.
    was_ready: timedelta | None = None


class Released(Struct, frozen=True):
    """A Job that was being put back has given everything back."""

    reason: str
    took: timedelta


Move = LetIn | Ready | Evicted | Released


def moves_of(before: Job | None, after: Job, since: datetime) -> Iterator[Move]:
    """What a change of a Job tells; of a Job that was not heard of before, what is later than
    `since`.
    """
    yield from _let_in(before, after, since)
    # Most Jobs have neither.
    if after.status.conditions:
        yield from _ready(before, after, since)
    if after.status.admission.eviction is not None:
        yield from _evicted(before, after, since)


def _let_in(before: Job | None, after: Job, since: datetime) -> Iterator[Move]:
    let_in_at = after.status.admission.admitted_at
    known = before.status.admission.admitted_at if before is not None else None
    if let_in_at is not None and let_in_at != known and _is_news(before, let_in_at, since):
        yield LetIn(_between(queued_at(after), let_in_at))


def _ready(before: Job | None, after: Job, since: datetime) -> Iterator[Move]:
    """That it recovered is no start."""
    now = pods_ready(after)
    was = pods_ready(before) if before is not None else None
    if now is None or not _is_start(now) or (_is_start(was) and not _is_again(before, after)):
        return
    if _is_news(before, now.last_transition_time, since):
        let_in_at = after.status.admission.admitted_at
        ready_at = now.last_transition_time
        yield Ready(_between(queued_at(after), ready_at), _between(let_in_at, ready_at))


def _is_start(condition: Condition | None) -> bool:
    return condition is not None and condition.reason == ReadyReason.STARTED.value


def _is_again(before: Job | None, after: Job) -> bool:
    """Whether it is of another round by now, what was between not heard."""
    return before is not None and before.status.admission.epoch != after.status.admission.epoch


def _evicted(before: Job | None, after: Job, since: datetime) -> Iterator[Move]:
    eviction = after.status.admission.eviction
    if eviction is None:
        return
    known = before.status.admission.eviction if before is not None else None
    is_same = known is not None and known.began_at == eviction.began_at
    if not is_same and _is_news(before, eviction.began_at, since):
        yield Evicted(eviction.reason.value, eviction.cause, _was_ready(before, after, eviction))
    over_at = eviction.ended_at
    is_told = is_same and known is not None and known.ended_at is not None
    if over_at is not None and not is_told and _is_news(before, over_at, since):
        yield Released(eviction.reason.value, _between(eviction.began_at, over_at))


def _was_ready(before: Job | None, after: Job, eviction: Eviction) -> timedelta | None:
    """How long it had been ready when it was put back: it stays as it was until it is gone."""
    last = before if before is not None and eviction.ended_at is not None else after
    condition = pods_ready(last)
    if condition is None or condition.status is not ConditionStatus.TRUE:
        return None
    return _between(condition.last_transition_time, eviction.began_at)


def _is_news(before: Job | None, at: datetime, since: datetime) -> bool:
    return before is not None or at > since


def _between(earlier: datetime | None, later: datetime) -> timedelta:
    return max(timedelta(), later - earlier) if earlier is not None else timedelta()


class QueueMoves:
    """How often, and how long: by Queue and priority, and evictions by reason and cause."""

    def __init__(self, since: datetime, counts: Callable[[], bool]) -> None:
        """Count what is heard while `counts` says so: of several controllers one does."""
        self._since = since
        self._counts = counts
        #: Reasons and causes for which Jobs that are there were put back.
        self._known: dict[str, set[tuple[str, str]]] = {}
        self._labels: dict[str, set[str]] = {}
        self.let_in: dict[tuple[str, ...], Durations] = {}
        self.ready: dict[tuple[str, ...], Durations] = {}
        self.ready_after_let_in: dict[tuple[str, ...], Durations] = {}
        self.evicted: dict[tuple[str, ...], int] = {}
        self.evicted_once: dict[tuple[str, ...], int] = {}
        self.ready_to_evicted: dict[tuple[str, ...], Durations] = {}
        self.released: dict[tuple[str, ...], Durations] = {}

    def observe(self, change: Change) -> None:
        """Hear of a change."""
        before, after = change.before, change.after
        if not isinstance(after, Job):
            if isinstance(before, Job):
                self._known.pop(before.metadata.uid, None)
            return
        was = before if isinstance(before, Job) else None
        if was is not None and was.metadata.uid != after.metadata.uid:
            self._known.pop(was.metadata.uid, None)
            was = None
        if was is None or _is_told(was, after):
            queue = _queue_of(after) or (_queue_of(was) if was is not None else "")
            for move in moves_of(was, after, self._since) if queue else ():
                self._note(move, was, after, queue)
        if after.metadata.uid in self._known and has_ended(after):
            del self._known[after.metadata.uid]

    def _note(self, move: Move, was: Job | None, job: Job, queue: str) -> None:
        is_first = isinstance(move, Evicted) and self._is_first(was, job, move)
        if not self._counts():
            return
        of = self._labels_of(queue, job.spec.priority)
        match move:
            case LetIn(waited):
                _add(self.let_in, of, waited)
            case Ready(since_queued, since_let_in):
                _add(self.ready, of, since_queued)
                _add(self.ready_after_let_in, of, since_let_in)
            case Released(reason, took):
                _add(self.released, (of[0], reason), took)
            case Evicted(reason, cause, was_ready):
                _count(self.evicted, (of[0], reason, cause, of[1]))
                if is_first:
                    _count(self.evicted_once, (of[0], reason, cause, of[1]))
                if was_ready is not None:
                    _add(self.ready_to_evicted, (of[0], reason, cause), was_ready)

    def _is_first(self, was: Job | None, job: Job, move: Evicted) -> bool:
        """Whether a Job was not put back for this before, as far as that is known."""
        known = self._known.setdefault(job.metadata.uid, set())
        last = was.status.admission.eviction if was is not None else None
        if last is not None:
            known.add((last.reason.value, last.cause))
        pair = (move.reason, move.cause)
        is_first = pair not in known
        known.add(pair)
        return is_first

    def _labels_of(self, queue: str, priority: int) -> tuple[str, str]:
        """A Queue and a priority, as they are told: only so many are told apart."""
        if queue not in self._labels and len(self._labels) >= MOST_QUEUES:
            queue = OTHER
        told, known = str(priority), self._labels.get(queue)
        if known is None:
            known = self._labels[queue] = set()
        if told not in known and len(known) >= MOST_PRIORITIES:
            return queue, OTHER
        known.add(told)
        return queue, told


def _is_told(before: Job, after: Job) -> bool:
    """Whether anything changed that may be a move: of most changes that is found out at once."""
    was, now = before.status.admission, after.status.admission
    return (
        was.admitted_at != now.admitted_at
        or was.eviction != now.eviction
        or before.status.conditions != after.status.conditions
    )


def _queue_of(job: Job) -> str:
    """The Queue that it is of: the one of which it holds a part, or which it names."""
    quota = job.status.admission.quota
    return quota.queue if quota is not None else job.spec.queue or ""


def _add(to: dict[tuple[str, ...], Durations], labels: tuple[str, ...], took: timedelta) -> None:
    durations = to.get(labels)
    if durations is None:
        durations = to[labels] = Durations(ENDS)
    durations.observe(took.total_seconds())


def _count(to: dict[tuple[str, ...], int], labels: tuple[str, ...]) -> None:
    to[labels] = to.get(labels, 0) + 1
