"""A real API server asks our webhook, and refuses what our own door refuses, in the same words."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import runpy
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from installing import (
    DRY_RUN,
    STRICT,
    apply,
    collection_of,
    install_definitions,
    path_of,
    wait_until_allowed,
    warnings_of,
)

from interlock.control.clock import SystemClock
from interlock.errors import InvalidError
from interlock.kube.client.api_client import Client
from interlock.kube.client.config import ClusterConfig
from interlock.kube.client.config import User as Caller
from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests
from interlock.kube.webhook.certificate import service_names
from interlock.kube.webhook.configuration import PUTTING_OFF, VALIDATING
from interlock.kube.webhook.judging import KEPT
from interlock.kube.webhook.renewal import Step
from interlock.kube.webhook.signing import Kept, Pair, split_bundle, take
from interlock.modes.settings import Listen
from interlock.modes.webhook import Webhook, WebhookSettings
from interlock.resources.door.validation import read_resource
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.modes import Mode, problems_for_mode
from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, Answer, User

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
#: What no definition can say, with reasons.
BEYOND: list[tuple[str, dict[str, Any]]] = runpy.run_path(
    str(ROOT / "tests/e2e/test_definitions_on_a_cluster.py")
)["BEYOND_DEFINITIONS"]  # fmt: skip
MERGE = "application/merge-patch+json"
ADMITTED = {"phase": "Starting", "admission": {"phase": "Admitted"}}

#: As if its node were lost: an operation of which everything may be ordered.
LOST = {
    "phase": "Unknown",
    "admission": {"phase": "Admitted"},
    "execution": {
        "total": 1,
        "active": [
            {
                "name": "x-0-0",
                "index": 0,
                "attempt": 0,
                "state": "Unknown",
                "createdAt": "2026-01-05T12:00:00Z",
            }
        ],
    },
}
#: Orders, and where it is written who gave them.
ORDERS = [
    ({"spec": {"killAt": "2026-01-05T12:00:00Z"}}, "interlock.dev/stopped-by"),
    ({"spec": {"suspend": True}}, "interlock.dev/suspended-by"),
    ({"annotations": {"interlock.dev/release": "gone"}}, "interlock.dev/released-by"),
    ({"annotations": {"interlock.dev/requeue": "slow"}}, "interlock.dev/requeued-by"),
    ({"annotations": {"interlock.dev/operate": "roll-back"}}, "interlock.dev/operated-by"),
]


def a_pod(**container: Any) -> dict[str, Any]:
    return {"pod": {"spec": {"containers": [{"name": "main", "image": "a"} | container]}}}


def a_job(spec: dict[str, Any], name: str = "a") -> dict[str, Any]:
    body = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}}
    return body | {"spec": spec}


#: A Job that nobody but the webhook refuses.
BAD = a_pod(args=["${task.indx}"])


class Replica:
    """A controller's webhook in a thread of this process, with the rights of its account."""

    def __init__(self, cluster: Access, install: Installation, *, leads: bool = True) -> None:
        self.leads = leads
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.webhook: Webhook = self.do(self._make(cluster, install))

    async def _make(self, cluster: Access, install: Installation) -> Webhook:
        authority = cluster.authority.read_text("utf-8")
        token = a_token(cluster, install)
        config = ClusterConfig(
            server=cluster.url, source="a test", authority=authority, user=Caller(token=token)
        )
        self._clock = SystemClock()
        self._client = Client(config, self._clock, Random(7))
        settings = WebhookSettings(listen=Listen("127.0.0.1", 0), install=install)
        return Webhook(self._client, self._clock, settings, lambda: self.leads)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the replica's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def look(self) -> None:
        """Renew, serve and publish now."""
        self.do(self.webhook.look())

    def close(self) -> None:
        """End it all."""
        self.do(self.webhook.stop())
        self.do(self._client.close())
        self._loop.call_soon_threadsafe(self._clock.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()


def a_token(cluster: Access, install: Installation) -> str:
    """What the controller's pods are given by the cluster."""
    accounts = f"/api/v1/namespaces/{install.namespace}/serviceaccounts/{install.name}"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = cluster.create(f"{accounts}/token", asked)["status"]["token"]
    return token


def install_rights(cluster: Access, install: Installation) -> None:
    """What the replicas may do; returns when they can."""
    for one in manifests(install, ["rbac", "webhook"]):
        if "WebhookConfiguration" not in one["kind"]:
            assert apply(cluster, one).status in (200, 201)
    secret = ("/secrets", install.namespace, install.secret)
    wait_until_allowed(cluster, install.account, "update", *secret)
    wait_until_allowed(cluster, install.account, "create", "/secrets", install.namespace)
    hooks = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
    wait_until_allowed(cluster, install.account, "patch", hooks, "", install.cluster_name)


def configurations(install: Installation, port: int) -> list[dict[str, Any]]:
    """The webhook configurations, for a webhook on this machine instead of behind a service."""
    made = manifests(install, ["webhook"])
    found = [one for one in made if "WebhookConfiguration" in one["kind"]]
    for one in found:
        for hook in one["webhooks"]:
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
    return found


class World:
    """A namespace whose Jobs are judged by a webhook."""

    def __init__(self, cluster: Access, namespace: str) -> None:
        self.cluster = cluster
        self.install = Installation(namespace=namespace, everywhere=False)
        self.jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)
        install_rights(cluster, self.install)
        token = a_token(cluster, self.install)
        self.controller = Access(cluster.url, cluster.folder, {User.ADMIN: token})
        self.replica = Replica(cluster, self.install)
        self.replica.do(self.replica.webhook.start())
        self.installed = configurations(self.install, self.replica.webhook.port)
        for one in self.installed:
            assert apply(cluster, one).status in (200, 201)
        self.replica.look()

    def wait_until_asked(self) -> None:
        """Wait until the API server has heard of the configurations, and of whom to trust."""
        wait_for(lambda: self.offer(BAD).status == 422)
        wait_for(lambda: bool(self.offer(a_pod()).body["metadata"].get("finalizers")))

    def offer(self, spec: dict[str, Any], name: str = "a", options: str = DRY_RUN) -> Answer:
        """Ask for a Job, without leaving it there."""
        return self.cluster.ask("POST", f"{self.jobs}?{options}", a_job(spec, name))

    def patch(self, name: str, change: dict[str, Any], by: Access | None = None) -> Answer:
        who = by or self.cluster
        return who.ask("PATCH", f"{self.jobs}/{name}", change, media=MERGE)

    def close(self) -> None:
        for one in self.installed:
            self.cluster.ask("DELETE", path_of(one))
        for one in self.cluster.read(self.jobs)["items"]:
            self.patch(one["metadata"]["name"], {"metadata": {"finalizers": None}}, self.controller)
        self.replica.close()


def wait_for(holds: Callable[[], bool]) -> None:
    """Ask again and again; the API server hears of configurations in its own time."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, "it did not come to hold"
        select.select([], [], [], 0.05)


@pytest.fixture(scope="module")
def world(cluster: Access) -> Iterator[World]:
    install_definitions(cluster)
    with cluster.namespace() as namespace:
        made = World(cluster, namespace)
        try:
            made.wait_until_asked()
            yield made
        finally:
            made.close()


def causes(answer: Answer) -> list[tuple[str, str]]:
    found = answer.body["details"]["causes"]
    return [(cause["field"], plain(cause["message"])) for cause in found]


def plain(message: str) -> str:
    """A message without a size: a stored object is larger by what the API server adds."""
    return re.sub(r"bytes, found \d+$", "bytes", message)


def problems_at_our_door(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What the embedded server refuses a Job for, and what a cluster cannot run."""
    found: list[Any] = []
    try:
        job, _ = read_resource(json.dumps(body).encode(), "Job")
    except InvalidError as error:
        found += error.problems
        is_process = "process" in body["spec"]
        probe = a_job({"process": {"command": ["a"]}} if is_process else {"noop": {}})
        job, _ = read_resource(json.dumps(probe).encode(), "Job")
    assert isinstance(job, Job)
    return [
        (one.path, plain(one.message))
        for one in (*found, *problems_for_mode(job.spec, Mode.CLUSTER))
    ]


#: More of it, for what only a cluster runs.
BEYOND_IN_PODS: list[dict[str, Any]] = [
    a_job(spec)
    for spec in (
        a_pod(args=["${task.indx}", "${nothing}"]),
        a_pod(env=[{"name": "A", "value": "${args.missing}"}]),
        a_pod(args=["${args.big}" * 1000]) | {"args": {"big": "x" * 2000}},
        {"process": {"command": ["true"]}},
        {"noop": {}, "killAt": "0001-01-01T00:00:00+14:00"},
        {"batchJob": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "a", "image": "a", "args": ["${job.nme}"]}
        ]}}}}},
    )
]  # fmt: skip


#: What no definition can say about the kinds that say when.
SCHEDULES: list[dict[str, Any]] = runpy.run_path(
    str(ROOT / "tests/e2e/test_schedule_definitions_on_a_cluster.py")
)["BEYOND"]  # fmt: skip


class TestDefinitions:
    @pytest.mark.parametrize("body", SCHEDULES, ids=lambda b: json.dumps(b)[60:150])
    def test_schedules_are_refused_in_the_words_of_our_door(
        self, body: dict[str, Any], world: World
    ) -> None:
        with pytest.raises(InvalidError) as refused:
            read_resource(json.dumps(body).encode())
        place = collection_of(body["kind"], body["apiVersion"], world.install.namespace)

        answer = world.cluster.ask("POST", f"{place}?{DRY_RUN}", body)

        assert (answer.status, answer.body["reason"]) == (422, "Invalid"), answer.body
        assert f"{body['kind']}.interlock.dev" in answer.body["message"]
        assert {(one.path, one.message) for one in refused.value.problems} <= set(causes(answer))

    @pytest.mark.parametrize(
        "body",
        [*(body for _, body in BEYOND), *BEYOND_IN_PODS],
        ids=lambda b: json.dumps(b)[70:150],
    )
    def test_what_our_door_refuses_is_refused_in_the_same_words(
        self, body: dict[str, Any], world: World
    ) -> None:
        answer = world.cluster.ask("POST", f"{world.jobs}?{DRY_RUN}", body)

        assert (answer.status, answer.body["reason"]) == (422, "Invalid"), answer.body
        assert VALIDATING in answer.body["message"]
        assert causes(answer) == problems_at_our_door(body)

    def test_a_good_job_passes_and_is_complete(self, world: World) -> None:
        answer = world.offer(a_pod(args=["${task.index}"]))

        assert answer.status == 201, answer.body
        assert answer.body["metadata"]["finalizers"] == [JOB_FINALIZER]
        assert warnings_of(answer) == []

    def test_kubectl_prints_every_problem(self, world: World, tmp_path: Path) -> None:
        if shutil.which("kubectl") is None:
            pytest.skip("there is no kubectl on this machine")
        job = a_job(a_pod(args=["${task.one}", "${task.two}"]))
        done = kubectl(world, tmp_path, [job], "create", "--dry-run=server")

        assert done.returncode == 1
        assert "unknown variable ${task.one}" in done.stderr
        assert "unknown variable ${task.two}" in done.stderr

    def test_other_namespaces_are_left_alone(self, world: World) -> None:
        with world.cluster.namespace() as elsewhere:
            jobs = collection_of("Job", "interlock.dev/v1alpha1", elsewhere)

            answer = world.cluster.ask("POST", f"{jobs}?{DRY_RUN}", a_job(BAD))

            assert answer.status == 201, answer.body


def kubectl(
    world: World, home: Path, objects: list[dict[str, Any]], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Have kubectl do something with some objects."""
    config = str(world.cluster.kubeconfig())
    return subprocess.run(
        ["kubectl", *arguments, "-n", world.install.namespace, "-f", "-"],
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}),
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": config},
        timeout=PATIENCE_S,
        check=False,
    )


def a_stored_job(world: World, name: str, status: dict[str, Any] | None = None) -> None:
    made = world.offer(a_pod(), name, STRICT)
    assert made.status == 201, made.body
    if status is not None:
        world.cluster.change(f"{world.jobs}/{name}/status", {"status": status})


class TestMarks:
    def test_who_asked_is_what_the_cluster_says(self, world: World) -> None:
        body = a_job(a_pod(), "signed")
        body["metadata"]["annotations"] = {"interlock.dev/creator": "somebody-else"}

        made = world.cluster.ask("POST", f"{world.jobs}?{STRICT}", body)
        held = world.patch("signed", {"spec": {"suspend": True}})

        who = made.body["metadata"]["annotations"]["interlock.dev/creator"]
        assert who not in ("", "somebody-else")
        assert held.body["metadata"]["annotations"]["interlock.dev/suspended-by"] == who

    @pytest.mark.parametrize(("orders", "by"), ORDERS)
    def test_no_order_is_in_the_name_of_somebody_else(
        self, world: World, orders: dict[str, Any], by: str
    ) -> None:
        name = by.removeprefix("interlock.dev/")
        steps = {"steps": [{"name": "first", "run": a_pod()}]}
        made = world.cluster.ask("POST", f"{world.jobs}?{STRICT}", a_job(steps, name))
        assert made.status == 201, made.body
        world.cluster.change(f"{world.jobs}/{name}/status", {"status": LOST})
        who = made.body["metadata"]["annotations"]["interlock.dev/creator"]
        marks = {by: "somebody-else", **orders.get("annotations", {})}

        given = world.patch(
            name, {"metadata": {"annotations": marks}, "spec": orders.get("spec", {})}
        )

        assert given.status == 200, given.body
        assert given.body["metadata"]["annotations"][by] == who != "somebody-else"

    def test_no_exception_is_in_the_name_of_somebody_else(self, world: World) -> None:
        hold = {"action": "Hold", "from": "2026-01-05T12:00:00Z", "until": "2026-01-06T12:00:00Z"}
        spec = {
            "jobTemplate": {"spec": a_pod()},
            "overrides": [{**hold, "by": "somebody-else"}],
        }
        place = world.jobs.replace("/jobs", "/controlledjobs")
        whole = {**a_job(spec, "excepted"), "kind": "ControlledJob"}

        made = world.cluster.ask("POST", f"{place}?{STRICT}", whole)

        assert made.status == 201, made.body
        creator = made.body["metadata"]["annotations"]["interlock.dev/creator"]
        assert [one["by"] for one in made.body["spec"]["overrides"]] == [creator]

    def test_a_release_that_comes_too_early_is_refused(self, world: World) -> None:
        a_stored_job(world, "early", ADMITTED)
        marks = {"interlock.dev/release": "gone", "interlock.dev/released-attempts": "0-0"}

        answer = world.patch("early", {"metadata": {"annotations": marks}})

        assert answer.status == 422, answer.body
        assert "while the Job is Unknown" in answer.body["message"]


class TestChanges:
    def test_what_tasks_are_made_of_stays_once_admitted(self, world: World) -> None:
        a_stored_job(world, "admitted", ADMITTED)

        changed = world.patch("admitted", {"spec": a_pod(image="b")})
        free = world.patch("admitted", {"spec": {"priority": 7}})

        assert changed.status == 422, changed.body
        assert "may not change once the Job is admitted" in changed.body["message"]
        assert free.status == 200, free.body

    def test_a_waiting_job_may_change(self, world: World) -> None:
        a_stored_job(world, "waiting")

        assert world.patch("waiting", {"spec": a_pod(image="b")}).status == 200
        assert world.patch("waiting", {"spec": BAD}).status == 422

    def test_a_stop_that_is_due_is_fixed(self, world: World) -> None:
        for name, kill_at in (("due", "2020-01-05T12:00:00Z"), ("later", "2120-01-05T12:00:00Z")):
            body = a_job(a_pod() | {"killAt": kill_at}, name)
            assert world.cluster.ask("POST", world.jobs, body).status == 201

        for put_off in (None, "2130-01-05T12:00:00Z"):
            answer = world.patch("due", {"spec": {"killAt": put_off}})
            assert answer.status == 422, answer.body
            assert [field for field, _ in causes(answer)] == ["spec.killAt"]
            assert world.patch("later", {"spec": {"killAt": put_off}}).status == 200
        assert world.patch("due", {"spec": {"killAt": "2021-01-05T12:00:00Z"}}).status == 200

    def test_the_finalizer_stays_until_the_controller_takes_it_off(self, world: World) -> None:
        a_stored_job(world, "held", ADMITTED)
        without = {"metadata": {"finalizers": None}}

        tried = world.patch("held", without)
        assert tried.status == 200, tried.body
        assert tried.body["metadata"]["finalizers"] == [JOB_FINALIZER]
        assert [told for told in warnings_of(tried) if KEPT in told]

        taken = world.patch("held", without, by=world.controller)
        assert taken.status == 200, taken.body
        assert "finalizers" not in taken.body["metadata"]

    def test_without_the_completing_webhook_taking_it_off_is_refused(self, world: World) -> None:
        a_stored_job(world, "refused", ADMITTED)
        without = {"metadata": {"finalizers": None}}
        (completing,) = [one for one in world.installed if "Mutating" in one["kind"]]
        world.cluster.remove(path_of(completing))
        try:
            wait_for(lambda: world.patch("refused", without).status == 422)
            tried = world.patch("refused", without)
            assert [path for path, _ in causes(tried)] == ["metadata.finalizers"]
            taken = world.patch("refused", without, by=world.controller)
            assert taken.status == 200, taken.body
        finally:
            assert apply(world.cluster, completing).status in (200, 201)
            world.replica.look()
            world.wait_until_asked()

    def test_a_status_passes_unasked(self, world: World) -> None:
        a_stored_job(world, "status")
        asked = world.replica.webhook.app.asked

        world.cluster.change(f"{world.jobs}/status/status", {"status": ADMITTED})

        assert world.replica.webhook.app.asked == asked


def kept_in(world: World) -> tuple[dict[str, Any], Kept]:
    """What the replicas share, and the Secret it is in."""
    secret = world.cluster.read(secret_path(world.install))
    data = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    kept = Kept(
        authorities=split_bundle(data["ca.crt"]),
        authority_key=data["ca.key"],
        serving=Pair(data["tls.crt"], data["tls.key"]),
    )
    return secret, kept


def secret_path(install: Installation) -> str:
    return f"/api/v1/namespaces/{install.namespace}/secrets/{install.secret}"


def put_by_another_replica(world: World, step: Step) -> Kept:
    """Another replica takes a step, as it would when it is time."""
    _, kept = kept_in(world)
    install = world.install
    now = SystemClock().now()
    made = take(step, kept, service_names(install.name, install.namespace), now)
    texts = {
        "ca.crt": made.bundle,
        "ca.key": made.authority_key,
        "tls.crt": made.serving.certificate,
        "tls.key": made.serving.key,
    }
    data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    world.cluster.change(secret_path(install), {"data": data})
    return made


class Traffic:
    """Somebody who offers bad Jobs all the time, and counts those that got in unasked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._over = threading.Event()
        self.refused = 0
        self.unasked: list[Answer] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.is_set():
            answer = self._world.offer(BAD, "traffic")
            if answer.status == 422:
                self.refused += 1
            else:
                self.unasked.append(answer)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(PATIENCE_S)

    def go_on(self) -> None:
        """Wait until some more were refused."""
        enough = self.refused + 5
        wait_for(lambda: self.refused >= enough or bool(self.unasked))


class TestCertificates:
    def test_they_are_replaced_while_requests_go_on(self, world: World) -> None:
        """A new authority is told of before it is used, and the old one dropped after."""
        with Traffic(world) as traffic:
            traffic.go_on()
            for round, step in enumerate((Step.AUTHORITY, Step.CERTIFICATE, Step.CERTIFICATE)):
                made = put_by_another_replica(world, step)
                world.replica.look()
                assert shown_at(world.replica.webhook.port, made.bundle) == made.serving.certificate
                self.wait_until_heard(world, f"round-{round}")
                traffic.go_on()

        assert traffic.unasked == []
        _, kept = kept_in(world)
        assert len(kept.authorities) == 1

    def wait_until_heard(self, world: World, name: str) -> None:
        """The API server has heard of all changes of a configuration before its newest one."""
        (validating,) = [one for one in world.installed if "Validating" in one["kind"]]
        conditions = validating["webhooks"][0]["matchConditions"]
        exempt = {"name": "not-the-mark", "expression": f"object.metadata.name != '{name}'"}
        hook = {"name": VALIDATING, "matchConditions": [*conditions, exempt]}
        answer = world.cluster.ask(
            "PATCH",
            path_of(validating),
            {"webhooks": [hook]},
            media="application/strategic-merge-patch+json",
        )
        assert answer.status == 200, answer.body
        wait_for(lambda: world.offer(BAD, name).status == 201)

    def test_nothing_is_written_when_all_is_well(self, world: World) -> None:
        paths = [secret_path(world.install), *(path_of(one) for one in world.installed)]
        before = [world.cluster.read(path)["metadata"]["resourceVersion"] for path in paths]

        world.replica.look()

        after = [world.cluster.read(path)["metadata"]["resourceVersion"] for path in paths]
        assert after == before

    def test_what_is_installed_again_stays_trusted(self, world: World, tmp_path: Path) -> None:
        """The manifests do not say whom to trust, and so do not take it away."""
        for one in world.installed:
            assert apply(world.cluster, one).status == 200
        if shutil.which("kubectl") is not None:
            for _ in range(2):
                done = kubectl(world, tmp_path, world.installed, "apply")
                assert done.returncode == 0, done.stderr

        bundle = base64.b64encode(world.replica.webhook.certificate.bundle.encode()).decode()
        for one in world.installed:
            for hook in world.cluster.read(path_of(one))["webhooks"]:
                assert hook["clientConfig"]["caBundle"] == bundle

    def test_a_secret_that_was_deleted_is_made_again(self, world: World) -> None:
        world.cluster.remove(secret_path(world.install))

        world.replica.look()

        _, kept = kept_in(world)
        assert shown_at(world.replica.webhook.port, kept.bundle) == kept.serving.certificate
        world.wait_until_asked()

    def test_two_replicas_that_begin_at_once_agree(self, cluster: Access, world: World) -> None:
        with cluster.namespace() as namespace:
            install = Installation(namespace=namespace, everywhere=False)
            install_rights(cluster, install)
            replicas = [Replica(cluster, install, leads=False) for _ in range(2)]
            try:
                begun = threading.Barrier(2)

                def look(replica: Replica) -> None:
                    begun.wait(PATIENCE_S)
                    replica.look()

                threads = [threading.Thread(target=look, args=(one,)) for one in replicas]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(PATIENCE_S)

                one, two = (replica.webhook.certificate.bundle for replica in replicas)
                assert one == two
                assert one
                stored = cluster.read(secret_path(install))["data"]["ca.crt"]
                assert base64.b64decode(stored).decode() == one
            finally:
                for replica in replicas:
                    replica.close()

    def test_a_new_leader_says_whom_to_trust(self, cluster: Access, world: World) -> None:
        with cluster.namespace() as namespace:
            install = Installation(namespace=namespace, everywhere=False)
            install_rights(cluster, install)
            replica = Replica(cluster, install, leads=False)
            made: list[dict[str, Any]] = []
            try:
                replica.do(replica.webhook.start())
                made = configurations(install, replica.webhook.port)
                for one in made:
                    assert apply(cluster, one).status == 201
                wait_for(lambda: not replica.webhook.not_ready())
                replica.look()
                assert not any(is_trusting(cluster.read(path_of(one))) for one in made)

                replica.leads = True

                for one in made:
                    cluster.wait_for(path_of(one), is_trusting)
            finally:
                for one in made:
                    cluster.ask("DELETE", path_of(one))
                replica.close()


class TestNobodyAnswers:
    def test_a_stop_is_not_put_off_and_all_else_passes(self, cluster: Access, world: World) -> None:
        """Without a clock nobody can tell whether the stop is due, and so it stands."""
        with cluster.namespace() as namespace:
            install = Installation(namespace=namespace, everywhere=False)
            jobs = collection_of("Job", "interlock.dev/v1alpha1", namespace)
            # It is ours, so nobody else is asked there, and nobody listens.
            nobody = socket.socket()
            nobody.bind(("127.0.0.1", 0))
            made = configurations(install, nobody.getsockname()[1])
            body = a_job(a_pod() | {"killAt": "2020-01-05T12:00:00Z"})
            assert cluster.ask("POST", jobs, body).status == 201
            try:
                for one in made:
                    assert apply(cluster, one).status == 201

                def change(**spec: Any) -> Answer:
                    return cluster.ask("PATCH", f"{jobs}/a?{DRY_RUN}", {"spec": spec}, media=MERGE)

                wait_for(lambda: change(killAt=None).status == 500)
                assert PUTTING_OFF in change(killAt="2120-01-05T12:00:00Z").body["message"]
                assert change(killAt="2019-01-05T12:00:00Z").status == 200
                assert change(suspend=True, gracePeriod="0s").status == 200
                assert cluster.ask("POST", f"{jobs}?{DRY_RUN}", a_job(a_pod(), "b")).status == 201
            finally:
                nobody.close()
                for one in made:
                    cluster.ask("DELETE", path_of(one))


def is_trusting(configuration: dict[str, Any]) -> bool:
    return all(hook["clientConfig"].get("caBundle") for hook in configuration["webhooks"])


def shown_at(port: int, bundle: str) -> str:
    """The certificate that is served at a port to one who trusts the bundle."""
    trusting = ssl.create_default_context(cadata=bundle)
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown)
