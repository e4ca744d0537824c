"""Actions: what a decision asks for, as data, each with the resource as it was read."""

from __future__ import annotations

from datetime import datetime
from typing import dataclass_transform

from msgspec import Struct

from interlock.resources.admission import AdmissionStatus
from interlock.resources.controlled_job import ControlledJob, ControlledJobSpec
from interlock.resources.job import Job, JobSpec
from interlock.resources.metadata import Resource, Status
from interlock.resources.tasks import ExecutionStatus, TaskId, TaskOrder


@dataclass_transform(frozen_default=True)
class Order(Struct, frozen=True):
    """Base of all actions. The first field is what it is about, as it was read."""

    @property
    def about(self) -> Resource | None:
        """The resource that it writes or gives an order for; None where that is gone."""
        about: Resource | None = getattr(self, self.__struct_fields__[0])
        return about


class RecordAdmission(Order):
    """Write the admission part of a Job's status."""

    job: Job
    admission: AdmissionStatus


class RecordExecution(Order):
    """Write the execution part of a Job's status."""

    job: Job
    execution: ExecutionStatus


class CreateJob(Order):
    """Make a Job of a template. It does not start before it is in its owner's books."""

    job: Job


class ReviseJob(Order):
    """Change what a Job of ours is asked to do, and note why."""

    job: Job
    spec: JobSpec
    #: Annotations to be set beside those it has.
    annotations: dict[str, str] = {}


class RecordStatus(Order):
    """Write the whole status of a resource."""

    resource: Resource
    status: Status


class DropOverrides(Order):
    """Take overrides that are over off a ControlledJob."""

    controlled: ControlledJob
    spec: ControlledJobSpec


class CreateResource(Order):
    """Make a resource that only the system makes."""

    resource: Resource


class LaunchTask(Order):
    """Have a runtime start an attempt that is recorded in the Job's status."""

    job: Job
    task: TaskOrder


class StopTask(Order):
    """Have a runtime stop an attempt: SIGTERM, then SIGKILL after the grace."""

    #: None for an attempt whose Job is gone.
    job: Job | None
    task: TaskId
    grace_s: float
    #: The runtime that has it; empty for the mode's own.
    runtime: str = ""


class ForgetTask(Order):
    """Let a runtime forget an attempt whose end is recorded."""

    #: None for an attempt whose Job is gone.
    job: Job | None
    task: TaskId


class AddFinalizer(Order):
    """Hold a resource back from deletion."""

    resource: Resource
    finalizer: str


class RemoveFinalizer(Order):
    """Let a resource go."""

    resource: Resource
    finalizer: str


class DropOwner(Order):
    """Take one owner off a resource: the owner is gone, or gave it up."""

    resource: Resource
    owner_uid: str


class DeleteResource(Order):
    """Delete a resource, exactly as it was read."""

    resource: Resource


Action = (
    RecordAdmission
    | RecordExecution
    | CreateJob
    | ReviseJob
    | RecordStatus
    | DropOverrides
    | CreateResource
    | LaunchTask
    | StopTask
    | ForgetTask
    | AddFinalizer
    | RemoveFinalizer
    | DropOwner
    | DeleteResource
)


class Decision(Struct, frozen=True):
    """What to do about one key, why, and when to look again even if nothing happens."""

    actions: tuple[Action, ...] = ()
    wake_at: datetime | None = None
    #: One line for the log and the journal; empty when nothing is to be done.
    reason: str = ""
    #: What keeps the object from going on and nobody but a person can mend, for `status.trouble`.
    #: It is written once there is nothing else to do.
    trouble: str = ""
    #: False for one that only brings numbers up to date: no line in the log, none in the journal.
    is_notable: bool = True
