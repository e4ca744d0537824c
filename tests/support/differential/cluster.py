"""The stage of a cluster: work is a pod, played on a fake node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import assert_never

from support.cluster_store import install
from support.differential.scenario import (
    CannotStart,
    Exits,
    IgnoresStop,
    Nothing,
    Object,
    Waits,
    Work,
)
from support.differential.stage import Connection
from support.kube.access import Access, User
from support.kube.controllers import Controller
from support.kube.pods import Play


class ClusterStage:
    """`interlock controller` for a namespace of its own; nothing is left when the context is."""

    def __init__(self, access: Access, folder: Path) -> None:
        self.namespace = ""
        self._access = access
        self._folder = folder
        self._open = ExitStack()
        self._controller: Controller | None = None

    def __enter__(self) -> ClusterStage:
        with ExitStack() as undo:
            install(self._access)
            self.namespace = undo.enter_context(self._access.namespace())
            self._controller = Controller(self._access, self._folder, namespace=self.namespace)
            undo.enter_context(self._controller)
            self._controller.wait_until_leading()
            self._open = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    def connected(self) -> AbstractContextManager[Connection]:
        """A connection to the API server."""
        return self._access.connected(User.ADMIN)

    def spec_of(self, work: Work) -> Object:
        """A pod with annotations that its node obeys."""
        match work:
            case Exits(code, args, env):
                variables = [{"name": name, "value": value} for name, value in env.items()]
                return _pod({Play.EXIT_CODE: str(code)}, args=list(args), env=variables)
            case Waits():
                return _pod({})
            case IgnoresStop():
                return _pod({Play.IGNORES_STOP: "true"})
            case CannotStart():
                # The API server refuses a pod that mounts what it does not have.
                return _pod({}, volumeMounts=[{"name": "nothing", "mountPath": "/nothing"}])
            case Nothing():
                return {"noop": {}}
            case _:
                assert_never(work)

    def wait_until_begun(self, task: str, work: Work) -> None:
        """A pod that runs hears everything."""

    def let_go(self, task: str, code: int) -> None:
        """Tell the node that the pod ends now."""
        annotations = {Play.EXIT_CODE.value: str(code)}
        self._access.change(self._path(task), {"metadata": {"annotations": annotations}})

    def received(self, task: str) -> Object:
        """What the pod's container is given."""
        (container,) = self._access.read(self._path(task))["spec"]["containers"]
        env = {one["name"]: one.get("value", "") for one in container.get("env", ())}
        return {"args": container.get("args", []), "env": env}

    def flags(self) -> list[str]:
        """The cluster, and the namespace in it."""
        return ["--kubeconfig", str(self._access.kubeconfig(User.ADMIN)), "-n", self.namespace]

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Kill the controller, and start it again; the cluster goes on."""
        assert self._controller is not None
        self._controller.kill()
        try:
            yield
        finally:
            self._controller.start().wait_until_ready()

    def _path(self, task: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{task}"


def _pod(played: dict[Play, str], **container: object) -> Object:
    given = {name: value for name, value in container.items() if value}
    template: Object = {"spec": {"containers": [{"name": "main", "image": "none", **given}]}}
    if played:
        annotations = {play.value: value for play, value in played.items()}
        template["metadata"] = {"annotations": annotations}
    return {"pod": template}
