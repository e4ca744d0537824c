"""JobConfigs and ControlledJobs in a namespace of a real cluster, and what becomes of them.

The controllers have the rights of their role in that namespace, and no others.
"""

from __future__ import annotations

import json
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from commanding import Program
from installing import allow, collection_of, wait_until_allowed

from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube import Access, User
from support.kube.controllers import Controller
from support.kube.pods import Play, a_batch_job, a_pod

Object = dict[str, Any]
_T = TypeVar("_T")

API = "interlock.dev/v1alpha1"
#: A run may be long on a slow machine, where every step has its turn.
WHOLE_S = 4 * PATIENCE_S
#: A window that is open all the year, but for the last minute.
START = {"action": "start", "cron": "0 0 1 1 *"}
OPEN = [START, {"action": "stop", "cron": "59 23 31 12 *"}]
SECONDLY = [{"cron": "* * * * * * *"}]


def pod_work(played: dict[Play, str] | None = None) -> Object:
    """A Job's work: a pod that does what it is told to."""
    pod = a_pod("", played)
    return {"pod": {"metadata": {"annotations": _texts(pod)}, "spec": pod["spec"]}}


def batch_work(played: dict[Play, str] | None = None) -> Object:
    """A Job's work: a Job of Kubernetes."""
    return {"batchJob": {"spec": a_batch_job("", played)["spec"]}}


def _texts(pod: Object) -> Object:
    return {str(key): value for key, value in pod["metadata"]["annotations"].items()}


def at_moment(moment: datetime) -> str:
    """A cron line that is due at one moment alone."""
    at = moment.astimezone(UTC)
    return f"{at.second} {at.minute} {at.hour} {at.day} {at.month} * {at.year}"


class Scene:
    """A namespace with controllers."""

    def __init__(self, access: Access, namespace: str, folder: Path) -> None:
        self.access = access
        self.namespace = namespace
        self.folder = folder
        self.interlock = Program(access, folder, namespace)
        self.controllers: list[Controller] = []
        self._open = ExitStack()

    def start(self, count: int = 1) -> None:
        """Start so many controllers, and wait until they are ready."""
        for _ in range(count):
            controller = Controller(
                self.access, self.folder, namespace=self.namespace, user=User.CONTROLLER
            )
            self._open.callback(controller.close)
            self.controllers.append(controller.start())
        for controller in self.controllers[-count:]:
            controller.wait_until_ready()

    def leader(self) -> Controller:
        """The controller that has the lease, once one of them has."""
        return self.until(lambda: next((one for one in self._alive() if one.leads), None))

    def _alive(self) -> list[Controller]:
        return [one for one in self.controllers if one.running]

    def close(self) -> None:
        """End the controllers."""
        self._open.close()

    # What there is

    def path(self, kind: str, name: str = "") -> str:
        place = collection_of(kind, API, self.namespace)
        return f"{place}/{name}" if name else place

    def make(self, kind: str, name: str, spec: Object, **metadata: Any) -> Object:
        body = {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}}
        return self.access.create(self.path(kind), body | {"spec": spec})

    def config(self, name: str, work: Object, **spec: Any) -> Object:
        """A JobConfig of that work, every second unless told otherwise."""
        given = {"template": {"spec": work}, "schedules": SECONDLY, **spec}
        return self.make("JobConfig", name, given)

    def controlled(self, name: str, work: Object, **spec: Any) -> Object:
        """A ControlledJob of that work whose window is open."""
        given = {"jobTemplate": {"spec": work}, "events": OPEN, **spec}
        return self.make("ControlledJob", name, given)

    def change(self, kind: str, name: str, **spec: Any) -> Object:
        return self.access.change(self.path(kind, name), {"spec": spec})

    def wait(self, kind: str, name: str, holds: Callable[[Object], bool]) -> Object:
        """The object once its status is so."""

        def is_so(found: Object) -> bool:
            return bool(found) and holds(found.get("status") or {})

        return self._told(lambda: self.access.wait_for(self.path(kind, name), is_so, WHOLE_S))

    def jobs(self, owner: str) -> dict[str, Object]:
        """The Jobs that belong to an object, by name."""
        found = self.access.read(self.path("Job"))["items"]
        return {
            job["metadata"]["name"]: job
            for job in found
            if owner in [one["name"] for one in job["metadata"].get("ownerReferences", ())]
        }

    def pods(self) -> list[Object]:
        """The pods that are not over."""
        found = self.access.read(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [pod for pod in found if pod["status"].get("phase") in ("Pending", "Running")]

    def events(self, kind: str, name: str) -> list[Object]:
        """What Kubernetes users see below `kubectl describe`."""
        fields = {"involvedObject.kind": kind, "involvedObject.name": name}
        chosen = urlencode({"fieldSelector": ",".join(f"{k}={v}" for k, v in fields.items())})
        found = self.access.read(f"/api/v1/namespaces/{self.namespace}/events?{chosen}")
        items: list[Object] = found["items"]
        return items

    def event(self, kind: str, name: str, reason: str) -> Object:
        """The first event with that reason, once there is one."""
        return self.until(
            lambda: next((e for e in self.events(kind, name) if e["reason"] == reason), None)
        )

    def is_told(self, kind: str, name: str, reason: str) -> None:
        """Wait for an event, unless who was about to send it leads no more: then nobody does."""
        self.until(
            lambda: (
                any(event["reason"] == reason for event in self.events(kind, name))
                or any("leading no more" in one.log for one in self.controllers)
                or None
            )
        )

    def table(self, kind: str) -> dict[str, Object]:
        """The columns of `kubectl get`, by name of the object and of the column."""
        asked = "application/json;as=Table;v=v1;g=meta.k8s.io"
        with self.access.connected(User.ADMIN) as (connection, headers):
            connection.request("GET", self.path(kind), headers={**headers, "Accept": asked})
            told = json.loads(connection.getresponse().read())
        heads = [column["name"] for column in told["columnDefinitions"]]
        rows = [dict(zip(heads, row["cells"], strict=True)) for row in told["rows"]]
        return {row["Name"]: row for row in rows}

    def until(self, found: Callable[[], _T | None], patience_s: float = WHOLE_S) -> _T:
        """What is found, once something is."""
        until = time.monotonic() + patience_s
        while not (result := found()):
            assert time.monotonic() < until, self._story()
            select.select([], [], [], 0.2)
        return result

    def _told(self, work: Callable[[], Object]) -> Object:
        try:
            return work()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._story()}") from error

    def _story(self) -> str:
        return "\n".join(f"--- {one.log[-3000:]}" for one in self.controllers)


@contextmanager
def scene(access: Access, folder: Path) -> Iterator[Scene]:
    """A fresh namespace where the controllers' user may do what their role says, and no more."""
    install(access)
    with access.namespace() as namespace:
        allow(access, namespace)
        user = str(User.CONTROLLER)
        wait_until_allowed(access, user, "create", "/pods", namespace)
        made = Scene(access, namespace, folder)
        try:
            yield made
        finally:
            made.close()
