"""POST /operations: Jobs taken on for whoever waits for nothing, or for their end.

A Job is made as by any other way in: checked at the same door, in the name that is proven. Whoever
asks twice with one key gets the same Job, which the name tells: it is made of the key, and of a
name there is one in the store. A digest on the Job says whether it was the same request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock.api.answers import (
    Answer,
    Details,
    RefusedError,
    Status,
    bad_request,
    json_answer,
    refusal_of,
    warning_headers,
)
from interlock.api.authorization import check_submission
from interlock.api.bodies import read_beside, read_json, read_yaml
from interlock.api.callers import Caller
from interlock.api.operations import LOCATION, RETRY_AFTER
from interlock.api.parameters import Parameter, flag
from interlock.api.requests import Media, Request, Send
from interlock.api.routing import Route, Said, on_jobs
from interlock.api.waits import LONGEST_WAIT_S, USUAL_WAIT_S, WAIT, wait_in
from interlock.api.writes import Writes
from interlock.errors import AlreadyExistsError, InterlockError, NotFoundError
from interlock.resources.codec import to_builtins
from interlock.resources.job import REQUEST_ANNOTATION, Job
from interlock.resources.kinds import JOBS
from interlock.resources.metadata import Key
from interlock.resources.modes import Mode
from interlock.resources.values.durations import Duration
from interlock.store.contract import Store

#: So many may be submitted in one request.
MOST_ITEMS = 1_000
#: A finished Job goes after this time when nothing else is said. A server keeps its record; in a
#: cluster the Job itself is the record.
TTL = {Mode.EMBEDDED: Duration(hours=1), Mode.CLUSTER: Duration(hours=24)}
#: When to look for the first time at what was accepted.
_RETRY_AFTER_S = 1
#: Digits of the digest in a name that is made of a key: no two keys share so many.
_DIGITS = 32
_LONGEST_KEY = 200

#: The reasons of refusals that no other request has.
KEY_REUSED, FAILED, STUCK = "IdempotencyKeyReused", "OperationFailed", "OperationStuck"

_WAIT_PREFERENCE = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,9})\"?(?=$|[,;\s])")
_NOT_IN_NAMES = re.compile("[^a-z0-9]+")
_QUERY = (
    Parameter(name="namespace", says="Where it is made (default)."),
    flag("async", "false: hold the answer until it is over or stuck, and answer with that."),
    WAIT,
)
_HEADERS = (
    Parameter(name="Idempotency-Key", says="As spec.idempotencyKey: asked twice, done once."),
    Parameter(name="Prefer", says="wait=N: as ?wait=Ns."),
)
_APPLIED = Parameter(name="Preference-Applied", says="wait=N: for how long the answer was held.")
#: What several are answered with has no headers: each says itself where it is.
_TELLS = {
    200: (LOCATION, _APPLIED),
    202: (LOCATION, RETRY_AFTER, _APPLIED),
    409: (LOCATION,),
    422: (LOCATION,),
}
#: What a body is like; what is in a Job is told by the document of its group.
_ONE: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string", "enum": [JOBS.api_version]},
        "kind": {"type": "string", "enum": [JOBS.name]},
        "metadata": {"type": "object"},
        "spec": {"type": "object"},
    },
}
_MANY: dict[str, Any] = {
    "type": "object",
    "required": ["items"],
    # Each is answered by itself, so one that is no Job spoils nothing.
    "properties": {"items": {"type": "array", "minItems": 1, "maxItems": MOST_ITEMS}},
    "additionalProperties": False,
}
_FORM: dict[str, Any] = {"anyOf": [_ONE, _MANY]}


class Shown(Protocol):
    """The status of a Job, as far as it matters here."""

    @property
    def state(self) -> str:
        """In which of four states it is."""
        ...

    @property
    def completion_state(self) -> str | None:
        """What it came to."""
        ...

    @property
    def stuck_message(self) -> str | None:
        """Why nobody acts but a person."""
        ...

    @property
    def last_error(self) -> str:
        """How running it failed last."""
        ...


class Asked(NamedTuple):
    """A Job that was asked for before: which, of what request, and where it is."""

    uid: str
    digest: str
    state: str


class Desk(Protocol):
    """Knows how Jobs are."""

    @property
    def shape(self) -> type:
        """What the status of a Job is made of."""
        ...

    async def find(self, uid: str) -> Shown | None:
        """The status of a Job; None when there is none."""
        ...

    async def kept(self, namespace: str, name: str) -> Asked | None:
        """The newest Job of a name that was removed and whose status is kept."""
        ...

    def state_of(self, job: Job) -> str:
        """In which of four states a Job is."""
        ...

    def place_for(self, job: Job) -> AbstractContextManager[None]:
        """Hold a place in the line of a Job's target, where the store itself does not count."""
        ...

    async def heard(self, uids: Sequence[str]) -> None:
        """Wait until Jobs that were just made can be read."""
        ...

    async def settled(
        self, uid: str, seconds: float, gone: Awaitable[None], *, made: bool = False
    ) -> None:
        """Wait until a Job is over, stuck, or no more."""
        ...

    def stop(self) -> None:
        """Let all go who wait."""
        ...


class Accepted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was taken on, or why it was not; or what became of each of several, in their order."""

    job_id: str = ""
    name: str = ""
    namespace: str = ""
    url: str = ""
    state: str = ""
    #: With several: why this one was refused.
    refusal: Status | None = None
    items: tuple[Accepted, ...] = ()


class Submitting:
    """Takes on what people submit."""

    def __init__(self, store: Store, writes: Writes, desk: Desk, mode: Mode) -> None:
        self._store = store
        self._writes = writes
        self._desk = desk
        self._ttl = TTL[mode]
        #: One request at a time for each name that is made of a key, with how many want it.
        self._turns: dict[Key, tuple[asyncio.Lock, int]] = {}

    def routes(self) -> tuple[Route, ...]:
        """What is served."""
        return (
            Route(
                method="POST",
                path="/operations",
                right=on_jobs("create", Said(parameter="namespace", otherwise="default")),
                serve=self._serve,
                filtered=True,
                gives="takes it on, and says where its status is; when it was waited for, its end",
                takes="a Job without apiVersion, kind and name, or an object with items of such",
                query=_QUERY,
                headers=_HEADERS,
                tells=_TELLS,
                form=_FORM,
                shows=self._desk.shape,
                shows_also={202: Accepted},
                successes=(202,),
                refusals=(404, 409, 413, 415, 422),
            ),
        )

    async def _serve(self, request: Request, send: Send) -> Answer:  # noqa: ARG002
        for name in request.query:
            if name not in {one.name for one in _QUERY}:
                known = ", ".join(one.name for one in _QUERY)
                raise bad_request(f"{name[:40]}: unknown parameter; known are {known}")
        wait, applied = _wait_of(request)
        namespace = request.query.get("namespace", "default")
        key = _key_of(request)
        given = await _document(request)
        if "items" not in given:
            job, warnings = await read_beside(1, lambda: self._read(given, namespace, key))
            made, is_new = await self._take_on(job, request.caller)
            answer = await self._answer(made, wait, request, is_new=is_new)
            headers = (*answer.headers, *applied, *warning_headers(warnings))
            return replace(answer, headers=headers)
        if wait is not None or key:
            what = "Idempotency-Key" if key else "wait"
            raise bad_request(f"{what}: is for one Job, and the body has items")
        return await self._take_on_all(given, namespace, request.caller)

    async def _take_on_all(
        self, given: Mapping[str, Any], namespace: str, caller: Caller
    ) -> Answer:
        """Take on several: what is good of them becomes durable together."""
        items = given["items"]
        if set(given) != {"items"} or not isinstance(items, list):
            raise bad_request("items: expected a list, and nothing beside it")
        if not 1 <= len(items) <= MOST_ITEMS:
            raise bad_request(f"items: expected 1 to {MOST_ITEMS}, got {len(items)}")
        read = await read_beside(
            len(items) << 10, lambda: [self._read_or_refuse(one, namespace) for one in items]
        )
        answers = await asyncio.gather(*(self._take_on_one(one, caller) for one in read))
        return json_answer(Accepted(items=tuple(answers)), 202)

    def _read_or_refuse(self, given: object, namespace: str) -> Job | RefusedError:
        try:
            if not isinstance(given, Mapping):
                return bad_request("expected an object")
            return self._read(given, namespace, "")[0]
        except InterlockError as error:
            return refusal_of(error, JOBS)
        except RefusedError as error:
            return error

    async def _take_on_one(self, job: Job | RefusedError, caller: Caller) -> Accepted:
        if isinstance(job, RefusedError):
            return Accepted(refusal=job.status)
        try:
            made, _ = await self._take_on(job, caller)
        except InterlockError as error:
            return Accepted(refusal=refusal_of(error, JOBS).status)
        except RefusedError as error:
            return Accepted(refusal=error.status)
        return made

    def _read(
        self, given: Mapping[str, Any], namespace: str, key: str
    ) -> tuple[Job, tuple[str, ...]]:
        """The Job that a body asks for."""
        metadata = _object(given, "metadata")
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request(
                f"metadata.namespace: expected {namespace}, as ?namespace= says or by default"
            )
        spec = _object(given, "spec")
        if key and spec.setdefault("idempotencyKey", key) != key:
            raise bad_request("spec.idempotencyKey: expected what the header Idempotency-Key says")
        own = spec.get("idempotencyKey")
        if own and ("name" in metadata or "generateName" in metadata):
            raise bad_request(
                "metadata.name: is made of the idempotency key; leave one of them out"
            )
        if not metadata.get("name") and not metadata.get("generateName"):
            metadata["generateName"] = _beginning(spec.get("type"))
        known = {"apiVersion": JOBS.api_version, "kind": JOBS.name}
        document = {**known, **given, "metadata": metadata, "spec": spec}
        job, warnings = self._writes.read_new(msgspec.json.encode(document), JOBS.name)
        assert isinstance(job, Job)
        if job.metadata.resource_version:
            raise bad_request("resourceVersion should not be set on objects to be created")
        return job, warnings

    async def _take_on(self, job: Job, caller: Caller) -> tuple[Accepted, bool]:
        """Store a Job, unless it was asked for before; says whether it is new."""
        check_submission(caller, job)
        person = caller.name
        digest = _digest(job)
        ttl = job.spec.ttl_after_finished
        if ttl is None:
            job = replace(job, spec=replace(job.spec, ttl_after_finished=self._ttl))
        key = job.spec.idempotency_key
        if not key:
            return await self._store_new(job, person), True
        name = _name_of(key, person)
        notes = {**job.metadata.annotations, REQUEST_ANNOTATION: digest}
        metadata = replace(job.metadata, name=name, generate_name="", annotations=notes)
        job = replace(job, metadata=metadata)
        async with self._turn(job.key):
            found = await self._asked_before(job.key)
            if found is None:
                try:
                    return await self._store_new(job, person), True
                except AlreadyExistsError:
                    # Another server of this cluster was faster.
                    found = await self._asked_before(job.key)
                    if found is None:
                        raise
        if found.digest != digest:
            raise RefusedError(
                422,
                f"the idempotency key {key[:80]!r} was used for another "
                "request: give each request a key of its own",
                reason=KEY_REUSED,
                details=Details(group=JOBS.group, kind=JOBS.plural, name=name),
            )
        return _accepted(found.uid, job.key, found.state), False

    async def _store_new(self, job: Job, person: str) -> Accepted:
        """Store a Job, and wait until its status can be read."""
        with self._desk.place_for(job):
            made = self._accepted(await self._writes.store_read(job, person))
            await self._desk.heard((made.job_id,))
            return made

    async def _asked_before(self, key: Key) -> Asked | None:
        with suppress(NotFoundError):
            job = await self._store.get(key)
            assert isinstance(job, Job)
            digest = job.metadata.annotations.get(REQUEST_ANNOTATION, "")
            return Asked(job.metadata.uid, digest, self._desk.state_of(job))
        return await self._desk.kept(key.namespace, key.name)

    @asynccontextmanager
    async def _turn(self, key: Key) -> AsyncIterator[None]:
        """Be the only one who asks for a name: a Job may be made, end and go meanwhile."""
        lock, wanted = self._turns.get(key, (asyncio.Lock(), 0))
        self._turns[key] = (lock, wanted + 1)
        try:
            async with lock:
                yield
        finally:
            lock, wanted = self._turns[key]
            if wanted == 1:
                del self._turns[key]
            else:
                self._turns[key] = (lock, wanted - 1)

    def _accepted(self, made: Any) -> Accepted:
        return _accepted(made.metadata.uid, made.key, self._desk.state_of(made))

    async def _answer(
        self, made: Accepted, wait: float | None, request: Request, *, is_new: bool
    ) -> Answer:
        where = ((b"location", made.url.encode()),)
        later = json_answer(made, 202)
        later = replace(later, headers=(*where, (b"retry-after", str(_RETRY_AFTER_S).encode())))
        if wait is None:
            return later
        # Whoever hangs up cancels nothing: it was taken on.
        await self._desk.settled(made.job_id, wait, request.gone(), made=is_new)
        shown = await self._desk.find(made.job_id)
        if shown is None:
            return later
        details = Details(group=JOBS.group, kind=JOBS.plural, name=made.name, uid=made.job_id)
        if shown.completion_state == "failed":
            told = shown.last_error or "it failed"
            raise RefusedError(422, told, reason=FAILED, details=details, headers=where)
        if shown.completion_state is not None:
            return replace(json_answer(shown), headers=where)
        if shown.stuck_message:
            told = f"nobody acts but a person: {shown.stuck_message}"
            raise RefusedError(409, told, reason=STUCK, details=details, headers=where)
        still = replace(made, state=str(shown.state))
        return replace(json_answer(still, 202), headers=later.headers)


def _accepted(uid: str, key: Key, state: str) -> Accepted:
    return Accepted(
        job_id=uid, name=key.name, namespace=key.namespace, url=f"/jobs/{uid}", state=str(state)
    )


def _object(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of a body, to be filled in; the reader says what is wrong with another."""
    part = given.get(name, {})
    if not isinstance(part, Mapping):
        raise bad_request(f"{name}: expected an object")
    return dict(part)


def _beginning(type: object) -> str:
    """What the names of Jobs of a type begin with."""
    plain = _NOT_IN_NAMES.sub("-", type.lower()).strip("-")[:40] if isinstance(type, str) else ""
    return f"{plain.strip('-') or 'op'}-"


def _name_of(key: str, person: str) -> str:
    """The name of what somebody asks for with a key: others may use the same."""
    digest = sha256(f"{person} {key}".encode()).hexdigest()
    return f"op-{digest[:_DIGITS]}"


def _digest(job: Job) -> str:
    """What tells one request from another, in whatever order it says what it says."""
    plain = to_builtins(job)
    return sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


def _key_of(request: Request) -> str:
    given = request.headers.get(b"idempotency-key", b"").strip()
    if not given.isascii() or len(given) > _LONGEST_KEY:
        raise bad_request(
            f"Idempotency-Key: expected at most {_LONGEST_KEY} letters, digits and signs of ASCII"
        )
    return given.decode("ascii")


def _wait_of(request: Request) -> tuple[float | None, tuple[tuple[bytes, bytes], ...]]:
    """For how long the answer is held, None when it is not; and headers that say so."""
    wait = wait_in(request.query)
    said = "async" in request.query
    is_async = request.flag("async") if said else None
    if is_async and wait is not None:
        raise bad_request("wait: means nothing with async=true")
    if wait is not None or is_async is not None:
        return (None if is_async else USUAL_WAIT_S if wait is None else wait), ()
    prefers = _WAIT_PREFERENCE.search(request.headers.get(b"prefer", b"").decode("latin-1"))
    if prefers is None:
        return None, ()
    seconds = min(int(prefers[1]), LONGEST_WAIT_S)
    return float(seconds), ((b"preference-applied", f"wait={seconds}".encode()),)


async def _document(request: Request) -> Mapping[str, Any]:
    data, media = await request.body(), request.media()
    if media not in (Media.JSON, Media.YAML):
        raise RefusedError(415, f"expected {Media.JSON} or {Media.YAML}, got {media}")
    read = read_json if media is Media.JSON else read_yaml
    given = await read_beside(len(data), lambda: read(data))
    if not isinstance(given, Mapping):
        raise bad_request("the body is no object: expected a Job, or an object with items")
    return given
