"""What people do about operations: orders, and bad objects."""

from __future__ import annotations

from collections.abc import Callable

from interlock.commands.change import By, Change
from interlock.commands.operations import (
    Operating,
    Outcome,
    Resolving,
    go_forward,
    remove,
    resolve,
    roll_back,
)
from interlock.resources.job import Job, JobPhase, OperateVerb, interventions
from interlock.resources.metadata import Metadata
from support.simulation.operation_script import BAD_OPERATIONS, bad_operation
from support.simulation.people import NAMESPACE, People
from support.simulation.script import Act, OperateJob

_WHY = Operating(reason="looked at it")
_ORDERS: dict[OperateVerb, Callable[[Job, By], Change]] = {
    OperateVerb.RETRY: lambda job, by: go_forward(job, _WHY, by),
    OperateVerb.ROLL_BACK: lambda job, by: roll_back(job, _WHY, by),
    OperateVerb.SUCCEEDED: lambda job, by: resolve(
        job, Resolving(reason="looked at it", outcome=Outcome.SUCCEEDED), by
    ),
    OperateVerb.FAILED: lambda job, by: resolve(
        job, Resolving(reason="looked at it", outcome=Outcome.FAILED), by
    ),
    OperateVerb.REMOVE: lambda job, by: remove(job, _WHY, by),
}
#: What is tried about an operation that is stuck, one after another, before it is declared over.
_TRIED = (OperateVerb.RETRY, OperateVerb.ROLL_BACK)


class OperationPeople(People):
    """People who see to operations."""

    #: Whether they have been told of what is stuck: until then nobody sees to it.
    is_called = False

    async def tidy_up(self) -> None:
        """See to everything that only a person can see to."""
        await super().tidy_up()
        if not self.is_called:
            return
        for key, job in tuple(self._truth.jobs.items()):
            if job.status.phase is JobPhase.STUCK:
                await self.do(OperateJob(key.name, _verb_for(job)))

    async def _do(self, act: Act) -> None:
        if isinstance(act, OperateJob):
            await self._edit(act.name, lambda job: self._ordered(job, act.verb))
            return
        await super()._do(act)

    def _ordered(self, job: Job, verb: OperateVerb) -> Job:
        change = _ORDERS[verb](job, By("ana", self._now()))
        if not change.writes:
            return job
        orders = self._truth.operated.setdefault(job.metadata.uid, {})
        orders[interventions(job)] = verb
        after = change.writes[0].after
        assert isinstance(after, Job)
        return after

    async def _poke(self, name: str, how: int) -> None:
        if how not in BAD_OPERATIONS:
            await super()._poke(name, how)
            return
        self._truth.bad[name] = None
        metadata = Metadata(name=name, namespace=NAMESPACE)
        await self._past_the_door.create(Job(metadata=metadata, spec=bad_operation(how)))


def _verb_for(job: Job) -> OperateVerb:
    if job.is_going:
        return OperateVerb.REMOVE
    tried = interventions(job)
    if tried < len(_TRIED):
        return _TRIED[tried]
    is_done = job.metadata.name.endswith(("0", "2", "4", "6"))
    return OperateVerb.SUCCEEDED if is_done else OperateVerb.FAILED
