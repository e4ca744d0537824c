"""TokenReview and SubjectAccessReview: whose a token is and what they may do, cached shortly.

Nothing is decided here. Whoever may read Jobs with kubectl may read them through the controller,
and nobody else.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from interlock.control.clock import Clock
from interlock.errors import ForbiddenError, InterlockError, UnavailableError
from interlock.kube.client.api_client import Call, Client, path_of
from interlock.resources.codec import encode
from interlock.resources.metadata import Key

K = TypeVar("K")
V = TypeVar("V")

#: How long an answer is believed. A right that was taken away lasts at most this much longer.
KNOWN_S, UNKNOWN_S = 10.0, 2.0
ALLOWED_S, DENIED_S = 5.0, 2.0
#: So many answers are kept; the ones that were not asked for longest go first.
KEPT = 4096


class NotReviewedError(InterlockError):
    """We may not ask the cluster about others; until that changes nobody is let in."""


class Person(Struct, frozen=True, kw_only=True):
    """Somebody the cluster knows: a person or a program."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Deed(Struct, frozen=True, kw_only=True):
    """Something that somebody wants to do: to resources, or to a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    #: Empty means all of them.
    namespace: str = ""
    name: str = ""
    #: Set instead of all the others but the verb.
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f'cannot {self.verb} path "{self.path}"'
        part = f"/{self.subresource}" if self.subresource else ""
        place = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return (
            f'cannot {self.verb} resource "{self.resource}{part}" '
            f'in API group "{self.group}" {place}'
        )


class _TokenStatus(Struct, frozen=True):
    authenticated: bool = False
    user: Person = Person()


class _TokenReview(Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Struct, frozen=True):
    allowed: bool = False


class _AccessReview(Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class Remembered(Generic[K, V]):
    """Answers that are believed for a while, so many of them at most."""

    def __init__(self, clock: Clock, most: int = KEPT) -> None:
        self._clock = clock
        self._most = most
        self._held: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The answer, unless there is none that is fresh."""
        found = self._held.get(key)
        if found is None:
            return None
        answer, until = found
        if self._clock.monotonic() >= until:
            del self._held[key]
            return None
        self._held.move_to_end(key)
        return answer

    def put(self, key: K, answer: V, lasts_s: float) -> None:
        """Believe an answer for so long."""
        self._held[key] = (answer, self._clock.monotonic() + lasts_s)
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)

    def __len__(self) -> int:
        return len(self._held)


class Reviews:
    """Asks the cluster about people."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        #: By a digest: tokens themselves are kept nowhere.
        self._known: Remembered[bytes, Person | str] = Remembered(clock)
        self._allowed: Remembered[tuple[str, Deed], bool] = Remembered(clock)

    async def who(self, token: str) -> Person | None:
        """Whom a token belongs to; None when the cluster does not know it.

        Raises:
            NotReviewedError: We may not ask.
            UnavailableError: The cluster does not answer.
        """
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        known = self._known.get(digest)
        if known is None:
            spec = {"token": token}
            data = await self._ask("authentication.k8s.io", "TokenReview", "tokenreviews", spec)
            status = _read(data, _TokenReview).status
            known = status.user if status.authenticated and status.user.username else ""
            self._known.put(digest, known, KNOWN_S if known else UNKNOWN_S)
        return known if isinstance(known, Person) else None

    async def may(self, person: Person, deed: Deed) -> bool:
        """Whether the cluster lets somebody do something.

        Raises:
            NotReviewedError: We may not ask.
            UnavailableError: The cluster does not answer.
        """
        question = (_as_one(person), deed)
        allowed = self._allowed.get(question)
        if allowed is None:
            spec = _access(person, deed)
            data = await self._ask(
                "authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", spec
            )
            allowed = _read(data, _AccessReview).status.allowed
            self._allowed.put(question, allowed, ALLOWED_S if allowed else DENIED_S)
        return allowed

    async def _ask(self, group: str, kind: str, plural: str, spec: dict[str, Any]) -> bytes:
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        call = Call(
            method="POST",
            path=path_of(group, "v1", plural),
            key=Key(kind, "", ""),
            body=encode(body),
        )
        try:
            return await self._client.send(call)
        except ForbiddenError as error:
            raise NotReviewedError(
                "this controller may not ask the cluster who you are and what you may do: "
                f"its account needs the cluster role system:auth-delegator ({error})"
            ) from error


T = TypeVar("T")


def _read(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise UnavailableError(f"the cluster's review cannot be read: {error}") from error


def _as_one(person: Person) -> str:
    """Everything that rights may depend on, as one key."""
    return msgspec.json.encode(person, order="deterministic").decode()


def _access(person: Person, deed: Deed) -> dict[str, Any]:
    spec: dict[str, Any] = {"user": person.username, "groups": list(person.groups)}
    if person.uid:
        spec["uid"] = person.uid
    if person.extra:
        spec["extra"] = {name: list(values) for name, values in person.extra.items()}
    if deed.path:
        return spec | {"nonResourceAttributes": {"path": deed.path, "verb": deed.verb}}
    wanted = {
        "verb": deed.verb,
        "group": deed.group,
        "version": "*",
        "resource": deed.resource,
        "subresource": deed.subresource,
        "namespace": deed.namespace,
        "name": deed.name,
    }
    given = {name: value for name, value in wanted.items() if value}
    return spec | {"resourceAttributes": given}
