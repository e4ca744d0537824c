"""Live reads: what a cache cannot prove because it may be old, asked of the store.

A look cannot wait. It asks here; while the answer is unknown it decides nothing, and the key is
woken when the answer is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from interlock.control.cache import Cache
from interlock.control.clock import Clock
from interlock.errors import ExpiredError, InterlockError, NotFoundError
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Key, Resource
from interlock.store.contract import Selection, Store

logger = logging.getLogger("interlock.garbage")

#: What is asked: the question, and the uid and version of what it is asked for.
Question = tuple[str, str, int]

#: So many proofs are remembered; a forgotten one is found again.
_REMEMBERED = 10_000
#: A question that the store could not answer is asked again after this time.
_AGAIN_S = 1.0
_PART = 1000


class LiveReads:
    """Answers that stay true: all are about what can no longer come into being."""

    def __init__(self, store: Store, caches: Mapping[str, Cache[Any]], clock: Clock) -> None:
        self._store = store
        self._caches = caches
        self._clock = clock
        #: Called with a key that is to be looked at again.
        self.wake: Callable[[Key], None] = lambda _: None
        self._proven: dict[Question, None] = {}
        self._asking: dict[Question, asyncio.Task[None]] = {}

    def owner_is_gone(self, owner: Key, uid: str, dependent: Resource) -> bool:
        """Whether an owner that the cache does not show is proven gone for good.

        An owner is older than what names it. A cache that has heard everything up to the
        dependent's version would show it.
        """
        if self._caches[owner.kind].version >= dependent.version:
            return True
        question = ("owner", f"{uid} of {dependent.metadata.uid}", dependent.version)
        return self._ask(question, dependent.key, lambda: self._is_gone(owner, uid))

    def namespace_is_empty(self, namespace: Resource) -> bool:
        """Whether nothing is left in a namespace that is going: nothing can be added to it."""
        question = ("empty", namespace.metadata.uid, namespace.version)
        return self._ask(question, namespace.key, lambda: self._is_empty(namespace.metadata.name))

    def has_no_dependents(self, owner: Resource, *, blocking: bool) -> bool:
        """Whether nothing names this owner; with `blocking`, nothing that holds it back."""
        version = owner.version
        if all(cache.version >= version for cache in self._caches.values()):
            return True
        question = ("blockers" if blocking else "dependents", owner.metadata.uid, version)
        return self._ask(question, owner.key, lambda: self._is_unnamed(owner, blocking))

    def is_not_granted(self, record: Key, job: Job, names: Callable[[Any], bool]) -> bool:
        """Whether a record that the cache does not show with a Job's grant is proven without it.

        A grant is stored before the Job is let in with it, and for as long as the Job may do
        something. A cache that has heard everything up to the Job's version would show it.
        `names` says whether a record has the grant that the Job of this version says it has.
        """
        if self._caches[record.kind].version >= job.version:
            return True
        question = ("grant", f"{record} to {job.metadata.uid}", job.version)
        return self._ask(question, job.key, lambda: self._is_not_held(record, names))

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()

    def _ask(self, question: Question, key: Key, find_out: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it is proven; if not, find out and have the key looked at again."""
        if question in self._proven:
            return True
        if question not in self._asking:
            task = asyncio.get_running_loop().create_task(self._prove(question, key, find_out))
            self._asking[question] = task
            task.add_done_callback(lambda _: self._asking.pop(question))
        return False

    async def _prove(
        self, question: Question, key: Key, find_out: Callable[[], Awaitable[bool]]
    ) -> None:
        try:
            proven = await find_out()
        except InterlockError as error:
            logger.warning("%s: could not be looked up: %s", key, error)
            proven = False
        except Exception:
            logger.exception("%s: could not be looked up", key)
            proven = False
        if not proven:
            # The cache is behind and will wake the key, or the store could not say.
            self._clock.call_later(_AGAIN_S, lambda: self.wake(key))
            return
        if len(self._proven) >= _REMEMBERED:
            self._proven.clear()
        self._proven[question] = None
        self.wake(key)

    async def _is_gone(self, owner: Key, uid: str) -> bool:
        try:
            found = await self._store.get(owner)
        except NotFoundError:
            return True
        return found.metadata.uid != uid

    async def _is_not_held(self, record: Key, names: Callable[[Any], bool]) -> bool:
        try:
            return not names(await self._store.get(record))
        except NotFoundError:
            return True

    async def _is_empty(self, namespace: str) -> bool:
        for kind in self._caches:
            if not KINDS[kind].namespaced:
                continue
            page = await self._store.list(kind, Selection(namespace=namespace), limit=1)
            if page.items:
                return False
        return True

    async def _is_unnamed(self, owner: Resource, blocking: bool) -> bool:
        place = owner.metadata.namespace
        for kind in self._caches:
            # What has no namespace cannot have an owner that has one.
            if place and not KINDS[kind].namespaced:
                continue
            if await self._any_names(kind, Selection(namespace=place or None), owner, blocking):
                return False
        return True

    async def _any_names(
        self, kind: str, where: Selection, owner: Resource, blocking: bool
    ) -> bool:
        token = ""
        while True:
            try:
                page = await self._store.list(kind, where, limit=_PART, continue_token=token)
            except ExpiredError:
                return True
            if any(names(each, owner.metadata.uid, blocking) for each in page.items):
                return True
            token = page.continue_token
            if not token:
                return False


def names(resource: Resource, owner_uid: str, blocking: bool) -> bool:
    """Whether a resource names an owner; with `blocking`, whether it also holds it back."""
    return any(
        owner.uid == owner_uid and (bool(owner.block_owner_deletion) or not blocking)
        for owner in resource.metadata.owner_references
    )
