"""Schedules move from a real server to a real cluster: every due time is accounted for once."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from installing import install_definitions
from moving_scenes import Budget, Ground, StoppedError, context_of, is_clean, is_suspended

from interlock.client.api import Api
from interlock.client.kinds import CALENDARS, CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind
from interlock.migration import annotations as marks
from interlock.testing.serving import PATIENCE_S, Server
from support.kube import Cluster
from support.kube.controllers import Controller

Thing = dict[str, Any]

SECOND = timedelta(seconds=1)
SECONDLY = [{"cron": "* * * * * * *", "exclude": ["days"]}]
OPEN = [{"action": "start", "cron": "0 0 1 1 *"}, {"action": "stop", "cron": "59 23 31 12 *"}]
#: Open for a minute on leap days: at no time of day that a test is likely to run.
SHUT = [{"action": "start", "cron": "0 0 29 2 *"}, {"action": "stop", "cron": "1 0 29 2 *"}]
NOTHING: Thing = {"spec": {"noop": {}}}
#: The Calendar has one write, the JobConfig six, the ControlledJob five.
WRITES = 1 + 6 + 5


def put(api: Api, kind: Kind, namespace: str, name: str, spec: Thing) -> Thing:
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}}
    made: Thing = api.create(kind, namespace, body | {"spec": spec})
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def ground(own_cluster: Cluster, server: Server, tmp_path: Path) -> Iterator[Ground]:
    install_definitions(own_cluster.access)
    with own_cluster.namespace() as name:
        made = Ground(server, own_cluster.access, name, tmp_path)
        yield made
        for one in made.jobs(made.ours, JOB_CONFIGS):
            # It would be due every second while the tests after this one run.
            made.ours.call("DELETE", JOB_CONFIGS.path(name, one))
        made.close()


@pytest.fixture
def controller(ground: Ground, tmp_path: Path) -> Iterator[Controller]:
    """A controller that serves the cluster's side all the time."""
    folder = tmp_path / "controller"
    with Controller(ground.access, folder, namespace=ground.namespace) as running:
        yield running


def until(api: Api, kind: Kind, ground: Ground, name: str, holds: Callable[[Thing], Any]) -> Thing:
    """The thing once its status is so."""
    last = time.monotonic() + PATIENCE_S
    while True:
        found = api.get(kind, ground.namespace, name)
        if holds(found.get("status") or {}):
            return found
        assert time.monotonic() < last, found
        select.select([], [], [], 0.1)


def put_all(ground: Ground) -> None:
    """A Calendar, a JobConfig that is due every second, and a ControlledJob that is done."""
    ours, place = ground.ours, ground.namespace
    put(ours, CALENDARS, place, "days", {"days": [{"day": "2000-01-01"}]})
    kept = {"succeeded": 1000, "failed": 1000}
    tick = {"schedules": SECONDLY, "template": NOTHING, "history": kept}
    put(ours, JOB_CONFIGS, place, "tick", tick)
    put(ours, CONTROLLED_JOBS, place, "engine", {"events": OPEN, "jobTemplate": NOTHING})
    until(ours, JOB_CONFIGS, ground, "tick", lambda status: "lastSuccess" in status)
    until(ours, CONTROLLED_JOBS, ground, "engine", is_finished)


def is_finished(status: Thing) -> bool:
    return (status.get("window") or {}).get("outcome") == "Finished" and not status.get("active")


def jobs_of(ground: Ground, api: Api, owner: str) -> list[Thing]:
    return [
        job
        for job in ground.jobs(api).values()
        if owner in [one["name"] for one in job["metadata"].get("ownerReferences", ())]
    ]


def dues_of(ground: Ground, api: Api) -> set[datetime]:
    """The due times that became Jobs on one side."""
    name = "interlock.dev/scheduled-at"
    found = jobs_of(ground, api, "tick")
    return {datetime.fromisoformat(job["metadata"]["annotations"][name]) for job in found}


def skips_of(config: Thing) -> list[tuple[datetime, datetime]]:
    found = config["status"].get("skips", ())
    return [
        (datetime.fromisoformat(one["at"]), datetime.fromisoformat(one.get("until") or one["at"]))
        for one in found
    ]


def assert_accounted(ground: Ground) -> None:
    """Every second from the first Job at the server to the last in the cluster became one thing."""
    here = ground.ours.get(JOB_CONFIGS, ground.namespace, "tick")
    there = ground.theirs.get(JOB_CONFIGS, ground.namespace, "tick")
    ours, theirs = dues_of(ground, ground.ours), dues_of(ground, ground.theirs)
    assert ours & theirs == set()
    skips = [*skips_of(here), *skips_of(there)]
    due, last = min(ours), datetime.fromisoformat(there["status"]["lastScheduled"])
    assert due < last
    while due <= last:
        is_skipped = any(begin <= due <= end for begin, end in skips)
        assert due in ours or due in theirs or is_skipped, f"{due} became nothing"
        due += SECOND


def assert_one_acts(ground: Ground) -> None:
    for kind in (JOB_CONFIGS, CONTROLLED_JOBS):
        here, there = ground.jobs(ground.ours, kind), ground.jobs(ground.theirs, kind)
        for name in here | there:
            assert is_suspended(here.get(name)) or is_suspended(there.get(name))


@pytest.mark.usefixtures("controller")
@pytest.mark.parametrize("loses_answer", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("cut", range(WRITES))
def test_a_move_that_is_killed_at_any_write_is_finished_by_the_next(
    ground: Ground, cut: int, loses_answer: bool
) -> None:
    put_all(ground)

    with pytest.raises(StoppedError):
        ground.move(Budget(cut, loses_answer=loses_answer))

    assert_one_acts(ground)
    # What the first move had brought to its end is not moved again.
    done = {
        name: outcome.replace("there already", "moved") for name, outcome in ground.move().items()
    }
    assert done == {"days": "moved", "tick": "moved", "engine": "moved"} | {
        job["metadata"]["name"]: "left" for job in ground.jobs(ground.ours).values()
    }
    assert_one_acts(ground)
    moved = ground.theirs.get(JOB_CONFIGS, ground.namespace, "tick")
    assert not is_suspended(moved)
    assert is_clean(moved)
    accounted_to = moved["metadata"]["annotations"]["interlock.dev/accounted-to"]
    until(
        ground.theirs,
        JOB_CONFIGS,
        ground,
        "tick",
        lambda status: status.get("lastScheduled", "") > accounted_to and "lastSuccess" in status,
    )
    ground.theirs.patch(JOB_CONFIGS, ground.namespace, "tick", {"spec": {"suspend": True}})
    until(ground.theirs, JOB_CONFIGS, ground, "tick", lambda one: "nextSchedule" not in one)
    assert_accounted(ground)
    # What was done in the window stays done.
    engine = until(ground.theirs, CONTROLLED_JOBS, ground, "engine", is_looked_at)
    assert not is_suspended(engine)
    assert (engine["status"]["window"]["outcome"], engine["status"]["lastRunId"]) == ("Finished", 0)
    assert jobs_of(ground, ground.theirs, "engine") == []


def is_looked_at(status: Thing) -> bool:
    return not status.get("isSuspended") and bool(status.get("shouldBeRunning"))


def test_what_was_suspended_stays_so_and_moves_with_what_it_knows(ground: Ground) -> None:
    spec = {"schedules": [{"cron": "0 2 * * *"}], "template": NOTHING, "suspend": True}
    put(ground.ours, JOB_CONFIGS, ground.namespace, "rest", spec)
    assert ground.move() == {"rest": "moved"}
    moved = ground.jobs(ground.theirs, JOB_CONFIGS)["rest"]
    assert is_suspended(moved)
    assert is_clean(moved)
    assert "interlock.dev/accounted-to" not in moved["metadata"]["annotations"]
    assert ground.move() == {"rest": "there already"}


def test_what_runs_processes_is_not_movable_unless_an_image_makes_pods(ground: Ground) -> None:
    work = {"spec": {"process": {"command": ["echo", "${option.day}"]}}}
    spec = {"template": work, "options": [{"name": "day"}]}
    put(ground.ours, JOB_CONFIGS, ground.namespace, "report", spec)
    engine = {"events": SHUT, "jobTemplate": {"spec": {"process": {"command": ["serve"]}}}}
    put(ground.ours, CONTROLLED_JOBS, ground.namespace, "engine", engine)
    assert ground.move() == {"report": "not movable", "engine": "not movable"}
    assert not is_suspended(ground.jobs(ground.ours, JOB_CONFIGS)["report"])
    assert ground.jobs(ground.theirs, JOB_CONFIGS) == {}

    assert set(ground.move(image="tools:1").values()) == {"moved"}
    moved = ground.jobs(ground.theirs, JOB_CONFIGS)["report"]["spec"]["template"]["spec"]
    (container,) = moved["pod"]["spec"]["containers"]
    assert container["command"] == ["echo", "${option.day}"]
    assert "process" not in moved


def test_another_of_that_name_and_another_calendar_are_conflicts(ground: Ground) -> None:
    ours, theirs, place = ground.ours, ground.theirs, ground.namespace
    put(ours, CALENDARS, place, "days", {"days": [{"day": "12-25"}]})
    put(theirs, CALENDARS, place, "days", {"days": [{"day": "12-26"}]})
    schedules = [{"cron": "0 2 * * *", "exclude": ["days"]}]
    put(ours, JOB_CONFIGS, place, "a", {"schedules": schedules, "template": NOTHING})
    put(ours, JOB_CONFIGS, place, "b", {"template": NOTHING})
    put(theirs, JOB_CONFIGS, place, "b", {"template": NOTHING})
    assert ground.move() == {"days": "conflict", "a": "conflict", "b": "conflict"}
    assert all(map(is_clean, ground.jobs(ours, JOB_CONFIGS).values()))
    assert not any(map(is_suspended, ground.jobs(ours, JOB_CONFIGS).values()))
    assert list(ground.jobs(theirs, JOB_CONFIGS)) == ["b"]


def test_a_config_waits_for_its_jobs_that_are_left_at_the_server(ground: Ground) -> None:
    put(ground.ours, JOB_CONFIGS, ground.namespace, "slow", {"template": NOTHING})
    flags = ("--server", ground.url, "-n", ground.namespace)
    ground.program.plain(*flags, "run", "slow", "--after", "1h")
    (job,) = ground.jobs(ground.ours)
    assert ground.move() == {"slow": "held back", job: "not movable"}
    assert is_suspended(ground.jobs(ground.theirs, JOB_CONFIGS)["slow"])

    ground.program.plain(*flags, "kill", "--wait", job)
    assert ground.move() == {"slow": "moved", job: "left"}
    assert not is_suspended(ground.jobs(ground.theirs, JOB_CONFIGS)["slow"])


@pytest.mark.usefixtures("controller")
def test_what_runs_in_a_window_is_stopped_here_and_then_started_there(ground: Ground) -> None:
    work = {"spec": {"process": {"command": ["sleep", "1000"]}}}
    spec = {"events": OPEN, "jobTemplate": work}
    put(ground.ours, CONTROLLED_JOBS, ground.namespace, "engine", spec)
    until(ground.ours, CONTROLLED_JOBS, ground, "engine", lambda status: status.get("isRunning"))
    (job,) = ground.jobs(ground.ours)
    last = time.monotonic() + PATIENCE_S
    while ground.move(image="tools:1")["engine"] != "moved":
        assert ground.jobs(ground.theirs) == {}
        assert time.monotonic() < last, ground.jobs(ground.ours)
    assert ground.jobs(ground.ours)[job]["status"]["phase"] == "Killed"
    moved = until(
        ground.theirs, CONTROLLED_JOBS, ground, "engine", lambda status: status.get("isRunning")
    )
    assert moved["status"]["lastRunId"] == 1
    assert [one["type"] for one in moved["status"]["actionHistory"]].count("JobStarted") == 2
    (other,) = ground.jobs(ground.theirs)
    assert other == f"{job.rpartition('-')[0]}-1"


def test_a_person_who_resumes_the_source_is_found_out(ground: Ground) -> None:
    """Before the source is handed over the move holds it again; after that it is a conflict."""
    spec = {"schedules": [{"cron": "0 2 * * *"}], "template": NOTHING}
    put(ground.ours, JOB_CONFIGS, ground.namespace, "nightly", spec)
    budget = Budget()

    def resume() -> None:
        ground.ours.patch(JOB_CONFIGS, ground.namespace, "nightly", {"spec": {"suspend": None}})

    budget.before["create copy", "nightly"] = resume
    budget.before["tell copy", "nightly"] = resume
    assert ground.move(budget) == {"nightly": "moved"}
    assert is_suspended(ground.jobs(ground.ours, JOB_CONFIGS)["nightly"])
    assert not is_suspended(ground.jobs(ground.theirs, JOB_CONFIGS)["nightly"])
    resume()
    assert ground.move() == {"nightly": "conflict"}


def test_a_config_that_a_person_deletes_meanwhile_is_gone_on_both_sides(ground: Ground) -> None:
    put(ground.ours, JOB_CONFIGS, ground.namespace, "a", {"template": NOTHING})
    budget = Budget()
    path = JOB_CONFIGS.path(ground.namespace, "a")
    budget.before["create copy", "a"] = lambda: ground.ours.call("DELETE", path)
    assert ground.move(budget) == {"a": "left"}
    assert ground.jobs(ground.theirs, JOB_CONFIGS) == {}


def test_a_copy_that_a_person_removes_meanwhile_is_made_again(ground: Ground) -> None:
    """The source still suspends for its sake: without a copy nobody would act."""
    spec = {"schedules": [{"cron": "0 2 * * *"}], "template": NOTHING}
    put(ground.ours, JOB_CONFIGS, ground.namespace, "nightly", spec)
    budget = Budget()
    path = JOB_CONFIGS.path(ground.namespace, "nightly")
    budget.before["change copy", "nightly"] = lambda: ground.theirs.call("DELETE", path)
    assert ground.move(budget) == {"nightly": "moved"}
    assert budget.names("create copy") == ["nightly", "nightly"]
    assert not is_suspended(ground.jobs(ground.theirs, JOB_CONFIGS)["nightly"])


def test_a_repeated_move_says_what_was_moved_before(ground: Ground) -> None:
    put(ground.ours, CALENDARS, ground.namespace, "days", {"days": [{"day": "12-25"}]})
    put(ground.ours, JOB_CONFIGS, ground.namespace, "a", {"template": NOTHING})
    assert ground.move() == {"days": "moved", "a": "moved"}
    flags = ("--from", ground.url, "--to", context_of(ground), "-n", ground.namespace)
    for more in ((), ("--dry-run",)):
        told = ground.program.plain("move", *flags, *more, KUBECONFIG=ground.kubeconfig)
        assert told.splitlines()[-1] == "2 there already"


def test_the_verb_tells_what_it_would_do(ground: Ground) -> None:
    put(ground.ours, CALENDARS, ground.namespace, "days", {"days": [{"day": "12-25"}]})
    put(ground.ours, JOB_CONFIGS, ground.namespace, "a", {"template": NOTHING})
    flags = ("--from", ground.url, "--to", context_of(ground), "-n", ground.namespace)
    told = ground.program.plain("move", *flags, "--dry-run", KUBECONFIG=ground.kubeconfig)
    assert "calendar/days" in told
    assert "jobconfig/a" in told
    assert told.splitlines()[-1] == "2 would move"
    assert ground.jobs(ground.theirs, CALENDARS) == {}
    assert is_clean(ground.jobs(ground.ours, JOB_CONFIGS)["a"])
    assert marks.MOVED_TO not in (
        ground.jobs(ground.ours, JOB_CONFIGS)["a"]["metadata"].get("annotations") or {}
    )
    assert ground.jobs(ground.ours, JOBS) == {}
