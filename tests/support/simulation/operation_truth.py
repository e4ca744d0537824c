"""What became of the steps of an operation, worked out from what was committed.

Attempts and their ends are read from the status; what follows from them (how often a step was
retried, what is done, what is left to be undone) is worked out here anew, without the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct, field

from interlock.resources.job import Job
from interlock.resources.operation import (
    ELABORATION,
    OperationStatus,
    StepStatus,
    is_undo,
    step_of,
)
from interlock.resources.steps import BeforeRetry, Step, needs_of
from interlock.resources.tasks import EndedTask, TaskResult


class Deed(NamedTuple):
    """An attempt that was recorded: to run a step, or to undo it."""

    step: int
    is_undo: bool
    #: The step before whose retry it undoes; None in a rollback.
    retried: int | None
    at: datetime


class Tally(Struct):
    """How often something was tried again, and since when it may be."""

    retries: int = 0
    #: Failures that were taken back on account of another in the very write in which they were
    #: recorded: whether a retry of its own had begun by then is nobody's to say.
    perhaps: int = 0
    cuts: int = 0
    #: Whether it was cut off in a worker since it last ended by itself.
    is_suspected: bool = False
    #: When its last attempt failed, if it was not tried again since.
    failed_at: datetime | None = None
    #: Whether its last attempt failed or was cut off, and it was not tried again since.
    is_open: bool = False


class Entry(Struct):
    """One step."""

    #: It was run at least once since it was undone.
    begun: bool = False
    done: bool = False
    undone: bool = False
    #: Its undo was tried at least once since it was run.
    is_touched: bool = False
    run: Tally = field(default_factory=Tally)
    undo: Tally = field(default_factory=Tally)


class Ledger:
    """What became of the steps of one operation, write by write."""

    def __init__(self, job: Job) -> None:
        assert job.spec.steps is not None
        self._steps = job.spec.steps
        self._most_cuts = job.spec.max_interruptions
        self.entries = [Entry() for _ in self._steps]
        #: What was not as it may be, about retries.
        self.problems: list[str] = []
        #: How far the clocks of those who write have differed.
        self.skew = timedelta()
        self._known: tuple[tuple[int, int], ...] = ()

    def entry(self, name: str) -> Entry:
        """A step by its name."""
        return self.entries[number_of(self._steps, name)]

    def take(self, job: Job, was: OperationStatus | None, now: OperationStatus) -> list[Deed]:
        """Take in what ended and what a person ordered; what was begun is told."""
        moment = now.updated_at
        assert moment is not None
        before = was if was is not None else OperationStatus()
        steps = before.steps or tuple(StepStatus(name=step.name) for step in self._steps)
        for end in self._new_ends(job):
            self._ended(end, steps, before.reverting, moment)
        if now.interventions > before.interventions:
            self._ordered(now)
        if now.reverting and not before.reverting:
            self._turned()
        deeds: list[Deed] = []
        for at, (old, new) in enumerate(zip(steps, now.steps, strict=False)):
            if new.undos > old.undos:
                retried = None if now.reverting else number_of(self._steps, new.undo_for)
                deeds.append(Deed(at, True, retried, moment))
            if new.runs > old.runs:
                deeds.append(Deed(at, False, None, moment))
        # What is undone before a retry is begun with it, in whichever order it then starts.
        for deed in deeds:
            self._retried(deed)
        return deeds

    def begin(self, deed: Deed) -> None:
        """Take an attempt in as begun."""
        entry = self.entries[deed.step]
        if deed.is_undo:
            entry.is_touched = True
            for covered in self._covered_by(deed.step) if deed.retried is None else ():
                covered.is_touched = True
            return
        entry.begun, entry.done, entry.undone, entry.is_touched = True, False, False, False

    def is_exhausted(self, at: int) -> bool:
        """Whether a step is out of retries."""
        tally, limit = self.entries[at].run, self._steps[at].retries.limit
        used = tally.failed_at is not None and tally.retries + tally.perhaps >= limit
        return used or tally.cuts > self._most_cuts

    def is_lost(self, at: int) -> bool:
        """Whether the undo of a step is out of retries."""
        tally = self.entries[at].undo
        used = tally.failed_at is not None and tally.retries >= _undo_limit(self._steps[at])
        return used or tally.cuts > self._most_cuts

    # What ended

    def _new_ends(self, job: Job) -> list[EndedTask]:
        ended = job.status.execution.ended
        new = [
            end
            for end in ended
            if (end.index, end.attempt) not in self._known and end.index != ELABORATION
        ]
        # The newest that are kept are enough to tell what is new from what is not.
        self._known = tuple((end.index, end.attempt) for end in ended)
        return new

    def _ended(
        self, end: EndedTask, steps: Sequence[StepStatus], reverting: bool, now: datetime
    ) -> None:
        at = step_of(end.index)
        entry = self.entries[at]
        if not is_undo(end.index):
            if end.result is TaskResult.SUCCEEDED:
                entry.done, entry.run = True, Tally()
            else:
                self._failed(f"step {self._steps[at].name}", entry.run, end, now)
            return
        if end.result is TaskResult.SUCCEEDED:
            entry.begun, entry.done, entry.undone = False, False, True
            entry.undo = Tally()
            for covered in self._covered_by(at) if reverting else ():
                covered.done = False
            return
        name = f"undo of {self._steps[at].name}"
        if reverting:
            self._failed(name, entry.undo, end, now)
            return
        retried = number_of(self._steps, steps[at].undo_for)
        self._failed(f"{name} for a retry", self.entries[retried].run, end, now)

    def _covered_by(self, at: int) -> Iterator[Entry]:
        """What the undo of a step undoes besides it."""
        for step, entry in zip(self._steps, self.entries, strict=True):
            if step.undo_covered_by == self._steps[at].name:
                yield entry

    def _failed(self, what: str, tally: Tally, end: EndedTask, now: datetime) -> None:
        tally.is_open = True
        if not _is_cut(end):
            tally.failed_at = now
            tally.is_suspected = False
            return
        if end.result is TaskResult.INTERRUPTED and end.started_at is None:
            return  # It waited for a worker, and nothing of it was begun.
        is_blamed = tally.is_suspected or not end.beside_others
        tally.is_suspected = tally.is_suspected or end.result is TaskResult.INTERRUPTED
        if not is_blamed:
            return
        tally.cuts += 1
        if tally.cuts > self._most_cuts + 1:
            self.problems.append(f"{what} was cut off {tally.cuts} times, and still tried again")

    # What was begun

    def _retried(self, deed: Deed) -> None:
        """Hold a retry that begins against its limit and its moment."""
        at = self._retried_by(deed)
        step, entry = self._steps[at], self.entries[at]
        if deed.is_undo and deed.retried is None:
            what, tally, limit = f"undo of {step.name}", entry.undo, _undo_limit(step)
            delay = _undo_delay(step)
        else:
            what, tally, limit = f"step {step.name}", entry.run, step.retries.limit
            delay = step.retries.delay
            if tally.is_open:
                self._undone_with(at, deed.at)
        tally.is_open = False
        if tally.failed_at is None:
            return
        due = tally.failed_at + delay * tally.retries
        tally.retries += 1
        tally.failed_at = None
        if tally.retries > limit:
            self.problems.append(f"{what} is retried {tally.retries} times, limit {limit}")
        if deed.at + self.skew < due:
            self.problems.append(f"retry {tally.retries} of {what} at {deed.at}, due {due}")

    def _retried_by(self, deed: Deed) -> int:
        """The step whose retry an attempt is a part of."""
        if deed.retried is not None:
            return deed.retried
        if not deed.is_undo and self.entries[deed.step].done:
            # It has no undo, and is run again on account of another.
            for at, entry in enumerate(self.entries):
                if entry.run.is_open and deed.step in demanded(self._steps, at):
                    return at
        return deed.step

    def _undone_with(self, at: int, now: datetime) -> None:
        """What a retry demands to be undone: without an undo of its own it is so from now on."""
        wanted = demanded(self._steps, at)
        begun = {n for n in wanted if self.entries[n].begun} | ({at} if wanted else set())
        for n in begun:
            entry = self.entries[n]
            if n != at:
                # It is run again on account of another: that is no retry of its own, unless both
                # were due.
                entry.run.perhaps += self._was_due(n, now)
                entry.run.failed_at, entry.run.is_open = None, False
            entry.undo = Tally()
            if not has_own_undo(self._steps, begun, n):
                entry.begun = entry.done = False

    def _was_due(self, at: int, now: datetime) -> bool:
        """Whether a retry of a step may have begun by now."""
        tally = self.entries[at].run
        if tally.failed_at is None:
            return False
        return tally.failed_at + self._steps[at].retries.delay * tally.retries <= now + self.skew

    def _turned(self) -> None:
        """It is rolled back: what has no undo of its own counts as undone from now on."""
        begun = {n for n, entry in enumerate(self.entries) if entry.begun}
        for n in begun:
            entry = self.entries[n]
            entry.undo = Tally()
            entry.begun = has_own_undo(self._steps, begun, n)

    def _ordered(self, now: OperationStatus) -> None:
        """A person ordered it to go on: everything is counted anew."""
        for entry in self.entries:
            entry.undo = Tally()
        if now.reverting or now.reverting_for:
            return
        for entry in self.entries:
            entry.run = Tally()
            # Nobody knows what is left of what was undone in part.
            entry.done = entry.done and not entry.is_touched
        for _ in self._steps:
            for at, entry in enumerate(self.entries):
                needs = needs_of(self._steps, at)
                entry.done = entry.done and all(self.entry(name).done for name in needs)
        for entry in self.entries:
            entry.begun = entry.begun or entry.done


class Ledgers:
    """The ledger of every operation, by uid."""

    def __init__(self) -> None:
        self._known: dict[str, Ledger] = {}

    def of(self, job: Job) -> Ledger:
        """That of one operation."""
        return self._known.setdefault(job.metadata.uid, Ledger(job))


def _is_cut(end: EndedTask) -> bool:
    """Whether an attempt was cut off without its doing."""
    if end.result in (TaskResult.INTERRUPTED, TaskResult.WRITTEN_OFF):
        return True
    return end.result is TaskResult.FAILED and end.exit_code is None and end.signal is None


def _undo_limit(step: Step) -> int:
    return step.undo_retries.limit if step.undo_retries is not None else 0


def _undo_delay(step: Step) -> timedelta:
    given = step.undo_retries.delay if step.undo_retries is not None else None
    return step.retries.delay if given is None else given


def number_of(steps: Sequence[Step], name: str) -> int:
    """The number of a step."""
    return next(at for at, step in enumerate(steps) if step.name == name)


def needed_by(steps: tuple[Step, ...], name: str) -> set[str]:
    """All steps that a step needs, directly or through others."""
    found: set[str] = set()
    for below in needs_of(steps, number_of(steps, name)):
        found |= {below} | needed_by(steps, below)
    return found


def above_of(steps: tuple[Step, ...], name: str) -> set[str]:
    """All steps that need a step, directly or through others."""
    return {step.name for step in steps if name in needed_by(steps, step.name)}


def demanded(steps: tuple[Step, ...], at: int) -> set[int]:
    """The numbers of the steps to be undone before a step is tried again, if they were begun."""
    step = steps[at]
    if step.before_retry is BeforeRetry.AS_IS:
        return set()
    if step.before_retry is BeforeRetry.ROLL_BACK_FIRST:
        return {at}
    names = set(step.roll_back).union(*(above_of(steps, name) for name in step.roll_back))
    return {number_of(steps, name) for name in names} | {at}


def has_own_undo(steps: tuple[Step, ...], undone: set[int], at: int) -> bool:
    """Whether a step is undone by itself when these are undone: another's may cover it."""
    if steps[at].undo is None:
        return False
    return not any(
        steps[n].name == steps[at].undo_covered_by and steps[n].undo is not None for n in undone
    )
