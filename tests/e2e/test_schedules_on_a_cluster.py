"""JobConfigs and ControlledJobs on a real cluster, with real controllers that have no other rights
than those of their role in one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from schedule_scenes import START, Scene, at_moment, batch_work, pod_work, scene

from interlock.control.clock import SystemClock
from support.kube import Access
from support.kube.due_times import DueTimes
from support.kube.pods import Play
from support.kube.recording import Recorder

Object = dict[str, Any]

#: Work that is over at once, and work that goes on until it is stopped.
SHORT = pod_work({Play.RUNS_FOR: "100ms"})
LONG = pod_work()


@pytest.fixture
def place(cluster: Access, tmp_path: Path) -> Iterator[Scene]:
    """A namespace without a controller yet."""
    with scene(cluster, tmp_path) as made:
        yield made


@pytest.fixture
def here(place: Scene) -> Scene:
    """A namespace with a controller."""
    place.start()
    return place


def runs_one(status: Object) -> bool:
    return bool(status.get("isRunning")) and len(status.get("active", ())) == 1


def outcome_of(status: Object) -> str:
    return str((status.get("window") or {}).get("outcome"))


def soon() -> datetime:
    clock = SystemClock()
    try:
        return clock.now().replace(microsecond=0) + timedelta(seconds=3)
    finally:
        clock.close()


def due_once(here: Scene, name: str) -> None:
    """A JobConfig that is due once, soon after it was made: if that took too long, another is."""
    while True:
        due = soon()
        made = here.config(name, SHORT, schedules=[{"cron": at_moment(due)}])
        if datetime.fromisoformat(made["metadata"]["creationTimestamp"]) < due:
            return
        here.access.remove(here.path("JobConfig", name))
        here.access.wait_until_gone(here.path("JobConfig", name))


# JobConfigs


def test_a_config_makes_jobs_that_run_one_after_the_other(here: Scene) -> None:
    here.config("tick", SHORT, concurrency={"maxConcurrency": 5})
    found = here.wait("JobConfig", "tick", lambda status: "lastSuccess" in status)
    assert found["status"]["state"] in ("ReadyEnabled", "JobQueued", "Executing")
    job = next(iter(here.jobs("tick").values()))
    assert job["metadata"]["labels"]["interlock.dev/job-config"] == "tick"
    due = datetime.fromisoformat(job["metadata"]["annotations"]["interlock.dev/scheduled-at"])
    assert job["metadata"]["name"] == f"tick-{int(due.timestamp())}"

    made = here.event("JobConfig", "tick", "CreatedJob")

    assert (made["type"], made["source"]["component"]) == ("Normal", "interlock")
    assert made["message"].startswith("job/tick-")
    assert "CreatedJob" in here.interlock("history", "jobconfig/tick")


def test_what_may_not_run_beside_another_is_skipped_and_told(here: Scene) -> None:
    # Of those that are found at once, after a standstill, none is one too many.
    here.config("alone", LONG, concurrency={"policy": "Forbid"}, catchUp={"atMost": 100})
    found = here.wait("JobConfig", "alone", lambda status: status.get("skipped", 0) >= 2)
    (skip,) = found["status"]["skips"]
    (job,) = here.jobs("alone")
    assert skip["reason"] == "Concurrency"
    assert job in skip["message"]

    told = here.event("JobConfig", "alone", "SkippedSchedule")

    assert told["type"] == "Warning"
    assert "Concurrency" in told["message"]
    row = here.table("JobConfig")["alone"]
    assert (row["State"], row["Active"], row["Queued"]) == ("Executing", 1, 0)
    assert row["Last schedule"] < row["Next schedule"]
    assert "SkippedSchedule" in here.interlock("history", "jc/alone")


def test_a_job_that_the_cluster_refuses_is_told_and_made_when_it_is_not(here: Scene) -> None:
    """A quota without room for a Job refuses them all; nothing is lost when it goes."""
    quotas = f"/api/v1/namespaces/{here.namespace}/resourcequotas"
    body = {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.interlock.dev": "0"}}}
    here.access.create(quotas, body)
    here.access.wait_for(f"{quotas}/none", lambda found: "hard" in found.get("status", {}))
    due_once(here, "kept")

    told = here.event("JobConfig", "kept", "CreateJobFailed")

    assert told["type"] == "Warning"
    assert "quota" in told["message"]
    here.access.remove(f"{quotas}/none")
    here.wait("JobConfig", "kept", lambda status: "lastSuccess" in status)
    here.wait("JobConfig", "kept", lambda status: "trouble" not in status)


def test_jobs_go_with_their_config(here: Scene) -> None:
    """Kubernetes collects them; what runs is stopped first."""
    here.config("going", LONG, concurrency={"policy": "Forbid"})
    here.wait("JobConfig", "going", lambda status: status.get("active") == 1)
    (job,) = here.jobs("going")
    here.access.remove(here.path("JobConfig", "going"))
    here.access.wait_until_gone(here.path("JobConfig", "going"))
    here.access.wait_until_gone(here.path("Job", job))
    here.until(lambda: not here.pods())


def test_ended_jobs_beyond_the_limits_are_removed(here: Scene) -> None:
    limits = {"succeeded": 1, "failed": 1}
    here.config("tidy", SHORT, history=limits, concurrency={"maxConcurrency": 5})
    here.wait("JobConfig", "tidy", lambda status: "lastSuccess" in status)
    (first, *_) = sorted(here.jobs("tidy"))
    here.access.wait_until_gone(here.path("Job", first))
    here.change("JobConfig", "tidy", suspend=True)
    here.until(lambda: len(here.jobs("tidy")) == 1)


# ControlledJobs


@pytest.mark.parametrize("work", [LONG, batch_work()], ids=["pod", "batchJob"])
def test_one_job_is_kept_running_until_the_window_closes(here: Scene, work: Object) -> None:
    here.controlled("engine", work)
    here.wait("ControlledJob", "engine", runs_one)
    (job,) = here.jobs("engine")
    here.until(lambda: len(here.pods()) == 1)
    row = here.table("ControlledJob")["engine"]
    assert [row[name] for name in ("Running", "Should be running", "Suspended")] == [
        "true",
        "true",
        "false",
    ]
    started = here.event("ControlledJob", "engine", "JobStarted")
    assert (started["type"], job in started["message"]) == ("Normal", True)

    here.change(
        "ControlledJob", "engine", events=[START, {"action": "stop", "cron": at_moment(soon())}]
    )

    found = here.wait("ControlledJob", "engine", lambda status: outcome_of(status) == "Stopped")
    assert found["status"]["shouldBeRunning"] is False
    here.wait("ControlledJob", "engine", lambda status: not status.get("active"))
    assert here.pods() == []
    assert here.jobs("engine")[job]["status"]["phase"] == "Killed"
    assert list(here.jobs("engine")) == [job]
    here.is_told("ControlledJob", "engine", "JobStopped")
    told = here.interlock("history", "controlledjob/engine")
    assert "JobStarted" in told
    assert "JobStopped" in told


def test_a_job_that_a_person_removes_is_made_again_and_one_at_a_time(here: Scene) -> None:
    here.controlled("engine", LONG)
    here.wait("ControlledJob", "engine", runs_one)
    (first,) = here.jobs("engine")
    here.access.remove(here.path("Job", first))
    here.wait(
        "ControlledJob",
        "engine",
        lambda status: runs_one(status) and status["active"][0]["name"] != first,
    )
    (second,) = here.jobs("engine")
    assert int(second.rpartition("-")[2]) == int(first.rpartition("-")[2]) + 1


def test_a_new_template_takes_over_when_the_old_job_is_proven_gone(here: Scene) -> None:
    here.controlled("engine", LONG, restartStrategy={"specChangePolicy": "Recreate"})
    here.wait("ControlledJob", "engine", runs_one)
    (first,) = here.jobs("engine")
    here.change("ControlledJob", "engine", jobTemplate={"spec": {"title": "new"}})
    here.wait(
        "ControlledJob",
        "engine",
        lambda status: runs_one(status) and status["active"][0]["name"] != first,
    )
    jobs = here.jobs("engine")
    (second,) = set(jobs) - {first}
    tokens = [jobs[one]["status"]["admission"]["grants"][0]["token"] for one in (first, second)]
    assert tokens == sorted(tokens)
    assert jobs[first]["status"]["phase"] == "Killed"
    here.is_told("ControlledJob", "engine", "JobRestarted")


def test_what_goes_wrong_is_told_as_a_warning(here: Scene) -> None:
    bad = pod_work()
    bad["pod"]["spec"]["containers"][0]["args"] = ["${task.indx}"]
    here.controlled("bad", bad)
    # What has its grace period still is not overdue, so that one is shorter than the limit.
    stuck = pod_work({Play.NEVER_STOPS: "true"}) | {"gracePeriod": "1s"}
    here.controlled("stuck", stuck, drainLimit="2s")
    told = here.event("ControlledJob", "bad", "FailedToCreateJob")
    assert told["type"] == "Warning"
    assert "task.indx" in told["message"]
    here.wait("ControlledJob", "stuck", runs_one)
    here.change("ControlledJob", "stuck", suspend=True)

    overdue = here.event("ControlledJob", "stuck", "DrainOverdue")

    assert overdue["type"] == "Warning"
    (job,) = here.jobs("stuck")
    assert f"job/{job}" in overdue["message"]
    (pod,) = here.pods()
    path = f"/api/v1/namespaces/{here.namespace}/pods/{pod['metadata']['name']}"
    here.access.change(path, {"metadata": {"annotations": {Play.NEVER_STOPS: None}}})
    here.wait("ControlledJob", "stuck", lambda status: not status.get("active"))


# Leaders that are killed


def test_leaders_are_killed_while_a_config_is_due_every_second(place: Scene) -> None:
    """Judged from the API server's word alone: no due time has two Jobs, none became nothing."""
    with Recorder(place.access, place.namespace) as recorder:
        place.start(2)
        place.config(
            "tick",
            SHORT,
            concurrency={"policy": "Enqueue", "maxConcurrency": 5, "maxQueued": 50},
            catchUp={"atMost": 3},
        )
        before = ""
        for _ in range(3):
            found = place.wait(
                "JobConfig",
                "tick",
                lambda status, before=before: (  # type: ignore[misc]
                    status.get("lastScheduled", "") > before and "lastSuccess" in status
                ),
            )
            before = found["status"]["lastScheduled"]
            place.leader().kill()
            place.start(1)
        place.wait("JobConfig", "tick", lambda status: status["lastScheduled"] > before)
        place.change("JobConfig", "tick", suspend=True)
        place.wait("JobConfig", "tick", is_idle)
    verdict, due = recorder.verdict(), DueTimes("tick", recorder.history)
    assert verdict.faults == []
    assert verdict.unfinished == []
    assert due.faults(timedelta(seconds=1)) == []
    assert len(due.ran) >= 4


def is_idle(status: Object) -> bool:
    is_at_rest = not status.get("active") and not status.get("queued")
    return status.get("state") == "ReadyDisabled" and is_at_rest


def test_a_leader_is_killed_while_a_window_is_open(place: Scene) -> None:
    """The next one finds the Job that runs, and makes no other; a stop is kept by whoever leads."""
    place.start(2)
    place.controlled("engine", LONG)
    place.wait("ControlledJob", "engine", runs_one)
    (job,) = place.jobs("engine")
    killed = place.leader()
    killed.kill()
    place.leader()
    place.change("ControlledJob", "engine", suspend=True)
    place.wait("ControlledJob", "engine", lambda status: not status.get("active"))
    assert list(place.jobs("engine")) == [job]
    assert place.pods() == []
