"""The adopter: follows what others label with a Queue, and keeps the Jobs that stand for it.

Every process follows; the one that leads acts. What it does is a patch of an object as it was read,
or a write of a Job whose name follows from the object's uid: done twice it is done once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

from interlock.control.backoff import Backoff
from interlock.control.clock import Clock, pause
from interlock.control.reconciler import Change as Seen
from interlock.errors import (
    AlreadyExistsError,
    ConflictError,
    FencedError,
    InterlockError,
    InvalidError,
    NotFoundError,
)
from interlock.kube.adoption.decide import Action, Change, Make, Remove, Suspend, Tell, decide
from interlock.kube.adoption.models import (
    FOREIGN_JOBS,
    FOREIGN_PODS,
    Foreign,
    ForeignJob,
    ForeignPod,
)
from interlock.kube.adoption.reading import kind_of, stand_in_name
from interlock.kube.client.api_client import Client
from interlock.kube.events.jobs import WARNING, Told
from interlock.kube.pods.fan_out import for_each
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.informer import Seen as Moved
from interlock.kube.pods.manifest import exactly
from interlock.kube.pods.objects import KubernetesObjects, Objects
from interlock.resources.adopted import QUEUE_LABEL, AdoptedKind
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Metadata, NoStatus, Resource
from interlock.store.contract import DeleteOptions, Store

logger = logging.getLogger("interlock.kube.adoption")


class Place(NamedTuple):
    """Which object."""

    kind: AdoptedKind
    namespace: str
    name: str


class _BatchJob(Resource, tag="Job", kw_only=True):
    """What an event about a batch Job is about."""

    status: NoStatus = NoStatus()


class _Pod(Resource, tag="Pod", kw_only=True):
    """What an event about a pod is about."""

    status: NoStatus = NoStatus()


class Adopter:
    """Looks at each object and its Job whenever one of them changes."""

    def __init__(
        self,
        jobs: Objects[ForeignJob],
        pods: Objects[ForeignPod],
        ours: Callable[[Key], Job | None],
        store: Store,
        clock: Clock,
        luck: Random,
        leads: Callable[[], bool],
        tell: Callable[[Resource, Told], None],
    ) -> None:
        self._jobs = Informer(jobs, clock, luck, selector=QUEUE_LABEL)
        self._pods = Informer(pods, clock, luck, selector=QUEUE_LABEL)
        self._ours = ours
        self._store = store
        self._clock = clock
        self._leads = leads
        self._tell = tell
        self._backoff = Backoff(luck)
        #: Objects to look at, and the Jobs that stand for each.
        self._due: dict[Place, None] = {}
        self._stand_ins: dict[Place, dict[str, None]] = {}
        self._news = asyncio.Event()
        #: What was told of an object last: it is looked at often.
        self._told: dict[Place, Told] = {}
        self._jobs.subscribe(self._moved)
        self._pods.subscribe(self._moved)

    @classmethod
    def of(
        cls,
        client: Client,
        ours: Callable[[Key], Job | None],
        store: Store,
        clock: Clock,
        luck: Random,
        leads: Callable[[], bool],
        tell: Callable[[Resource, Told], None],
        *,
        namespace: str = "",
    ) -> Adopter:
        """What an API server has, in one namespace or in all."""
        return cls(
            KubernetesObjects(client, FOREIGN_JOBS, clock, luck, namespace=namespace),
            KubernetesObjects(client, FOREIGN_PODS, clock, luck, namespace=namespace),
            ours,
            store,
            clock,
            luck,
            leads,
            tell,
        )

    # What wakes it

    def begin(self) -> None:
        """Look at all there is: this process leads from now on."""
        for mirror in (self._jobs, self._pods):
            self._wake(map(place_of, mirror))
        self._wake(tuple(self._stand_ins))

    def observe(self, seen: Seen) -> None:
        """Take in a Job that stands for something."""
        job = seen.after or seen.before
        if not isinstance(job, Job) or job.spec.adopted is None:
            return
        object, namespace = job.spec.adopted, job.metadata.namespace
        place = Place(object.kind, namespace, object.name)
        if seen.after is not None:
            self._stand_ins.setdefault(place, {})[job.metadata.name] = None
        elif place in self._stand_ins:
            self._stand_ins[place].pop(job.metadata.name, None)
            if not self._stand_ins[place]:
                del self._stand_ins[place]
        self._wake((place,))

    def _moved(self, changes: Sequence[Moved[ForeignJob]] | Sequence[Moved[ForeignPod]]) -> None:
        for change in changes:
            thing = change.after or change.before
            assert thing is not None, "something came or went"
            if change.after is None:
                self._told.pop(place_of(thing), None)
            self._wake((place_of(thing),))

    def _wake(self, places: Iterable[Place]) -> None:
        self._due.update((place, None) for place in places)
        if self._due:
            self._news.set()

    # What it does

    async def run(self) -> None:
        """Follow and act until cancelled."""
        await asyncio.gather(self._jobs.run(), self._pods.run(), self._act())

    async def _act(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if not self._leads():
                # Whoever begins to lead looks at everything.
                self._due.clear()
                continue
            due, self._due = tuple(self._due), {}
            failed: list[Place] = []

            async def settle(place: Place, failed: list[Place] = failed) -> None:
                try:
                    await self._settle(place)
                except FencedError:
                    return
                except InterlockError as error:
                    logger.info("%s %s/%s is looked at again: %s", *place, error)
                    failed.append(place)

            await for_each(due, settle)
            if failed:
                await pause(self._clock, self._backoff.failed())
                self._wake(failed)
            else:
                self._backoff.reset()

    async def _settle(self, place: Place) -> None:
        """Decide about an object and each Job that stands, or stood, for one of its name."""
        thing = self._known(place)
        names = dict.fromkeys(self._stand_ins.get(place, ()))
        its_name = ""
        if thing is not None:
            its_name = stand_in_name(place.kind, place.name, thing.metadata.uid)
            names[its_name] = None
        for name in names:
            job = self._ours(Key("Job", place.namespace, name))
            for action in decide(thing if name == its_name else None, job):
                await self._carry_out(action, place)

    def _known(self, place: Place) -> Foreign | None:
        at = (place.namespace, place.name)
        if place.kind is AdoptedKind.BATCH_JOB:
            return self._jobs.get(at)
        return self._pods.get(at)

    async def _carry_out(self, action: Action, place: Place) -> None:
        match action:
            case Suspend(job):
                await self._suspend(job)
            case Make(job):
                await self._make(job, place)
            case Change(job):
                await self._store.update(job)
            case Remove(job, why):
                await self._remove(job, why, place)
            case Tell(thing, reason, message):
                self._tell_once(thing, Told(WARNING, reason, message))

    async def _suspend(self, job: ForeignJob) -> None:
        patch = {"metadata": exactly(job), "spec": {"suspend": True}}
        try:
            self._jobs.take(await self._jobs.objects.patch(*job.place, patch))
        except NotFoundError:
            return
        told = "it is let run by its Queue alone: suspended again"
        self._tell_once(job, Told(WARNING, "Suspended", told))

    async def _make(self, job: Job, place: Place) -> None:
        assert job.spec.adopted is not None, f"{job.key}: it stands for nothing"
        if not await self._is_there(place, job.spec.adopted.uid):
            # It has just gone, with the Job that stood for it: the mirror is about to hear of it.
            return
        try:
            await self._store.create(job)
        except AlreadyExistsError:
            return  # The caches are about to hear of it; one that is going is waited for.
        except InvalidError as error:
            thing = self._known(place)
            if thing is not None:
                self._tell_once(thing, Told(WARNING, "NotQueued", str(error)))

    async def _remove(self, job: Job, why: str, place: Place) -> None:
        assert job.spec.adopted is not None, f"{job.key}: it stands for nothing"
        known = self._known(place)
        uid = job.spec.adopted.uid
        if (known is None or known.metadata.uid != uid) and await self._is_there(place, uid):
            # The mirror does not know it yet: it will be looked at.
            return
        logger.info("%s is removed: %s", job.key, why)
        try:
            await self._store.delete(job.key, DeleteOptions(uid=job.metadata.uid))
        except (NotFoundError, ConflictError):
            return

    async def _is_there(self, place: Place, uid: str) -> bool:
        """Whether an object is there after all, and asks for a Queue."""
        objects: Objects[ForeignJob] | Objects[ForeignPod] = self._pods.objects
        if place.kind is AdoptedKind.BATCH_JOB:
            objects = self._jobs.objects
        try:
            found = await objects.get(place.namespace, place.name)
        except NotFoundError:
            return False
        return found.metadata.uid == uid and bool(found.metadata.labels.queue)

    def _tell_once(self, thing: Foreign, told: Told) -> None:
        place = place_of(thing)
        if self._told.get(place) == told:
            return
        self._told[place] = told
        logger.warning("%s %s/%s: %s", *place, told.message)
        self._tell(_about(thing), told)


def place_of(thing: Foreign) -> Place:
    """Which object it is."""
    return Place(kind_of(thing), *thing.place)


def _about(thing: Foreign) -> Resource:
    """An object as an event has it."""
    given = thing.metadata
    metadata = Metadata(
        name=given.name,
        namespace=given.namespace,
        uid=given.uid,
        resource_version=given.resource_version,
    )
    if isinstance(thing, ForeignJob):
        return _BatchJob(api_version="batch/v1", metadata=metadata)
    return _Pod(api_version="v1", metadata=metadata)
