"""The control loop: look, decide, apply, for every room, one key at a time, whatever fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from interlock.control.actions_text import describe_actions
from interlock.control.applier import Applied, Applier
from interlock.control.cache import Cache
from interlock.control.clock import Clock
from interlock.control.decision_log import log_decision
from interlock.control.informer import drop_from, note_in
from interlock.control.metrics import Metrics
from interlock.control.queue import PLACES, Item, WorkQueue
from interlock.control.reconciler import Change, GivesOrders, HearsReports, Reconciler
from interlock.control.reports import Reports
from interlock.control.runtime import OrderDeniedError, RuntimeUnavailableError
from interlock.control.staleness import Staleness
from interlock.control.troubles import (
    is_trouble_only,
    status_of,
    trouble_after,
    trouble_of,
)
from interlock.control.turns import PART, in_parts
from interlock.control.write_fence import WriteFence
from interlock.control.write_joining import Ahead, WriteJoining, joined
from interlock.errors import (
    AlreadyExistsError,
    ConflictError,
    FencedError,
    ForbiddenError,
    InterlockError,
    NotFoundError,
    UnavailableError,
)
from interlock.resources.actions import Action, Decision, ForgetTask, StopTask
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Order, Resource, Trouble
from interlock.resources.tasks import ReportState, TaskReport
from interlock.store.contract import Journal, JournalEntry

logger = logging.getLogger("interlock.loop")

#: So many keys are looked at before others get a turn on the event loop.
_TURN = 32
#: So many stale decisions in a row are made anew at once; after that there is a delay.
_AT_ONCE = 3

#: Told when they begin; after that the object says that they last.
_REFUSALS = (OrderDeniedError, ForbiddenError)

#: What an attempt that is under way is.
_LIVE = frozenset({ReportState.ACCEPTED, ReportState.RUNNING})
#: What keys that back off may wait for.
_STORE, _RUNTIME = "store", "runtime"


#: Told of what a room decided and what was carried out of it.
Observer = Callable[[Sequence[Action], datetime], None]


class Loop:
    """Wakes rooms about what changed, has them look, and carries out what they decide.

    A failure harms the key it happened for: it is counted, written to the object's status, and
    tried again later. While the fence is shut nobody looks, because nothing could be done.
    """

    def __init__(
        self,
        *,
        reconcilers: Iterable[Reconciler],
        caches: Mapping[str, Cache[Any]],
        reports: Reports | None,
        queue: WorkQueue,
        applier: Applier,
        fence: WriteFence,
        clock: Clock,
        journal: Journal,
        metrics: Metrics,
        observers: Mapping[str, Observer] | None = None,
    ) -> None:
        self._rooms = {reconciler.room: reconciler for reconciler in reconcilers}
        self._hearers = {
            r: room for r, room in self._rooms.items() if isinstance(room, HearsReports)
        }
        self._observers = observers or {}
        self._caches = caches
        self._reports = reports
        self._queue = queue
        self._applier = applier
        self._fence = fence
        #: The leadership that this loop works for.
        self._term = fence.term
        self._clock = clock
        self._journal = journal
        self._metrics = metrics
        self._stale = Staleness(caches)
        self._joining = WriteJoining(self._rooms, queue)
        self._events: asyncio.AbstractEventLoop | None = None
        self._pump_is_due = False
        #: Decisions being carried out, in the order they began.
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._idle = asyncio.Event()
        #: What could not be reached when it was last asked.
        self._down: dict[str, None] = {}
        #: What changed while everything was told of, and is told after that.
        self._to_tell: list[Change] | None = None
        #: Told of every change that the caches took in, before any room is.
        self.on_changed: Callable[[Sequence[Change]], None] = lambda _: None
        #: Told of what was written at once, before the store tells of it. A write that was begun
        #: in one term may come back in the next, where another loop works with the same caches.
        self.on_noted: Callable[[Sequence[Change]], None] = self.changed
        queue.on_ready = self.ready
        metrics.watch(queue, fence, reports)
        if reports is not None:
            reports.publish = self.reported
            reports.on_complete = self.runtime_is_back

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready to be looked at, and nothing is being carried out."""
        return not self._under_way and not (self._events and self._queue.depth)

    def start(self) -> None:
        """Begin to look, on the running event loop."""
        self._events = asyncio.get_running_loop()
        self.ready()

    def stop_looking(self) -> None:
        """Look at nothing more; what is being carried out goes on."""
        self._events = None

    async def drained(self) -> None:
        """Wait until nothing is being carried out."""
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()

    def ready(self) -> None:
        """Look at ready keys in the next turn: one turn for everything woken until then."""
        if self._events is not None and not self._pump_is_due:
            self._pump_is_due = True
            self._events.call_soon(self._pump)

    # What wakes keys.

    def changed(self, changes: Sequence[Change]) -> None:
        """Wake the rooms about changes in the caches."""
        self.on_changed(changes)
        if self._to_tell is not None:
            self._to_tell += changes
        else:
            self._wake_rooms(changes)

    def _wake_rooms(self, changes: Sequence[Change]) -> None:
        wake = self._queue.wake
        for change in changes:
            for item in self._stale.heard(change):
                wake(item)
            if is_trouble_only(change):
                continue
            for room, reconciler in self._rooms.items():
                try:
                    for key in reconciler.wakes(change):
                        wake(Item(room, key))
                except Exception as error:
                    self._could_not_wake(room, change, error)

    def reported(self, reports: Sequence[TaskReport]) -> None:
        """Wake the rooms about what a runtime said, once for each Job."""
        jobs = {(each.namespace, each.job, each.job_uid): None for each in reports}
        for namespace, name, uid in jobs:
            job = Key("Job", namespace, name)
            for room, hearer in self._hearers.items():
                try:
                    for key in hearer.reported(job, uid):
                        self._queue.wake(Item(room, key))
                except Exception:
                    logger.exception("%s: could not be told of attempts of %s", room, job)
                    self._metrics.rooms[room].failures += 1

    def wake(self, room: str, key: Key) -> None:
        """Have a room look at a key."""
        self._queue.wake(Item(room, key))

    def post(self, resource: Resource) -> bool:
        """Wake the rooms about a resource as if it were new; returns whether that was news."""
        change, is_news = Change(None, resource), False
        for room, reconciler in self._rooms.items():
            try:
                for key in reconciler.wakes(change):
                    is_news |= self._queue.wake(Item(room, key))
            except Exception as error:
                self._could_not_wake(room, change, error)
        return is_news

    def is_under_way(self, job: Job) -> bool:
        """Whether an attempt of a Job is under way, as far as anybody knows.

        A runtime that was not heard may know of one.
        """
        if self._reports is None:
            return False
        known = self._reports.of(job.metadata.uid).values()
        if any(one.state in _LIVE and not one.prepared for one in known):
            return True
        return bool(job.status.execution.active) and not self._reports.complete

    async def revisit(self, part: int = PART) -> None:
        """Wake the rooms about everything there is, as if it were new.

        Others get their turn meanwhile, or a lease would run out while much is looked through. What
        changes is told after that, so that nobody hears of a change of what they do not know.
        """
        self._to_tell = []
        everything = [held.key for cache in self._caches.values() for held in cache]
        async for keys in in_parts(everything, part):
            found = (self._caches[key.kind].get(key) for key in keys)
            self._wake_rooms([Change(None, held) for held in found if held is not None])
        told, self._to_tell = self._to_tell, None
        self._wake_rooms(told)

    def store_is_back(self) -> None:
        """The store can be reached again: try at once what waited for it."""
        self._down.pop(_STORE, None)
        self._queue.hasten(_STORE)

    def runtime_is_back(self) -> None:
        """All that runtimes know was read: look at everything that may have waited for them."""
        for cause in [each for each in self._down if each != _STORE]:
            del self._down[cause]
            self._queue.hasten(cause)
        for hearer in self._hearers.values():
            self._wake_rooms([Change(None, one) for one in hearer.waiting()])

    def _could_not_wake(self, room: str, change: Change, error: Exception) -> None:
        """Look at the changed object itself, so that the room fails where it can be seen."""
        resource = change.after or change.before
        assert resource is not None
        logger.error("%s: could not be woken about %s", room, resource.key, exc_info=error)
        self._metrics.rooms[room].failures += 1
        self._queue.wake(Item(room, resource.key))

    # Looking and deciding.

    def _pump(self) -> None:
        self._pump_is_due = False
        for _ in range(_TURN):
            if self._events is None or len(self._under_way) >= PLACES or not self._fence.is_open:
                return
            item = self._queue.take()
            if item is None:
                return
            self._look(item)
        if self._queue.depth:
            self.ready()

    def _look(self, item: Item) -> None:
        room = self._metrics.rooms[item.room]
        seen = self._seen(item.key)
        began, now = self._clock.monotonic(), self._clock.now()
        try:
            decision = self._rooms[item.room].look(item.key, now)
        except Exception as error:
            self._begin(self._fail(item, error))
            return
        finally:
            room.looks += 1
            room.look.observe(self._clock.monotonic() - began)
        if decision.actions:
            ahead = self._joining.of(item.room, decision, now)
            self._begin(self._apply(item, decision, seen, ahead))
        elif self._trouble_left(item, decision, seen) is not None:
            self._begin(self._settle_trouble(item, decision))
        else:
            self._finish(item, decision)

    def _seen(self, key: Key) -> Resource | None:
        cache = self._caches.get(key.kind)
        return cache.get(key) if cache is not None else None

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._events is not None
        task = self._events.create_task(work)
        self._under_way[task] = None
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        if not self._under_way:
            self._idle.set()
        if self._queue.depth:
            self.ready()

    def _finish(self, item: Item, decision: Decision) -> None:
        self._stale.settled(item)
        self._queue.done(item, decision.wake_at)

    # Carrying out.

    async def _apply(
        self, item: Item, decision: Decision, seen: Resource | None, ahead: Sequence[Ahead]
    ) -> None:
        applied = Applied()
        began = self._clock.monotonic()
        failure: Exception | None = None
        whole = joined(decision, *(each.decision for each in ahead)) if ahead else decision
        try:
            await self._applier.apply(whole, applied)
        except asyncio.CancelledError:
            self._note(applied)
            self._queue.retry(item)
            for each in ahead:
                self._queue.retry(each.item)
            raise
        except Exception as error:
            failure = error
        self._note(applied)
        self._metrics.rooms[item.room].apply.observe(self._clock.monotonic() - began)
        if ahead and isinstance(failure, OrderDeniedError):
            # All was written, and the room that gives orders has its own denied.
            for each in (Ahead(item, decision), *ahead[:-1]):
                self._record(*each, seen, None)
                self._finish(*each)
            (item, decision), ahead = ahead[-1], ()
        if not (isinstance(failure, _REFUSALS) and self._queue.failures(item)):
            self._record(item, decision, seen, failure)
        for each in ahead:
            self._record(*each, seen, failure)
        if failure is not None:
            for each in ahead:
                self._joining.came_to_nothing(each.item)
            self._not_stopped(item, decision, applied)
            about = applied.failed.about if applied.failed is not None else None
            await self._fail(item, failure, decision.wake_at, about)
            return
        if self._down:
            self._reached(applied)
        for each in ahead:
            self._finish(*each)
        if self._trouble_left(item, decision, self._seen(item.key)) is not None:
            await self._settle_trouble(item, decision)
        else:
            self._finish(item, decision)

    def _note(self, applied: Applied) -> None:
        """Let every room see what was written at once, before the store tells of it."""
        changes: list[Change] = []
        for resource in applied.stored.values():
            cache = self._caches.get(resource.kind)
            if cache is not None and not cache.has_seen_go(resource):
                note_in(cache, resource, changes)
        for resource in applied.removed.values():
            if (cache := self._caches.get(resource.kind)) is not None:
                drop_from(cache, resource.key, resource.version, changes)
        if self._reports is not None:
            self._reports.launched(applied.launched)
            self._reports.forgotten(applied.forgotten)
        self._metrics.carried_out(applied)
        if changes:
            self.on_noted(changes)

    def _reached(self, applied: Applied) -> None:
        if applied.writes and _STORE in self._down:
            self.store_is_back()
        if self._down and (applied.launched or applied.stopped):
            reached = {_RUNTIME + order.runtime for order in applied.launched} or {_RUNTIME}
            for cause in reached & self._down.keys():
                del self._down[cause]
                self._queue.hasten(cause)

    def _record(
        self, item: Item, decision: Decision, seen: Resource | None, failure: Exception | None
    ) -> None:
        """Tell of one decision: a line in the log, an entry in the journal.

        That a runtime forgets what is recorded elsewhere is nothing that anybody asks about, nor
        what its room calls not notable.
        """
        self._metrics.rooms[item.room].decisions += 1
        told = tuple(each for each in decision.actions if type(each) is not ForgetTask)
        if not told and failure is None:
            return
        version = seen.version if seen is not None else 0
        actions = describe_actions(told)
        outcome = type(failure).__name__ if failure is not None else ""
        now = self._clock.now()
        if failure is None and (observe := self._observers.get(item.room)) is not None:
            observe(told, now)
        if failure is None and not decision.is_notable:
            logger.debug("%s %s v%s: %s", item.key, item.room, version, ", ".join(actions))
            return
        kind, namespace, name = item.key
        if logger.isEnabledFor(logging.INFO):
            because = f" ({decision.reason})" if decision.reason else ""
            ended = f": {outcome}: {failure}" if failure is not None else ""
            done = ", ".join(actions)
            log_decision(f"{item.key} {item.room} v{version}: {done}{because}{ended}", now)
        self._journal.append(
            JournalEntry(
                at=now,
                kind=kind,
                namespace=namespace,
                name=name,
                room=item.room,
                actions=actions,
                reason=decision.reason,
                version=version,
                outcome=outcome,
            )
        )

    # What went wrong.

    def _not_stopped(self, item: Item, decision: Decision, applied: Applied) -> None:
        """Let a room know of orders to stop that nobody got."""
        room = self._rooms[item.room]
        stops = [each.task for each in decision.actions if isinstance(each, StopTask)]
        if stops and isinstance(room, GivesOrders):
            room.not_stopped(item.key, [task for task in stops if task not in applied.stopped])

    async def _fail(
        self,
        item: Item,
        error: Exception,
        wake_at: datetime | None = None,
        about: Resource | None = None,
    ) -> None:
        """Put a key back to be tried again, in the way that fits what went wrong."""
        room = self._metrics.rooms[item.room]
        match error:
            case ConflictError() | NotFoundError() | AlreadyExistsError():
                room.conflicts += 1
                self._decide_again(item, error)
            case FencedError():
                self._fence.shut_for(self._term, str(error))
                self._queue.retry(item)
            case OrderDeniedError():
                room.retries += 1
                if self._queue.failures(item):
                    # What lasts a moment is worth no word.
                    await self._tell_trouble(item, error)
                # What waits to start may run out of time; what is to stop has none to lose.
                due = wake_at if error.order is Order.LAUNCH else None
                self._queue.retry(item, wake_at=due)
            case InterlockError(retryable=True):
                room.retries += 1
                self._queue.retry(item, self._cause(error))
            case InterlockError():
                # Somebody refuses; where in the program that was found out is of no interest.
                room.failures += 1
                if await self._tell_trouble(item, error, about) or not self._queue.failures(item):
                    logger.warning("%s %s: %s", item.room, item.key, error)
                self._queue.retry(item)
            case _:
                room.failures += 1
                logger.error("%s %s failed", item.room, item.key, exc_info=error)
                await self._tell_trouble(item, error, about)
                self._queue.retry(item)

    def _decide_again(
        self, item: Item, error: ConflictError | NotFoundError | AlreadyExistsError
    ) -> None:
        """The decision was stale: make a new one once the cache has caught up."""
        if self._stale.caught_up(error) and self._queue.failures(item) < _AT_ONCE:
            self._queue.retry_now(item)
            return
        self._stale.wait(item, error)
        self._queue.retry(item)

    def _cause(self, error: Exception) -> str:
        if not isinstance(error, UnavailableError):
            return ""
        cause = _STORE
        if isinstance(error, RuntimeUnavailableError):
            cause = _RUNTIME + error.runtime
            if self._reports is not None:
                self._reports.suspect(error.runtime)
        self._down[cause] = None
        return cause

    async def _tell_trouble(
        self, item: Item, error: Exception, about: Resource | None = None
    ) -> bool:
        """Write what is wrong, unless that is told already; returns whether it was news."""
        trouble = trouble_of(item, self._seen(item.key), error, self._clock.now(), about)
        if trouble is not None:
            await self._write_trouble(*trouble)
        return trouble is not None

    def _trouble_left(
        self, item: Item, decision: Decision, seen: Resource | None
    ) -> tuple[Resource, Trouble | None] | None:
        """What is to be written of trouble, now that a room has done all it decided.

        It is not over while an order is owed: that nothing was done about it for once proves
        nothing.
        """
        status = status_of(seen)
        if status is None or (status.trouble is None and not decision.trouble):
            # As nearly always.
            return None
        told = trouble_after(item, seen, decision.trouble, self._clock.now())
        if told is None or decision.trouble:
            return told
        room = self._rooms[item.room]
        return None if isinstance(room, GivesOrders) and room.owes(item.key) else told

    async def _settle_trouble(self, item: Item, decision: Decision) -> None:
        """Write what a room that has done all it decided says of trouble."""
        told = self._trouble_left(item, decision, self._seen(item.key))
        if told is None or await self._write_trouble(*told):
            self._finish(item, decision)
        else:
            # Nothing else may ever have this key looked at again.
            self._queue.retry(item, wake_at=decision.wake_at)

    async def _write_trouble(self, troubled: Resource, trouble: Trouble | None) -> bool:
        """Write it; returns whether that could be done."""
        applied = Applied()
        try:
            applied.keep(await self._applier.record_trouble(troubled, trouble))
        except Exception as error:
            logger.warning("%s: its trouble could not be written: %s", troubled.key, error)
        self._note(applied)
        return bool(applied.writes)
