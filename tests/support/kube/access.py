"""How does a test get at the cluster, and as whom?"""

from __future__ import annotations

import http.client
import json
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from interlock.testing.serving import PATIENCE_S

#: An object as the API server sends it: the tests are about its own words.
Document = dict[str, Any]

_AGAIN_S = 0.1
#: So often a request is sent that is answered with "not yet".
_NOT_YET = 60


class User(StrEnum):
    """Somebody whose token the API server knows."""

    #: May do everything, and is exempt from the server's limits: of the group system:masters.
    ADMIN = "admin"
    #: Bound to the cluster role `edit`.
    EDITOR = "editor"
    #: Bound to the cluster role `view`.
    VIEWER = "viewer"
    #: Bound to nothing; a test binds it to the very roles it is about.
    CONTROLLER = "controller"
    #: Bound to nothing, but in a namespace of a test's own.
    NOBODY = "nobody"


class KubeError(Exception):
    """The API server refused."""

    def __init__(self, asked: str, status: int, body: Document) -> None:
        super().__init__(f"{asked}: {status} {body.get('reason')}: {body.get('message')}")
        self.status = status
        self.body = body


class Answer(Struct, frozen=True):
    """What the API server said, refusals too."""

    status: int
    headers: dict[str, str]
    body: Document


class Access(Struct, frozen=True):
    """All that a client needs to know of a cluster; it can be handed to another process."""

    url: str
    #: Where certificates and kubeconfigs are.
    folder: str
    tokens: dict[User, str]

    @property
    def authority(self) -> Path:
        """The certificate of the authority that vouches for the API server."""
        return Path(self.folder) / "ca.crt"

    def kubeconfig(self, user: User = User.ADMIN) -> Path:
        """A file with which kubectl, or anything else, logs in as that user."""
        return Path(self.folder) / f"{user}.kubeconfig"

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        user: User = User.ADMIN,
        media: str = "application/json",
    ) -> Answer:
        """Send a request and return the answer, whatever it is, unless it is "not yet".

        A kind that was just installed is answered with 429 until its storage is there: the server
        did nothing, and says when to ask again.
        """
        for _ in range(_NOT_YET):
            answer = self._ask(method, path, body, user, media)
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                break
            threading.Event().wait(float(answer.headers.get("Retry-After", "1")))
        return answer

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        user: User,
        media: str,
    ) -> Answer:
        with self.connected(user) as (connection, headers):
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {**headers, "Content-Type": media})
            answer = connection.getresponse()
            read = answer.read()
        told: Document = {"message": read.decode(errors="replace")}
        if "json" in (answer.getheader("Content-Type") or ""):
            told = json.loads(read)
        return Answer(answer.status, dict(answer.getheaders()), told)

    def read(self, path: str) -> Document:
        """The object or list at that path."""
        return self._insist("GET", path)

    def create(self, path: str, body: Mapping[str, Any]) -> Document:
        """Create an object in that collection."""
        return self._insist("POST", path, body)

    def change(self, path: str, patch: Mapping[str, Any]) -> Document:
        """Merge the patch into the object at that path."""
        return self._insist("PATCH", path, patch, media="application/merge-patch+json")

    def remove(self, path: str, **options: Any) -> Document:
        """Ask for the object to be deleted."""
        return self._insist("DELETE", path, options or None)

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A fresh namespace in which pods can be created; it is deleted in the background."""
        made = self.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
        name: str = made["metadata"]["name"]
        try:
            # Without its service account, pods would be refused.
            self.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default")
            yield name
        finally:
            self.remove(f"/api/v1/namespaces/{name}")

    def wait_for(
        self, path: str, holds: Callable[[Document], bool] = bool, patience_s: float = PATIENCE_S
    ) -> Document:
        """The object at that path, once the condition holds; what is not there is an empty one.

        It watches, and goes on when the watch is cut or the server is away for a while.

        Raises:
            AssertionError: It did not come to hold; the message shows the object as it is.
        """
        until = time.monotonic() + patience_s
        last: Document = {}
        while time.monotonic() < until:
            try:
                for last in self._follow(path, until):
                    if holds(last):
                        return last
            except (OSError, http.client.HTTPException, KubeError):
                select.select([], [], [], _AGAIN_S)
        raise AssertionError(f"{path} did not become as awaited: {json.dumps(last, indent=1)}")

    def wait_until_gone(self, path: str) -> None:
        """Wait until there is nothing at that path any more."""
        self.wait_for(path, lambda found: not found)

    def _follow(self, path: str, until: float) -> Iterator[Document]:
        """The object as it is, then every change of it, until the watch ends."""
        collection, _, name = path.rpartition("/")
        chosen = {"fieldSelector": f"metadata.name={name}"}
        listed = self.read(f"{collection}?{urlencode(chosen)}")
        yield from listed["items"] or [{}]
        seconds = max(1, min(30, int(until - time.monotonic())))
        version = listed["metadata"]["resourceVersion"]
        asked = {**chosen, "watch": "1", "resourceVersion": version, "timeoutSeconds": seconds}
        with self.connected(User.ADMIN) as (connection, headers):
            connection.request("GET", f"{collection}?{urlencode(asked)}", headers=headers)
            with connection.getresponse() as stream:
                yield from _changes(stream)

    def _insist(self, method: str, path: str, body: Any = None, **options: Any) -> Document:
        answer = self.ask(method, path, body, **options)
        if answer.status >= 300:
            raise KubeError(f"{method} {path}", answer.status, answer.body)
        return answer.body

    @contextmanager
    def connected(self, user: User) -> Iterator[tuple[http.client.HTTPSConnection, dict[str, str]]]:
        """A connection of one's own, with the headers that say who asks."""
        address = urlsplit(self.url)
        context = ssl.create_default_context(cafile=str(self.authority))
        connection = http.client.HTTPSConnection(
            str(address.hostname), address.port, context=context, timeout=PATIENCE_S
        )
        try:
            yield connection, {"Authorization": f"Bearer {self.tokens[user]}"}
        finally:
            connection.close()


def _changes(stream: http.client.HTTPResponse) -> Iterator[Document]:
    while line := stream.readline():
        event = json.loads(line)
        if event["type"] == "ERROR":
            return
        yield {} if event["type"] == "DELETED" else event["object"]
