"""What a cluster denies for a while is waited for; what it refuses for good is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from installing import allowed, wait_until_allowed
from schedule_scenes import Scene, batch_work, pod_work, scene

from support.kube import Access, User
from support.kube.pods import Play

Object = dict[str, Any]

SHORT = {Play.RUNS_FOR: "100ms"}
LONG = pod_work()
#: A webhook that nobody serves.
DEAD = "https://127.0.0.1:1/dead"


@pytest.fixture
def here(cluster: Access, tmp_path: Path) -> Iterator[Scene]:
    """A namespace with a controller."""
    with scene(cluster, tmp_path) as made:
        made.start()
        yield made


@contextmanager
def no_quota(here: Scene) -> Iterator[None]:
    """Room for no pod and for no batch Job."""
    place = f"/api/v1/namespaces/{here.namespace}/resourcequotas"
    hard = {"pods": "0", "count/jobs.batch": "0"}
    here.access.create(place, {"metadata": {"name": "none"}, "spec": {"hard": hard}})
    here.access.wait_for(f"{place}/none", lambda found: "hard" in found.get("status", {}))
    yield
    here.access.remove(f"{place}/none")


@contextmanager
def no_right(here: Scene, verb: str) -> Iterator[None]:
    """The controller may not do something to pods and batch Jobs."""
    name = "interlock-controller"
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{here.namespace}/roles/{name}"
    rules = here.access.read(path)["rules"]
    less = [
        rule | {"verbs": [each for each in rule["verbs"] if each != verb]}
        if set(rule["apiGroups"]) <= {"", "batch"}
        else rule
        for rule in rules
    ]
    user = str(User.CONTROLLER)
    here.access.change(path, {"rules": [rule for rule in less if rule["verbs"]]})
    here.until(lambda: not allowed(here.access, user, verb, "/pods", here.namespace))
    yield
    here.access.change(path, {"rules": rules})
    wait_until_allowed(here.access, user, verb, "/pods", here.namespace)


@contextmanager
def dead_webhook(here: Scene) -> Iterator[None]:
    """Somebody is asked about every pod of the namespace, and is not there."""
    place = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    hook = {
        "name": f"{here.namespace}.example.com",
        "clientConfig": {"url": DEAD},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}},
        "rules": [rule | {"resources": ["pods"]}],
    }
    here.access.create(place, {"metadata": {"name": here.namespace}, "webhooks": [hook]})
    pods = f"/api/v1/namespaces/{here.namespace}/pods?dryRun=All"
    probe = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "none"}]}}
    here.until(lambda: here.access.ask("POST", pods, probe).status == 500)
    yield
    here.access.remove(f"{place}/{here.namespace}")


def denied(order: str) -> Callable[[Object], bool]:
    """Whether a status says that an order is denied."""
    return lambda status: (status.get("trouble") or {}).get("order") == order


def in_phase(phase: str) -> Callable[[Object], bool]:
    return lambda status: status.get("phase") == phase


@pytest.mark.parametrize("work", [pod_work(SHORT), batch_work(SHORT)], ids=["pod", "batch Job"])
def test_a_job_waits_for_room_in_a_quota(here: Scene, work: Object) -> None:
    with no_quota(here):
        here.make("Job", "job", work)
        found = here.wait("Job", "job", denied("Launch"))
        assert found["status"]["phase"] == "Pending"
        assert "exceeded quota: none" in found["status"]["trouble"]["message"]
        told = here.interlock("why", "job")
        assert "it waits for the cluster: exceeded quota: none" in told
        assert "the cluster" in here.interlock("get", "jobs")

    found = here.wait("Job", "job", in_phase("Succeeded"))

    # The first attempt was not burnt, and nothing is wrong any more.
    assert found["status"]["execution"]["attempts"] == 1
    here.wait("Job", "job", lambda status: "trouble" not in status)


def test_a_full_quota_does_not_end_the_day_of_a_controlled_job(here: Scene) -> None:
    with no_quota(here):
        here.controlled("daemon", LONG)
        (name,) = here.until(lambda: tuple(here.jobs("daemon")))
        here.wait("Job", name, denied("Launch"))

    here.wait("Job", name, in_phase("Running"))

    here.wait("ControlledJob", "daemon", lambda status: bool(status.get("isRunning")))


def test_a_quota_that_stays_full_is_waited_for_until_the_pending_timeout(here: Scene) -> None:
    with no_quota(here):
        here.make("Job", "job", pod_work(SHORT))
        here.wait("Job", "job", denied("Launch"))
        here.change("Job", "job", pendingTimeout="1s")
        found = here.wait("Job", "job", in_phase("Failed"))
        told = found["status"]["execution"]["message"]
        assert "it did not start within pendingTimeout: exceeded quota: none" in told


def test_a_queue_does_not_drain_while_the_controller_may_not_create_pods(here: Scene) -> None:
    lock = {"locks": [{"key": "db"}]}
    with no_right(here, "create"):
        for name in ("first", "second"):
            here.make("Job", name, pod_work(SHORT) | lock)
        here.wait("Job", "first", denied("Launch"))
        assert "cannot create resource" in here.interlock("why", "first")

    for name in ("first", "second"):
        found = here.wait("Job", name, in_phase("Succeeded"))
        assert found["status"]["execution"]["attempts"] == 1


def test_a_webhook_of_a_stranger_that_is_dead_is_named(here: Scene) -> None:
    with dead_webhook(here):
        here.make("Job", "job", pod_work(SHORT))
        here.wait("Job", "job", denied("Launch"))
        assert "failed calling webhook" in here.interlock("why", "job")

    here.wait("Job", "job", in_phase("Succeeded"))


def test_a_pod_that_breaks_a_rule_is_refused_for_good(here: Scene) -> None:
    here.access.change(
        f"/api/v1/namespaces/{here.namespace}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
    )
    here.make("Job", "job", pod_work(SHORT))

    found = here.wait("Job", "job", in_phase("Failed"))

    assert "violates PodSecurity" in found["status"]["execution"]["message"]


def test_a_denied_stop_is_told_as_one(here: Scene) -> None:
    here.make("Job", "job", LONG)
    here.wait("Job", "job", in_phase("Running"))
    with no_right(here, "delete"):
        here.interlock("kill", "job")
        here.wait("Job", "job", denied("Stop"))
        told = here.interlock("why", "job")
        assert "its stop is denied by the cluster: " in told
        assert "cannot delete resource" in told
        assert re.search(r"killing for .*, to be stopped for ", told)
        assert "a denied stop" in here.interlock("get", "jobs")

    here.wait("Job", "job", in_phase("Killed"))


def test_a_config_in_a_namespace_that_is_being_deleted_says_so_in_one_line(here: Scene) -> None:
    """As long as a pod does not stop, everything else of the namespace stays."""
    here.make("Job", "holder", pod_work({Play.NEVER_STOPS: "true"}))
    here.wait("Job", "holder", in_phase("Running"))
    here.config("tick", pod_work(SHORT))
    here.until(lambda: here.jobs("tick"))
    here.access.remove(f"/api/v1/namespaces/{here.namespace}")

    found = here.wait("JobConfig", "tick", lambda status: "trouble" in status)

    told = f"namespace {here.namespace} is being terminated"
    assert told in found["status"]["trouble"]["message"]
    assert told in here.interlock("why", "jobconfig/tick")
    leader, line = here.leader(), f"WARNING .*jobconfig/.*: {told}"
    leader.wait_for_log(line)
    pod = f"/api/v1/namespaces/{here.namespace}/pods/holder-0-0"
    here.access.change(pod, {"metadata": {"annotations": {str(Play.NEVER_STOPS): None}}})
    here.access.wait_until_gone(here.path("JobConfig", "tick"))
    assert len(re.findall(line, leader.log)) == 1
    assert "Traceback" not in leader.log
