"""The applier: carries out decisions; nothing else writes a status or starts work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.batching import Batcher
from interlock.control.clock import Clock
from interlock.control.forgetting import Forgetting
from interlock.control.runtime import Runtime, RuntimeUnavailableError, TaskStop
from interlock.control.troubles import with_trouble
from interlock.control.write_fence import WriteFence
from interlock.errors import UnavailableError
from interlock.resources.actions import (
    Action,
    AddFinalizer,
    CreateJob,
    CreateResource,
    Decision,
    DeleteResource,
    DropOverrides,
    DropOwner,
    ForgetTask,
    LaunchTask,
    RecordAdmission,
    RecordExecution,
    RecordStatus,
    RemoveFinalizer,
    ReviseJob,
    StopTask,
)
from interlock.resources.metadata import Key, Metadata, Resource, Trouble
from interlock.resources.tasks import TaskId, TaskOrder
from interlock.resources.transitions import with_admission, with_execution
from interlock.store.contract import DeleteOptions, Store

R = TypeVar("R", bound=Resource)
T = TypeVar("T")


class Applied(Struct):
    """What was carried out, in order: it stays true when a later action fails."""

    #: Each resource as the last write returned it; `removed` ones are gone.
    stored: dict[Key, Resource] = {}
    removed: dict[Key, Resource] = {}
    launched: list[TaskOrder] = []
    stopped: list[TaskId] = []
    forgotten: list[TaskId] = []
    #: How many writes the store made.
    writes: int = 0
    #: What was being carried out when it failed.
    failed: Action | None = None

    def keep(self, resource: Resource) -> None:
        """Hold what a write returned. What is going and held by nothing is gone."""
        self.writes += 1
        if resource.is_going and not resource.metadata.finalizers:
            self.lose(resource)
        else:
            self.stored[resource.key] = resource

    def lose(self, resource: Resource) -> None:
        """A resource was removed."""
        self.stored.pop(resource.key, None)
        self.removed[resource.key] = resource


class Applier:
    """Carries out decisions through the store and the runtime, as long as the fence is open.

    Calls to a runtime that groups orders, made in one turn of the event loop for any keys, go out
    as one; what it may forget is told later, and nobody waits for that. Writes need no such help:
    the store groups them itself.
    """

    def __init__(self, store: Store, runtime: Runtime, clock: Clock, fence: WriteFence) -> None:
        self._store = store
        self._clock = clock
        self._fence = fence
        self._launch = self._joined(runtime, self._guarded(runtime.launch))
        self._stop = self._joined(runtime, self._guarded(runtime.stop))
        self._forgetting = Forgetting(self._guarded(runtime.forget), clock)

    async def apply(self, decision: Decision, applied: Applied | None = None) -> Applied:
        """Carry out the actions in order and stop at the first that fails.

        What was carried out is added to `applied` as it happens, and returned. When two
        actions write the same resource, the second builds on what the first returned.

        Raises:
            ConflictError: A resource changed after it was read. The decision is
                stale: drop it and decide again.
            FencedError: Another control plane leads now.
        """
        applied = applied or Applied()
        actions, at = decision.actions, 0
        while at < len(actions):
            end = _end_of_run(actions, at)
            self._fence.check()
            try:
                await self._carry_out(actions[at:end], applied)
            except Exception:
                applied.failed = actions[at]
                raise
            at = end
        return applied

    async def record_trouble(self, resource: Resource, trouble: Trouble | None) -> Resource:
        """Write down that a decision failed, or (None) that all is well again."""
        self._fence.check()
        return await self._store.update_status(with_trouble(resource, trouble))

    async def _carry_out(self, run: Sequence[Action], applied: Applied) -> None:
        """Carry out one action, several orders of one sort, or several records of one Job."""
        match run[0]:
            case LaunchTask():
                orders = [each.task for each in run if isinstance(each, LaunchTask)]
                await self._launch(orders)
                applied.launched.extend(orders)
            case StopTask():
                stops = [_stop(action) for action in run if isinstance(action, StopTask)]
                await self._stop(stops)
                applied.stopped.extend(stop.task for stop in stops)
            case ForgetTask():
                tasks = [each.task for each in run if isinstance(each, ForgetTask)]
                self._forgetting.add(tasks)
                applied.forgotten.extend(tasks)
            case RecordAdmission() | RecordExecution():
                await self._record(run, applied)
            case action:
                await self._write(action, applied)

    async def _record(self, run: Sequence[Action], applied: Applied) -> None:
        """Make one write of all that rooms record of a Job."""
        now, job = self._clock.now(), None
        for action in run:
            assert isinstance(action, RecordAdmission | RecordExecution)
            job = job or _newest(action.job, applied)
            if isinstance(action, RecordAdmission):
                job = replace(job, status=with_admission(job, action.admission, now))
            else:
                job = replace(job, status=with_execution(job, action.execution, now))
        assert job is not None
        applied.keep(await self._store.update_status(job))

    async def _write(self, action: Action, applied: Applied) -> None:
        """Make the one write of an action."""
        store = self._store
        match action:
            case CreateJob(resource) | CreateResource(resource):
                applied.keep(await store.create(resource))
            case ReviseJob(job, asked, notes):
                job = _newest(job, applied)
                noted = _with(job, annotations=job.metadata.annotations | notes)
                applied.keep(await store.update(replace(noted, spec=asked)))
            case RecordStatus(resource, status):
                resource = _newest(resource, applied)
                applied.keep(await store.update_status(replace(resource, status=status)))
            case DropOverrides(controlled, kept):
                controlled = _newest(controlled, applied)
                applied.keep(await store.update(replace(controlled, spec=kept)))
            case AddFinalizer(resource, finalizer):
                resource = _newest(resource, applied)
                held = _without(resource.metadata.finalizers, finalizer)
                applied.keep(
                    await store.update_ties(_with(resource, finalizers=(*held, finalizer)))
                )
            case RemoveFinalizer(resource, finalizer):
                resource = _newest(resource, applied)
                held = _without(resource.metadata.finalizers, finalizer)
                applied.keep(await store.update_ties(_with(resource, finalizers=held)))
            case DropOwner(resource, owner_uid):
                resource = _newest(resource, applied)
                owners = tuple(o for o in resource.metadata.owner_references if o.uid != owner_uid)
                applied.keep(await store.update_ties(_with(resource, owner_references=owners)))
            case DeleteResource(resource):
                resource = _newest(resource, applied)
                gone = await store.delete(resource.key, _exactly(resource.metadata))
                applied.writes += 1
                if gone.is_going and gone.metadata.finalizers:
                    applied.stored[gone.key] = gone
                else:
                    applied.lose(gone)
            case RecordAdmission() | RecordExecution() | LaunchTask() | StopTask() | ForgetTask():
                raise AssertionError(f"{type(action).__name__} is carried out elsewhere")
            case _:
                assert_never(action)

    def _joined(
        self, runtime: Runtime, call: Callable[[Sequence[T]], Awaitable[None]]
    ) -> Callable[[Sequence[T]], Awaitable[None]]:
        return Batcher(call).add if runtime.groups_orders else call

    def _guarded(
        self, call: Callable[[Sequence[T]], Awaitable[None]]
    ) -> Callable[[Sequence[T]], Awaitable[None]]:
        async def guarded(things: Sequence[T]) -> None:
            # The fence may have shut since the orders were gathered.
            self._fence.check()
            try:
                await call(things)
            except RuntimeUnavailableError:
                raise
            except UnavailableError as error:
                raise RuntimeUnavailableError(str(error)) from error

        return guarded


def _end_of_run(actions: Sequence[Action], at: int) -> int:
    """Where the run that begins at `at` ends: orders of one sort, or records of one Job.

    Other actions stand alone.
    """
    first, end = actions[at], at + 1
    while end < len(actions) and _are_one(first, actions[end]):
        end += 1
    return end


def _are_one(first: Action, other: Action) -> bool:
    match first:
        case LaunchTask() | StopTask() | ForgetTask():
            return type(other) is type(first)
        case RecordAdmission() | RecordExecution():
            return (
                isinstance(other, RecordAdmission | RecordExecution)
                and other.job.key == first.job.key
            )
        case _:
            return False


def _stop(action: StopTask) -> TaskStop:
    key = action.job.key if action.job is not None else None
    place = (key.namespace, key.name) if key is not None else ("", "")
    adopted = action.job.spec.adopted if action.job is not None else None
    object = adopted.name if adopted is not None else ""
    return TaskStop(action.task, action.grace_s, *place, action.runtime, object)


def _newest(resource: R, applied: Applied) -> R:
    """The resource as an earlier action of the same decision left it, or as it was read."""
    newer = applied.stored.get(resource.key)
    return newer if isinstance(newer, type(resource)) else resource


def _without(finalizers: tuple[str, ...], finalizer: str) -> tuple[str, ...]:
    return tuple(held for held in finalizers if held != finalizer)


def _with(resource: R, **changes: object) -> R:
    return replace(resource, metadata=replace(resource.metadata, **changes))


def _exactly(metadata: Metadata) -> DeleteOptions:
    return DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
