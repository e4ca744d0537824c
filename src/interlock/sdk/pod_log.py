"""Pod logs that are followed: until the container has ended, however often the stream does.

A kubelet may end a stream at any time: when it has not read the log yet, when it is restarted, or
an API server before it is. Each line is asked for with its moment, so that whoever follows goes on
where it was, and no line is told twice.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from interlock.client.cluster.pod_logs import LogRequest
from interlock.client.errors import UnreachableError
from interlock.client.http_client import quote
from interlock.sdk.asking import Site, ask_json, open_stream
from interlock.sdk.effects import Call, Emit, Pause, Plan, Receive
from interlock.sdk.errors import NotFound

#: Between two streams of a container that goes on.
_PAUSE_S = 1.0
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


class Place:
    """Where a log was left: at which moment, and after how many lines of that moment."""

    def __init__(self) -> None:
        self._moment = ("", "")
        self._seen = 0
        #: Lines of that moment in the stream that is read now.
        self._passed = 0
        #: From when on a log is to be read again; empty for all of it.
        self.since = ""

    def begin(self) -> None:
        """Another stream begins, with lines that may have been taken."""
        self._passed = 0

    def take(self, line: str) -> str | None:
        """What was printed; None if that was taken before."""
        stamp, _, text = line.partition(" ")
        found = _STAMP.fullmatch(stamp)
        if found is None:
            return line  # The kubelet itself has something to say.
        second, fraction, zone = found.groups(default="")
        moment = (second, fraction.ljust(9, "0"))
        if moment < self._moment:
            return None
        if moment > self._moment:
            self._moment, self._seen, self._passed = moment, 0, 0
            self.since = f"{second}{zone}"
        self._passed += 1
        if self._passed <= self._seen:
            return None
        self._seen = self._passed
        return text


def call_of(request: LogRequest, place: Place) -> Call:
    """How the log is asked for from a place on; one that is followed, with moments."""
    query = dict(request.query)
    if query.get("follow"):
        query["timestamps"] = "true"
    if place.since:
        query |= {"sinceTime": place.since, "tailLines": None}
    return Call(method="GET", path=request.path, query=query, accept="*/*")


def follow(site: Site, request: LogRequest, place: Place) -> Plan[None]:
    """The lines of a stream that was opened just now, and of those that have to follow it."""
    is_over = False
    while True:
        yield from _rest(place, is_last=is_over)
        if is_over:
            return
        # Only a stream that was begun after the end is sure to have everything.
        is_over = yield from _has_ended(site, request)
        if not is_over:
            yield Pause(_PAUSE_S)
        place.begin()
        try:
            yield from open_stream(site, call_of(request, place))
        except NotFound:
            return


def _rest(place: Place, *, is_last: bool) -> Plan[None]:
    """What is left of a stream. A line that was cut is read again from the next one."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    held = ""
    while (part := (yield from _received())) is not None:
        *whole, held = (held + decoder.decode(part)).split("\n")
        for line in whole:
            text = place.take(line)
            if text is not None:
                yield Emit(text)
    held += decoder.decode(b"", final=True)
    text = place.take(held) if held and is_last else None
    if text is not None:
        yield Emit(text)


def _received() -> Plan[bytes | None]:
    try:
        part: bytes | None = yield Receive()
    except UnreachableError:
        return None
    return part


def _has_ended(site: Site, request: LogRequest) -> Plan[bool]:
    """Whether the container prints nothing more; one whose pod is gone does not."""
    metadata = request.pod["metadata"]
    path = f"/api/v1/namespaces/{quote(metadata['namespace'])}/pods/{quote(metadata['name'])}"
    try:
        pod: dict[str, Any] = yield from ask_json(site, Call(method="GET", path=path))
    except NotFound:
        return True
    status = pod.get("status") or {}
    if pod["metadata"]["uid"] != metadata["uid"] or status.get("phase") in ("Succeeded", "Failed"):
        return True
    told = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    states = [one.get("state") or {} for one in told if one["name"] == request.query["container"]]
    return any("terminated" in state for state in states)
