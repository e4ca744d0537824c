"""Hears of everything that happens, and holds each promise against it at once."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.resources.tasks import TaskId
from interlock.store.contract import JournalEntry
from interlock.store.watching import Change
from support.simulation.truth import Truth


class BrokenPromiseError(Exception):
    """A promise was broken: which, how, and what it was about."""

    def __init__(self, promise: str, what: str, about: Sequence[str] = ()) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
        self.what = what
        self.about = tuple(about)


class UnfinishedError(BrokenPromiseError):
    """Something did not come to its end, which is promised where one control plane leads."""


class Promise:
    """Something that must hold at every step. Each method is one moment at which to check it."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def wrote(self, change: Change) -> None:
        """A write was committed; the truth holds it already."""

    def granted(self, change: Change) -> None:
        """The record of a quota was written; the truth holds it already."""

    def seated(self, change: Change) -> None:
        """The record of a bed's slots was written; the truth holds it already."""

    def scheduled(self, change: Change) -> None:
        """A JobConfig or a ControlledJob was written; the truth holds it already."""

    def starts(self, life: Life) -> None:
        """A process begins; the truth holds it already."""

    def stops(self, task: TaskId) -> None:
        """The machine is told to stop an attempt."""

    def deed(self, entry: JournalEntry) -> None:
        """What a person did was written into the history."""

    def rests(self) -> None:
        """Trouble is over, nothing happens any more, and nobody has seen to what is stuck."""

    def settled(self) -> None:
        """All trouble is over, and time has passed."""

    def broken(self, what: str, *about: str) -> BrokenPromiseError:
        """The error that says how the promise was broken."""
        return BrokenPromiseError(type(self).__name__, what, about)


class Judge:
    """Keeps the truth up to date and asks every promise."""

    def __init__(self, truth: Truth, promises: Sequence[Promise]) -> None:
        self.truth = truth
        self.promises = tuple(promises)

    def wrote(self, change: Change) -> None:
        """A write was committed."""
        self.truth.take(change)
        if change.key.kind in ("Job", "Lock"):
            for promise in self.promises:
                promise.wrote(change)
        elif change.key.kind == "QueueQuota":
            for promise in self.promises:
                promise.granted(change)
        elif change.key.kind == "TestBedSlots":
            for promise in self.promises:
                promise.seated(change)
        elif change.key.kind in ("JobConfig", "ControlledJob"):
            for promise in self.promises:
                promise.scheduled(change)

    def started(self, life: Life) -> None:
        """A process began."""
        self.truth.lives[life.order.id] = life
        for promise in self.promises:
            promise.starts(life)

    def ended(self, life: Life) -> None:
        """A process ended, seen or not."""
        order = life.order
        task = TaskId(order.job_uid, order.index, order.attempt)
        self.truth.lives.pop(task, None)
        self.truth.ends[task] = (life.code, life.signal)

    def stopped(self, task: TaskId) -> None:
        """The machine was told to stop an attempt."""
        for promise in self.promises:
            promise.stops(task)

    def deed(self, entry: JournalEntry) -> None:
        """What a person did was written into the history."""
        for promise in self.promises:
            promise.deed(entry)

    def rests(self) -> None:
        """Trouble is over, nothing happens any more, and nobody has seen to what is stuck."""
        for promise in self.promises:
            promise.rests()

    def settled(self) -> None:
        """All trouble is over, and time has passed."""
        for promise in self.promises:
            promise.settled()
