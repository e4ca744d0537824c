"""A real API server takes everything we install, and the roles let people do what they say."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installing import (
    DRY_RUN,
    allowed,
    apply,
    collection_of,
    install_definitions,
    wait_until_allowed,
    warnings_of,
)

from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import PARTS, manifests, to_json, to_yaml
from interlock.resources.kinds import columns_of
from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, Document, User

EVERYWHERE = Installation()
#: All but the ServiceMonitor, whose kind an API server does not know without Prometheus' operator.
KNOWN = tuple(part for part in PARTS if part != "monitor")
CONTROLLER = "system:serviceaccount:{}:interlock"
JOBS, LOCKS = "interlock.dev/jobs", "interlock.dev/locks"
MEDIA = "application/merge-patch+json"


@pytest.fixture(scope="module")
def installed(cluster: Access) -> Access:
    """A cluster in which the definitions and roles are installed, for all namespaces."""
    install_definitions(cluster)
    for one in (*manifests(EVERYWHERE, ["rbac"]), *rights_to_webhooks(EVERYWHERE)):
        answer = apply(cluster, one)
        assert answer.status in (200, 201), answer.body
    return cluster


def rights_to_webhooks(install: Installation) -> list[Document]:
    """The webhook without its configurations: nobody is there to be asked."""
    return [one for one in manifests(install, ["webhook"]) if "Role" in one["kind"]]


@pytest.fixture(scope="module")
def namespace(installed: Access) -> Iterator[str]:
    """A namespace with a controller of its own."""
    with installed.namespace() as name:
        install = Installation(namespace=name, everywhere=False)
        for one in (*manifests(install, ["rbac"]), *rights_to_webhooks(install)):
            assert apply(installed, one).status in (200, 201)
        yield name


def assert_taken(cluster: Access, install: Installation) -> None:
    for one in manifests(install, KNOWN):
        answer = apply(cluster, one, DRY_RUN)
        assert answer.status in (200, 201), answer.body["message"]
        assert warnings_of(answer) == []


def test_all_is_taken_without_a_warning(installed: Access) -> None:
    assert_taken(installed, EVERYWHERE)


def test_all_for_one_namespace_is_taken_without_a_warning(
    installed: Access, namespace: str
) -> None:
    assert_taken(installed, Installation(namespace=namespace, everywhere=False))


def test_a_strict_namespace_takes_the_controllers_pods(installed: Access) -> None:
    """The namespace enforces the strictest of the standards for pods."""
    (made,) = [one for one in manifests(EVERYWHERE, KNOWN) if one["kind"] == "Deployment"]
    template = made["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "try"}, **template}
    pod["metadata"] = {"name": "try", **template["metadata"]}
    pods = f"/api/v1/namespaces/{EVERYWHERE.namespace}/pods"

    answer = installed.ask("POST", f"{pods}?{DRY_RUN}", pod)
    assert answer.status == 201, answer.body["message"]
    assert warnings_of(answer) == []

    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
    assert installed.ask("POST", f"{pods}?{DRY_RUN}", pod).status == 403


def assert_may(cluster: Access, user: str, namespace: str, what: str) -> None:
    """A user may do what is written as "verb group/resource name"."""
    verb, resource, *name = what.split(" ")
    wait_until_allowed(cluster, user, verb, resource, namespace, *name)


def may(cluster: Access, user: str, namespace: str, what: str) -> bool:
    """Whether a user may do what is written as "verb group/resource name"."""
    verb, resource, *name = what.split(" ")
    return allowed(cluster, user, verb, resource, namespace, *name)


#: What says when Jobs run; a calendar has no status and owns nothing.
SCHEDULES = [f"interlock.dev/{one}" for one in ("jobconfigs", "controlledjobs", "calendars")]
NEEDED = [
    *(f"{verb} {JOBS}" for verb in ("get", "list", "watch", "create", "update", "patch", "delete")),
    f"update {JOBS}/status",
    f"update {JOBS}/finalizers",
    *(f"{verb} {LOCKS}" for verb in ("get", "list", "watch", "create", "update", "delete")),
    f"update {LOCKS}/status",
    *(f"{verb} {kind}" for kind in SCHEDULES for verb in ("get", "list", "watch", "update")),
    *(f"update {kind}/status" for kind in SCHEDULES[:2]),
    *(f"update {kind}/finalizers" for kind in SCHEDULES[:2]),
    *(f"{verb} /pods" for verb in ("get", "list", "watch", "create", "patch", "delete")),
    "get /pods/log",
    *(f"{verb} batch/jobs" for verb in ("get", "list", "watch", "create", "patch", "delete")),
    "create /events",
    "patch /events",
]
#: What a controller that serves all namespaces needs of the cluster.
OF_THE_CLUSTER = [
    "get /nodes",
    "watch /namespaces",
    "create authentication.k8s.io/tokenreviews",
    "create authorization.k8s.io/subjectaccessreviews",
]
NEVER = [
    f"create {JOBS}/status",
    *(f"patch {kind}/status" for kind in (JOBS, LOCKS, *SCHEDULES[:2])),
    *(f"patch {kind}" for kind in (LOCKS, *SCHEDULES)),
    "create events.k8s.io/events",
    "update coordination.k8s.io/leases interlock",
    f"update {SCHEDULES[2]}/status",
    "get /secrets",
    "list /secrets",
    "get /secrets another",
    "delete /secrets interlock-webhook",
    "update batch/cronjobs",
    "create /pods/exec",
    "get /configmaps",
    "create /namespaces",
    "update /nodes",
    "get coordination.k8s.io/leases another",
    "create rbac.authorization.k8s.io/rolebindings",
    "update apiextensions.k8s.io/customresourcedefinitions",
    "create admissionregistration.k8s.io/validatingwebhookconfigurations",
    "patch admissionregistration.k8s.io/validatingwebhookconfigurations another",
]

#: What a Job in a Queue needs, wherever the Job is.
OF_QUEUES = [
    *(
        f"{verb} interlock.dev/{kind}"
        for verb in ("list", "watch")
        for kind in ("queues", "queuequotas")
    ),
    "create interlock.dev/queuequotas",
    "delete interlock.dev/queuequotas",
    "update interlock.dev/queuequotas/status",
]


class TestController:
    @pytest.mark.parametrize("what", NEEDED)
    def test_it_may_do_what_it_needs_everywhere(self, what: str, installed: Access) -> None:
        user = CONTROLLER.format(EVERYWHERE.namespace)

        assert_may(installed, user, "default", what)
        assert_may(installed, user, "", what)

    @pytest.mark.parametrize("what", NEEDED)
    def test_for_one_namespace_it_may_do_so_there_alone(
        self, what: str, installed: Access, namespace: str
    ) -> None:
        user = CONTROLLER.format(namespace)

        assert_may(installed, user, namespace, what)
        assert not may(installed, user, "default", what)
        assert not may(installed, user, "", what)

    @pytest.mark.parametrize("what", OF_QUEUES)
    def test_for_one_namespace_it_keeps_the_records_of_queues(
        self, what: str, installed: Access, namespace: str
    ) -> None:
        assert_may(installed, CONTROLLER.format(namespace), "", what)

    @pytest.mark.parametrize("verb", ["create", "update", "patch", "delete"])
    def test_for_one_namespace_it_changes_no_queue(
        self, verb: str, installed: Access, namespace: str
    ) -> None:
        assert not may(installed, CONTROLLER.format(namespace), "", f"{verb} interlock.dev/queues")

    @pytest.mark.parametrize("what", NEVER)
    def test_it_may_do_nothing_else(self, what: str, installed: Access, namespace: str) -> None:
        for place in (EVERYWHERE.namespace, namespace):
            assert not may(installed, CONTROLLER.format(place), place, what)

    def test_it_leads_in_its_own_namespace(self, installed: Access, namespace: str) -> None:
        for place in (EVERYWHERE.namespace, namespace):
            user = CONTROLLER.format(place)
            for verb in ("get", "patch"):
                assert_may(installed, user, place, f"{verb} coordination.k8s.io/leases interlock")
            assert_may(installed, user, place, "create coordination.k8s.io/leases")
            assert not may(installed, user, "kube-system", "create coordination.k8s.io/leases")

    def test_it_keeps_its_certificate_there(self, installed: Access, namespace: str) -> None:
        for place in (EVERYWHERE.namespace, namespace):
            user = CONTROLLER.format(place)
            for verb in ("get", "update"):
                assert_may(installed, user, place, f"{verb} /secrets interlock-webhook")
            assert_may(installed, user, place, "create /secrets")
            assert not may(installed, user, "kube-system", "create /secrets")

    @pytest.mark.parametrize("kind", ["validating", "mutating"])
    def test_it_says_whom_to_trust(self, kind: str, installed: Access, namespace: str) -> None:
        hooks = f"admissionregistration.k8s.io/{kind}webhookconfigurations"
        one = Installation(namespace=namespace, everywhere=False)
        for install in (EVERYWHERE, one):
            for verb in ("get", "patch"):
                assert_may(installed, install.account, "", f"{verb} {hooks} {install.cluster_name}")
        assert not may(installed, one.account, "", f"patch {hooks} {EVERYWHERE.cluster_name}")

    @pytest.mark.parametrize("what", OF_THE_CLUSTER)
    def test_for_all_namespaces_it_may_ask_the_cluster(
        self, what: str, installed: Access, namespace: str
    ) -> None:
        assert_may(installed, EVERYWHERE.account, "", what)
        assert not may(installed, CONTROLLER.format(namespace), "", what)

    def test_it_reads_namespaces(self, installed: Access, namespace: str) -> None:
        everywhere = CONTROLLER.format(EVERYWHERE.namespace)
        assert_may(installed, everywhere, "", "watch /namespaces")
        one = CONTROLLER.format(namespace)
        assert_may(installed, one, namespace, f"get /namespaces {namespace}")


@pytest.fixture(scope="module")
def people(installed: Access) -> Access:
    """The cluster, once its own roles for people include ours."""
    roles = collection_of("ClusterRole", "rbac.authorization.k8s.io/v1")
    installed.wait_for(f"{roles}/admin", _knows_jobs)
    written = (JOBS, *SCHEDULES)
    for what in (*(f"create {kind}" for kind in written), f"list {JOBS}", f"list {LOCKS}"):
        assert_may(installed, User.EDITOR, "default", what)
    for what in (*(f"list {kind}" for kind in written), f"list {LOCKS}"):
        assert_may(installed, User.VIEWER, "default", what)
    return installed


def _knows_jobs(role: Document) -> bool:
    return any("interlock.dev" in rule.get("apiGroups", ()) for rule in role.get("rules") or ())


class TestPeople:
    BODY: dict[str, Any] = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "try-"},
        "spec": {"noop": {}},
    }

    def test_an_editor_creates_jobs_and_leaves_the_rest(
        self, people: Access, namespace: str
    ) -> None:
        jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)
        locks = collection_of("Lock", "interlock.dev/v1alpha1", namespace)

        made = people.ask("POST", jobs, self.BODY, user=User.EDITOR)
        assert made.status == 201, made.body
        status = f"{jobs}/{made.body['metadata']['name']}/status"
        change = {"status": {"phase": "Succeeded"}}
        assert people.ask("PATCH", status, change, user=User.EDITOR, media=MEDIA).status == 403
        assert people.ask("GET", locks, user=User.EDITOR).status == 200
        assert people.ask("DELETE", locks, user=User.EDITOR).status == 403

    def test_a_viewer_reads(self, people: Access, namespace: str) -> None:
        jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)
        locks = collection_of("Lock", "interlock.dev/v1alpha1", namespace)

        assert people.ask("GET", jobs, user=User.VIEWER).status == 200
        assert people.ask("GET", locks, user=User.VIEWER).status == 200
        assert people.ask("POST", jobs, self.BODY, user=User.VIEWER).status == 403

    def test_nobody_else_does_anything(self, people: Access, namespace: str) -> None:
        jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)

        assert people.ask("GET", jobs, user=User.NOBODY).status == 403


@pytest.fixture(scope="module")
def kubectl(installed: Access, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl on this machine")
    return Kubectl(program, installed, tmp_path_factory.mktemp("kubectl"))


class Kubectl:
    """The program that people install with, talking to the cluster."""

    def __init__(self, program: str, cluster: Access, home: Path) -> None:
        self._program = program
        self._env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        self._env["KUBECONFIG"] = str(cluster.kubeconfig())

    def __call__(self, *arguments: str, given: str = "") -> str:
        """Run to a good end without a warning; returns what was printed."""
        done = subprocess.run(
            [self._program, *arguments],
            input=given,
            capture_output=True,
            text=True,
            env=self._env,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}{done.stderr}"
        return done.stdout


class TestKubectl:
    @pytest.mark.parametrize("text", [to_yaml, to_json], ids=["yaml", "json"])
    def test_it_would_apply_everything(self, text: Any, kubectl: Kubectl) -> None:
        objects = manifests(EVERYWHERE, KNOWN)

        told = kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-",
                       given=text(objects))  # fmt: skip

        assert len(told.splitlines()) == len(objects)

    def test_it_applies_for_one_namespace_and_again(self, kubectl: Kubectl, namespace: str) -> None:
        """Applied twice by a client of another kind, nothing changes the second time."""
        install = Installation(namespace=namespace, everywhere=False)
        given = to_yaml(manifests(install, ["controller"]))
        kubectl("apply", "-f", "-", given=given)

        again = kubectl("apply", "-f", "-", given=given)

        # Of a budget kubectl sends the selector every time.
        told = [line for line in again.splitlines() if "poddisruptionbudget" not in line]
        assert {line.rpartition(" ")[2] for line in told} == {"unchanged"}

    @pytest.mark.parametrize("name", ["ijob", "jobs.interlock.dev", "interlock"])
    def test_jobs_have_our_names_and_columns(
        self, name: str, kubectl: Kubectl, namespace: str, installed: Access
    ) -> None:
        jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)
        installed.create(
            jobs,
            {
                "apiVersion": "interlock.dev/v1alpha1",
                "kind": "Job",
                "metadata": {"generateName": "shown-"},
                "spec": {"noop": {}, "title": "seen", "locks": [{"key": "db"}]},
            },
        )

        shown = kubectl("get", name, "-n", namespace, "-o", "wide")

        header, *lines = shown.splitlines()
        assert header.split() == [
            word for column in columns_of("Job") for word in column.name.upper().split()
        ]
        assert any("Queued" in line and "seen" in line and "db" in line for line in lines)

    def test_fields_are_explained(self, kubectl: Kubectl) -> None:
        told = kubectl("explain", "jobs.interlock.dev.spec.gracePeriod")

        assert "From SIGTERM to SIGKILL." in told
