"""Did a storm over workers break a promise? Asked of what steps wrote and what the API tells.

An attempt is on record as done, as failed, or as interrupted: then its worker was lost or silent
for too long, and it may have begun, ended, or even begun late all the same. What such an attempt
did counts for nothing, and fencing tokens are there to refuse it. All others are held to the
promises: one after the other under a target, never again once one is done, undone in reverse.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from interlock.testing.clients import Object, phase_of
from support.storm.checker import Check

#: So many attempts of a Job are told of at most.
KEPT = 20
_STEPS = 100


class Work(NamedTuple):
    """A step of an operation, or its undo."""

    job: str
    step: int
    undoing: bool

    def __str__(self) -> str:
        return f"{'undo of ' if self.undoing else ''}step {self.step} of job/{self.job}"


class Attempt(NamedTuple):
    """Which attempt of what; Interlock never uses one twice."""

    work: Work
    number: int

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.work}"


class Line(NamedTuple):
    """One thing that an attempt wrote."""

    attempt: Attempt
    begins: bool
    target: str
    fence: int
    pid: int
    at: float
    #: What the step before it returned, as it was told; of an undo, what its step returned.
    given: str
    #: What it returns, or fails with.
    made: str
    failed: bool


class End(StrEnum):
    """What is on record of an attempt."""

    DONE = "Succeeded"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"


def parse(text: str) -> list[Line]:
    """What steps wrote, in the order of writing."""
    return [_line(json.loads(line)) for line in text.splitlines()]


def read_steps(file: Path) -> list[Line]:
    """What steps wrote into a file."""
    return parse(file.read_text()) if file.exists() else []


def _line(told: Object) -> Line:
    work = Work(told["job"], told["step"], told["undoing"])
    return Line(
        Attempt(work, told["attempt"]),
        told["kind"] == "B",
        told["target"],
        told["fence"],
        told["pid"],
        told["at"],
        told.get("given", ""),
        told.get("made", ""),
        told.get("failed", False),
    )


class Told:
    """What the API told in the end, beside what steps wrote."""

    def __init__(
        self, lines: Sequence[Line], jobs: Sequence[Object], scripts: Mapping[str, str]
    ) -> None:
        self.lines = lines
        self.jobs = {job["metadata"]["name"]: job for job in jobs}
        #: The phase in which each operation that was acknowledged comes to rest, by its name.
        self.scripts = scripts

    @cached_property
    def record(self) -> dict[Attempt, Object]:
        """Attempts that are over, as the API tells of them."""
        return {
            attempt: each
            for name, job in self.jobs.items()
            for each in _ended(job)
            if (attempt := _attempt(name, each)) is not None
        }

    @cached_property
    def on_record(self) -> dict[str, list[Attempt]]:
        """The same by Job, in the order in which they were recorded."""
        found: dict[str, list[Attempt]] = {name: [] for name in self.jobs}
        for attempt in self.record:
            found[attempt.work.job].append(attempt)
        return found

    @cached_property
    def whole(self) -> frozenset[str]:
        """The Jobs of which every attempt is told."""
        return frozenset(n for n, job in self.jobs.items() if len(_ended(job)) < KEPT)

    @cached_property
    def begun(self) -> dict[Attempt, Line]:
        """The first beginning of each attempt."""
        found: dict[Attempt, Line] = {}
        for line in self.lines:
            if line.begins:
                found.setdefault(line.attempt, line)
        return found

    @cached_property
    def ended(self) -> dict[Attempt, Line]:
        """The end of each attempt that came to it."""
        return {line.attempt: line for line in self.lines if not line.begins}

    def end_of(self, attempt: Attempt) -> str:
        """How it ended, as is on record; nothing when nothing is."""
        return str(self.record.get(attempt, {}).get("result", ""))

    def counts(self, attempt: Attempt) -> bool:
        """Whether what it did counts: it was not cut off, and is told of."""
        return attempt.work.job in self.whole and self.end_of(attempt) != End.INTERRUPTED

    def attempts_of(self, job: str, *ends: End) -> list[Attempt]:
        """Attempts of a Job with these ends that wrote one, in the order in which they ended."""
        found = [
            one
            for one in self.ended
            if one.work.job == job and self.end_of(one) in ends and job in self.whole
        ]
        return sorted(found, key=lambda one: self.ended[one].at)


def _ended(job: Object) -> Sequence[Object]:
    found: Sequence[Object] = job.get("status", {}).get("execution", {}).get("ended", ())
    return found


def _attempt(job: str, told: Object) -> Attempt | None:
    """Which attempt is told of; None when it made the steps."""
    step, undoing = divmod(told["index"], 2)
    return None if step >= _STEPS else Attempt(Work(job, step, bool(undoing)), told["attempt"])


def check_steps(told: Told) -> list[Check]:
    """Everything that can be said of operations."""
    begun, over = len(told.begun), len(told.ended)
    return [
        Check("operations lost", len(told.scripts), tuple(lost(told))),
        Check("ends against the script", len(told.scripts), tuple(wrong_ends(told))),
        Check("attempts begun twice", begun, tuple(begun_twice(told))),
        Check("attempts off the record", begun, tuple(off_the_record(told))),
        Check("results that do not count", len(told.record), tuple(foreign_results(told))),
        Check("steps repeated", over, tuple(repeated(told))),
        Check("overlaps under a target", begun, tuple(overlaps(told))),
        Check("fences that do not rise", begun, tuple(fallen_fences(told))),
        Check("undone out of order", over, tuple(out_of_order(told))),
    ]


def lost(told: Told) -> Iterator[str]:
    """Operations that were acknowledged and are not there."""
    for name in told.scripts:
        if name not in told.jobs:
            yield f"job/{name} was acknowledged, and is gone"


def wrong_ends(told: Told) -> Iterator[str]:
    """Operations that did not come to rest as their script says."""
    for name, phase in told.scripts.items():
        if name in told.jobs and phase_of(told.jobs[name]) != phase:
            yield f"job/{name} is {phase_of(told.jobs[name])}, and its script ends {phase}"


def begun_twice(told: Told) -> Iterator[str]:
    """Attempts that were handed out to two, or twice to one."""
    for line in told.lines:
        first = told.begun[line.attempt]
        if line.begins and line is not first:
            yield f"{line.attempt} began in pid {line.pid}, and before in pid {first.pid}"


def off_the_record(told: Told) -> Iterator[str]:
    """Attempts that began, and of which the API tells nothing."""
    for attempt in told.begun:
        if attempt.work.job in told.whole and attempt not in told.record:
            yield f"{attempt} began, and its Job knows nothing of it"


def foreign_results(told: Told) -> Iterator[str]:
    """Results on record that are not what that attempt came to."""
    for attempt, each in told.record.items():
        end = each["result"]
        if end not in (End.DONE, End.FAILED):
            if end != End.INTERRUPTED:
                yield f"{attempt} is {end} on record"
            continue
        own = told.ended.get(attempt)
        if own is None:
            yield f"{attempt} is {end} on record, and wrote no end"
            continue
        if own.failed != (end == End.FAILED):
            yield f"{attempt} is {end} on record, and {'failed' if own.failed else 'was done'}"
        said = json.loads(each.get("returned", {}).get("json") or "null")
        if end == End.DONE and not attempt.work.undoing and said != own.made:
            yield f"{attempt} returned {said!r} on record, and made {own.made!r}"


def repeated(told: Told) -> Iterator[str]:
    """What was begun again although it was done, and not undone since.

    What an attempt was given shows too whose result counts: it is that of the one that was done.
    """
    for job in told.whole:
        done: dict[Work, Attempt] = {}
        for attempt in told.on_record[job]:
            work = attempt.work
            if work in done:
                yield f"{attempt} came after {done[work]}, which was done"
            # Its undo takes a step back, and a step that was begun is there to be undone.
            done.pop(work._replace(undoing=not work.undoing), None)
            last = done.get(Work(job, work.step - 1, False))
            before = None if last is None else told.ended.get(last)
            begun = told.begun.get(attempt)
            if not work.undoing and begun and before and begun.given != before.made:
                yield f"{attempt} was given {begun.given!r}, and {before.made!r} was done"
            if told.end_of(attempt) == End.DONE:
                done[work] = attempt
        yield from _wrong_result(told, job, done)


def _counting(told: Told, job: str) -> list[Attempt]:
    return [one for one in told.begun if one.work.job == job and told.counts(one)]


def _wrong_result(told: Told, job: str, done: Mapping[Work, Attempt]) -> Iterator[str]:
    operation = told.jobs[job].get("status", {}).get("execution", {}).get("operation", {})
    if job not in told.whole or phase_of(told.jobs[job]) != "Succeeded":
        return
    ends = (told.ended.get(done[work]) for work in sorted(done) if not work.undoing)
    made = [end.made for end in ends if end is not None]
    if (result := json.loads(operation.get("result") or "null")) != made:
        yield f"job/{job} returned {result}, and its steps made {made}"


def overlaps(told: Told) -> Iterator[str]:
    """Attempts that count and were at work under a target at one moment."""
    by_target: defaultdict[str, list[tuple[float, float, Attempt]]] = defaultdict(list)
    for attempt, begun in told.begun.items():
        over = told.ended.get(attempt)
        if over is not None and told.counts(attempt):
            by_target[begun.target].append((begun.at, over.at, attempt))
    for target, times in by_target.items():
        for (_, end, one), (begin, _, other) in pairwise(sorted(times)):
            if begin < end:
                yield f"{other} began under {target} while {one} was at work"


def fallen_fences(told: Told) -> Iterator[str]:
    """Tokens that two operations had, or that are not above those of who was at work before.

    Who was cut off may be late, but only with a token below that of who came after.
    """
    owners: dict[tuple[str, int], str] = {}
    highest: dict[str, tuple[int, Attempt]] = {}
    for attempt, line in told.begun.items():
        owner = owners.setdefault((line.target, line.fence), attempt.work.job)
        if owner != attempt.work.job:
            yield f"{attempt} has token {line.fence} of {line.target}, which job/{owner} had"
        if not told.counts(attempt):
            continue
        top, whose = highest.get(line.target, (line.fence, attempt))
        if line.fence < top:
            yield f"{attempt} has token {line.fence} of {line.target}, after {top} of {whose}"
        highest[line.target] = max((top, whose), (line.fence, attempt), key=lambda each: each[0])


def out_of_order(told: Told) -> Iterator[str]:
    """Undos of operations that failed: one of each step that was begun, the last step first."""
    for name in _of_phase(told, "Failed"):
        undone = [one.work.step for one in told.attempts_of(name, End.DONE) if one.work.undoing]
        begun = {one.work.step for one in _counting(told, name) if not one.work.undoing}
        # What is undone before it is tried again is undone more than once: the last time counts.
        last = list(dict.fromkeys(reversed(undone)))[::-1]
        if last != sorted(begun, reverse=True):
            yield f"job/{name} began steps {sorted(begun)}, and undid {undone}"


def _of_phase(told: Told, phase: str) -> Iterable[str]:
    return (
        name for name, job in told.jobs.items() if name in told.whole and phase_of(job) == phase
    )
