"""Requests with retries, where nothing can be done twice, and answers as data or errors."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.client.api import refusal_of
from interlock.client.errors import UnreachableError
from interlock.client.target import Target
from interlock.sdk.effects import Call, Open, Pause, Plan, Renew, Reply, Tick
from interlock.sdk.errors import Unreachable, refused

#: How often a busy server is asked, and how long it may put us off each time.
_TRIES = 10
_LONGEST_PAUSE_S = 5.0
#: The pauses between looks for a server that is away.
_FIRST_LOOK_S, _LAST_LOOK_S = 0.1, 2.0


class Site:
    """What is known of a server, shared by all plans of a client."""

    def __init__(self, target: Target, namespace: str, patience_s: float) -> None:
        self.target = target
        self.namespace = namespace
        #: So long a server that is away is looked for, where nothing can be done twice.
        self.patience_s = patience_s
        #: Whether it serves the status API; None until that was found out.
        self.has_status_api: bool | None = None
        #: Whether it is a cluster's; None until that was found out.
        self.on_cluster: bool | None = None if target.by_context else False


def ask(site: Site, call: Call, *, patience_s: float | None = None) -> Plan[Reply]:
    """Ask until the server has answered with something else than "not now"."""
    return _asking(site, call, call, patience_s)


def open_stream(site: Site, call: Call, *, patience_s: float | None = None) -> Plan[Reply]:
    """Open a stream, as patiently as anything is asked."""
    return _asking(site, Open(call), call, patience_s)


def _asking(site: Site, effect: Call | Open, call: Call, patience_s: float | None) -> Plan[Reply]:
    patience = site.patience_s if patience_s is None else patience_s
    is_renewed = False
    for tries_left in reversed(range(_TRIES)):
        reply: Reply = yield from _answered(effect, call.repeatable, patience)
        if reply.status < 300:
            return reply
        if reply.status == 401 and not is_renewed:
            is_renewed = True
            if (yield Renew()):
                continue
        pause = reply.headers.get("retry-after", "")
        if reply.status not in (429, 503) or not pause.isdigit() or not tries_left:
            break
        yield Pause(min(float(pause), _LONGEST_PAUSE_S))
    raise refused(refusal_of(site.target, reply.status, reply.body))


def _answered(effect: Call | Open, repeatable: bool, patience_s: float) -> Plan[Reply]:
    """Any answer at all. What may have been carried out is sent again only if that is harmless."""
    begun: float | None = None
    look_s = _FIRST_LOOK_S
    while True:
        try:
            reply: Reply = yield effect
            return reply
        except UnreachableError as error:
            now: float = yield Tick()
            begun = now if begun is None else begun
            is_safe = repeatable or not error.sent
            if not is_safe or now - begun >= patience_s:
                raise Unreachable(error.message, hint=error.hint, sent=error.sent) from None
        yield Pause(look_s)
        look_s = min(look_s * 2, _LAST_LOOK_S)


def ask_json(site: Site, call: Call) -> Plan[Any]:
    """The JSON of an answer."""
    reply = yield from ask(site, call)
    return json_of(reply)


def json_of(reply: Reply) -> Any:
    """What an answer says; nothing when it is empty."""
    return msgspec.json.decode(reply.body) if reply.body.strip() else {}


def find_status_api(site: Site) -> Plan[bool]:
    """Whether the server has a status API; a cluster, and an older server, has none.

    Where it is served, `/operations` takes POST alone, and says so to whoever reads it.
    """
    if site.has_status_api is None:
        reply: Reply = yield from _answered(
            Call(method="GET", path="/operations"), True, site.patience_s
        )
        if reply.status in (401, 429, 503):
            raise refused(refusal_of(site.target, reply.status, reply.body))
        site.has_status_api = reply.status == 405
    return site.has_status_api


def find_cluster(site: Site) -> Plan[bool]:
    """Whether the server is a cluster's. A context may name a server of our own too."""
    if site.on_cluster is None:
        version = yield from ask_json(site, Call(method="GET", path="/version"))
        site.on_cluster = "+interlock." not in str(version.get("gitVersion"))
    return site.on_cluster
