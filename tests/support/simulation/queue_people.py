"""What people do about Queues, through the store."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.metadata import Key, Metadata
from interlock.resources.queue import Queue, QueueSpec
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.transitions import has_ended
from support.simulation.people import People
from support.simulation.queue_script import AMPLE, QUEUES
from support.simulation.script import Act, ApplyQueue, RemoveQueue, SetActive

_TRIES = 50


class QueuePeople(People):
    """Carries out the steps of a script that people do, those about Queues too."""

    #: Those that everybody finds in the end.
    queues: tuple[str, ...] = QUEUES

    async def _do(self, act: Act) -> None:
        match act:
            case ApplyQueue(name, spec):
                await self._apply_queue(name, spec)
            case RemoveQueue(name):
                await self._store.delete(Key("Queue", "", name))
            case SetActive(name, active):
                if not active:
                    self._truth.deactivated[name] = None
                await self._edit(
                    name, lambda job: replace(job, spec=replace(job.spec, active=active))
                )
            case _:
                await super()._do(act)

    async def tidy_up(self) -> None:
        """Have every Queue there, with room for everybody, and every Job active."""
        await super().tidy_up()
        for name in self.queues:
            queue = self._truth.queues.get(name)
            # Where it is, it stays: whoever moves does so in the middle of things.
            ample = replace(AMPLE, cohort=queue.spec.cohort if queue is not None else None)
            if self._truth.wait_for_pods_ready is not None:
                ample = replace(ample, wait_for_pods_ready=WaitForPodsReady(enable=False))
            if queue is None or queue.spec != ample:
                await self.do(ApplyQueue(name, ample))
        for key, job in tuple(self._truth.jobs.items()):
            if not job.spec.active and not has_ended(job):
                await self.do(SetActive(key.name, True))

    async def _apply_queue(self, name: str, spec: QueueSpec) -> None:
        key = Key("Queue", "", name)
        for _ in range(_TRIES):
            try:
                queue = await self._store.get(key)
                assert isinstance(queue, Queue)
                await self._store.update(replace(queue, spec=spec))
            except NotFoundError:
                try:
                    await self._store.create(Queue(metadata=Metadata(name=name), spec=spec))
                except AlreadyExistsError:
                    continue
            except ConflictError:
                continue
            return


class MachinePeople(QueuePeople):
    """The same where there is a default Queue."""

    queues = (*QUEUES, DEFAULT_QUEUE)
