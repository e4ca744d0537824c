"""The controller as a real process on a real cluster: who leads, who may ask, what is told."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from installing import wait_until_allowed

from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube import Access, User
from support.kube.access import Document
from support.kube.cluster import POD_LOG
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/{}/jobs"


@pytest.fixture
def installed(cluster: Access) -> Access:
    """The shared cluster with our kinds."""
    install(cluster)
    return cluster


@pytest.fixture
def controller(installed: Access, namespace: str, tmp_path: Path) -> Iterator[Controller]:
    """A controller of a fresh namespace."""
    with Controller(installed, tmp_path, namespace=namespace) as started:
        yield started


def a_job(name: str, **spec: Any) -> Document:
    """A Job that does nothing."""
    job = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}}
    return job | {"spec": {"noop": {}, **spec}}


def runs_to(access: Access, namespace: str, name: str, phase: str = "Succeeded") -> Document:
    """The Job, once it is in that phase."""
    return access.wait_for(
        f"{JOBS.format(namespace)}/{name}",
        lambda job: job.get("status", {}).get("phase") == phase,
    )


def test_a_job_runs_and_its_events_tell_how(controller: Controller) -> None:
    access, namespace = controller.access, controller.namespace
    made = access.create(JOBS.format(namespace), a_job("hello", locks=[{"key": "db"}]))

    job = runs_to(access, namespace, "hello")

    assert job["status"]["execution"]["reason"] == "Completed"
    events = wait_for_events(access, made, {"Started", "Succeeded"})
    assert "holds db (fence" in events["Started"]["message"]
    assert {event["type"] for event in events.values()} == {"Normal"}


def wait_for_events(access: Access, about: Document, reasons: set[str]) -> dict[str, Document]:
    """The events about an object by their reasons, once all of these are there."""
    uid, namespace = about["metadata"]["uid"], about["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid={uid}"
    until = time.monotonic() + PATIENCE_S
    while True:
        found = {event["reason"]: event for event in access.read(path)["items"]}
        if reasons <= found.keys():
            return found
        assert time.monotonic() < until, f"there are only {found}"
        select.select([], [], [], 0.1)


def test_a_pod_that_never_starts_is_given_up_and_tried_again(controller: Controller) -> None:
    access, namespace = controller.access, controller.namespace
    made = a_pod("unused", {Play.NEVER_STARTS: "ImagePullBackOff"})
    template = {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}
    job = a_job("stuck", pod=template, pendingTimeout="1s", retries={"limit": 1})
    del job["spec"]["noop"]
    access.create(JOBS.format(namespace), job)

    ended = runs_to(access, namespace, "stuck", "Failed")["status"]["execution"]["ended"]

    assert [one["stopCause"] for one in ended] == ["PendingTimeout", "PendingTimeout"]
    assert [one["result"] for one in ended] == ["Killed", "Killed"]


def test_a_running_job_is_held_again_when_somebody_lets_it_go(controller: Controller) -> None:
    """Without a webhook nobody else would: its locks would pass on while its pod still runs."""
    access, namespace = controller.access, controller.namespace
    job = a_job("held", pod={"spec": a_pod("unused")["spec"]})
    del job["spec"]["noop"]
    access.create(JOBS.format(namespace), job)
    runs_to(access, namespace, "held", "Running")
    path = f"{JOBS.format(namespace)}/held"

    access.change(path, {"metadata": {"finalizers": None}})

    access.wait_for(
        path, lambda found: "interlock.dev/tasks" in found["metadata"].get("finalizers", ())
    )
    access.remove(path)
    access.wait_until_gone(path)


def test_a_pod_runs_and_its_log_is_read(controller: Controller) -> None:
    access, namespace = controller.access, controller.namespace
    made = a_pod("unused", {Play.RUNS_FOR: "100ms"})
    template = {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}
    job = a_job("pods", pod=template)
    del job["spec"]["noop"]
    access.create(JOBS.format(namespace), job)

    runs_to(access, namespace, "pods")

    log = controller.ask("GET", f"/jobs/{namespace}/pods/log", token=access.tokens[User.ADMIN])
    assert (log.status, log.body["message"]) == (200, POD_LOG)


def test_jobs_with_one_lock_run_one_after_the_other(controller: Controller) -> None:
    access, namespace = controller.access, controller.namespace
    names = [f"job-{number}" for number in range(6)]
    for name in names:
        access.create(JOBS.format(namespace), a_job(name, locks=[{"key": "db"}]))

    jobs = [runs_to(access, namespace, name) for name in names]

    tokens = [job["status"]["admission"]["grants"][0]["token"] for job in jobs]
    assert tokens == sorted(set(tokens))
    for first, second in pairwise(jobs):
        ended = first["status"]["execution"]["endedAt"]
        assert ended <= second["status"]["admission"]["admittedAt"]


def test_another_takes_over_when_the_leader_is_killed(
    controller: Controller, tmp_path: Path
) -> None:
    access, namespace = controller.access, controller.namespace
    controller.wait_until_leading()
    with Controller(access, tmp_path, namespace=namespace) as second:
        controller.kill()
        access.create(JOBS.format(namespace), a_job("after"))

        runs_to(access, namespace, "after")

        assert second.leads


def test_a_leader_that_stops_lets_go_of_its_lease(controller: Controller) -> None:
    controller.wait_until_leading()

    assert controller.stop() == 0

    assert controller.holder == ""
    assert "stopped" in controller.log


def test_a_leader_that_stood_still_leads_no_more(controller: Controller, tmp_path: Path) -> None:
    access, namespace = controller.access, controller.namespace
    controller.wait_until_leading()
    with Controller(access, tmp_path, namespace=namespace) as second:
        controller.pause()
        access.create(JOBS.format(namespace), a_job("meanwhile"))
        runs_to(access, namespace, "meanwhile")
        done = access.read(f"{JOBS.format(namespace)}/meanwhile")

        controller.resume()
        controller.wait_for_log("leading no more")
        controller.wait_until_ready()

        assert second.running
        assert access.read(f"{JOBS.format(namespace)}/meanwhile") == done


def a_token(access: Access, namespace: str, name: str, *rules: Document) -> str:
    """The token of a fresh service account that may do this much in its namespace."""
    place = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    access.create(place, {"metadata": {"name": name}})
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    access.create(f"{rbac}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    access.create(f"{rbac}/rolebindings", binding)
    user = f"system:serviceaccount:{namespace}:{name}"
    for rule in rules:
        resource = f"{rule['apiGroups'][0]}/{rule['resources'][0]}"
        wait_until_allowed(access, user, rule["verbs"][0], resource, namespace)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = access.create(f"{place}/{name}/token", request)
    return str(made["status"]["token"])


READ = {
    "apiGroups": ["interlock.dev"],
    "resources": ["jobs", "locks"],
    "verbs": ["get", "list", "watch"],
}
WRITE = {"apiGroups": ["interlock.dev"], "resources": ["jobs"], "verbs": ["create", "patch"]}


def test_everybody_may_ask_for_what_the_cluster_lets_them_see(controller: Controller) -> None:
    access, namespace = controller.access, controller.namespace
    token = a_token(access, namespace, "reader", READ)
    access.create(JOBS.format(namespace), a_job("hello"))
    job = runs_to(access, namespace, "hello")

    def status_of(path: str, method: str = "GET", body: object = None) -> int:
        return controller.ask(method, path, body, token=token).status

    assert status_of(JOBS.format(namespace)) == 200
    assert status_of(f"/jobs?namespace={namespace}") == 200
    assert status_of(f"/jobs/{namespace}/hello") == 200
    assert status_of(f"/jobs/{job['metadata']['uid']}") == 200
    assert status_of(f"/jobs/{namespace}/hello/why") == 200
    assert status_of(f"/locks?namespace={namespace}") == 200
    assert status_of(f"/history?namespace={namespace}&name=hello") == 200
    assert status_of("/apis") == 200
    # What it may not: other places, logs, numbers, and any change.
    assert status_of(JOBS.format("default")) == 403
    assert status_of("/jobs?namespace=default") == 403
    assert status_of(f"/jobs/{namespace}/hello/log") == 403
    assert status_of("/metrics") == 403
    assert status_of(JOBS.format(namespace), "POST", a_job("more")) == 403
    assert status_of(f"{JOBS.format(namespace)}/hello", "DELETE") == 403


def test_an_order_is_carried_out_for_whoever_may_do_it_by_themselves(
    controller: Controller,
) -> None:
    access, namespace = controller.access, controller.namespace
    reader = a_token(access, namespace, "reader", READ)
    writer = a_token(access, namespace, "writer", WRITE)
    job = a_job("long", pod={"spec": a_pod("unused")["spec"]})
    del job["spec"]["noop"]
    access.create(JOBS.format(namespace), job)
    runs_to(access, namespace, "long", "Running")
    stop, retry = f"/jobs/{namespace}/long/stop", f"/jobs/{namespace}/long/retry"

    assert controller.ask("POST", stop, token="made-up").status == 401
    assert controller.ask("POST", stop, token=reader).status == 403
    # It may create Jobs, and not read the one that it would repeat.
    assert controller.ask("POST", retry, token=writer).status == 403
    assert "killAt" not in access.read(f"{JOBS.format(namespace)}/long")["spec"]

    told = controller.ask("POST", stop, {"reason": "month end"}, token=writer)

    assert (told.status, told.body["message"]) == (200, "job/long stopping")
    notes = runs_to(access, namespace, "long", "Killed")["metadata"]["annotations"]
    assert notes["interlock.dev/stopped-because"] == "stopped: month end"
    assert notes["interlock.dev/stopped-by"] == f"system:serviceaccount:{namespace}:writer"
    again = controller.ask("POST", retry, token=access.tokens[User.ADMIN])
    assert again.status == 200
    assert again.body["object"]["metadata"]["name"].startswith("long-retry-")


def test_who_is_not_known_is_told_nothing(controller: Controller) -> None:
    for token in ("", "made-up"):
        for path in (JOBS.format(controller.namespace), "/jobs", "/metrics", "/"):
            answer = controller.ask("GET", path, token=token)
            assert answer.status == 401
            assert answer.body["reason"] == "Unauthorized"
    assert controller.ask("GET", "/livez").status == 200
    assert controller.ask("GET", "/readyz").status == 200


def test_a_refusal_says_who_may_not_do_what(controller: Controller) -> None:
    token = controller.access.tokens[User.NOBODY]

    answer = controller.ask("GET", JOBS.format(controller.namespace), token=token)

    assert answer.status == 403
    assert answer.body["kind"] == "Status"
    assert 'User "nobody" cannot list resource "jobs"' in answer.body["message"]
    assert controller.namespace in answer.body["message"]


def test_a_job_can_be_sent_to_the_controller(controller: Controller) -> None:
    token = a_token(controller.access, controller.namespace, "writer", WRITE)

    made = controller.ask("POST", JOBS.format(controller.namespace), a_job("sent"), token=token)

    assert made.status == 201
    runs_to(controller.access, controller.namespace, "sent")


def test_others_are_answered_over_an_encrypted_connection(
    installed: Access, namespace: str, tmp_path: Path
) -> None:
    secrets = Path(installed.folder)
    files = ("--tls-cert", str(secrets / "server.crt"), "--tls-key", str(secrets / "server.key"))
    with Controller(installed, tmp_path, *files, namespace=namespace) as controller:
        assert controller.url.startswith("https://")
        token = installed.tokens[User.ADMIN]
        assert controller.ask("GET", f"/jobs?namespace={namespace}", token=token).status == 200


def test_numbers_tell_who_leads(controller: Controller) -> None:
    controller.wait_until_leading()

    answer = controller.ask("GET", "/metrics", token=controller.access.tokens[User.ADMIN])

    told = {line.rpartition(" ")[0]: line for line in answer.body["message"].splitlines()}
    assert "interlock_leading" in told
    assert told["interlock_takeovers_total"] != "interlock_takeovers_total 0.0"
    assert 'interlock_kube_requests_total{code="200",kind="Job",method="GET"}' in told
    assert "interlock_events_dropped_total" in told


def test_a_backup_is_the_clusters_own(controller: Controller) -> None:
    token = controller.access.tokens[User.NOBODY]

    answer = controller.ask("POST", "/admin/backup", token=token)

    assert answer.status == 404
    assert "etcd" in answer.body["message"]


def test_a_missing_namespace_for_the_lease_is_told_and_waited_for(
    installed: Access, namespace: str, tmp_path: Path
) -> None:
    place = f"{namespace}-lease"
    with Controller(
        installed, tmp_path, "--lease-namespace", place, namespace=namespace
    ) as controller:
        controller.wait_for_log(f"its namespace {place} is not there")
        installed.create("/api/v1/namespaces", {"metadata": {"name": place}})
        try:
            installed.create(JOBS.format(namespace), a_job("hello"))
            runs_to(installed, namespace, "hello")
        finally:
            installed.remove(f"/api/v1/namespaces/{place}")


@pytest.mark.parametrize(
    ("content", "arguments", "told"),
    [
        pytest.param(None, (), "does not exist", id="no file"),
        pytest.param("][", (), "is not YAML", id="no YAML"),
        pytest.param("contexts: []", ("--context", "x"), "no context 'x'", id="no such context"),
        pytest.param("", ("--listen", "0.0.0.0:0"), "--tls-cert", id="tokens in the clear"),
        pytest.param("", ("--token-file", "x"), "--kubeconfig", id="a token file"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_in_a_line(
    tmp_path: Path, content: str | None, arguments: tuple[str, ...], told: str
) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    start = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")

    done = subprocess.run(
        [sys.executable, "-c", start, "controller", *listen, *arguments],
        env={"KUBECONFIG": str(file), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 1
    error, *hints = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert len(hints) <= 1
    assert told in done.stderr
