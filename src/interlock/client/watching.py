"""A reflector: the newest state of some resources, by a list, then a watch.

A watch that ends is taken up again where it was; when the server no longer remembers that
place, everything is listed anew and the differences are told. A server that is away for a
while is waited for, because Jobs go on without it.
"""

from __future__ import annotations

import json
import select
import sys
from time import monotonic
from typing import Any

from interlock.client.api import Api
from interlock.client.errors import AnswerError, UnreachableError
from interlock.client.http_client import Answer
from interlock.client.kinds import Kind

#: How long a server may be away before a command gives up.
AWAY_S = 120.0

Change = tuple[str, dict[str, Any]]


class Lines:
    """Puts lines together from parts, however they are cut."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *whole, self._held = (self._held + part).split(b"\n")
        return [line for line in whole if line.strip()]


class Feed:
    """Changes of a kind in a namespace, as ("ADDED" | "MODIFIED" | "DELETED", resource)."""

    def __init__(
        self, api: Api, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = ""
    ) -> None:
        self._api = api
        self._kind = kind
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._held: dict[str, dict[str, Any]] = {}
        self._version = ""
        self._answer: Answer | None = None
        self._lines = Lines()

    def start(self) -> list[Change]:
        """List everything, and watch from there."""
        changes = self._list()
        self._watch()
        return changes

    @property
    def answer(self) -> Answer:
        """The open watch, to wait on."""
        assert self._answer is not None, "start comes first"
        return self._answer

    def next(self, timeout_s: float | None) -> list[Change] | None:
        """The next changes, perhaps none; None when the time is over."""
        if not self.answer.ready(timeout_s):
            return None
        return self.receive()

    def receive(self) -> list[Change]:
        """What came just now. Call it when the answer is ready."""
        try:
            part = self.answer.receive()
        except OSError:
            part = None
        if part is None:
            return self._again()
        changes: list[Change] = []
        for line in self._lines.feed(part):
            event = json.loads(line)
            if event["type"] == "ERROR":
                return changes + self._anew()
            changes += self._note(event["type"], event["object"])
        return changes

    def close(self) -> None:
        """Stop watching."""
        if self._answer is not None:
            self._answer.close()

    def _again(self) -> list[Change]:
        """Go on watching where it ended, once the server is there."""
        self.answer.close()
        try:
            _patiently(self._watch)
        except AnswerError as error:
            if error.status != 410:
                raise
            return self._anew()
        return []

    def _anew(self) -> list[Change]:
        self.close()
        changes: list[Change] = []

        def relist() -> None:
            changes.extend(self._list())
            self._watch()

        _patiently(relist)
        return changes

    def _list(self) -> list[Change]:
        found: dict[str, dict[str, Any]] = {}
        pages = self._api.pages(
            self._kind, self._namespace, labels=self._labels, fields=self._fields
        )
        for page in pages:
            found |= {item["metadata"]["uid"]: item for item in page["items"]}
            self._version = page["metadata"]["resourceVersion"]
        gone = [("DELETED", item) for uid, item in self._held.items() if uid not in found]
        fresh = [
            ("MODIFIED" if uid in self._held else "ADDED", item)
            for uid, item in found.items()
            if _version(self._held.get(uid)) != _version(item)
        ]
        self._held = found
        return gone + fresh

    def _watch(self) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "labelSelector": self._labels,
            "fieldSelector": self._fields,
        }
        self._lines = Lines()
        self._answer = self._api.stream("GET", self._kind.path(self._namespace), query)

    def _note(self, type: str, item: dict[str, Any]) -> list[Change]:
        self._version = item["metadata"]["resourceVersion"]
        if type == "BOOKMARK":
            return []
        uid = item["metadata"]["uid"]
        if type == "DELETED":
            self._held.pop(uid, None)
        else:
            self._held[uid] = item
        return [(type, item)]


def _version(item: dict[str, Any] | None) -> str | None:
    return item["metadata"]["resourceVersion"] if item else None


def _patiently(attempt: Any) -> None:
    """Try until the server answers, for a while."""
    give_up_at, pause_s, told = monotonic() + AWAY_S, 0.1, False
    while True:
        try:
            attempt()
            return
        except UnreachableError:
            if monotonic() > give_up_at:
                raise
        if not told and pause_s > 1:
            print("the server is away; waiting until it is back", file=sys.stderr)
            told = True
        select.select([], [], [], pause_s)
        pause_s = min(pause_s * 2, 2.0)
