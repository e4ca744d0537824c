"""A Job: one run of something, what its owner asks for, and how it is going."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from interlock.resources.admission import AdmissionStatus
from interlock.resources.adopted import AdoptedObject
from interlock.resources.metadata import Condition, Moment, Noun, Resource, Status
from interlock.resources.naming import MAX_JOB_NAME, MAX_LABEL
from interlock.resources.operation import ELABORATION, is_undo, step_of
from interlock.resources.pods import BatchJobTemplate, PodTemplate
from interlock.resources.process import NoopSpec, ProcessSpec
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.rules import (
    After,
    Choice,
    DnsLabel,
    Entries,
    ExactlyOne,
    Items,
    Limit,
    Line,
    Longest,
    Matches,
    Names,
    NounRule,
    OnlyWith,
    ProgramWord,
    SomeTime,
    Unique,
)
from interlock.resources.steps import MAX_STEPS, PythonSpec, Step, Target, target_lock
from interlock.resources.tasks import ExecutionStatus, TaskState
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration

MAX_TASKS = 10_000
MAX_RETRIES = 1_000
MAX_LOCKS = 64
#: All arguments of a Job together, names and values, as JSON.
MAX_ARGS_BYTES = 256 * 1024
MAX_LOCK_LIMIT = 1_000_000
INT32 = Limit(-(1 << 31), (1 << 31) - 1)

LOCK_KEY = Matches(
    "[A-Za-z0-9._/:-]{1,253}",
    "expected 1 to 253 letters, digits, '.', '_', '-', '/' and ':'",
    longest=253,
)
#: What an argument is called, and the second part of a variable's full name.
ARG_NAME = "[A-Za-z0-9_.-]{1,253}"
_ARGUMENTS = Names(ARG_NAME, "expected letters, digits, '_', '.' and '-'")
_MATRIX_NAMES = Names("[a-z0-9_-]{1,63}", "expected lower-case letters, digits, '_' and '-'")
TaskCount = Annotated[int, Limit(1, MAX_TASKS)]
_SecretName = Annotated[
    str,
    Matches(ARG_NAME, "expected 1 to 253 letters, digits, '_', '.' and '-'", longest=253),
]
_JOB_NAME = DnsLabel(MAX_JOB_NAME)
_ExitCode = Annotated[int, Limit(0, 255)]

QUEUE_NAME = DnsLabel(MAX_LABEL)
#: How many resources a task may ask for.
MAX_RESOURCES = 32
RESOURCE_NAMES = Names(
    "[A-Za-z0-9]([A-Za-z0-9._/-]{0,98}[A-Za-z0-9])?",
    "expected letters, digits, '.', '_', '-' and '/'",
)
#: What every task asks one of, whatever else it asks for.
ASKED_BY_ALL = "tasks"
ASKED_BY_ALL_TOLD = "leave it out: every task asks for one of tasks, and nothing else"
Resources = Annotated[dict[str, Amount], Entries(0, MAX_RESOURCES, "resources"), RESOURCE_NAMES]

#: Kept on a Job until its tasks are proven gone, so that deleting it stops them first.
JOB_FINALIZER = "interlock.dev/tasks"
#: A person's word that the Unknown tasks of a Job are gone; its value is the reason.
RELEASE_ANNOTATION = "interlock.dev/release"
#: The attempts that this word was given for, and who gave it. About others it says nothing.
RELEASED_ATTEMPTS_ANNOTATION = "interlock.dev/released-attempts"
RELEASED_BY_ANNOTATION = "interlock.dev/released-by"
#: A person's order to put a Job back that was let in; its value is the reason.
REQUEUE_ANNOTATION = "interlock.dev/requeue"
#: The round that this order was given for, and who gave it. Of another round it says nothing.
REQUEUE_ROUND_ANNOTATION = "interlock.dev/requeue-round"
REQUEUED_BY_ANNOTATION = "interlock.dev/requeued-by"
#: A person's order about an operation (`OperateVerb`), why, who gave it, and for which of its
#: interventions: for another it says nothing.
OPERATE_ANNOTATION = "interlock.dev/operate"
OPERATE_REASON_ANNOTATION = "interlock.dev/operate-reason"
OPERATE_FOR_ANNOTATION = "interlock.dev/operate-for"
OPERATED_BY_ANNOTATION = "interlock.dev/operated-by"
#: The name of the Job that this one repeats.
RETRY_OF_ANNOTATION = "interlock.dev/retry-of"
#: A digest of the request that the door made the Job of, for whoever asks again with its key.
REQUEST_ANNOTATION = "interlock.dev/request"
#: Who created the object, as the door has proven; on a cluster without our webhook as the client
#: told it.
CREATOR_ANNOTATION = "interlock.dev/creator"


#: What a TestBed is called, and a slot of it: `NODE/NUMBER`.
TEST_BED_NAME = DnsLabel(MAX_LABEL)
SlotId = Annotated[
    str,
    Matches(
        "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/(0|[1-9][0-9]{0,2})",
        "expected NODE/NUMBER, such as node-0/1",
        longest=257,
    ),
]
#: How many slots a Job may have.
MAX_SLOTS = 1_000


class OperateVerb(StrEnum):
    """What a person may order to be done about an operation."""

    #: To go forward again where it is stuck, with all retries.
    RETRY = "retry"
    #: To roll it back: from where it is stuck, or at all.
    ROLL_BACK = "roll-back"
    #: To take it as done.
    SUCCEEDED = "succeeded"
    #: To take it as failed, with nothing left behind.
    FAILED = "failed"
    #: To let it go, whatever it left behind.
    REMOVE = "remove"


class Completion(StrEnum):
    """When a Job of several tasks is done."""

    #: Every task must succeed; the first that is out of attempts fails the Job.
    ALL_SUCCESSFUL = "AllSuccessful"
    #: The first success is enough; the Job fails when no task can succeed any more.
    ANY_SUCCESSFUL = "AnySuccessful"


class Parallelism(Noun):
    """How many tasks, and what tells them apart: exactly one of count, keys and matrix."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("count", "keys", "matrix"),)

    #: Tasks numbered 0 to count - 1; ${task.index} is the number.
    count: TaskCount | None = None
    #: A task for each key; ${task.key} is the key.
    keys: Annotated[tuple[Choice, ...], Items(1, MAX_TASKS, "keys"), Unique()] | None = None
    #: A task for each combination; ${task.matrix.NAME} is the value of NAME.
    matrix: (
        Annotated[
            dict[
                str,
                Annotated[
                    tuple[Choice, ...], Items(1, expected="expected at least one value"), Unique()
                ],
            ],
            Entries(1, expected="expected at least one name with values"),
            _MATRIX_NAMES,
        ]
        | None
    ) = None
    #: At most this many of the Job's tasks run at a time; None leaves it to the room there is.
    at_once: TaskCount | None = None


class Backoff(StrEnum):
    """How the delay between attempts grows."""

    #: The same delay every time.
    CONSTANT = "Constant"
    #: delay, 2 x delay, 3 x delay, ...
    LINEAR = "Linear"
    #: delay, 2 x delay, 4 x delay, 8 x delay, ...
    EXPONENTIAL = "Exponential"


class Retries(Noun):
    """What to do about a task that failed."""

    #: Further attempts after the first, per task; all of them again in every round.
    limit: Annotated[int, Limit(0, MAX_RETRIES)] = 0
    #: From the end of one attempt to the start of the next.
    delay: Duration = Duration()
    backoff: Backoff = Backoff.CONSTANT
    #: No delay grows beyond this.
    max_delay: Duration | None = None
    #: Each delay is lengthened by up to this share of itself.
    jitter: Annotated[float, Limit(0, 1)] = 0.0
    #: When given, only these exit codes are tried again.
    retry_exit_codes: tuple[_ExitCode, ...] = ()
    #: These exit codes fail the task at once, whatever attempts are left.
    fail_exit_codes: tuple[_ExitCode, ...] = ()


class WhenTaken(StrEnum):
    """What a Job does about a lock that it cannot have at once."""

    #: Wait in line.
    ENQUEUE = "Enqueue"
    #: Do not start at all: the Job is refused.
    FORBID = "Forbid"
    #: Start all the same, and be counted.
    ALLOW = "Allow"
    #: Stop the holders and everyone who came before, and take their place.
    REPLACE = "Replace"


class LockRequest(Noun):
    """A lock that the Job needs before it may start."""

    key: Annotated[str, LOCK_KEY]
    #: How many Jobs may hold the lock when this Job joins them, itself included.
    limit: Annotated[int, Limit(1, MAX_LOCK_LIMIT)] = 1
    when_taken: WhenTaken = WhenTaken.ENQUEUE
    #: The Job is refused when so many are before it in the line as it joins; None takes any number.
    max_waiting: Annotated[int, Limit(0, MAX_LOCK_LIMIT)] | None = None


class SlotsRequest(Noun):
    """The slots of a TestBed that a Job's tasks run in, one each.

    A Job that names no bed waits until a Scheduling has claimed it and says which slots it gets.
    """

    RULES: ClassVar[tuple[NounRule, ...]] = (
        OnlyWith("ids", "test_bed", expected="is for slots of a spec.slots.testBed"),
    )

    #: The TestBed, in the Job's namespace.
    test_bed: Annotated[str, TEST_BED_NAME] | None = None
    #: These slots and no others. Where none are named, any that are free: one for each task that
    #: the Job would run at a time.
    ids: Annotated[tuple[SlotId, ...], Items(1, MAX_SLOTS, "slots"), Unique()] | None = None
    #: The Scheduling that has claimed the Job.
    scheduling: Annotated[str, DnsLabel(MAX_LABEL)] | None = None


_FOR_A_QUEUE = "is for a process, or a Job that names a spec.queue"


class JobSpec(Noun):
    """What the owner asks for. Only the owner writes it."""

    RULES: ClassVar[tuple[NounRule, ...]] = (
        ExactlyOne("process", "pod", "batch_job", "steps", "python", "noop", "adopted"),
        OnlyWith(
            *("force_delete_after", "pod", "batch_job"),
            expected="is for pods and batch Jobs alone: a process is killed after spec.gracePeriod",
        ),
        OnlyWith("resources", "queue", "process", expected=_FOR_A_QUEUE),
        OnlyWith("min_parallelism", "queue", "process", expected=_FOR_A_QUEUE),
        OnlyWith("wait_for_pods_ready", "queue", expected="is for a Job that names a spec.queue"),
        OnlyWith("slots", "process", "pod", expected="is for processes and pods alone"),
        After("start_by", "start_after", expected="expected a moment after spec.startAfter"),
    )

    #: What to run: exactly one of `process`, `pod`, `batchJob`, `steps`, `python`, `noop` and
    #: `adopted`. A process runs where the server does, pods and batch Jobs need a cluster.
    process: ProcessSpec | None = None
    pod: PodTemplate | None = None
    batch_job: BatchJobTemplate | None = None
    #: An operation: steps that are retried, and undone when they cannot be done.
    steps: Annotated[tuple[Step, ...], Items(1, MAX_STEPS, "steps"), Unique("name")] | None = None
    #: An operation whose steps a worker knows.
    python: PythonSpec | None = None
    noop: NoopSpec | None = None
    #: What somebody else made, and labelled with the name of the Queue: the system makes such Jobs.
    adopted: AdoptedObject | None = None
    #: What the Job is done to. Jobs with the same target run one at a time, in the order in which
    #: they were created, whatever their priorities; one that is stuck holds up those behind it.
    target: Target | None = None
    #: How many steps of an operation may be under way at a time, where none needs the other.
    steps_at_once: Annotated[int, Limit(1, MAX_STEPS)] = 1
    #: How often a step may be cut off without its doing before it counts as out of retries.
    max_interruptions: Annotated[int, Limit(0, MAX_RETRIES)] = 5
    parallelism: Parallelism | None = None
    completion: Completion = Completion.ALL_SUCCESSFUL
    retries: Retries = Retries()
    #: A task that was not started within this time counts as failed; 0s waits for ever.
    pending_timeout: Duration = Duration(minutes=15)
    #: A task that runs longer is stopped, and counts as failed.
    task_timeout: SomeTime | None = None
    #: A Job that runs longer, all attempts of a round together, is stopped, and fails.
    timeout: SomeTime | None = None
    #: From SIGTERM to SIGKILL.
    grace_period: Duration = Duration(seconds=30)
    #: A pod that was told to stop, on a node that is silent, is removed by force this long after
    #: its grace period, and counts as over; None keeps it, and its locks, until a person decides.
    force_delete_after: SomeTime | None = None
    #: The Job is stopped at this moment; now and the past mean at once. Once it has come it is
    #: fixed.
    kill_at: Moment | None = None
    #: The Job does not start before this moment.
    start_after: Moment | None = None
    #: The Job is refused when it could not start until this moment; not one that was put back.
    start_by: Moment | None = None
    #: An ended Job is deleted after this time; None keeps it.
    ttl_after_finished: Duration | None = None
    #: While true the Job does not start, and a started one starts no further task.
    suspend: bool = False
    suspend_reason: Line = ""
    #: Higher goes first in every line; equals go in the order of creation.
    priority: Annotated[int, INT32] = 0
    locks: Annotated[tuple[LockRequest, ...], Items(0, MAX_LOCKS, "locks"), Unique("key")] = ()
    #: The Queue in whose quota the Job has to find room before it starts. A process that names
    #: none asks the Queue `machine`, as long as there is one of that name; one with a lock, a
    #: target or slots only where it says in `resources` what it takes.
    queue: Annotated[str, QUEUE_NAME] | None = None
    #: What each task takes of the Queue's quota, such as `{cpu: 500m, memory: 2Gi}`, beside one of
    #: `tasks`. Where it is not given, that is what its pods request.
    resources: Resources | None = None
    #: A Job that may run fewer tasks at a time than it wants starts with as many as there is room
    #: for, but not with fewer than these.
    min_parallelism: TaskCount | None = None
    #: The slots of a TestBed that its tasks run in. To change it is to put the Job back, if it was
    #: let in: it waits for what it asks for now.
    slots: SlotsRequest | None = None
    #: While false the Job does not start; one that was let in is put back, and waits.
    active: bool = True
    #: How long it may take to be ready, where that differs from what its Queue says.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: What sort of operation it is, such as `create_app`.
    type: Line = ""
    #: A line for people.
    title: Line = ""
    #: More about it, for people.
    description: Line = ""
    #: Whose target it is; that is not always who created the Job.
    owner: Line = ""
    #: The Job that this one is a part of: that is not over before this one is.
    parent: Annotated[str, _JOB_NAME] | None = None
    #: Whoever asks twice with the same key gets the same Job.
    idempotency_key: Annotated[str, Longest(200)] | None = None
    #: Values for ${args.NAME}.
    args: Annotated[dict[str, ProgramWord], _ARGUMENTS] = {}
    #: Arguments that are secret, such as `password` or `db.password`: the store, and so every
    #: status, has "[redacted]" in the place of their values. Work does not get them either: give it
    #: the name of a file or of a variable to read.
    redact: Annotated[tuple[_SecretName, ...], Items(0, 100, "names"), Unique()] = ()
    #: Values by their full names, such as "option.region"; they win over every other value. In a
    #: template they win over options too; what is given for one run wins over them.
    substitutions: dict[str, ProgramWord] = {}


class JobPhase(StrEnum):
    """Where a Job is in its life: one word for people, worked out from what the rooms wrote."""

    #: Not started: held back, or waiting in a line. `interlock why` tells for what.
    QUEUED = "Queued"
    #: May start; no task was recorded yet.
    STARTING = "Starting"
    #: First attempts were ordered and do not run yet.
    PENDING = "Pending"
    #: Tasks run.
    RUNNING = "Running"
    #: A further attempt was ordered and does not run yet.
    RETRYING = "Retrying"
    #: No task runs, and one waits for the time of its next attempt.
    RETRY_BACKOFF = "RetryBackoff"
    #: The outcome is settled; tasks that are no longer needed are being stopped.
    TERMINATING = "Terminating"
    #: The Job was told to stop; its tasks are not all proven gone.
    KILLING = "Killing"
    #: What was done of an operation is being undone.
    REVERTING = "Reverting"
    #: What was done of an operation cannot be undone, or must not be: nobody acts but a person.
    STUCK = "Stuck"
    #: The Job is put back: its tasks are being stopped, and it still holds its locks. Then it waits
    #: again.
    EVICTING = "Evicting"
    #: What became of a task cannot be proven. The Job keeps its locks.
    UNKNOWN = "Unknown"
    #: Ended: as asked.
    SUCCEEDED = "Succeeded"
    #: Ended: out of attempts, or out of time.
    FAILED = "Failed"
    #: Ended: stopped on demand.
    KILLED = "Killed"
    #: Ended: never started, because it must not.
    REFUSED = "Refused"
    #: Ended: a person wrote off tasks whose fate could not be proven.
    FINISHED_UNKNOWN = "FinishedUnknown"


class JobStatus(Status):
    """How the Job is going. Each part has one writer; `phase` and `conditions` follow from them."""

    phase: JobPhase = field(default_factory=lambda: JobPhase.QUEUED)
    #: Written by the admission room.
    admission: AdmissionStatus = AdmissionStatus()
    #: Written by the execution room.
    execution: ExecutionStatus = ExecutionStatus()
    conditions: tuple[Condition, ...] = ()


class Job(Resource, tag="Job", kw_only=True):
    """One run of something: the only thing that ever executes."""

    spec: JobSpec
    status: JobStatus = JobStatus()


def is_operation(spec: JobSpec) -> bool:
    """Whether the Job has steps, or will have."""
    return spec.steps is not None or spec.python is not None


def order_of_acceptance(job: Job) -> int:
    """Where a Job stands in the order in which Jobs were accepted.

    That is the version of its creation, also when it was edited before anybody looked. Where the
    store does not tell that, it is the version at which it was first looked at; and of one that was
    put back, that of the write which did so.
    """
    admission = job.status.admission
    if admission.sequence:
        return admission.sequence
    return job.version if admission.evictions else job.metadata.creation_version or job.version


def interventions(job: Job) -> int:
    """How many orders of a person about the operation were carried out."""
    operation = job.status.execution.operation
    return 0 if operation is None else operation.interventions


def keeps_its_turn(spec: JobSpec) -> bool:
    """Whether the Job is never put back: what comes after it would overtake it."""
    return spec.target is not None or is_operation(spec)


def steps_of(job: Job) -> tuple[Step, ...]:
    """The steps of an operation; none as long as no worker has said which there are."""
    if job.spec.steps is not None:
        return job.spec.steps
    operation = job.status.execution.operation
    return () if operation is None else operation.elaborated or ()


def step_names_of(job: Job) -> tuple[str, ...]:
    """The names of the steps of an operation, also when it is over and pruned of them."""
    operation = job.status.execution.operation
    if operation is not None and operation.step_names:
        return operation.step_names
    return tuple(step.name for step in steps_of(job))


def task_words(job: Job, task: int) -> str:
    """What a task of an operation does, in words: "step dns", "undo of step dns"."""
    if task >= ELABORATION:
        return "what makes the steps"
    names, at = step_names_of(job), step_of(task)
    step = f"step {names[at] if at < len(names) else at}"
    return f"undo of {step}" if is_undo(task) else step


def is_function(job: Job, task: int) -> bool:
    """Whether a task of an operation is a function in a worker, and so has no exit code."""
    if task >= ELABORATION:
        return True
    steps, at = steps_of(job), step_of(task)
    return at < len(steps) and steps[at].calls_function(undo=is_undo(task))


def lock_requests(spec: JobSpec) -> tuple[LockRequest, ...]:
    """Every lock that a Job needs: that of its target, and those it names."""
    if spec.target is None:
        return spec.locks
    # What is a part of another was let in with it.
    most = spec.target.max_pending if spec.parent is None else None
    return (LockRequest(key=target_lock(spec.target), max_waiting=most), *spec.locks)


def unknown_attempts(job: Job) -> frozenset[str]:
    """The attempts whose fate is not known, each as task-attempt."""
    return frozenset(
        f"{task.index}-{task.attempt}"
        for task in job.status.execution.active
        if task.state is TaskState.UNKNOWN
    )


def released_attempts(job: Job) -> frozenset[str]:
    """The attempts of which a person said that they are gone. A release without any is no word."""
    given = job.metadata.annotations.get(RELEASED_ATTEMPTS_ANNOTATION, "")
    return frozenset(one.strip() for one in given.split(",") if one.strip())
