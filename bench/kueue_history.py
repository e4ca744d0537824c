"""A judge of quotas: whether more was ever granted than there was, by what the store told.

The server's part writes down what a watch of the store tells it, and what the played machine saw;
the judge works out from that alone who held what, and asks none of the code that decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from bench.kueue_scenarios import Scenario, queue_of


class Granted(NamedTuple):
    """A part of a quota, as the record of it tells."""

    token: int
    queue: str
    uid: str
    epoch: int
    tasks: int
    #: Of each task, in thousandths.
    cpu: int


class RecordChange(NamedTuple):
    """One version of a quota's record: what came to it, and whose part was taken off it."""

    version: int
    name: str
    came: tuple[Granted, ...]
    went: tuple[int, ...]


class JobChange(NamedTuple):
    """A Job, each time that something became of it which matters here."""

    version: int
    uid: str
    name: str
    epoch: int
    #: Whether it is over, or was put back to where it holds nothing.
    is_over: bool
    created_s: float
    admitted_s: float | None
    ended_s: float | None


class Run(NamedTuple):
    """An attempt on the played machine."""

    job: str
    began_s: float
    ended_s: float


class History(Struct, kw_only=True):
    """All that was written down in one run."""

    records: list[RecordChange]
    jobs: list[JobChange]
    runs: list[Run]


class Verdict(NamedTuple):
    """What the judge found."""

    grants: int
    #: Grants at which more was held than there was, and parts that were taken back too early.
    faults: list[str]
    #: The most that was held at one time in a queue, and in a cohort.
    most_of_queue: float
    most_of_cohort: float
    #: The same on the played machine.
    most_ran_of_queue: float
    most_ran_of_cohort: float


class _Held:
    """What is held by whom, and whether that was ever too much."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._queues: defaultdict[str, float] = defaultdict(float)
        self._cohorts: defaultdict[str, float] = defaultdict(float)
        self.most_of_queue = 0.0
        self.most_of_cohort = 0.0

    def change(self, queue: str, amount: float) -> None:
        """Somebody of a queue holds more, or less."""
        self._queues[queue] += amount
        self._cohorts[self._scenario.cohort_of(queue)] += amount

    def look(self, queue: str) -> Iterator[str]:
        """What is wrong after a grant in a queue."""
        cohort = self._scenario.cohort_of(queue)
        own, all_of_it = self._queues[queue], self._cohorts[cohort]
        self.most_of_queue = max(self.most_of_queue, own)
        self.most_of_cohort = max(self.most_of_cohort, all_of_it)
        if own > self._scenario.most_of(queue):
            yield f"{queue} holds {own:g} of {self._scenario.most_of(queue)}"
        if all_of_it > self._scenario.most_of_cohort():
            yield f"{cohort} holds {all_of_it:g} of {self._scenario.most_of_cohort()}"


def judge(scenario: Scenario, history: History) -> Verdict:
    """Go through the history in the order of the store's versions.

    A grant counts from the version that made it until the one in which its Job is over or was
    begun anew: what the record says of that later counts for nothing.
    """
    held = _Held(scenario)
    live: dict[tuple[str, int], Granted] = {}
    by_token: dict[tuple[str, int], Granted] = {}
    epochs: dict[str, int] = {}
    over: set[str] = set()
    faults: list[str] = []
    grants = 0

    lives: defaultdict[str, list[int]] = defaultdict(list)
    changes: list[RecordChange | JobChange] = [*history.records, *history.jobs]
    changes.sort(key=lambda one: one.version)
    for change in changes:
        if isinstance(change, JobChange):
            epochs[change.uid] = change.epoch
            if change.is_over:
                over.add(change.uid)
            going = lives.get(change.uid, ())
            for epoch in [e for e in going if change.is_over or e < change.epoch]:
                part = live.pop((change.uid, epoch))
                lives[change.uid].remove(epoch)
                held.change(part.queue, -part.tasks * part.cpu / 1000)
            continue
        for token in change.went:
            part = by_token.pop((change.name, token))
            if (part.uid, part.epoch) in live:
                faults.append(f"version {change.version} takes room of {part.uid} that goes on")
        for part in change.came:
            grants += 1
            by_token[change.name, part.token] = part
            if part.uid in over or part.epoch < epochs.get(part.uid, 0):
                # Of one that was over before: it counts for nothing, and never will.
                continue
            live[part.uid, part.epoch] = part
            lives[part.uid].append(part.epoch)
            held.change(part.queue, part.tasks * part.cpu / 1000)
        for queue in {part.queue for part in change.came}:
            faults += (f"version {change.version}: {told}" for told in held.look(queue))
    ran = _machine(scenario, history, faults)
    return Verdict(
        grants,
        faults,
        held.most_of_queue,
        held.most_of_cohort,
        ran.most_of_queue,
        ran.most_of_cohort,
    )


def _machine(scenario: Scenario, history: History, faults: list[str]) -> _Held:
    """What ran at the same time, whatever the store says."""
    ran = _Held(scenario)
    moments = [(run.began_s, 1, run.job) for run in history.runs]
    moments += [(run.ended_s, -1, run.job) for run in history.runs]
    # Ends come first: what ended at a moment had been told before what begins then was launched.
    for _, sign, job in sorted(moments, key=lambda one: one[:2]):
        queue = queue_of(job)
        ran.change(queue, sign * scenario.class_of(job).cpu)
        if sign > 0:
            faults += (f"on the machine: {told}" for told in ran.look(queue))
    return ran
