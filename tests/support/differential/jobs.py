"""The Jobs of one scenario on one stage: made, changed, deleted, and followed by one watch."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack
from http import HTTPStatus
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from interlock.testing.serving import PATIENCE_S
from support.differential.scenario import ENDS, GONE, Condition, Object
from support.differential.stage import Stage
from support.differential.telling import Telling

_LABEL = "differential-scenario"
_MERGE = "application/merge-patch+json"


class ScenarioJobs:
    """As a context it follows the Jobs; those that a failure leaves are deleted.

    Names and lock keys are the scenario's own on the stage, so that scenarios never meet; here
    they are told as the scenario wrote them.
    """

    def __init__(self, stage: Stage, scenario: str) -> None:
        self.telling = Telling()
        self._stage = stage
        self._scenario = scenario
        self._prefix = f"{scenario}--"
        self._path = f"/apis/interlock.dev/v1alpha1/namespaces/{stage.namespace}/jobs"
        #: The Jobs that are there.
        self.present: dict[str, Object] = {}
        self._watching = ExitStack()
        self._stream: http.client.HTTPResponse | None = None
        self._version = ""

    def own(self, name: str) -> str:
        """The name of something of this scenario on the stage."""
        return f"{self._prefix}{name}"

    def plain(self, told: Any) -> Any:
        """What the stage told, in the scenario's names."""
        return json.loads(json.dumps(told).replace(self._prefix, ""))

    def create(self, name: str, spec: Object) -> None:
        """Create a Job."""
        locks = [{**lock, "key": self.own(lock["key"])} for lock in spec.get("locks", ())]
        job = {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Job",
            "metadata": {"name": self.own(name), "labels": {_LABEL: self._scenario}},
            "spec": {**spec, **({"locks": locks} if locks else {})},
        }
        self._ask("POST", self._path, job)
        # Whoever waits for it next must not take it for gone.
        while name not in self.telling.jobs:
            self._hear()

    def change(self, name: str, patch: Object) -> None:
        """Change a Job with a merge patch."""
        self._ask("PATCH", f"{self._path}/{self.own(name)}", patch, _MERGE)

    def delete(self, name: str) -> None:
        """Ask for a Job to be deleted."""
        self._ask("DELETE", f"{self._path}/{self.own(name)}")

    def clear(self) -> None:
        """Delete all that are left, and see them go."""
        left = list(self.present)
        for name in left:
            self.delete(name)
        for name in left:
            self.wait(name, GONE)

    def wait(self, name: str, condition: Condition) -> Object | None:
        """Follow the Jobs until it is so of that one; returns the Job, or None when it is gone."""
        while not condition.holds(self.present.get(name)):
            try:
                self._check_hope(name, condition)
                self._hear()
            except (AssertionError, TimeoutError) as error:
                found = json.dumps(self.telling.jobs.get(name), indent=1)
                problem = f"{name} is not {condition.words} in {self._stage.namespace}"
                raise AssertionError(f"{problem}: {error}: {found}") from error
        return self.present.get(name)

    def _check_hope(self, name: str, condition: Condition) -> None:
        """Do not wait for what cannot come any more."""
        job = self.present.get(name)
        assert job is not None, "it is gone"
        assert condition is GONE or job.get("status", {}).get("phase") not in ENDS, "it is over"

    def __enter__(self) -> ScenarioJobs:
        self._list()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watching.close()
        for name in self.present:
            self._send("DELETE", f"{self._path}/{self.own(name)}")

    # The watch

    def _hear(self) -> None:
        """Take in the next change; a watch that was cut goes on where it was."""
        stream = self._stream or self._watch()
        try:
            line = stream.readline()
        except (ConnectionError, http.client.HTTPException):
            line = b""
        if not line:
            self._end_watch()
            return
        event = json.loads(line)
        if event["type"] == "ERROR":
            # The version is too old: what was missed is told by a list as well.
            self._list()
            return
        self._take(event["type"], event["object"])

    def _take(self, type: str, found: Object) -> None:
        self._version = found["metadata"]["resourceVersion"]
        if type == "BOOKMARK":
            return
        job = self.plain(found)
        name = job["metadata"]["name"]
        if type == "DELETED":
            self.present.pop(name, None)
            self.telling.saw_gone(job)
        else:
            self.present[name] = job
            self.telling.saw(job)

    def _list(self) -> None:
        self._end_watch()
        query = urlencode({"labelSelector": f"{_LABEL}={self._scenario}"})
        listed = self._ask("GET", f"{self._path}?{query}")
        there = {self.plain(found["metadata"]["name"]) for found in listed["items"]}
        for name in self.present.keys() - there:
            self.telling.saw_gone(self.present.pop(name))
        for found in listed["items"]:
            self._take("ADDED", found)
        self._version = listed["metadata"]["resourceVersion"]

    def _watch(self) -> http.client.HTTPResponse:
        query = {
            "labelSelector": f"{_LABEL}={self._scenario}",
            "watch": "1",
            "resourceVersion": self._version,
            # Longer than anything is waited for: silence is found out by the connection.
            "timeoutSeconds": str(int(2 * PATIENCE_S)),
        }
        connection, headers = self._watching.enter_context(self._stage.connected())
        connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
        self._stream = self._watching.enter_context(connection.getresponse())
        assert self._stream.status == HTTPStatus.OK, self._stream.read()
        return self._stream

    def _end_watch(self) -> None:
        self._watching.close()
        self._stream = None

    # Requests

    def _ask(self, method: str, path: str, body: object = None, media: str = "") -> Object:
        status, told = self._send(method, path, body, media)
        assert status < HTTPStatus.MULTIPLE_CHOICES, f"{method} {path}: {status} {told}"
        return told

    def _send(
        self, method: str, path: str, body: object = None, media: str = ""
    ) -> tuple[int, Object]:
        with self._stage.connected() as (connection, headers):
            sent = None if body is None else json.dumps(body)
            given = {**headers, "Content-Type": media or "application/json"}
            connection.request(method, path, sent, given)
            answer = connection.getresponse()
            told: Object = json.loads(answer.read())
            return answer.status, told
