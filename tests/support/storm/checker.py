"""Did a storm break a promise? Asked of what tasks wrote and what the API tells, of nothing else.

Each check says how much it looked at, so that one that had nothing to look at does not pass for
one that found nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from interlock.schedules.controlled.records import KEPT_WINDOWS
from interlock.testing.clients import Object, phase_of
from support.storm.evidence import Attempt, Kind, Line

#: The phases that a Job does not leave.
ENDS = frozenset({"Succeeded", "Failed", "Killed", "Refused", "FinishedUnknown"})
_SCHEDULED_AT = "interlock.dev/scheduled-at"
_SECOND = timedelta(seconds=1)
_SIGKILL = 9


class Check(NamedTuple):
    """One promise: how often it could have been broken, and where it was."""

    name: str
    looked_at: int
    faults: tuple[str, ...]


def together(name: str, checks: Iterable[Check]) -> Check:
    """Several checks of one promise as one."""
    all_of_them = list(checks)
    faults = tuple(fault for check in all_of_them for fault in check.faults)
    return Check(name, sum(check.looked_at for check in all_of_them), faults)


class Told(Struct, frozen=True, kw_only=True):
    """What the API told in the end, and what the people of the storm noted on the way."""

    #: Every Job that is there in the end.
    jobs: Sequence[Object]
    #: The Jobs that were acknowledged, uids by name, and those whose deletion was asked for.
    acknowledged: Mapping[str, str] = {}
    deleted: frozenset[str] = frozenset()
    #: How many Jobs may be at work at once, by the key of their lock.
    limits: Mapping[str, int] = {}
    #: Whether a keeper was killed, or a store put back: only then can a fate be unknown.
    fates_may_be_unknown: bool = False
    #: Whether a store was put back: then tasks that it knows nothing of are stopped.
    is_restored: bool = False


def check_all(evidence: Sequence[Line], told: Told) -> list[Check]:
    """Everything that can be said of Jobs."""
    begun = [line for line in evidence if line.kind is Kind.BEGIN]
    return [
        Check("overlaps", len(begun), tuple(overlaps(evidence, told.limits))),
        Check("attempts run twice", len(begun), tuple(run_twice(evidence))),
        Check("attempts off the record", len(begun), tuple(off_the_record(evidence, told))),
        Check("wrong ends", len(begun), tuple(wrong_ends(evidence, told))),
        Check("fences that do not rise", len(begun), tuple(fallen_fences(begun, told.limits))),
        Check("acknowledged Jobs lost", len(told.acknowledged), tuple(lost(told))),
        Check("Jobs without end", len(told.jobs), tuple(without_end(told.jobs))),
    ]


def missing_output(
    evidence: Iterable[Line], jobs: Sequence[Object], log_of: Callable[[Attempt], str]
) -> Iterator[str]:
    """Lines that a task printed, and that are not in its log: it lives as long as its Job."""
    there = {job["metadata"]["uid"] for job in jobs}
    found: dict[Attempt, set[str]] = {}
    for line in evidence:
        if line.attempt.uid not in there:
            continue
        if line.attempt not in found:
            words = (text.split("\t") for text in log_of(line.attempt).splitlines())
            found[line.attempt] = {" ".join(each[:1] + each[-1:]) for each in words}
        if f"{line.kind} {line.detail}" not in found[line.attempt]:
            yield f"{line} printed {line.kind} {line.detail!r}, which is not in its log"


# Never twice


def overlaps(evidence: Sequence[Line], limits: Mapping[str, int]) -> Iterator[str]:
    """Moments at which more Jobs were at work under a key than may be.

    A task that found no free place has proof. For tasks of different numbers, which have places
    of their own, the times that they wrote are compared; one that was killed wrote no end, and
    is taken to have ended at once.
    """
    for line in evidence:
        if line.kind is Kind.VIOLATION:
            yield f"{line} found no free place of {line.detail}"
    ends: dict[Attempt, float] = {}
    for line in evidence:
        if line.kind in (Kind.END, Kind.LEFT):
            ends[line.attempt] = max(line.at, ends.get(line.attempt, line.at))
    for key, limit in limits.items():
        yield from _too_many_at_once(evidence, ends, key, limit)


def _too_many_at_once(
    evidence: Sequence[Line], ends: Mapping[Attempt, float], key: str, limit: int
) -> Iterator[str]:
    # At one moment ends come before beginnings, which errs on the side of no fault.
    changes = sorted(
        change
        for line in evidence
        if line.kind is Kind.BEGIN and line.attempt in ends and key in line.fences
        for change in ((line.at, 1, line), (ends[line.attempt], 0, line))
    )
    at_work: Counter[str] = Counter()
    for _, begins, line in changes:
        at_work[line.attempt.uid] += 1 if begins else -1
        jobs = sum(count > 0 for count in at_work.values())
        if begins and jobs > limit:
            yield f"{line} made {jobs} Jobs at work under {key}, whose limit is {limit}"


def run_twice(evidence: Iterable[Line]) -> Iterator[str]:
    """Attempts that began a second time.

    A store that was put back knows nothing of what began since: then it is a beginning anew.
    """
    begun: dict[Attempt, Line] = {}
    for line in evidence:
        if line.kind is Kind.RESTORED:
            begun.clear()
        elif line.kind is Kind.BEGIN:
            before = begun.setdefault(line.attempt, line)
            if before is not line:
                yield f"{line} began before, as pid {before.pid}"


def fallen_fences(begun: Iterable[Line], limits: Mapping[str, int]) -> Iterator[str]:
    """Tokens that were given to two Jobs, or are not above those of who was at work before."""
    owners: dict[tuple[str, int], str] = {}
    highest: dict[str, tuple[int, Line]] = {}
    for line in begun:
        for key, token in line.fences.items():
            owner = owners.setdefault((key, token), line.attempt.uid)
            if owner != line.attempt.uid:
                yield f"{line} has token {token} of {key}, which another Job had"
            # Of several at work at once, nobody can say who was granted first.
            if limits.get(key) == 1:
                top, whose = highest.get(key, (token, line))
                if token < top:
                    yield f"{line} has token {token} of {key}, after {top} of {whose}"
                highest[key] = max((top, whose), (token, line), key=lambda each: each[0])


# Never lost


def lost(told: Told) -> Iterator[str]:
    """Jobs that were acknowledged and are not there, though nobody deleted them."""
    there = {job["metadata"]["uid"] for job in told.jobs}
    for name, uid in told.acknowledged.items():
        if uid not in there and uid not in told.deleted:
            yield f"job/{name} ({uid}) was acknowledged, and is gone"


def without_end(jobs: Iterable[Object]) -> Iterator[str]:
    """Jobs that did not end."""
    for job in jobs:
        if phase_of(job) not in ENDS:
            yield f"job/{job['metadata']['name']} is {phase_of(job)}"


def off_the_record(evidence: Sequence[Line], told: Told) -> Iterator[str]:
    """Attempts that began, and of which the API tells nothing.

    A store that was put back need not know what began before.
    """
    known = _recorded(told.jobs)
    there = {job["metadata"]["uid"] for job in told.jobs}
    restores = [at for at, line in enumerate(evidence) if line.kind is Kind.RESTORED]
    for line in evidence[restores[-1] if restores else 0 :]:
        uid = line.attempt.uid
        if line.kind is not Kind.BEGIN:
            continue
        if uid not in there:
            if uid not in told.deleted:
                yield f"{line} began, and its Job is gone"
        elif line.attempt not in known:
            yield f"{line} began, and its Job knows nothing of it"


def wrong_ends(evidence: Iterable[Line], told: Told) -> Iterator[str]:
    """Ends on record that are not what the task itself said, or that nothing explains."""
    said: defaultdict[Attempt, list[int]] = defaultdict(list)
    begun: set[Attempt] = set()
    for line in evidence:
        if line.kind is Kind.BEGIN:
            begun.add(line.attempt)
        if line.kind is Kind.END:
            said[line.attempt].append(int(line.detail))
    for attempt, end in _recorded(told.jobs).items():
        name = end["name"]
        code, number, result = end.get("exitCode"), end.get("signal"), end.get("result")
        own = said[attempt]
        if result == "Killed" and "stopCause" in end and attempt not in begun:
            # It was stopped before its program began: a code is not to be had.
            continue
        if code is not None and code not in own:
            yield f"{name}: exit code {code} on record, and it ended with {own}"
        elif number is not None and told.is_restored:
            continue
        elif number is not None and "stopCause" not in end:
            yield f"{name}: ended by signal {number}, and nobody told it to stop"
        elif number is not None and number != _SIGKILL and own:
            yield f"{name}: ended by signal {number} on record, and it ended with {own}"
        elif code is None and number is None and not _is_explained(result, own, told):
            yield f"{name}: {result or 'not over'} on record, with neither code nor signal"


def _is_explained(result: object, own: Sequence[int], told: Told) -> bool:
    """Whether an end may lack its code.

    A store that was put back asks anew for attempts that are long over; of one that was retried
    since then nobody knows more than that it failed.
    """
    if told.is_restored and result == "Failed" and 0 not in own:
        return True
    return result == "WrittenOff" and told.fates_may_be_unknown


def _recorded(jobs: Iterable[Object]) -> dict[Attempt, Object]:
    """Every attempt that a Job tells of, the ones that are not over included."""
    found: dict[Attempt, Object] = {}
    for job in jobs:
        execution = job.get("status", {}).get("execution", {})
        for each in (*execution.get("ended", ()), *execution.get("active", ())):
            attempt = Attempt(job["metadata"]["uid"], each["index"], each["attempt"])
            found[attempt] = each
    return found


# Every due time, and windows


class DueSeconds:
    """What became of the seconds of a JobConfig that is due in each of them."""

    def __init__(self) -> None:
        self._created: datetime | None = None
        #: How far the books went while nobody had suspended it.
        self.accounted_to: datetime | None = None
        self._skips: set[tuple[datetime, datetime]] = set()

    def take(self, config: Object) -> None:
        """Hear of a state of the config."""
        self._created = _moment(config["metadata"]["creationTimestamp"])
        status = config.get("status", {})
        for skip in status.get("skips", ()):
            self._skips.add((_moment(skip["at"]), _moment(skip.get("until", skip["at"]))))
        to = status.get("books", {}).get("accountedTo")
        if to and not config["spec"].get("suspend"):
            self.accounted_to = max(_moment(to), self.accounted_to or _moment(to))

    def check(self, name: str, jobs: Iterable[Object], evidence: Iterable[Line]) -> Check:
        """Every second has one Job or one skip."""
        made = _by_moment(jobs, "JobConfig", name)
        ran = {line.attempt.uid for line in evidence if line.kind is Kind.BEGIN}
        seconds = list(self._due())
        faults: list[str] = []
        for at in seconds:
            skips = sum(begin <= at <= end for begin, end in self._skips)
            ran_for = [uid for uid in made[at] if uid in ran]
            if not skips and not made[at]:
                faults.append(f"{at}: {name} has neither a Job nor a skip")
            if len(ran_for) > 1:
                faults.append(f"{at}: {len(ran_for)} Jobs of {name} ran")
            if skips and ran_for:
                faults.append(f"{at}: {name} was skipped, and a Job of it ran")
        return Check("due seconds unaccounted", len(seconds), tuple(faults))

    def _due(self) -> Iterator[datetime]:
        if self._created is None or self.accounted_to is None:
            return
        at = self._created.replace(microsecond=0) + _SECOND
        while at <= self.accounted_to:
            yield at
            at += _SECOND


class Windows:
    """What became of the windows of a ControlledJob that opens every so many seconds."""

    def __init__(self, every_s: int) -> None:
        self._every_s = every_s
        self._created: datetime | None = None
        #: The newest window that was seen while nobody had suspended it.
        self.newest: datetime | None = None
        self._told: set[datetime] = set()
        #: Between these no more was told than is kept: where a machine stood still for so long,
        #: the windows before the newest few are told of to nobody.
        self._not_kept: list[tuple[datetime, datetime]] = []

    def take(self, controlled: Object) -> None:
        """Hear of a state of the ControlledJob."""
        self._created = _moment(controlled["metadata"]["creationTimestamp"])
        status = controlled.get("status", {})
        window = status.get("window")
        records = (*([window] if window else ()), *status.get("pastWindows", ()))
        starts = {_moment(record["start"]) for record in records}
        if len(starts) > KEPT_WINDOWS:
            self._not_kept.append((max(self._told, default=self._created), min(starts)))
        self._told |= starts
        if starts and not controlled["spec"].get("suspend"):
            self.newest = max((*starts, self.newest or min(starts)))

    def check(self, name: str, jobs: Iterable[Object]) -> Check:
        """Every window has a record as long as any are kept, and every Job is of a window."""
        made = _by_moment(jobs, "ControlledJob", name)
        windows = [start for start in self._due() if not self._is_too_old(start)]
        faults = [
            f"{start}: nothing is told of the window of {name}"
            for start in windows
            if start not in self._told
        ]
        faults += [
            f"{start}: {name} has a Job, and no window" for start in made.keys() - self._told
        ]
        return Check("windows unaccounted", len(windows), tuple(faults))

    def _is_too_old(self, start: datetime) -> bool:
        return start not in self._told and any(begin < start < end for begin, end in self._not_kept)

    def _due(self) -> Iterator[datetime]:
        if self._created is None or self.newest is None:
            return
        first = int(self._created.timestamp()) // self._every_s + 1
        last = int(self.newest.timestamp()) // self._every_s
        for number in range(first, last + 1):
            yield datetime.fromtimestamp(number * self._every_s, UTC)


def _by_moment(jobs: Iterable[Object], kind: str, name: str) -> defaultdict[datetime, list[str]]:
    """The uids of an owner's Jobs, by what they were made for."""
    found: defaultdict[datetime, list[str]] = defaultdict(list)
    for job in jobs:
        metadata = job["metadata"]
        owners = {(owner["kind"], owner["name"]) for owner in metadata.get("ownerReferences", ())}
        due = metadata.get("annotations", {}).get(_SCHEDULED_AT)
        if due and (kind, name) in owners:
            found[_moment(due)].append(metadata["uid"])
    return found


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
