"""Writes down what happens in a namespace, as the API server tells it, whatever is restarted."""

from __future__ import annotations

import http.client
import json
import select
import threading
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import urlencode

from support.kube.access import Access, Document, KubeError, User
from support.kube.verdict import Seen, Verdict

#: Where what is recorded is kept, by kind.
_PLACES = {
    "Job": "/apis/interlock.dev/v1alpha1/namespaces/{}/jobs",
    "Lock": "/apis/interlock.dev/v1alpha1/namespaces/{}/locks",
    "Pod": "/api/v1/namespaces/{}/pods",
    "JobConfig": "/apis/interlock.dev/v1alpha1/namespaces/{}/jobconfigs",
}
_TROUBLE = (OSError, http.client.HTTPException, KubeError, json.JSONDecodeError)
#: A watch is asked to end after so many seconds, so that the recorder hears that it should stop.
_LASTS_S = 2
_AGAIN_S = 0.1
#: So often the last of a recording is asked for; whoever does not answer then never will.
_LAST_TRIES = 100


class Recorder:
    """Records Jobs, Locks, pods and JobConfigs of a namespace, as a context; until it is left.

    It records what is at other `places` instead where they are given, by kind.
    """

    def __init__(self, access: Access, namespace: str, places: Mapping[str, str] = _PLACES) -> None:
        self._access = access
        self._namespace = namespace
        self._places = places
        self._seen: list[Seen] = []
        #: Where an API server that was restarted could not tell what had happened in between.
        self._gaps: list[str] = []
        self._stop = threading.Event()
        self._heard = dict.fromkeys(places, 0)
        self._threads = [threading.Thread(target=self._record, args=(kind,)) for kind in places]

    def __enter__(self) -> Recorder:
        for kind, place in self._places.items():
            listed = self._access.read(place.format(self._namespace))
            self._heard[kind] = int(listed["metadata"]["resourceVersion"])
            is_own = "{}" in place
            assert not (is_own and listed["items"]), (
                f"{kind}s were there before the recording began"
            )
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def verdict(self, *, whole: bool = True) -> Verdict:
        """What is to be said of all that was recorded; for after the recording has ended.

        An API server that was restarted forgets the changes before: without `whole` states in
        between may be missing, where each object is then taken as it was next found.
        """
        assert not (whole and self._gaps), f"it was not recorded whole: {self._gaps}"
        return Verdict().take(self.history)

    @property
    def history(self) -> list[Seen]:
        """All that was recorded, in the order of versions; for after the recording has ended."""
        assert self._stop.is_set(), "still recording"
        return sorted(self._seen, key=lambda one: one.version)

    def _record(self, kind: str) -> None:
        """Follow one kind until told to stop, and then until there is no more to hear."""
        failures = 0
        while True:
            is_last = self._stop.is_set()
            try:
                self._follow(kind)
            except _TROUBLE as error:
                failures = failures + 1 if is_last else 0
                if failures > _LAST_TRIES:
                    self._gaps.append(f"{kind}: {error}")
                    return
                select.select([], [], [], _AGAIN_S)
                continue
            if is_last:
                return

    def _follow(self, kind: str) -> None:
        query = {
            "watch": "1",
            "resourceVersion": str(self._heard[kind]),
            "timeoutSeconds": str(_LASTS_S),
            "allowWatchBookmarks": "true",
        }
        path = f"{self._places[kind].format(self._namespace)}?{urlencode(query)}"
        with self._access.connected(User.ADMIN) as (connection, headers):
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as stream:
                if stream.status != 200:
                    raise KubeError(path, stream.status, {})
                while line := stream.readline():
                    self._take(kind, json.loads(line))

    def _take(self, kind: str, event: Document) -> None:
        thing = event["object"]
        if event["type"] == "ERROR":
            self._gaps.append(f"{kind}: {thing.get('message')}")
            self._find(kind)
            return
        version = int(thing["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            self._seen.append(Seen(version, kind, event["type"] == "DELETED", thing))
        self._heard[kind] = max(version, self._heard[kind])

    def _find(self, kind: str) -> None:
        """Take everything as it is now, in the order in which it came to be so."""
        listed = self._access.read(self._places[kind].format(self._namespace))
        heard = self._heard[kind]
        for thing in listed["items"]:
            version = int(thing["metadata"]["resourceVersion"])
            if version > heard:
                self._seen.append(Seen(version, kind, False, thing))
        self._heard[kind] = int(listed["metadata"]["resourceVersion"])
