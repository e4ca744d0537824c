"""All that the keeper knows durably: the journal's records applied one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import assert_never

from interlock.resources.tasks import ReportState, TaskId, TaskReport
from interlock.runtimes.keeper.records import (
    Booted,
    Entry,
    Forgot,
    Founded,
    Intended,
    MainEnded,
    Over,
    Past,
    Record,
    Spawning,
    Started,
    StopAsked,
    TookOver,
)

#: How many tasks of forgotten attempts are remembered, so that none is started again.
KEPT_FORGOTTEN = 100_000
_OPEN = (ReportState.ACCEPTED, ReportState.RUNNING)


class Ledger:
    """The attempts by their identity and by their serial number."""

    def __init__(self) -> None:
        self.base = 0
        self.next_serial = 0
        self.boot_id = ""
        self.term = 0
        self.working_dir = "/"
        self.env: dict[str, str] = {}
        self.umask = 0o022
        self.entries: dict[TaskId, Entry] = {}
        self.by_serial: dict[int, Entry] = {}
        #: Attempts that are not over.
        self.open: dict[int, Entry] = {}
        #: The highest attempt that was forgotten, per Job and task, oldest first; and how it ended.
        self.forgotten: dict[tuple[str, int], tuple[int, Past | None]] = {}

    def is_settled(self, task: TaskId) -> bool:
        """Whether a launch of this attempt would change nothing."""
        return task in self.entries

    def was_forgotten(self, task: TaskId) -> bool:
        """Whether this attempt, or a later one of its task, was over and dropped."""
        highest, _ = self.forgotten.get((task.job_uid, task.task), (-1, None))
        return task.attempt <= highest

    def apply(self, record: Record | Entry) -> None:
        """Take in one more fact. The same facts in the same order give the same ledger."""
        match record:
            case Founded(base, next_serial):
                self.base = base
                self.next_serial = max(self.next_serial, next_serial)
            case Booted(boot_id):
                self.boot_id = boot_id
            case TookOver(term, working_dir, env, umask):
                self.term, self.working_dir = term, working_dir
                self.env, self.umask = env, umask
            case Intended():
                self._intend(record)
            case Spawning(serials):
                for serial in serials:
                    if serial in self.open:
                        self.open[serial].spawning = True
            case Started() | MainEnded() | Over():
                entry = self.by_serial.get(record.serial)
                if entry is not None and entry.serial in self.open:
                    self._move(entry, record)
            case StopAsked():
                self._stop(record)
            case Forgot(tasks, pasts):
                for task, past in zip_longest(tasks, pasts):
                    self._forget(task, past)
            case Entry():
                self._add(record)
            case _:
                assert_never(record)

    def snapshot(self) -> Iterator[Record | Entry]:
        """Records that make a ledger like this one."""
        yield Founded(self.base, self.next_serial)
        yield Booted(self.boot_id)
        yield TookOver(self.term, self.working_dir, self.env, self.umask)
        if self.forgotten:
            known = self.forgotten.items()
            tasks = tuple(TaskId(job, task, attempt) for (job, task), (attempt, _) in known)
            yield Forgot(tasks, tuple(past for _, past in self.forgotten.values()))
        yield from self.entries.values()

    def reports(self) -> tuple[TaskReport, ...]:
        """Everything that is known of every attempt."""
        return tuple(map(report_of, self.entries.values()))

    def _intend(self, record: Intended) -> None:
        for at, order in enumerate(record.orders):
            serial = record.first_serial + at
            if order.id in self.entries:
                continue
            entry = Entry(
                task=order.id,
                serial=serial,
                namespace=order.namespace,
                job=order.job,
                state=ReportState.ACCEPTED,
                job_version=order.job_version,
                order=order,
                probe=record.probes.get(at),
            )
            if self.was_forgotten(order.id):
                entry.order = entry.probe = None
                self._recall(entry)
            self._add(entry)
        self.next_serial = max(self.next_serial, record.first_serial + len(record.orders))

    def _move(self, entry: Entry, record: Started | MainEnded | Over) -> None:
        match record:
            case Started(_, pid, ticks, at):
                if entry.probe is None:
                    entry.order = None
                elif entry.state is not ReportState.RUNNING:
                    entry.ready, entry.ready_at = False, at
                entry.state, entry.spawning = ReportState.RUNNING, True
                entry.pid, entry.ticks, entry.started_at = pid, ticks, at
            case MainEnded(_, exit_code, signal):
                entry.main_ended = True
                entry.exit_code, entry.signal = exit_code, signal
            case Over(_, state, at, exit_code, signal, message):
                entry.state, entry.ended_at = state, at
                entry.order = entry.probe = entry.ready = entry.ready_at = None
                entry.exit_code, entry.signal, entry.message = exit_code, signal, message
                del self.open[entry.serial]

    def _stop(self, record: StopAsked) -> None:
        entry = self.entries.get(record.task)
        if entry is None:
            self._add(self._tombstone(record))
        elif entry.serial in self.open:
            left = record.grace_s if entry.grace_s is None else min(entry.grace_s, record.grace_s)
            entry.grace_s = left
            if not entry.spawning:
                message = "it was stopped before it was started"
                self._move(
                    entry,
                    Over(entry.serial, ReportState.NOT_STARTED, record.at, None, None, message),
                )

    def _tombstone(self, record: StopAsked) -> Entry:
        entry = Entry(
            task=record.task,
            serial=record.serial,
            namespace=record.namespace,
            job=record.job,
            state=ReportState.NOT_STARTED,
            grace_s=0.0,
            ended_at=record.at,
            message="it was stopped before it was launched, and is never started",
        )
        if self.was_forgotten(record.task):
            self._recall(entry)
        return entry

    def _recall(self, entry: Entry) -> None:
        """Make of an entry what is still known of an attempt that was over and dropped.

        Somebody asks about it again who has forgotten its end too: a store that was put back.
        """
        task = entry.task
        highest, past = self.forgotten[task.job_uid, task.task]
        # Of an attempt that others followed it is only known that it failed.
        entry.state, entry.grace_s = ReportState.ENDED, None
        entry.message = (
            "it was over before, and how it ended was forgotten; it is not started again"
        )
        if past is not None and highest == task.attempt:
            entry.state, entry.ended_at = past.state, past.ended_at
            entry.exit_code, entry.signal = past.exit_code, past.signal
            entry.grace_s = 0.0 if past.stopped else None
            entry.message = "it was over before, and is not started again"

    def _add(self, entry: Entry) -> None:
        self.entries[entry.task] = entry
        self.by_serial[entry.serial] = entry
        self.next_serial = max(self.next_serial, entry.serial + 1)
        if entry.state in _OPEN:
            self.open[entry.serial] = entry

    def _forget(self, task: TaskId, past: Past | None) -> None:
        entry = self.entries.get(task)
        if entry is not None:
            if entry.serial in self.open:
                return
            del self.entries[task]
            del self.by_serial[entry.serial]
            past = _past_of(entry)
        key = (task.job_uid, task.task)
        known = self.forgotten.pop(key, (-1, None))
        self.forgotten[key] = (task.attempt, past) if task.attempt >= known[0] else known
        if len(self.forgotten) > KEPT_FORGOTTEN:
            del self.forgotten[next(iter(self.forgotten))]


def _past_of(entry: Entry) -> Past | None:
    """What is kept of an attempt that is over; nothing when its end was never proven."""
    if entry.state not in (ReportState.ENDED, ReportState.NOT_STARTED):
        return None
    stopped = entry.grace_s is not None
    return Past(entry.state, entry.ended_at, entry.exit_code, entry.signal, stopped)


def _words_of(entry: Entry) -> str:
    """What is to be said of an attempt, and why it is not ready."""
    why_not = entry.why_not if entry.ready is False else ""
    return "; ".join(filter(None, (entry.message, why_not)))


def report_of(entry: Entry) -> TaskReport:
    """What is told of an attempt."""
    over = entry.state not in _OPEN
    return TaskReport(
        job_uid=entry.task.job_uid,
        index=entry.task.task,
        attempt=entry.task.attempt,
        namespace=entry.namespace,
        job=entry.job,
        state=entry.state,
        started_at=entry.started_at,
        ended_at=entry.ended_at,
        pid=entry.pid if over or entry.survivor is None else entry.survivor,
        # A code is told once nothing is left of the attempt, its children included.
        exit_code=entry.exit_code if over else None,
        signal=entry.signal if over else None,
        stopped=entry.grace_s is not None,
        message=_words_of(entry),
        ready=entry.ready,
        ready_at=entry.ready_at,
        job_version=entry.job_version,
    )
