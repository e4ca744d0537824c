"""A plain client of a real server, for tests: it asks, and it waits on watches, never on time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from interlock.testing.serving import PATIENCE_S

_PLACE = "/apis/interlock.dev/v1alpha1/namespaces/default"
_JOBS = f"{_PLACE}/jobs"

Object = dict[str, Any]


class Client:
    """Talks to one server; every call has its own connection, so nothing is left over."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url).netloc

    def ask(
        self, method: str, path: str, body: object = None, media: str = "application/json"
    ) -> tuple[int, Any]:
        """The status and the decoded body of an answer."""
        connection = HTTPConnection(self._place, timeout=PATIENCE_S)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"content-type": media})
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.getheader("content-type", "").startswith("application/json")
            return answer.status, json.loads(text) if is_json and text else text.decode()
        finally:
            connection.close()

    def create(self, name: str, **spec: Any) -> Object:
        """Create a Job."""
        job = {"kind": "Job", "metadata": {"name": name}, "spec": spec}
        return self._good(*self.ask("POST", _JOBS, job))

    def job(self, name: str) -> Object:
        """A Job as it is now."""
        return self._good(*self.ask("GET", f"{_JOBS}/{name}"))

    def patch(self, name: str, patch: Object) -> Object:
        """Change a Job with a merge patch."""
        media = "application/merge-patch+json"
        return self._good(*self.ask("PATCH", f"{_JOBS}/{name}", patch, media))

    def delete(self, name: str) -> Object:
        """Delete a Job; it may go later."""
        return self._good(*self.ask("DELETE", f"{_JOBS}/{name}"))

    def wait(
        self, done: Callable[[dict[str, Object]], bool], plural: str = "jobs"
    ) -> dict[str, Object]:
        """Follow all Jobs until the condition holds of them, by name; returns them.

        A Job that nobody looked at yet has an empty status here, as conditions read it. `plural`
        is for those of another kind.
        """
        place = f"{_PLACE}/{plural}"
        listed = self._good(*self.ask("GET", place))
        jobs = {job["metadata"]["name"]: _with_status(job) for job in listed["items"]}
        version = listed["metadata"]["resourceVersion"]
        events = _Events(self._place, f"{place}?watch=1&resourceVersion={version}")
        while not done(jobs):
            event = next(events)
            name = event["object"]["metadata"].get("name", "")
            if event["type"] == "DELETED":
                jobs.pop(name, None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                jobs[name] = _with_status(event["object"])
        events.close()
        return jobs

    def phase(self, name: str, *phases: str) -> Object:
        """Wait until a Job is in one of these phases; returns it."""

        def is_there(jobs: dict[str, Object]) -> bool:
            return name in jobs and phase_of(jobs[name]) in phases

        return self.wait(is_there)[name]

    def _good(self, status: int, body: Any) -> Object:
        assert status < 300, body
        assert isinstance(body, dict)
        return body


class _Events(Iterator[Object]):
    """The events of a watch; a silence longer than any machine needs is a failure."""

    def __init__(self, place: str, path: str) -> None:
        self._connection = HTTPConnection(place, timeout=PATIENCE_S)
        self._connection.request("GET", path)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200

    def __next__(self) -> Object:
        line = self._answer.readline()
        assert line, "the server ended the watch"
        event: Object = json.loads(line)
        return event

    def close(self) -> None:
        """End the watch."""
        self._answer.close()
        self._connection.close()


def _with_status(job: Object) -> Object:
    return {"status": {}, **job}


def phase_of(job: Object) -> str:
    """A Job's phase; a Job that was not looked at yet is Queued."""
    phase: str = job.get("status", {}).get("phase", "Queued")
    return phase
