"""The verbs for JobConfigs and ControlledJobs on a real cluster, with no controller at all.

They only write definitions, and say what follows from what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commanding import Program
from installing import install_definitions

from support.kube import Access, Cluster

GROUP = "/apis/interlock.dev/v1alpha1"
POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
NEVER = "0 0 29 2 *"


@pytest.fixture(scope="module")
def access(own_cluster: Cluster) -> Access:
    """A cluster with our kinds, which has no controller."""
    install_definitions(own_cluster.access)
    return own_cluster.access


@pytest.fixture
def interlock(access: Access, tmp_path: Path) -> Iterator[Program]:
    """The program in a fresh namespace."""
    with access.namespace() as name:
        yield Program(access, tmp_path, name)


def make(interlock: Program, kind: str, plural: str, name: str, spec: dict[str, Any]) -> str:
    body = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    interlock.access.create(f"{GROUP}/namespaces/{interlock.namespace}/{plural}", body)
    return name


def a_config(interlock: Program, name: str = "nightly", **spec: Any) -> str:
    template = {"spec": {"pod": POD}}
    schedules = [{"cron": NEVER, "timezone": "Europe/London", "exclude": ["holidays"]}]
    options = [{"name": "day", "required": True}]
    given = {"template": template, "schedules": schedules, "options": options, **spec}
    return make(interlock, "JobConfig", "jobconfigs", name, given)


def an_engine(interlock: Program, name: str = "engine") -> str:
    spec = {
        "timezone": {"name": "America/New_York"},
        "events": [{"action": "start", "cron": NEVER}, {"action": "stop", "cron": "1 0 29 2 *"}],
        "jobTemplate": {"spec": {"pod": POD}},
    }
    return make(interlock, "ControlledJob", "controlledjobs", name, spec)


def test_a_config_is_run_switched_suspended_and_asked_about(interlock: Program) -> None:
    name = a_config(interlock)
    interlock("run", name, code=2)
    assert "option day: is required" in interlock.errors
    job = interlock.json("run", name, "-O", "day=1", "--after", "1h")
    assert job["metadata"]["name"].startswith(f"{name}-")
    assert job["metadata"]["ownerReferences"][0]["kind"] == "JobConfig"

    told = interlock("why", f"jobconfig/{name}")
    assert told.startswith(f"{name} has 1 Job in line and none running; ")
    assert "nothing moves: no controller has ever led here" in told
    assert "calendar holidays does not exist" in told
    assert interlock("disable", name) == f"jobconfig/{name} disabled\n"
    assert interlock("disable", name) == f"jobconfig/{name} already disabled\n"
    assert interlock("suspend", f"jc/{name}", "--reason", "x") == f"jobconfig/{name} suspended\n"
    answer = interlock.json("why", f"jobconfig/{name}")
    reasons = [wait["reason"] for wait in answer["waits"]]
    assert reasons[:3] == ["NoLeader", "Suspended", "Disabled"]
    assert interlock("resume", f"jc/{name}") == f"jobconfig/{name} resumed\n"
    interlock("run", "nihgtly", code=4)
    assert f"did you mean `{name}`?" in interlock.errors


def test_a_controlled_job_is_started_restarted_and_stopped(interlock: Program) -> None:
    name = an_engine(interlock)
    first = interlock.json("start", name)["metadata"]["name"]
    assert f"runs already: job/{first}" in interlock("start", name)
    told = interlock("restart", name).splitlines()
    assert told[0] == f"job/{first} stopping"
    second = told[1].removeprefix("job/").removesuffix(" created")
    assert interlock("why", name).startswith(f"{name} waits to start: job/{second} ")
    assert f"job/{second} stopping" in interlock("stop", name)
    notes = interlock.json("get", f"job/{second}")["metadata"]["annotations"]
    assert notes["interlock.dev/suspend-reason"] == "user-stop"
    assert "is being stopped" in interlock("why", f"controlledjob/{name}").splitlines()[0]
    interlock("start", "engien", code=4)
    assert f"did you mean `{name}`?" in interlock.errors


def test_exceptions_are_written_told_and_taken_back(interlock: Program) -> None:
    name = an_engine(interlock)
    assert "(dry run: nothing was changed)" in interlock("skip", name, "--dry-run")
    interlock("skip", name, "--reason", "x")
    interlock("skip", name, "--cancel")
    assert "ends 02:01 instead of 00:01" in interlock("extend", name, "--by", "2h")
    interlock("hold", name, "--until", "2090-01-05")
    spec = interlock.json("get", f"ctj/{name}")["spec"]
    assert [one["action"] for one in spec["overrides"]] == ["Extend", "Hold"]
    assert "it is on hold" in interlock("why", name).splitlines()[0]
    interlock("hold", name, "--cancel")
    interlock("extend", name, "--cancel")
    assert not interlock.json("get", f"ctj/{name}")["spec"].get("overrides")
    interlock("hold", name, "--until", "2020-01-01", code=2)
    assert "is past" in interlock.errors
    assert "is not running: it is outside its hours" in interlock("describe", f"ctj/{name}")
