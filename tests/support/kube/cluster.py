"""A control plane that a test, or a whole test run, has for itself."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, Document
from support.kube.commands import Ground, another_scheduler, commands
from support.kube.component import Component, Leash
from support.kube.credentials import bind_roles, write_credentials
from support.kube.pods import a_node
from support.kube.ports import Ports

NODES = ("node-a", "node-b")
#: What a fake pod prints, and the only thing its fake node can show as its log.
POD_LOG = "this pod is played\n"

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_POD_LOGS = """\
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata:
  name: all
spec:
  logs:
  - logsFile: {path}
"""


class Cluster:
    """etcd, API server, controller manager, scheduler and kwok on free ports of this machine.

    As a context it is ready when entered, with two fake nodes, and leaving it leaves nothing
    running; the logs stay. `flags` adds to those of a program, by its name.
    """

    def __init__(
        self,
        bin_dir: Path,
        work_dir: Path,
        *,
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._ports = Ports()
        ports = [self._ports.take() for _ in range(6)]
        self._ground = Ground(bin_dir, work_dir, *ports)
        self._flags = flags or {}
        self._leash: Leash | None = None
        self._components: dict[str, Component] = {}
        self._access: Access | None = None

    @property
    def access(self) -> Access:
        """How to get at it."""
        assert self._access is not None, "the cluster was not started"
        return self._access

    @property
    def folder(self) -> Path:
        """Where its files and logs are."""
        return self._ground.folder

    def namespace(self) -> AbstractContextManager[str]:
        """A fresh namespace in which pods can be created."""
        return self.access.namespace()

    def start(self) -> Cluster:
        """Start all programs and wait until the nodes are ready.

        Raises:
            ComponentError: A program did not start; the message holds the end of its log.
        """
        ground = self._ground
        ground.folder.mkdir(parents=True, exist_ok=True)
        # What a cluster that was killed in this folder has stored is nobody's any more.
        shutil.rmtree(ground.folder / "etcd", ignore_errors=True)
        ground.create_keys()
        url = f"https://127.0.0.1:{ground.api_server}"
        self._access = write_credentials(url, ground.secrets)
        self._write_kwok()
        self._leash = Leash()
        with ExitStack() as undo:
            undo.callback(self.stop)
            for name, command in commands(ground).items():
                self._add(name, [*command, *self._flags.get(name, ())])
                self.start_component(name)
            bind_roles(self.access)
            self._add_nodes()
            undo.pop_all()
        return self

    def stop(self) -> None:
        """End every program, the last started first; harmless when done twice."""
        if self._leash is None:
            return
        try:
            for component in reversed(self._components.values()):
                component.stop()
        finally:
            self._leash.close()
            self._leash = None
            self._ports.close()
            shutil.rmtree(self._ground.folder / "etcd", ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def component(self, name: str) -> Component:
        """One of the programs, by its name."""
        return self._components[name]

    def log(self, name: str) -> str:
        """All that a program has said."""
        return self.component(name).log

    def add_scheduler(self, name: str, configuration: Mapping[str, Any], *flags: str) -> None:
        """Start another scheduler, of a configuration; then it is a program like the others."""
        ground, port = self._ground, self._ports.take()
        file = ground.folder / f"{name}.json"
        client = {**configuration["clientConnection"], "kubeconfig": str(ground.kubeconfig)}
        file.write_text(json.dumps({**configuration, "clientConnection": client}), "utf-8")
        log, authority = ground.folder / f"{name}.log", ground.secrets / "ca.crt"
        command = [*another_scheduler(ground, file, port), *flags]
        healthy = partial(_is_well, port, "/readyz", authority)
        self._components[name] = Component(command, log, healthy)
        self.start_component(name)

    def take_port(self) -> int:
        """A port of this machine that nobody else takes while the cluster is there."""
        return self._ports.take()

    def pause(self, name: str) -> None:
        """Let a program stand still, as a machine that hangs."""
        self.component(name).pause()

    def resume(self, name: str) -> None:
        """Let a paused program go on."""
        self.component(name).resume()

    def kill(self, name: str) -> None:
        """Kill a program as the kernel would; `start_component` brings it back."""
        self.component(name).kill()

    def stop_component(self, name: str) -> None:
        """Ask a program to stop and wait until it has."""
        self.component(name).stop()

    def start_component(self, name: str) -> None:
        """Start a program that does not run, on its old port, and wait until it is well."""
        assert self._leash is not None, "the cluster was not started"
        if name == "kwok":
            self._free_leases()
        component = self.component(name)
        component.start(self._leash.group, self._ground.folder)
        component.wait_until_healthy()

    def restart(self, name: str) -> None:
        """Stop a program and start it again."""
        self.stop_component(name)
        self.start_component(name)

    def restart_api_server(self) -> None:
        """Stop the API server and start it again: every watch is cut, nothing stored is lost."""
        self.restart("kube-apiserver")

    def add_node(self, name: str, *, silent: bool = False) -> None:
        """Add a fake node; a silent one is bound pods and never says anything."""
        self.access.create("/api/v1/nodes", a_node(name, silent=silent))
        if not silent:
            self.access.wait_for(f"/api/v1/nodes/{name}", node_is_ready)

    def _add(self, name: str, command: list[str]) -> None:
        log = self._ground.folder / f"{name}.log"
        self._components[name] = Component(command, log, self._health_of(name))

    def _health_of(self, name: str) -> Callable[[], bool]:
        ground = self._ground
        port, path = {
            "etcd": (ground.etcd, "/readyz"),
            "kube-apiserver": (ground.api_server, "/readyz"),
            "kube-controller-manager": (ground.controller_manager, "/healthz"),
            "kube-scheduler": (ground.scheduler, "/readyz"),
            "kwok": (ground.kwok, "/healthz"),
        }[name]
        authority = None if name == "etcd" else ground.secrets / "ca.crt"
        return lambda: _is_well(port, path, authority)

    def _add_nodes(self) -> None:
        for name in NODES:
            self.access.create("/api/v1/nodes", a_node(name))
        for name in NODES:
            self.access.wait_for(f"/api/v1/nodes/{name}", node_is_schedulable)
        self.access.wait_for("/api/v1/namespaces/default/serviceaccounts/default")

    def _free_leases(self) -> None:
        """A new kwok would wait for the leases of the one before to run out."""
        self.access.remove(_LEASES)

    def _write_kwok(self) -> None:
        shown = self._ground.folder / "pod.log"
        shown.write_text(f"2026-01-01T00:00:00.000000000Z stdout F {POD_LOG}", "utf-8")
        stages = Path(__file__).with_name("kwok.yaml").read_text("utf-8")
        logs = _POD_LOGS.format(path=shown)
        (self._ground.folder / "kwok.yaml").write_text(stages + logs, "utf-8")


def node_is_ready(node: Document) -> bool:
    """Whether a node says that it is well."""
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def node_is_schedulable(node: Document) -> bool:
    """Whether a node is well and pods are put there."""
    return node_is_ready(node) and not node["spec"].get("taints")


def _is_well(port: int, path: str, authority: Path | None) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    if authority is not None:
        context = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=PATIENCE_S, context=context
        )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
