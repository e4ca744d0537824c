"""Models of pods, batch Jobs and nodes: the parts of them that are asked for.

A pod is some kilobytes of JSON and there may be tens of thousands, so only the few fields that a
report is made of are kept, and the rest is passed over while reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar, dataclass_transform

from msgspec import Struct, field

from interlock.kube.pods import naming
from interlock.resources.adopted import (
    MIN_PARALLELISM_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
)
from interlock.resources.metadata import Moment
from interlock.resources.tasks import TaskId

_OVER = ("Succeeded", "Failed")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class _Read(Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """Base of what is read: other fields than these are passed over."""


class Labels(_Read):
    """The labels that are looked at."""

    job: str = field(name=naming.JOB, default="")
    job_uid: str = field(name=naming.JOB_UID, default="")
    task: str = field(name=naming.TASK, default="")
    attempt: str = field(name=naming.ATTEMPT, default="")
    controller_uid: str = field(name=naming.CONTROLLER_UID, default="")
    queue: str = field(name=QUEUE_LABEL, default="")
    priority: str = field(name=PRIORITY_LABEL, default="")


class Annotations(_Read):
    """The annotations that are looked at."""

    job_version: str = field(name=naming.JOB_VERSION, default="")
    force_delete_after: str = field(name=naming.FORCE_DELETE_AFTER, default="")
    forced: str = field(name=naming.FORCED, default="")
    armed_at: str = field(name=naming.ARMED_AT, default="")
    stopped_at: str = field(name=naming.STOPPED_AT, default="")
    settled_at: str = field(name=naming.SETTLED_AT, default="")
    granted: str = field(name=naming.GRANTED, default="")
    parallelism: str = field(name=naming.PARALLELISM, default="")
    min_parallelism: str = field(name=MIN_PARALLELISM_ANNOTATION, default="")
    default_container: str = field(name="kubectl.kubernetes.io/default-container", default="")


class ObjectMetadata(_Read):
    """Which object, of whom, and whether it is going."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Labels = Labels()
    annotations: Annotations = Annotations()
    finalizers: tuple[str, ...] = ()


class KubeObject(_Read):
    """What pods, batch Jobs and nodes have in common."""

    metadata: ObjectMetadata

    @property
    def place(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def version(self) -> int:
        """Rises with every change of it."""
        return int(self.metadata.resource_version or 0)

    @property
    def is_going(self) -> bool:
        """Whether it was asked to go."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_held(self) -> bool:
        """Whether its end is not recorded yet."""
        return naming.FINALIZER in self.metadata.finalizers

    @property
    def task(self) -> TaskId | None:
        """The attempt it was made for; None when its labels make no sense."""
        labels = self.metadata.labels
        if not labels.job_uid or not labels.task.isdecimal() or not labels.attempt.isdecimal():
            return None
        return TaskId(labels.job_uid, int(labels.task), int(labels.attempt))

    @property
    def is_part(self) -> bool:
        """Whether it belongs to another object, which is what the attempt is."""
        return False

    @property
    def is_waiting(self) -> bool:
        """Whether it was made and not armed, so that it cannot run."""
        raise NotImplementedError

    @property
    def never_ran(self) -> bool:
        """Whether nothing of it can have run so far."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Whether it says of itself that it ended."""
        raise NotImplementedError


class Condition(_Read):
    """Something that holds or does not, and why."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Moment | None = None


class Waiting(_Read):
    """A container that has not started."""

    reason: str = ""
    message: str = ""


class Begun(_Read):
    """A container that runs."""

    started_at: Moment | None = None


class Terminated(_Read):
    """A container that ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: Moment | None = None
    finished_at: Moment | None = None


class ContainerState(_Read):
    """One of these."""

    waiting: Waiting | None = None
    running: Begun | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Read):
    """What became of one container."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(_Read):
    """What a kubelet says of a pod, and what others added."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    start_time: Moment | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Named(_Read):
    """Something of which the name is enough."""

    name: str = ""


class PodSpec(_Read):
    """Where a pod is, what holds it back, and the order of its containers."""

    node_name: str = ""
    scheduling_gates: tuple[Named, ...] = ()
    containers: tuple[Named, ...] = ()


class Pod(KubeObject):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_waiting(self) -> bool:
        """Whether our gate holds it back from the scheduler."""
        return any(gate.name == naming.GATE for gate in self.spec.scheduling_gates)

    @property
    def never_ran(self) -> bool:
        """Whether it was on no node so far."""
        return not self.spec.node_name

    @property
    def is_over(self) -> bool:
        """Whether its phase is final."""
        return self.status.phase in _OVER

    @property
    def is_part(self) -> bool:
        """Whether it belongs to a batch Job, which is what the attempt is."""
        return bool(self.metadata.labels.controller_uid)


class BatchJobSpec(_Read):
    """Whether a batch Job may run, and how many pods of it."""

    suspend: bool = False
    parallelism: int = 1
    #: None takes any number of successes.
    completions: int | None = None


class UncountedPods(_Read):
    """The uids of pods that are over and not in the counters yet."""

    succeeded: tuple[str, ...] = ()


class BatchJobStatus(_Read):
    """How far a batch Job is."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    uncounted_terminated_pods: UncountedPods = UncountedPods()
    terminating: int = 0
    start_time: Moment | None = None
    completion_time: Moment | None = None
    conditions: tuple[Condition, ...] = ()


class BatchJob(KubeObject):
    """A `batch/v1` Job."""

    spec: BatchJobSpec = BatchJobSpec()
    status: BatchJobStatus = BatchJobStatus()

    @property
    def is_waiting(self) -> bool:
        """Whether it is suspended and was never let run."""
        marks = self.metadata.annotations
        return self.spec.suspend and not marks.armed_at and not marks.stopped_at

    @property
    def never_ran(self) -> bool:
        """Whether it was never let run."""
        # Whether somebody else's ever did, nobody can tell: it may be the next round of it.
        if self.is_adopted:
            return False
        return not self.metadata.annotations.armed_at and self.status.start_time is None

    @property
    def is_adopted(self) -> bool:
        """Whether it is somebody else's, that a Queue lets run."""
        return self.granted is not None

    @property
    def granted(self) -> int | None:
        """How many pods at a time it was granted, as somebody else's."""
        granted = self.metadata.annotations.granted
        return int(granted) if granted.isdecimal() else None

    @property
    def asked_parallelism(self) -> int | None:
        """The parallelism that its owner asks for, where fewer pods were granted.

        What its owner has written since counts, and not what it was before.
        """
        asked = self.metadata.annotations.parallelism
        if self.is_adopted and self.spec.parallelism == self.granted and asked.isdecimal():
            return int(asked)
        return self.spec.parallelism

    @property
    def began_at(self) -> Moment | None:
        """When it began to run this time."""
        if self.is_adopted and not self.metadata.annotations.armed_at:
            return None
        return self.status.start_time

    @property
    def at_once(self) -> int:
        """How many pods it runs at a time."""
        spec = self.spec
        at_once = spec.parallelism
        return at_once if spec.completions is None else min(at_once, spec.completions)

    @property
    def is_over(self) -> bool:
        """Whether it is complete or failed, and nothing of it is left."""
        return self.ending is not None and not self.status.active and not self.status.terminating

    @property
    def ending(self) -> Condition | None:
        """The condition that says how it ended."""
        for condition in self.status.conditions:
            if condition.status == "True" and condition.type in ("Complete", "Failed"):
                return condition
        return None


class ActiveAttempt(_Read):
    """An attempt that a Job has on record as not over."""

    index: int
    attempt: int
    stop_cause: str | None = None


class ExecutionRecord(_Read):
    """What a Job has under way."""

    active: tuple[ActiveAttempt, ...] = ()


class JobRecordStatus(_Read):
    """The part of a Job's status that launches depend on."""

    execution: ExecutionRecord = ExecutionRecord()


class JobRecord(KubeObject):
    """One of our own Jobs, as far as launches depend on it."""

    status: JobRecordStatus = JobRecordStatus()

    @property
    def wanted(self) -> Iterator[TaskId]:
        """The attempts that are on record, and that nobody wants to stop."""
        for one in self.status.execution.active:
            if not one.stop_cause:
                yield TaskId(self.metadata.uid, one.index, one.attempt)


class Taint(_Read):
    """Something that keeps pods from a node."""

    key: str = ""


class NodeSpec(_Read):
    """What people and controllers say of a node."""

    taints: tuple[Taint, ...] = ()


class NodeStatus(_Read):
    """What a kubelet says of itself."""

    conditions: tuple[Condition, ...] = ()


class Node(KubeObject):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


#: A sort of objects.
T = TypeVar("T", bound=KubeObject)


def moment_of(text: str) -> datetime | None:
    """A moment in an annotation; None where it makes no sense."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def seconds_of(text: str) -> float | None:
    """A length of time in an annotation; None where it makes no sense."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < 1e9 else None
