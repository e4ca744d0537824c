"""Authorization of a controller's callers: the cluster says who they are and what they may.

The controller has rights of its own. They serve nobody else: every request is put to the cluster
as a question about the one who sent it, before anything is read or written for them. What the
question is, the route says that the request is answered by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, assert_never

from interlock.api.answers import Details, RefusedError
from interlock.api.callers import trusted
from interlock.api.requests import Request
from interlock.api.routing import ForAll, ForKnown, OnEach, OnPath, OnResource
from interlock.api.security import unauthorized
from interlock.kube.client.reviews import Deed, NotReviewedError, Person
from interlock.resources.kinds import NAMESPACES
from interlock.resources.metadata import Key

#: Says which Job has a uid.
KeyOf = Callable[[str], Key | None]


class Reviewer(Protocol):
    """Whoever knows people and their rights: the cluster, asked by `Reviews`."""

    async def who(self, token: str) -> Person | None:
        """Whom a token belongs to; None when nobody knows it."""
        ...

    async def may(self, person: Person, deed: Deed) -> bool:
        """Whether somebody may do something."""
        ...


class ClusterGuard:
    """Has the cluster say who asks and whether they may. Health is open to all.

    A controller of one namespace sees no other, so "all" means that one to it.
    """

    def __init__(self, reviews: Reviewer, key_of: KeyOf, *, namespace: str = "") -> None:
        self._reviews = reviews
        self._key_of = key_of
        self._namespace = namespace

    async def admit(self, request: Request) -> None:
        """Let a request in.

        Raises:
            RefusedError: Nobody knows who asks, or they may not.
            UnavailableError: The cluster cannot be asked.
        """
        if request.match.is_open:
            return
        token = _token(request)
        try:
            person = await self._reviews.who(token)
            if person is None:
                raise unauthorized("the cluster does not know this token")
            for deed in self._deeds(request):
                if not await self._reviews.may(person, deed):
                    raise _forbidden(person.username, deed)
            # The cluster says what they may; nothing is left out for them here.
            request.caller = trusted(person.username)
        except NotReviewedError as error:
            raise RefusedError(500, str(error)) from error

    def _deeds(self, request: Request) -> tuple[Deed, ...]:
        """What a request wants done, in the words of the cluster; none for what anybody may."""
        match request.match.route.right:
            case ForAll() | ForKnown():
                return ()
            case OnPath(verb):
                return (Deed(verb=verb, path=request.match.path),)
            case OnResource() as right:
                return (self._deed(right, request),)
            case OnEach(rights):
                return tuple(self._deed(right, request) for right in rights)
            case other:
                assert_never(other)

    def _deed(self, right: OnResource, request: Request) -> Deed:
        namespace, name = right.namespace.read(request), right.name.read(request)
        if right.uid:
            # Whoever asks for one that is not there learns so only if they may see all.
            uid = request.match.parts[right.uid]
            _, namespace, name = self._key_of(uid) or Key("", "", "")
        resource = right.resource_of(request)
        if resource != NAMESPACES.plural:
            namespace = namespace or self._namespace
        return Deed(
            verb=right.verb,
            group=right.group,
            resource=resource,
            subresource=right.subresource,
            namespace=namespace,
            name=name,
        )


def _token(request: Request) -> str:
    scheme, _, given = request.headers.get(b"authorization", b"").partition(b" ")
    token = given.strip().decode("latin-1")
    if scheme.lower() != b"bearer" or not token:
        raise unauthorized(
            "a token of the cluster is needed: Authorization: Bearer TOKEN "
            "(kubectl create token NAME makes one for a service account)"
        )
    return token


def _forbidden(username: str, deed: Deed) -> RefusedError:
    """A refusal as the API server words it."""
    if deed.path:
        return RefusedError(403, f'forbidden: User "{username}" {deed}')
    what = f"{deed.resource}.{deed.group}" if deed.group else deed.resource
    named = f' "{deed.name}"' if deed.name else ""
    details = Details(name=deed.name, group=deed.group, kind=deed.resource)
    message = f'{what}{named} is forbidden: User "{username}" {deed}'
    return RefusedError(403, message, details=details)
