"""Types what a page says about clusters, on a real one whose nodes only play their pods."""

from __future__ import annotations

import json
import shlex
from http import HTTPStatus
from pathlib import Path

from docs_pages import EMPTY, Block, Command, commands_of
from docs_runner import PageRunner, find_kubectl

from interlock.kube.install.definitions import definitions
from interlock.kube.install.installation import Installation
from interlock.testing.serving import Server
from support.kube import Access, Cluster
from support.kube.cluster import node_is_schedulable
from support.kube.controllers import Controller
from support.kube.pods import NODE_NOT_READY

#: How fake nodes play a pod that was told nothing: by the words of its command.
_STAGES = Path(__file__).with_name("kwok.yaml")
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_JOBS = "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"
_NAMESPACES, _NODES = "/api/v1/namespaces", "/api/v1/nodes"
_PODS, _EVENTS = f"{_NAMESPACES}/default/pods", f"{_NAMESPACES}/default/events"
#: What has happened before a page begins.
_INSTALL = (
    "interlock manifests --only crds | kubectl apply -f -",
    "kubectl wait --for=condition=Established crd -l app.kubernetes.io/name=interlock",
    "interlock manifests --only rbac | kubectl apply -f -",
)
#: The context that pages name.
_CONTEXT = "production"


def a_cluster(programs: Path, folder: Path) -> Cluster:
    """A cluster for pages, whose pods end as their commands would."""
    return Cluster(programs, folder, flags={"kwok": (f"--config={_STAGES}",)})


class ClusterRunner(PageRunner):
    """A reader whose KUBECONFIG names a cluster, with our kinds and a controller if not empty.

    Pages find the newest controller at $CONTROLLER, and a server of our own at $SERVER.
    """

    on_cluster = True

    def __init__(self, access: Access, place: Path, text: str) -> None:
        super().__init__(place, kubectl=find_kubectl())
        self._access = access
        self._is_empty = f"<!-- {EMPTY} -->" in text

    def _begin(self) -> None:
        config = self._place / "kubeconfig"
        config.write_text(json.dumps(self._kubeconfig()), "utf-8")
        self._env["KUBECONFIG"] = str(config)
        system = f"{_NAMESPACES}/{Installation().namespace}"
        if self._is_empty:
            self._remove(system)
            for made in definitions():
                self._remove(f"{_DEFINITIONS}/{made['metadata']['name']}")
            return
        # One that a page before has removed may be on its way out.
        self._access.wait_for(system, lambda found: "deletionTimestamp" not in str(found))
        for command in _INSTALL:
            self.type(Command(command, 0, 0))
        # Until then the lease names one that a page before has killed.
        self._control().wait_until_leading()

    def _remove(self, path: str) -> None:
        self._access.ask("DELETE", path)
        self._access.wait_until_gone(path)

    def __exit__(self, *problem: object) -> None:
        """Leave nothing to the next page: no Job, no pod, no event, and every node well."""
        try:
            self._mend_nodes()
            if self._access.ask("DELETE", _JOBS).status != HTTPStatus.NOT_FOUND:
                # A page may have killed the one that was there.
                self._control()
                for job in self._access.read(_JOBS)["items"]:
                    self._access.wait_until_gone(f"{_JOBS}/{job['metadata']['name']}")
            self._remove_pods()
            self._access.remove(_EVENTS)
        finally:
            super().__exit__(*problem)

    def _mend_nodes(self) -> None:
        for node in self._access.read(_NODES)["items"]:
            path = f"{_NODES}/{node['metadata']['name']}"
            self._access.change(path, {"metadata": {"labels": {NODE_NOT_READY: None}}})
            self._access.wait_for(path, node_is_schedulable)

    def _remove_pods(self) -> None:
        """Take away the pods that were played on nodes that died, and all others."""
        for pod in self._access.read(_PODS)["items"]:
            path = f"{_PODS}/{pod['metadata']['name']}"
            merge = "application/merge-patch+json"
            self._access.ask("PATCH", path, {"metadata": {"finalizers": None}}, media=merge)
            self._access.ask("DELETE", path, {"gracePeriodSeconds": 0})
            self._access.wait_until_gone(path)

    def _control(self, *arguments: str) -> Controller:
        """Run a controller; it is the one that pages ask from now on."""
        controller = Controller(self._access, self._place / "controllers", *arguments)
        self._stack.enter_context(controller)
        self._env["CONTROLLER"] = controller.url
        return controller

    def _serve(self, block: Block) -> None:
        """Start what a block shows: one more controller, or a server of our own."""
        (command,) = commands_of(block)
        words = shlex.split(command.text)
        if words[:2] == ["interlock", "controller"]:
            self._control(*words[2:])
            return
        assert words[:3] == ["interlock", "up", "--data"], command.text
        server = Server(self._work / words[3], *words[4:], env=self._server_env(), cwd=self._work)
        self._stack.enter_context(server)
        self._env["SERVER"] = server.url

    def _kubeconfig(self) -> dict[str, object]:
        """The administrator's, under names that tell a reader something."""
        given = json.loads(self._access.kubeconfig().read_text("utf-8"))
        context = {"cluster": _CONTEXT, "user": "admin", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _CONTEXT, "cluster": given["clusters"][0]["cluster"]}],
            "users": given["users"],
            "contexts": [{"name": _CONTEXT, "context": context}],
            "current-context": _CONTEXT,
        }
