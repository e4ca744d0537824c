"""Who may ask a controller: whoever the cluster knows, for what the cluster lets them do.

The controller has rights of its own. They serve nobody else: every request is put to the cluster
as a question about the one who sent it, before anything is read or written for them.
"""

from __future__ import annotations

from collections.abc import Callable

from interlock.api.answers import Details, RefusedError
from interlock.api.app import verb_of
from interlock.api.requests import Request
from interlock.api.routing import find_target
from interlock.api.security import OPEN_PATHS, unauthorized
from interlock.kube.reviews import Deed, NotReviewedError, Reviews
from interlock.resources.kinds import JOBS, KINDS, LOCKS
from interlock.resources.metadata import GROUP, Key

#: Says which Job has a uid.
KeyOf = Callable[[str], Key | None]
#: It holds nothing, and says why to anybody who is known.
_FOR_ANYBODY = ("/admin/backup",)


class ClusterGuard:
    """Has the cluster say who asks and whether they may. Health is open to all.

    A controller of one namespace sees no other, so "all" means that one to it.
    """

    def __init__(self, reviews: Reviews, key_of: KeyOf, *, namespace: str = "") -> None:
        self._reviews = reviews
        self._key_of = key_of
        self._namespace = namespace

    async def admit(self, request: Request) -> None:
        """Let a request in.

        Raises:
            RefusedError: Nobody knows who asks, or they may not.
            UnavailableError: The cluster cannot be asked.
        """
        if request.path in OPEN_PATHS:
            return
        token = _token(request)
        try:
            person = await self._reviews.who(token)
            if person is None:
                raise unauthorized("the cluster does not know this token")
            deed = self._deed(request)
            if deed is None or await self._reviews.may(person, deed):
                return
        except NotReviewedError as error:
            raise RefusedError(500, str(error)) from error
        raise _forbidden(person.username, deed)

    def _deed(self, request: Request) -> Deed | None:
        """What a request wants done, in the words of the cluster; None for what anybody may."""
        parts = request.path.strip("/").split("/")
        match parts[0]:
            case "jobs":
                return self._about_jobs(request, parts[1:])
            case "locks":
                return self._on(LOCKS.plural, "list", request.query.get("namespace", ""))
            case "history":
                return self._about_history(request)
        if request.path in _FOR_ANYBODY:
            return None
        target = find_target(request.path)
        if target is None:
            return Deed(verb=request.method.lower(), path=request.path)
        return Deed(
            # A method that a resource does not know is refused later, whoever asks.
            verb=verb_of(target, request) or request.method.lower(),
            group=target.kind.group,
            resource=target.kind.plural,
            subresource=target.subresource,
            namespace=(target.namespace or self._namespace) if target.kind.namespaced else "",
            name=target.name,
        )

    def _about_jobs(self, request: Request, parts: list[str]) -> Deed:
        match parts:
            case []:
                return self._on(JOBS.plural, "list", request.query.get("namespace", ""))
            case ["stream"]:
                return self._on(JOBS.plural, "watch", request.query.get("namespace", ""))
            case [uid]:
                # Whoever asks for one that is not there learns so only if they may see all.
                _, namespace, name = self._key_of(uid) or Key("Job", "", "")
                return self._on(JOBS.plural, "get", namespace, name)
            case [namespace, _, "log"]:
                return Deed(verb="get", resource="pods", subresource="log", namespace=namespace)
            case [namespace, name, *_]:
                return self._on(JOBS.plural, "get", namespace, name)
        raise AssertionError("every path is one of these")

    def _about_history(self, request: Request) -> Deed:
        query = request.query
        if not query.get("name"):
            return self._on(JOBS.plural, "list", "")
        kind = KINDS.get(query.get("kind", "Job"), JOBS)
        return self._on(kind.plural, "list", query.get("namespace", "default"))

    def _on(self, resource: str, verb: str, namespace: str, name: str = "") -> Deed:
        return Deed(
            verb=verb,
            group=GROUP,
            resource=resource,
            namespace=namespace or self._namespace,
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
