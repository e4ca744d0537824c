"""Leader election: a lease in the store that is renewed while it is wanted.

The lease decides who does the work. Nothing that must be safe rests on it: every write is a
compare-and-set, and a runtime refuses the terms before the newest one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.clock import Clock, Timer, pause
from interlock.control.write_fence import WriteFence
from interlock.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    InterlockError,
    NotFoundError,
)
from interlock.resources.cluster import Lease, LeaseSpec, Namespace
from interlock.resources.metadata import Key, Metadata
from interlock.store.contract import Store

logger = logging.getLogger("interlock.lease")

SYSTEM_NAMESPACE = "interlock-system"
_RELEASED = "the lease was released"
LEASE = Key("Lease", SYSTEM_NAMESPACE, "interlock")
#: A renewal that failed is tried again after this part of the usual pause: there is little time.
_SOON = 0.2


class LeaseTimes(Struct, frozen=True, kw_only=True):
    """How long things take, in seconds: the defaults are those of Kubernetes' own controllers.

    A renewal counts from the moment it was begun, before anything was sent, and others count
    from when they saw it. So `renew_by_s` below `lasts_s` is all it takes for a leader to stop
    before another begins, however slow a renewal was.
    """

    #: Others wait this long after the last renewal they saw.
    lasts_s: float = 15.0
    #: A leader that could not renew for this long stops; well before others may begin.
    renew_by_s: float = 10.0
    #: Between two renewals, and between two looks at somebody else's lease.
    every_s: float = 2.0


class Election:
    """Takes the lease when it is free or has not moved for its whole length; renews it; lets go.

    Whether a foreign lease has run out is measured here, by this machine's monotonic clock, from
    when its last change was seen: the moments written in it come from clocks that may differ.
    With `sole` there can be no other control plane (the data directory is locked): the lease is
    taken at once and needs no renewal. With `namespace` the lease is kept there, else in our own,
    which is made when it is missing and that is allowed; others are made by others.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        luck: Random,
        fence: WriteFence,
        identity: str,
        *,
        sole: bool = False,
        times: LeaseTimes | None = None,
        namespace: str = "",
    ) -> None:
        self._store = store
        self._clock = clock
        self._luck = luck
        #: Open while this control plane leads.
        self.fence = fence
        self.identity = identity
        self._sole = sole
        self._times = times or LeaseTimes()
        #: Where the lease is.
        self.key = LEASE._replace(namespace=namespace or LEASE.namespace)
        #: What was last told of a lease that could not be taken.
        self._told = ""
        #: How often this control plane began to lead.
        self.terms = 0
        self._held: Lease | None = None
        #: The foreign lease as last seen, and when a change of it was last seen.
        self._seen = ""
        self._seen_at = 0.0
        self._watchdog: Timer | None = None
        #: Called with the term when this control plane begins to lead, and when it ends.
        self.on_lead: Callable[[int], None] = lambda _: None
        self.on_lost: Callable[[], None] = lambda: None
        #: Set while this control plane leads.
        self.leading = asyncio.Event()

    async def run(self) -> None:
        """Lead whenever possible, until cancelled."""
        while True:
            await self._acquire()
            await self._keep()
            self.resign()

    async def release(self) -> None:
        """Stop leading and let the next one begin at once. Call it after `run` has ended."""
        self.resign(_RELEASED)
        held, self._held = self._held, None
        if held is None:
            return
        try:
            await self._store.update(replace(held, spec=replace(held.spec, holder_identity="")))
        except ConflictError:
            # It was somebody else's already.
            return
        except InterlockError as error:
            logger.warning("the lease could not be released, it runs out by itself: %s", error)

    async def _acquire(self) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                lease = await self._try_to_take()
                self._told = ""
            except InterlockError as error:
                self._tell(error)
                lease = None
            if lease is not None:
                self._lead(lease, began)
                return
            await pause(self._clock, self._times.every_s * (1.0 + 0.2 * self._luck.random()))

    def _tell(self, error: InterlockError) -> None:
        """Say why the lease cannot be taken; once, for it is tried all the time."""
        told = str(error)
        if isinstance(error, NotFoundError) and error.key.kind == "Namespace":
            told = f"its namespace {self.key.namespace} is not there; it is taken once it is"
        if told != self._told and not isinstance(error, (ConflictError, AlreadyExistsError)):
            logger.warning("the lease could not be taken: %s", told)
            self._told = told

    async def _try_to_take(self) -> Lease | None:
        """Take the lease if that may be done now; None when it is somebody else's."""
        try:
            lease = await self._store.get(self.key)
        except NotFoundError:
            return await self._create()
        assert isinstance(lease, Lease)
        if not self._may_take(lease):
            return None
        now = self._clock.now()
        spec = replace(
            self._claim(),
            acquire_time=now,
            renew_time=now,
            lease_transitions=lease.spec.lease_transitions + 1,
        )
        return await self._store.update(replace(lease, spec=spec))

    async def _create(self) -> Lease:
        now = self._clock.now()
        metadata = Metadata(name=self.key.name, namespace=self.key.namespace)
        spec = replace(self._claim(), acquire_time=now, renew_time=now)
        lease = Lease(metadata=metadata, spec=spec)
        try:
            return await self._store.create(lease)
        except NotFoundError:
            if self.key.namespace != SYSTEM_NAMESPACE or not await self._make_namespace():
                raise
        return await self._store.create(lease)

    async def _make_namespace(self) -> bool:
        """Make our own namespace; returns whether that is allowed."""
        try:
            await self._store.create(Namespace(metadata=Metadata(name=self.key.namespace)))
        except AlreadyExistsError:
            return True
        except ForbiddenError:
            return False
        return True

    def _claim(self) -> LeaseSpec:
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=max(round(self._times.lasts_s), 1),
        )

    def _may_take(self, lease: Lease) -> bool:
        holder = lease.spec.holder_identity
        if self._sole or holder in ("", self.identity):
            return True
        monotonic = self._clock.monotonic()
        if lease.metadata.resource_version != self._seen:
            self._seen = lease.metadata.resource_version
            self._seen_at = monotonic
        return monotonic - self._seen_at >= lease.spec.lease_duration_seconds

    def _lead(self, lease: Lease, began: float) -> None:
        """Begin a term. It is numbered by the version that made it, so later terms are higher."""
        self._held = lease
        self.terms += 1
        self._extend(lease.version, began)
        self.leading.set()
        logger.info("leading, term %d", lease.version)
        self.on_lead(lease.version)

    def _extend(self, term: int, began: float) -> None:
        """Let writes pass until the renewal that began at `began` is too old."""
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._sole:
            self.fence.open(term)
            return
        until = began + self._times.renew_by_s
        self.fence.open(term, until)
        left = max(until - self._clock.monotonic(), 0.0)
        self._watchdog = self._clock.call_later(left, self._expire)

    def _expire(self) -> None:
        """Renewing took too long, and may still be waiting for an answer: stop at once."""
        if not self.fence.is_open:
            self.resign()

    async def _keep(self) -> None:
        """Renew until that fails for too long, or somebody else has the lease.

        The slower the answers are, the sooner the next renewal follows them: it is counted from
        when each was begun.
        """
        wait_s = self._times.every_s
        while self.leading.is_set():
            await pause(self._clock, wait_s)
            began = self._clock.monotonic()
            if not self.fence.is_open:
                return
            if self._sole:
                continue
            try:
                if not await self._renew():
                    return
                took_s = self._clock.monotonic() - began
                wait_s = max(self._times.every_s - took_s, self._times.every_s * _SOON)
            except NotFoundError:
                # Whoever comes first makes another one, and may have done so already.
                return
            except InterlockError as error:
                # Whether the write happened is not known. The fence shuts if this goes on.
                logger.warning("the lease could not be renewed: %s", error)
                wait_s = self._times.every_s * _SOON

    async def _renew(self) -> bool:
        """Renew once; returns whether this control plane is still the leader."""
        began = self._clock.monotonic()
        held = self._held
        assert held is not None
        try:
            held = await self._store.update(self._renewed(held))
        except ConflictError:
            # Somebody else has it, or an earlier renewal arrived whose answer did not.
            found = await self._store.get(self.key)
            assert isinstance(found, Lease)
            if found.spec.holder_identity != self.identity:
                return False
            held = await self._store.update(self._renewed(found))
        if not self.leading.is_set() or not self.fence.is_open:
            return False
        self._held = held
        self._extend(self.fence.term, began)
        return True

    def _renewed(self, lease: Lease) -> Lease:
        return replace(lease, spec=replace(lease.spec, renew_time=self._clock.now()))

    def resign(self, reason: str = "the lease was lost") -> None:
        """Write nothing more. The lease itself is left as it is, and runs out."""
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        self.fence.shut(reason)
        if self.leading.is_set():
            self.leading.clear()
            level = logging.INFO if reason == _RELEASED else logging.WARNING
            logger.log(level, "leading no more: %s", reason)
            self.on_lost()
