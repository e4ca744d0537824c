"""Orders as the keeper takes and keeps them: flat, since all it ever starts is processes.

A keeper outlives servers and versions, and its journal outlives keepers. So this is not the order
that the control plane gives, whose shape follows the types of work, but the one that every keeper
so far has read: one of the version before takes what is sent here, and this one reads its journal.
"""

from __future__ import annotations

from interlock.resources.metadata import Noun
from interlock.resources.process import EnvFile, ProcessLimits
from interlock.resources.tasks import TaskId, TaskOrder
from interlock.resources.work import ProcessWork


class ProcessOrder(Noun):
    """Everything the keeper needs to start one process."""

    job_uid: str
    index: int
    attempt: int
    name: str
    namespace: str
    job: str
    #: The program and all its arguments.
    command: tuple[str, ...] = ()
    #: They win over the files of `env_from`.
    env: dict[str, str] = {}
    env_from: tuple[EnvFile, ...] = ()
    working_dir: str | None = None
    stdin: str | None = None
    user: str | None = None
    group: str | None = None
    limits: ProcessLimits = ProcessLimits()
    #: A version of the store at which the Job was there.
    job_version: int = 0

    @property
    def id(self) -> TaskId:
        """Which attempt this orders."""
        return TaskId(self.job_uid, self.index, self.attempt)


def process_order(order: TaskOrder, work: ProcessWork) -> ProcessOrder:
    """The keeper's form of an order."""
    return ProcessOrder(
        job_uid=order.job_uid,
        index=order.index,
        attempt=order.attempt,
        name=order.name,
        namespace=order.namespace,
        job=order.job,
        command=work.command,
        env=work.env | order.env if work.env else order.env,
        env_from=work.env_from,
        working_dir=work.working_dir,
        stdin=work.stdin,
        user=work.user,
        group=work.group,
        limits=work.limits,
        job_version=order.job_version,
    )
