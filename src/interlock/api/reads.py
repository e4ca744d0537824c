"""Get and list."""

from __future__ import annotations

from interlock.api.answers import Answer, RefusedError, bad_request
from interlock.api.requests import Request
from interlock.api.routing import Target
from interlock.api.views import Views, include_object
from interlock.store.contract import Selection, Store

#: A list of everything is served in one piece only up to what memory and clients bear.
MAX_LIMIT = 1_000_000


def selection_of(target: Target, request: Request) -> Selection:
    """Which resources of the kind are meant."""
    query = request.query
    return Selection(
        namespace=target.namespace,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
    )


class Reads:
    """The verbs that change nothing."""

    def __init__(self, store: Store, views: Views) -> None:
        self._store = store
        self._views = views

    async def get(self, target: Target, request: Request) -> Answer:
        """One resource, as it is now."""
        if request.query_string:
            request.flag("watch")
            include_object(request)
        return self._views.one(target, request, await self._store.get(target.key))

    async def list(self, target: Target, request: Request) -> Answer:
        """Resources of a kind, all at one version."""
        if not request.query_string:
            page = await self._store.list(target.kind.name, Selection(namespace=target.namespace))
            return self._views.list(target, request, page)
        for name in ("watch", "allowWatchBookmarks", "sendInitialEvents"):
            request.flag(name)
        request.number("timeoutSeconds")
        include_object(request)
        token = request.query.get("continue", "")
        wanted = _wanted_version(request)
        if token and wanted[0]:
            raise bad_request("resourceVersion may not be given together with continue")
        page = await self._store.list(
            target.kind.name,
            selection_of(target, request),
            limit=min(request.number("limit") or 0, MAX_LIMIT) or None,
            continue_token=token,
        )
        _check_version(page.version, *wanted)
        return self._views.list(target, request, page)


def _wanted_version(request: Request) -> tuple[int, str]:
    version = version_of(request) or 0
    match = request.query.get("resourceVersionMatch")
    if match not in (None, "Exact", "NotOlderThan"):
        raise bad_request(
            f"resourceVersionMatch: expected Exact or NotOlderThan, got {match[:40]!r}"
        )
    if match and "resourceVersion" not in request.query:
        raise bad_request("resourceVersionMatch is forbidden unless resourceVersion is given")
    if match == "Exact" and not version:
        raise bad_request('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    return version, match or ""


def version_of(request: Request) -> int | None:
    """The version that a request names; nothing, as some clients write it, names none."""
    return request.number("resourceVersion") if request.query.get("resourceVersion") else None


def _check_version(found: int, wanted: int, match: str) -> None:
    """Lists are always of the newest version, which serves everyone who does not want an older."""
    if wanted > found:
        raise RefusedError(504, f"Too large resource version: {wanted}, current: {found}")
    if match == "Exact" and wanted != found:
        raise RefusedError(410, f"resource version {wanted} is not kept; the newest is {found}")
