"""Batch Jobs and pods of others wait in Queues: labelled, held back, let run, put back, over."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.kube.adoption.reading import stand_in_name
from interlock.kube.pods import naming
from interlock.resources.adopted import (
    MIN_PARALLELISM_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    AdoptedKind,
)
from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube import Access
from support.kube.access import Document
from support.kube.controllers import Controller
from support.kube.pods import Play, a_batch_job, a_pod

API = "/apis/interlock.dev/v1alpha1"
QUEUES = f"{API}/queues"


class Team:
    """A namespace with a Queue of its own, and a controller that serves it."""

    def __init__(self, controller: Controller) -> None:
        self.access = controller.access
        self.namespace = controller.namespace
        self.controller = controller
        #: Queues are of the whole cluster, which others use too.
        self.queue = self.namespace
        self.jobs = f"{API}/namespaces/{self.namespace}/jobs"
        self.batch_jobs = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        self.pods = f"/api/v1/namespaces/{self.namespace}/pods"

    def has_queue(self, **spec: Any) -> None:
        body: Document = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Queue"}
        body |= {"metadata": {"name": self.queue}, "spec": {"resources": {"tasks": 1}, **spec}}
        self.access.create(QUEUES, body)

    def batch_job(self, name: str, played: dict[Play, str] | None = None, **given: Any) -> Document:
        """A labelled batch Job, suspended as the webhook leaves it unless `suspend` says so."""
        marks = {QUEUE_LABEL: self.queue, **given.pop("labels", {})}
        notes = given.pop("annotations", {})
        job = a_batch_job(name, played, **{"suspend": True, **given})
        job["metadata"] |= {"labels": marks, "annotations": notes}
        return self.access.create(self.batch_jobs, job)

    def ours(self, name: str, **spec: Any) -> Document:
        """A Job of ours in the same Queue."""
        body = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}}
        pod = {"spec": a_pod("unused")["spec"]}
        return self.access.create(
            self.jobs, body | {"spec": {"pod": pod, "queue": self.queue, **spec}}
        )

    def stand_in(self, thing: Document, phase: str = "") -> Document:
        """The Job that stands for an object, once it is there, and in that phase."""
        return self.access.wait_for(
            f"{self.jobs}/{self.name_of(thing)}",
            lambda job: bool(job) and phase in ("", job.get("status", {}).get("phase")),
        )

    def runs(self, name: str) -> Document:
        """A batch Job, once it may run and has pods."""
        return self.access.wait_for(f"{self.batch_jobs}/{name}", _runs)

    def is_suspended(self, name: str) -> Document:
        """A batch Job, once it is suspended and nothing of it is left."""
        return self.access.wait_for(f"{self.batch_jobs}/{name}", _rests)

    def waits(self, thing: Document, reason: str) -> Document:
        """The Job that stands for an object, once it waits for that."""

        def tells(job: Document) -> bool:
            waits = job.get("status", {}).get("admission", {}).get("waits") or ()
            return any(one["reason"] == reason for one in waits)

        return self.access.wait_for(f"{self.jobs}/{self.name_of(thing)}", tells)

    def name_of(self, thing: Document) -> str:
        """What the Job is called that stands for an object."""
        kind = AdoptedKind.BATCH_JOB if "template" in thing["spec"] else AdoptedKind.POD
        return stand_in_name(kind, thing["metadata"]["name"], thing["metadata"]["uid"])

    def pod(self, name: str, played: dict[Play, str] | None = None, **spec: Any) -> Document:
        """A labelled pod, gated as the webhook leaves it."""
        pod = a_pod(name, played, **{"schedulingGates": [{"name": naming.GATE}], **spec})
        pod["metadata"]["labels"] = {QUEUE_LABEL: self.queue}
        return self.access.create(self.pods, pod)

    def is_free(self) -> None:
        """Wait until nobody holds anything of the Queue."""
        self.access.wait_for(
            f"{API}/queuequotas/queue.{self.queue}",
            lambda quota: not quota.get("status", {}).get("holders"),
        )


def _runs(job: Document) -> bool:
    return job["spec"].get("suspend") is not True and job.get("status", {}).get("active", 0) > 0


def _rests(job: Document) -> bool:
    status = job.get("status", {})
    return job["spec"].get("suspend") is True and not status.get("active")


@pytest.fixture
def team(cluster: Access, namespace: str, tmp_path: Path) -> Iterator[Team]:
    install(cluster)
    with Controller(cluster, tmp_path, namespace=namespace) as started:
        made = Team(started)
        yield made
        cluster.ask("DELETE", f"{QUEUES}/{made.queue}")


def test_a_labelled_batch_job_waits_runs_and_leaves_its_quota(team: Team) -> None:
    team.has_queue()
    team.ours("first")
    team.access.wait_for(
        f"{team.jobs}/first", lambda job: job.get("status", {}).get("phase") == "Running"
    )
    theirs = team.batch_job("theirs", {Play.RUNS_FOR: "200ms"})

    team.waits(theirs, "QuotaTaken")
    assert team.access.read(f"{team.batch_jobs}/theirs")["spec"]["suspend"] is True
    team.access.remove(f"{team.jobs}/first")
    team.access.wait_for(
        f"{team.batch_jobs}/theirs", lambda job: job.get("status", {}).get("succeeded") == 1
    )
    team.stand_in(theirs, "Succeeded")
    team.is_free()
    team.access.wait_for(
        f"{team.batch_jobs}/theirs",
        lambda job: naming.FINALIZER not in job["metadata"].get("finalizers", ()),
    )


def test_one_that_runs_is_suspended_until_it_is_let_in(team: Team) -> None:
    """As when the webhook was away while it was created."""
    team.has_queue(stop="Hold")
    theirs = team.batch_job("theirs", suspend=False)

    team.waits(theirs, "QueueStopped")

    team.is_suspended("theirs")
    # And again, when somebody goes past the Queue.
    team.access.change(f"{team.batch_jobs}/theirs", {"spec": {"suspend": False}})
    team.is_suspended("theirs")
    team.access.change(f"{QUEUES}/{team.queue}", {"spec": {"stop": "None"}})
    team.runs("theirs")
    team.stand_in(theirs, "Running")


def test_one_that_is_put_back_is_suspended_and_runs_again(team: Team) -> None:
    team.has_queue(preemption={"withinQueue": "LowerPriority"})
    theirs = team.batch_job("theirs")
    team.runs("theirs")

    team.ours("urgent", priority=5)

    team.is_suspended("theirs")
    team.waits(theirs, "QuotaTaken")
    urgent = f"{team.jobs}/urgent"
    team.access.wait_for(urgent, lambda job: job.get("status", {}).get("phase") == "Running")
    team.access.remove(urgent)
    team.runs("theirs")
    job = team.stand_in(theirs, "Running")
    assert job["status"]["admission"]["evictions"] == 1
    assert job["status"]["execution"]["round"] == 1


def test_quota_is_kept_between_an_adopted_job_and_one_of_ours(team: Team) -> None:
    team.has_queue(resources={"cpu": 4}, order="StrictFIFO")
    spec = a_batch_job("unused")["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    theirs = team.batch_job("theirs", parallelism=3, template={"spec": spec})
    team.runs("theirs")

    team.ours("large", resources={"cpu": 2})

    large = f"{team.jobs}/large"
    team.access.wait_for(
        large,
        lambda job: (
            (job.get("status", {}).get("admission", {}).get("waits") or [{}])[0].get("reason")
            == "QuotaTaken"
        ),
    )
    quota = team.access.read(f"{API}/queuequotas/queue.{team.queue}")
    (holder,) = quota["status"]["holders"]
    assert (holder["job"], holder["tasks"], holder["each"]) == (team.name_of(theirs), 3, {"cpu": 1})
    team.access.remove(f"{team.batch_jobs}/theirs", propagationPolicy="Background")
    team.access.wait_until_gone(f"{team.jobs}/{team.name_of(theirs)}")
    team.access.wait_for(large, lambda job: job.get("status", {}).get("phase") == "Running")


def test_one_that_may_run_fewer_pods_gets_its_parallelism_back(team: Team) -> None:
    team.has_queue(resources={"tasks": 2})
    theirs = team.batch_job("theirs", parallelism=5, annotations={MIN_PARALLELISM_ANNOTATION: "2"})

    job = team.runs("theirs")

    assert job["spec"]["parallelism"] == 2
    team.access.change(f"{QUEUES}/{team.queue}", {"spec": {"stop": "HoldAndDrain"}})
    team.is_suspended("theirs")
    job = team.access.wait_for(
        f"{team.batch_jobs}/theirs",
        lambda job: naming.FINALIZER not in job["metadata"].get("finalizers", ()),
    )
    assert job["spec"]["parallelism"] == 5
    team.waits(theirs, "QueueStopped")


def test_one_that_asks_for_more_than_it_was_granted_waits_again(team: Team) -> None:
    team.has_queue(resources={"tasks": 3})
    theirs = team.batch_job("theirs", parallelism=2)
    team.runs("theirs")

    team.access.change(f"{team.batch_jobs}/theirs", {"spec": {"parallelism": 4}})

    team.is_suspended("theirs")
    job = team.waits(theirs, "QuotaTooSmall")
    assert job["spec"]["adopted"]["pods"] == 4
    team.access.change(f"{team.batch_jobs}/theirs", {"spec": {"parallelism": 3}})
    assert team.runs("theirs")["spec"]["parallelism"] == 3


def test_a_queue_that_is_not_there_is_told(team: Team) -> None:
    theirs = team.batch_job("theirs", labels={PRIORITY_LABEL: "7"})

    job = team.waits(theirs, "NoSuchQueue")

    assert job["spec"]["priority"] == 7
    team.has_queue()
    team.runs("theirs")


def test_a_label_that_names_no_queue_is_told_by_an_event(team: Team) -> None:
    theirs = team.batch_job("theirs", labels={QUEUE_LABEL: "Team_A"}, suspend=False)

    team.is_suspended("theirs")
    uid = theirs["metadata"]["uid"]
    events = f"/api/v1/namespaces/{team.namespace}/events"
    path = f"{events}?fieldSelector=involvedObject.uid={uid},reason=NotQueued"
    until = time.monotonic() + PATIENCE_S
    while not (found := team.access.read(path)["items"]):
        assert time.monotonic() < until, "nothing was told"
        select.select([], [], [], 0.1)
    assert "Team_A" in found[0]["message"]


def test_one_that_is_deleted_while_it_waits_leaves_the_line(team: Team) -> None:
    team.has_queue(stop="Hold")
    theirs = team.batch_job("theirs")
    job = team.waits(theirs, "QueueStopped")

    team.access.remove(f"{team.batch_jobs}/theirs", propagationPolicy="Background")

    team.access.wait_until_gone(f"{team.batch_jobs}/theirs")
    team.access.wait_until_gone(f"{team.jobs}/{job['metadata']['name']}")


def test_one_whose_job_is_stopped_stays_suspended(team: Team) -> None:
    team.has_queue()
    theirs = team.batch_job("theirs")
    team.runs("theirs")
    job = team.stand_in(theirs, "Running")

    team.access.change(
        f"{team.jobs}/{job['metadata']['name']}", {"spec": {"killAt": "2020-01-01T00:00:00Z"}}
    )

    team.stand_in(theirs, "Killed")
    team.is_suspended("theirs")
    team.is_free()


def test_a_gated_pod_waits_runs_and_is_deleted_when_it_is_put_back(team: Team) -> None:
    team.has_queue(stop="Hold")
    theirs = team.pod("theirs")
    team.waits(theirs, "QueueStopped")
    assert not team.access.read(f"{team.pods}/theirs")["spec"].get("nodeName")

    team.access.change(f"{QUEUES}/{team.queue}", {"spec": {"stop": "None"}})

    team.access.wait_for(f"{team.pods}/theirs", lambda pod: pod["status"]["phase"] == "Running")
    team.stand_in(theirs, "Running")
    team.access.change(f"{QUEUES}/{team.queue}", {"spec": {"stop": "HoldAndDrain"}})
    team.access.wait_until_gone(f"{team.pods}/theirs")
    team.is_free()
    team.access.wait_until_gone(f"{team.jobs}/{team.name_of(theirs)}")


def test_a_pod_ends_and_leaves_its_quota(team: Team) -> None:
    team.has_queue()
    theirs = team.pod("theirs", {Play.EXIT_CODE: "3"})

    team.stand_in(theirs, "Failed")

    team.is_free()
    pod = team.access.wait_for(
        f"{team.pods}/theirs",
        lambda pod: naming.FINALIZER not in pod["metadata"].get("finalizers", ()),
    )
    assert pod["status"]["phase"] == "Failed"


def test_another_controller_takes_over_and_nothing_is_double(team: Team, tmp_path: Path) -> None:
    team.has_queue(resources={"tasks": 1})
    team.controller.wait_until_leading()
    first, second = team.batch_job("first"), team.batch_job("second")
    team.waits(second, "QuotaTaken")
    team.runs("first")

    with Controller(team.access, tmp_path / "other", namespace=team.namespace) as other:
        team.controller.kill()
        other.wait_until_leading()
        # It finds what runs, and holds the other one back.
        team.access.change(f"{team.batch_jobs}/second", {"spec": {"suspend": False}})
        team.is_suspended("second")
        team.access.remove(f"{team.batch_jobs}/first", propagationPolicy="Background")
        team.runs("second")
        team.access.wait_until_gone(f"{team.jobs}/{team.name_of(first)}")
        names = [job["metadata"]["name"] for job in team.access.read(team.jobs)["items"]]
        assert names == [team.name_of(second)]
        pods = team.access.read(team.pods)["items"]
        assert len([pod for pod in pods if pod["status"]["phase"] == "Running"]) == 1


def test_one_that_is_ready_too_late_is_put_back(team: Team) -> None:
    """Ready is as many of its pods as it runs at a time."""
    team.has_queue(
        resources={"tasks": 2},
        waitForPodsReady={
            "enable": True,
            "timeout": "1s",
            "requeuingStrategy": {"backoffLimitCount": 0},
        },
    )
    late = team.batch_job("late", {Play.NEVER_READY: "true"}, parallelism=2)

    job = team.waits(late, "Deactivated")

    team.is_suspended("late")
    assert job["status"]["admission"]["evictions"] == 1
    team.is_free()
    patient = {"spec": {"waitForPodsReady": {"timeout": "10m"}}}
    team.access.change(f"{QUEUES}/{team.queue}", patient)
    good = team.batch_job("good", parallelism=2)
    name = team.name_of(good)
    team.access.wait_for(
        f"{team.jobs}/{name}",
        lambda job: any(
            (one["type"], one["status"], one["reason"]) == ("PodsReady", "True", "Started")
            for one in job.get("status", {}).get("conditions") or ()
        ),
    )
