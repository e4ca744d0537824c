"""Launching: the object of an attempt is created, and then let run.

The two are separate writes. What was created waits; only an answer that names its uid, and a leader
that still leads, lets it run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Generic

from interlock.control.clock import Clock
from interlock.control.runtime import OrderDeniedError
from interlock.errors import (
    AlreadyExistsError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from interlock.kube.client.errors import NoRightError, OverQuotaError
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.manifest import Manifest, release
from interlock.kube.pods.models import KubeObject, T
from interlock.resources.metadata import Order
from interlock.resources.tasks import TaskOrder

#: How often something is tried against others who change the same object.
_TRIES = 5
#: A namespace gets this account a moment after it was created.
_NO_ACCOUNT_YET = 'serviceaccount "default" not found'


class NameTakenError(OrderDeniedError):
    """An object of an earlier Job has the name that an attempt needs, and has to go first."""

    def __init__(self, message: str) -> None:
        super().__init__(Order.LAUNCH, message)


class Launching(Generic[T]):
    """Creates and arms objects of one sort."""

    def __init__(
        self,
        mirror: Informer[T],
        clock: Clock,
        check: Callable[[], None],
        refuse: Callable[[TaskOrder, str], None],
        *,
        manifest: Callable[[TaskOrder], Manifest],
        arming: Callable[[T, datetime], Manifest],
        noun: str,
    ) -> None:
        self._mirror = mirror
        self._objects = mirror.objects
        self._clock = clock
        self._check = check
        #: Called with an order that will never be carried out, and why.
        self._refuse = refuse
        self._manifest = manifest
        self._arming = arming
        self._noun = noun

    async def create(self, order: TaskOrder) -> T | None:
        """Make sure that there is an object; returns it if it has to be armed.

        What is refused because of what the attempt is will never be carried out. What is refused
        because of the moment, or because of what the controller may do, is left to another try.

        Raises:
            NameTakenError: Something of an earlier Job is in the way.
            OrderDeniedError: It is refused for now.
            UnavailableError: Nothing is known; it may have been created.
        """
        for known in self._mirror.of_task(order.id):
            return known if _can_be_armed(known) else None
        for _ in range(_TRIES):
            try:
                return await self._try(order)
            except ConflictError as error:
                # A quota that many write at once, or a name that has just come free.
                conflict = error
        raise NameTakenError(f"{self._noun} {order.name} cannot be created: {conflict}")

    async def _try(self, order: TaskOrder) -> T | None:
        self._check()
        try:
            made = await self._objects.create(order.namespace, self._manifest(order))
        except AlreadyExistsError as error:
            return await self._adopt(order, error)
        except (NoRightError, OverQuotaError) as error:
            raise OrderDeniedError(Order.LAUNCH, str(error)) from error
        except (InvalidError, ForbiddenError, BadRequestError, NotFoundError) as error:
            if _NO_ACCOUNT_YET in str(error):
                raise OrderDeniedError(Order.LAUNCH, str(error)) from error
            self._refuse(order, f"the {self._noun} was refused: {error}")
            return None
        self._mirror.take(made)
        return made

    async def _adopt(self, order: TaskOrder, taken: AlreadyExistsError) -> T | None:
        """See whose the object of that name is."""
        try:
            found = await self._objects.get(order.namespace, order.name)
        except NotFoundError as error:
            raise ConflictError(error.key, expected="it", found="nothing any more") from taken
        labels = found.metadata.labels
        if found.task == order.id:
            self._mirror.take(found)
            return found if _can_be_armed(found) else None
        if labels.job_uid and labels.job_uid != order.job_uid:
            await self._clear(found)
            raise ConflictError(taken.key, expected="a free name", found="an earlier Job's")
        self._refuse(
            order,
            f"there is a {self._noun} {order.namespace}/{order.name} already, "
            "which was not made for this Job",
        )
        return None

    async def _clear(self, old: T) -> None:
        """Take away what an earlier Job of the same name left behind, if nothing of it can run.

        Raises:
            NameTakenError: Something of it may still run.
        """
        namespace, name = old.place
        taken = NameTakenError(f"{self._noun} {namespace}/{name} of an earlier Job may still run")
        if not _is_harmless(old):
            raise taken
        self._check()
        try:
            left = await self._objects.delete(namespace, name, uid=old.metadata.uid, grace_s=None)
            if left is None:
                return
            if not _is_harmless(left):
                # It was let run between the look and the order to go.
                raise taken
            self._check()
            await self._objects.patch(namespace, name, release(left))
        except NotFoundError:
            return

    async def arm(self, waiting: T) -> None:
        """Let an object run.

        One that went meanwhile, or whose name another one has, is left to whoever sees that.
        """
        namespace, name = waiting.place
        uid = waiting.metadata.uid
        for _ in range(_TRIES):
            self._check()
            try:
                patch = self._arming(waiting, self._clock.now())
                self._mirror.take(await self._objects.patch(namespace, name, patch))
                return
            except NotFoundError:
                return
            except (ConflictError, InvalidError) as error:
                # It was changed in between: others open gates of their own.
                trouble = error
            try:
                waiting = await self._objects.get(namespace, name)
            except NotFoundError:
                return
            if waiting.metadata.uid != uid or not _can_be_armed(waiting):
                return
        told = f"{self._noun} {namespace}/{name} cannot be armed: {trouble}"
        raise OrderDeniedError(Order.LAUNCH, told)


def _is_harmless(thing: KubeObject) -> bool:
    return thing.is_over or thing.never_ran


def _can_be_armed(thing: KubeObject) -> bool:
    return thing.is_waiting and not thing.is_going and thing.is_held
