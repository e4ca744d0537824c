"""The event recorder: Kubernetes Events about Jobs and schedules, for `kubectl describe`.

They are for people, and never in the way of the work: one request at a time, seldom, from a
line that is short. What does not fit is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

from msgspec import Struct

from interlock.control.clock import Clock, pause
from interlock.control.reconciler import Change
from interlock.control.write_fence import WriteFence
from interlock.errors import InterlockError, NotFoundError
from interlock.kube.client.api_client import MERGE_PATCH, Call, Client, path_of
from interlock.kube.events.jobs import Told, trouble_told, worth_telling
from interlock.kube.events.schedules import config_told, controlled_told
from interlock.resources.codec import encode
from interlock.resources.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS
from interlock.resources.metadata import Key, Resource
from interlock.store.rules import DEFAULT_NAMESPACE

logger = logging.getLogger("interlock.kube.events")

#: How many events wait to be written; more are dropped.
WAITING = 1000
#: How many written events are remembered, to count them up when they happen again.
REMEMBERED = 4096
#: Between two requests: events must not take from the API server what the work needs. The longer
#: one takes, the busier the server is, and the longer the next one waits.
PAUSE_S = 0.02
_PAUSE_TIMES = 20.0
COMPONENT = "interlock"

#: What makes two events the same: the uid of what it is about, and what is told of it.
_Sort = tuple[str, Told]


class _Waiting(Struct):
    """An event that is to be written, and how often it happened since it last was."""

    about: Resource
    told: Told
    first: datetime
    last: datetime
    times: int = 1


class _Written(Struct):
    """An event that the cluster has."""

    name: str
    times: int


class Events:
    """Observes Jobs and schedules while the fence is open, and writes events about them.

    The client is one that asks the fence too: what was observed may wait until it is shut.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        luck: Random,
        fence: WriteFence,
        identity: str,
        *,
        waiting: int = WAITING,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._client = client
        self._clock = clock
        self._luck = luck
        self._fence = fence
        self._identity = identity
        self._most = waiting
        self._pause_s = pause_s
        self._waiting: OrderedDict[_Sort, _Waiting] = OrderedDict()
        self._written: OrderedDict[_Sort, _Written] = OrderedDict()
        self._news = asyncio.Event()
        #: How many were written or counted up, and how many were not.
        self.written = 0
        self.dropped = 0

    def observe(self, change: Change) -> None:
        """Take in a change. What happened while another led was told by that one."""
        if change.after is None or not self._fence.is_open:
            return
        for told in _told_of(change):
            self._add(change.after, told)

    def tell(self, about: Resource, told: Told) -> None:
        """Tell of an object that is not ours, while this process leads."""
        if self._fence.is_open:
            self._add(about, told)

    async def run(self) -> None:
        """Write what was observed, until cancelled."""
        while True:
            await self._news.wait()
            while self._waiting:
                sort, event = self._waiting.popitem(last=False)
                began = self._clock.monotonic()
                await self._write(sort, event)
                took_s = self._clock.monotonic() - began
                await pause(self._clock, max(self._pause_s, took_s * _PAUSE_TIMES))
            self._news.clear()

    def _add(self, about: Resource, told: Told) -> None:
        sort, now = (about.metadata.uid, told), self._clock.now()
        held = self._waiting.get(sort)
        if held is not None:
            held.times += 1
            held.last = now
        elif len(self._waiting) >= self._most:
            self.dropped += 1
        else:
            self._waiting[sort] = _Waiting(about, told, now, now)
            self._news.set()

    async def _write(self, sort: _Sort, event: _Waiting) -> None:
        """Write an event if that can be done; nobody waits for it, and nobody misses it much."""
        try:
            if not await self._count_up(sort, event):
                await self._create(sort, event)
            self.written += 1
        except InterlockError as error:
            logger.info("%s: an event was dropped: %s", event.about.key, error)
            self.dropped += 1

    async def _count_up(self, sort: _Sort, event: _Waiting) -> bool:
        """Say that it happened again; False when it is not there, or not any more."""
        written = self._written.get(sort)
        if written is None:
            return False
        times = written.times + event.times
        body = {"count": times, "lastTimestamp": _moment(event.last)}
        try:
            await self._send("PATCH", event.about, written.name, body)
        except NotFoundError:
            del self._written[sort]
            return False
        written.times = times
        self._written.move_to_end(sort)
        return True

    async def _create(self, sort: _Sort, event: _Waiting) -> None:
        # Nobody else makes an event of this name: neither another object nor another controller.
        name = f"{event.about.metadata.name[:200]}.{self._luck.getrandbits(64):016x}"
        body = event_body(name, event.about, event.told, self._identity) | {
            "firstTimestamp": _moment(event.first),
            "lastTimestamp": _moment(event.last),
            "count": event.times,
        }
        await self._send("POST", event.about, "", body)
        self._written[sort] = _Written(name, event.times)
        while len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    async def _send(self, method: str, about: Resource, name: str, body: dict[str, Any]) -> None:
        namespace = _place_of(about)
        call = Call(
            method=method,
            path=path_of("", "v1", "events", namespace=namespace, name=name),
            key=Key("Event", namespace, name),
            body=encode(body),
            media=MERGE_PATCH if method == "PATCH" else "application/json",
        )
        await self._client.send(call)


#: What is told of a kind between two of its states; of others, that something troubles them.
_TELLS: dict[str, Callable[[Any, Any], list[Told]]] = {
    JOBS.name: worth_telling,
    JOB_CONFIGS.name: config_told,
    CONTROLLED_JOBS.name: controlled_told,
}


def _told_of(change: Change) -> list[Told]:
    before, after = change.before, change.after
    if before is None or after is None:
        return []
    return _TELLS.get(after.kind, trouble_told)(before, after)


def event_body(name: str, about: Resource, told: Told, identity: str) -> dict[str, Any]:
    """An event as every version of kubectl reads it: the group with the older name."""
    metadata = about.metadata
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": _place_of(about)},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        },
        "type": told.type,
        "reason": told.reason,
        "message": told.message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": identity[:128],
    }


def _place_of(about: Resource) -> str:
    """Where an event is kept; there is a place for those about what has no namespace."""
    return about.metadata.namespace or DEFAULT_NAMESPACE


def _moment(at: datetime) -> str:
    """Whole seconds: the older fields know no parts of them."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
