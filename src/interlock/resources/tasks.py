"""Tasks: what a Job runs, one process at a time, and what became of each attempt."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import json

from interlock.resources.metadata import Moment, Noun
from interlock.resources.naming import MAX_LABEL, cut_name
from interlock.resources.operation import OperationStatus
from interlock.resources.steps import Elaboration
from interlock.resources.values.durations import Duration
from interlock.resources.values.indexes import IndexSet
from interlock.resources.work import ProcessWork, Work

#: Attempts are numbered by rounds: those of the first from 0, of the second from this number on,
#: and so forth. No round has as many, so the number of an attempt says its round and rises with it.
ATTEMPTS_IN_ROUND = 10_000
#: How many attempts of one Job are under way or waiting for a retry at a time, so that its
#: status stays readable whatever the number of its tasks.
MOST_AT_ONCE = 1_000


class TaskId(NamedTuple):
    """Which attempt of which task of which Job; never used twice."""

    job_uid: str
    task: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.job_uid}/{self.task}/{self.attempt}"


class TaskState(StrEnum):
    """Where an attempt is."""

    #: Recorded and ordered; not known to run.
    STARTING = "Starting"
    #: Known to run.
    RUNNING = "Running"
    #: Told to stop; not proven gone.
    KILLING = "Killing"
    #: What became of it cannot be proven.
    UNKNOWN = "Unknown"
    #: Proven over.
    ENDED = "Ended"


class StopCause(StrEnum):
    """Why an attempt was told to stop."""

    #: The Job was told to stop (spec.killAt).
    KILLED = "Killed"
    #: The Job is being deleted.
    DELETED = "Deleted"
    #: A newer Job replaces this one.
    REPLACED = "Replaced"
    #: It did not start within spec.pendingTimeout.
    PENDING_TIMEOUT = "PendingTimeout"
    #: It ran longer than spec.taskTimeout.
    TASK_TIMEOUT = "TaskTimeout"
    #: The Job ran longer than spec.timeout.
    JOB_TIMEOUT = "JobTimeout"
    #: The Job is put back: it waits again, and begins a new round.
    EVICTED = "Evicted"
    #: The Job's outcome no longer depends on it.
    NOT_NEEDED = "NotNeeded"


class TaskResult(StrEnum):
    """What an attempt came to."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    #: It was told to stop, and ended because of that.
    KILLED = "Killed"
    #: It could not be started at all.
    NOT_STARTED = "NotStarted"
    #: A person wrote it off; its fate was never proven.
    WRITTEN_OFF = "WrittenOff"
    #: It was cut off without its doing: its worker died or was silent for too long.
    INTERRUPTED = "Interrupted"


class PendingReason(StrEnum):
    """Why an attempt that was accepted does not run yet."""

    #: Others hold its pod back from the scheduler.
    GATED = "Gated"
    #: No node has room for it, or may have it.
    UNSCHEDULABLE = "Unschedulable"
    #: An image cannot be had.
    IMAGE = "Image"
    #: A container cannot be made or started.
    CONTAINER = "Container"
    #: No worker that is there can do it. Before one is told to, that it starts is written down.
    NO_WORKER = "NoWorker"
    #: Every worker that can do it is busy. Before one is told to, that it starts is written down.
    WORKERS_BUSY = "WorkersBusy"
    #: Something else, which the message tells.
    OTHER = "Other"


class Progress(Noun):
    """How far an attempt says it is."""

    #: 0 to 100.
    percent: int
    #: A line for people, at most 200 characters.
    text: str = ""


class Returned(Noun):
    """What an attempt returned, as JSON. What is longer than 4096 bytes is not kept."""

    #: The value itself.
    json: str = ""
    #: How long it was when it was too long to be kept; `json` is empty then.
    dropped_bytes: int = 0


MAX_PROGRESS_TEXT = 200
MAX_RETURNED_BYTES = 4096


def progress_of(percent: float, text: str = "") -> Progress:
    """Progress within its bounds: the percentage from 0 to 100, the text on a line and cut."""
    line = " ".join(text.split())
    if len(line) > MAX_PROGRESS_TEXT:
        line = f"{line[: MAX_PROGRESS_TEXT - 1]}…"
    return Progress(percent=max(0, min(100, int(percent))), text=line)


def returned_of(data: bytes) -> Returned:
    """What an attempt returned; beyond the bound its length alone.

    Raises:
        msgspec.DecodeError: It is not JSON.
    """
    if len(data) > MAX_RETURNED_BYTES:
        return Returned(dropped_bytes=len(data))
    json.decode(data)
    return Returned(json=data.decode())


class TaskStatus(Noun):
    """An attempt that is not known to be over."""

    name: str
    index: int
    attempt: int
    state: TaskState
    #: When the attempt was recorded, before anything was launched.
    created_at: Moment
    started_at: Moment | None = None
    #: When it was told to stop, and why.
    stop_at: Moment | None = None
    stop_cause: StopCause | None = None
    #: The grace that was given with the order to stop.
    stop_grace: Duration | None = None
    #: Its process; when that has ended and children of it live on, one of these.
    pid: int | None = None
    message: str = ""
    #: Why it does not run yet, if that is told.
    reason: PendingReason | None = None
    #: Whether it can do its work; not given when that is not told apart from running.
    ready: bool | None = None
    #: When it was given a place to run, where that is told apart from running, and waited for.
    placed_at: Moment | None = None
    progress: Progress | None = None
    #: The slot of the Job's TestBed that it runs in; empty for a Job without slots.
    slot: str = ""
    #: The runtime that has it; empty for the mode's own.
    runtime: str = ""


class EndedTask(Noun):
    """An attempt that is over."""

    name: str
    index: int
    attempt: int
    result: TaskResult
    ended_at: Moment
    started_at: Moment | None = None
    #: The exit code; None when a signal ended it or it never ran.
    exit_code: int | None = None
    #: The signal that ended it.
    signal: int | None = None
    stop_cause: StopCause | None = None
    message: str = ""
    returned: Returned | None = None
    #: Of one that was cut off: whether others were at work in the same process, as far as is known.
    beside_others: bool = False


class RetryWait(Noun):
    """A task that waits for its next attempt."""

    index: int
    #: The number of the attempt that comes next.
    attempt: int
    #: It does not start before this moment.
    not_before: Moment


class JobResult(StrEnum):
    """What a Job that started came to."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    KILLED = "Killed"
    FINISHED_UNKNOWN = "FinishedUnknown"


class ExecutionReason(StrEnum):
    """Why a Job came to its result."""

    #: The completion rule is met.
    COMPLETED = "Completed"
    #: A task is out of attempts, or failed with an exit code that is never tried again.
    TASK_FAILED = "TaskFailed"
    #: spec.timeout passed.
    TIMEOUT = "Timeout"
    #: spec.killAt passed.
    KILLED = "Killed"
    #: The Job was deleted while it ran.
    DELETED = "Deleted"
    #: A newer Job took its place.
    REPLACED = "Replaced"
    #: A person released it while the fate of a task was unknown.
    RELEASED = "Released"
    #: Some or all of its children failed.
    CHILDREN_FAILED = "ChildrenFailed"
    #: A person said what it came to.
    RESOLVED = "Resolved"


class ExecutionStatus(Noun):
    """Written by the execution room alone. Its size is bounded whatever the number of tasks."""

    #: How often the Job was put back before: each time a new round of attempts begins. What
    #: succeeded stays so; every other task has all its attempts again.
    round: int = 0
    #: How many tasks the Job has; 0 until it starts.
    total: int = 0
    #: How many of them had succeeded when the round began.
    succeeded_before: int = 0
    #: When the round began.
    started_at: Moment | None = None
    #: When the outcome was settled by a rule and the remaining tasks were told to stop.
    stopping_at: Moment | None = None
    stopping_for: ExecutionReason | None = None
    ended_at: Moment | None = None
    result: JobResult | None = None
    reason: ExecutionReason | None = None
    message: str = ""
    #: Tasks that succeeded, and tasks that are out of attempts.
    succeeded: IndexSet = IndexSet()
    failed: IndexSet = IndexSet()
    #: Attempts that are not known to be over.
    active: tuple[TaskStatus, ...] = ()
    #: Tasks that wait for their next attempt.
    retrying: tuple[RetryWait, ...] = ()
    #: The newest attempts that are over, oldest first, at most KEPT_ENDED of them. That for which
    #: the Job failed is always among them.
    ended: tuple[EndedTask, ...] = ()
    #: Attempts recorded so far, of all tasks and rounds.
    attempts: int = 0
    #: How the steps of an operation are going; not given for other Jobs.
    operation: OperationStatus | None = None


#: How many ended attempts a status keeps.
KEPT_ENDED = 20


class TaskOrder(Noun):
    """Everything a runtime needs to start one attempt; variables are substituted already."""

    job_uid: str
    index: int
    attempt: int
    name: str
    namespace: str
    job: str
    work: Work
    #: The runtime that it is for; empty for the mode's own.
    runtime: str = ""
    #: The TestBed, and the slot of it that the attempt runs in; empty for a Job without slots.
    test_bed: str = ""
    slot: str = ""
    #: What every task is told about itself; it wins over what its owner gave it.
    env: dict[str, str] = {}
    #: What is given between SIGTERM and SIGKILL, whoever stops it.
    grace: Duration | None = None
    #: As in the Job's spec.
    force_delete_after: Duration | None = None
    #: A version of the store at which the Job was there.
    job_version: int = 0

    @property
    def id(self) -> TaskId:
        """Which attempt this orders."""
        return TaskId(self.job_uid, self.index, self.attempt)


class ReportState(StrEnum):
    """What a runtime knows of an attempt."""

    #: Accepted durably; not started yet.
    ACCEPTED = "Accepted"
    #: The process runs.
    RUNNING = "Running"
    #: Proven over, children included.
    ENDED = "Ended"
    #: It was started or may have been, and nobody saw it end.
    UNKNOWN = "Unknown"
    #: It could not be started; it never ran.
    NOT_STARTED = "NotStarted"


class TaskReport(Noun):
    """What a runtime says of one attempt. Later reports replace earlier ones."""

    job_uid: str
    index: int
    attempt: int
    namespace: str
    job: str
    state: ReportState
    started_at: Moment | None = None
    ended_at: Moment | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    #: Whether the runtime sent a stop before the attempt ended.
    stopped: bool = False
    #: Whether it was accepted and is only prepared: it does not start unless it is launched again.
    prepared: bool = False
    message: str = ""
    #: Why it does not run yet; for what was accepted alone.
    reason: PendingReason | None = None
    #: Whether what runs can do its work; None when that is not told apart from running.
    ready: bool | None = None
    #: Since when it is, or is not, if that is known.
    ready_at: Moment | None = None
    #: When it was given a place to run, where that is told apart from running.
    placed_at: Moment | None = None
    #: How far it is, and what it returned when it ended, if it says so.
    progress: Progress | None = None
    returned: Returned | None = None
    #: The steps that it made of a request, when that is what it was for.
    elaboration: Elaboration | None = None
    #: Whether it ended because its worker died or was silent for too long. It may still be doing
    #: something there, and nothing that it says counts any more. Of one that was accepted: it
    #: waited at another server, and is over if its status still says that it waits for a worker.
    interrupted: bool = False
    #: Whether it is not known to have been all that its worker's process was at when that was lost.
    beside_others: bool = False
    #: The runtime that tells this; empty for the mode's own.
    runtime: str = ""
    #: As in the order: whoever has heard all up to it and finds no such Job knows it is gone.
    job_version: int = 0

    @property
    def id(self) -> TaskId:
        """Which attempt this tells of."""
        return TaskId(self.job_uid, self.index, self.attempt)


def process_of(order: TaskOrder) -> ProcessWork:
    """The process that is ordered."""
    work = order.work
    assert isinstance(work, ProcessWork), f"{order.name}: {type(work).__name__} is no process"
    return work


def waits_for_worker(task: TaskStatus) -> bool:
    """Whether it is recorded that no worker was told to do it: then none was, whoever asks."""
    waits = task.reason in (PendingReason.NO_WORKER, PendingReason.WORKERS_BUSY)
    return waits and task.started_at is None


def is_ready(task: TaskStatus | TaskReport) -> bool:
    """Whether an attempt runs and can do its work, as far as anybody tells the two apart."""
    running = task.state is TaskState.RUNNING or task.state is ReportState.RUNNING
    return running and task.ready is not False


def task_name(job: str, index: int, attempt: int) -> str:
    """The name of an attempt: the same cause always gives the same name."""
    if attempt < ATTEMPTS_IN_ROUND:
        return f"{job}-{index}-{attempt}"
    tail = f"-{index}-r{round_of(attempt)}-{number_in_round(attempt)}"
    return cut_name(job, MAX_LABEL - len(tail)) + tail


def round_of(attempt: int) -> int:
    """The round that an attempt is of."""
    return attempt // ATTEMPTS_IN_ROUND


def number_in_round(attempt: int) -> int:
    """How many attempts its task had before it in the same round."""
    return attempt % ATTEMPTS_IN_ROUND


def attempt_in_words(attempt: int, most: int | None = None) -> str:
    """An attempt as people count: from 1, and the rounds too where there are several."""
    told = f"attempt {number_in_round(attempt) + 1}"
    if most is not None:
        told += f" of {most}"
    round = round_of(attempt)
    return f"{told}, round {round + 1}" if round else told


def first_attempt(round: int) -> int:
    """The number that the first attempt of each task has in a round."""
    return round * ATTEMPTS_IN_ROUND


def next_round(execution: ExecutionStatus) -> ExecutionStatus:
    """What is left of the execution of a Job that is put back, none of whose attempts is left.

    What succeeded is not done again. Retries, failures and times of this round count no more.
    """
    assert not execution.active, "attempts may still be doing something"
    assert execution.result is None, "what is over is not put back"
    return ExecutionStatus(
        round=execution.round + 1,
        total=execution.total,
        succeeded=execution.succeeded,
        succeeded_before=len(execution.succeeded),
        ended=execution.ended,
        attempts=execution.attempts,
    )
