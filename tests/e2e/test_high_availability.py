"""Whatever is killed, stopped, cut or busy: no Job is lost or doubled, no lock is held twice."""

from __future__ import annotations

import re
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from installing import allow

from interlock.testing.serving import PATIENCE_S
from support.cluster_store import install
from support.kube import Access, Cluster, User
from support.kube.controllers import Controller
from support.kube.pods import Play, a_pod
from support.kube.recording import Recorder
from support.kube.verdict import Verdict

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/{}/jobs"
#: The longest that a whole run may take, on the slowest machine.
WHOLE_S = 4 * PATIENCE_S


def a_job(name: str, **spec: Any) -> dict[str, Any]:
    pod = a_pod("", {Play.RUNS_FOR: "100ms"})
    template = {"metadata": {"annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]}
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"pod": template, **spec},
    }


def mixed(count: int) -> list[dict[str, Any]]:
    """Jobs of which two thirds share one lock, and the others need none."""
    return [
        a_job(f"j-{number:03}", **({} if number % 3 == 2 else {"locks": [{"key": "db"}]}))
        for number in range(count)
    ]


class Run:
    """A namespace with controllers in which Jobs run, and everything is recorded."""

    def __init__(self, access: Access, namespace: str, folder: Path) -> None:
        self.access = access
        self.namespace = namespace
        self._folder = folder
        self._path = JOBS.format(namespace)
        self.controllers: list[Controller] = []
        self._stack = ExitStack()

    def start(self, count: int, *arguments: str, user: User = User.ADMIN) -> None:
        """Start so many controllers, and wait until they are ready."""
        for _ in range(count):
            controller = Controller(
                self.access, self._folder, *arguments, namespace=self.namespace, user=user
            )
            self._stack.callback(controller.close)
            self.controllers.append(controller.start())
        for controller in self.controllers[-count:]:
            controller.wait_until_ready()

    def close(self) -> None:
        self._stack.close()

    def leader(self) -> Controller:
        """The controller that has the lease, once one of them has."""
        found = self._until(lambda: next((one for one in self._alive() if one.leads), None))
        assert isinstance(found, Controller)
        return found

    def _alive(self) -> list[Controller]:
        return [one for one in self.controllers if one.running]

    def create(self, jobs: list[dict[str, Any]]) -> None:
        """Create Jobs, whatever it takes; the same one is never created twice."""
        for job in jobs:
            self._until(lambda job=job: self._create(job))  # type: ignore[misc]

    def _create(self, job: dict[str, Any]) -> bool:
        try:
            return self.access.ask("POST", self._path, job).status in (201, 409)
        except OSError:
            return False

    def ended(self) -> int:
        """How many Jobs have an end; nothing can be said while the API server is away."""
        try:
            answer = self.access.ask("GET", self._path)
        except OSError:
            return 0
        items = answer.body.get("items", ())
        return sum("result" in (one.get("status", {}).get("execution") or {}) for one in items)

    def until_ended(self, count: int) -> None:
        """Wait until so many Jobs have an end."""
        self._until(lambda: self.ended() >= count, WHOLE_S)

    def _until(self, found: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
        waited = 0.0
        while not (result := found()):
            assert waited < patience_s, self._story()
            select.select([], [], [], 0.2)
            waited += 0.2
        return result

    def _story(self) -> str:
        return "\n".join(f"--- {one.log[-3000:]}" for one in self.controllers)


@contextmanager
def recorded(access: Access, folder: Path) -> Iterator[tuple[Run, Callable[..., Verdict]]]:
    """A run in a fresh namespace, and what is to be said of it once it is over."""
    with access.namespace() as namespace, ExitStack() as stack:
        recorder = stack.enter_context(Recorder(access, namespace))
        run = Run(access, namespace, folder)
        stack.callback(run.close)

        def verdict(*, whole: bool = True) -> Verdict:
            recorder.__exit__(None, None, None)
            return recorder.verdict(whole=whole)

        yield run, verdict


def assert_all_well(verdict: Verdict, count: int) -> None:
    """Every Job ran once and succeeded, in order, and nothing was broken on the way."""
    assert verdict.faults == []
    assert verdict.unfinished == []
    assert verdict.results == {f"j-{number:03}": "Succeeded" for number in range(count)}
    assert set(verdict.begun.values()) == {1}
    assert list(verdict.out_of_order()) == []


@pytest.fixture(scope="module")
def troubled(own_cluster: Cluster) -> Cluster:
    install(own_cluster.access)
    return own_cluster


class Creating:
    """Creates Jobs one after another beside what the test does."""

    def __init__(self, run: Run, jobs: list[dict[str, Any]]) -> None:
        self._thread = threading.Thread(target=run.create, args=(jobs,))

    def __enter__(self) -> Creating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


def test_leaders_are_killed_while_jobs_start(troubled: Cluster, tmp_path: Path) -> None:
    with recorded(troubled.access, tmp_path) as (run, verdict):
        run.start(2)
        with Creating(run, mixed(36)):
            for ended in (3, 9, 15, 21):
                run.until_ended(ended)
                run.leader().kill()
                run.start(1)
        run.until_ended(36)
        assert_all_well(verdict(), 36)


def test_a_leader_stands_still_and_goes_on(troubled: Cluster, tmp_path: Path) -> None:
    with recorded(troubled.access, tmp_path) as (run, verdict):
        run.start(2)
        with Creating(run, mixed(30)):
            for ended in (3, 9, 15):
                run.until_ended(ended)
                paused = run.leader()
                paused.pause()
                run._until(lambda paused=paused: not paused.leads)  # type: ignore[misc]
                run.until_ended(ended + 3)
                paused.resume()
        run.until_ended(30)
        assert_all_well(verdict(), 30)


def test_the_api_server_is_restarted(troubled: Cluster, tmp_path: Path) -> None:
    with recorded(troubled.access, tmp_path) as (run, verdict):
        run.start(2)
        with Creating(run, mixed(24)):
            for ended in (3, 9):
                run.until_ended(ended)
                troubled.restart_api_server()
        run.until_ended(24)
        assert_all_well(verdict(whole=False), 24)


def test_etcd_stands_still(troubled: Cluster, tmp_path: Path) -> None:
    """Nothing can be written for longer than a lease lasts: nobody leads, then somebody does."""
    with recorded(troubled.access, tmp_path) as (run, verdict):
        run.start(2)
        with Creating(run, mixed(18)):
            run.until_ended(3)
            troubled.pause("etcd")
            for controller in run.controllers:
                if "leading, term" in controller.log:
                    controller.wait_for_log("leading no more")
            troubled.resume("etcd")
        run.until_ended(18)
        assert_all_well(verdict(), 18)


def test_others_write_the_same_jobs_all_the_time(troubled: Cluster, tmp_path: Path) -> None:
    """Every write of ours meets a version that is not the newest any more."""
    with recorded(troubled.access, tmp_path) as (run, verdict):
        run.start(1)
        over = threading.Event()

        def meddle() -> None:
            number = 0
            while not over.is_set():
                number += 1
                for job in mixed(12):
                    path = f"{JOBS.format(run.namespace)}/{job['metadata']['name']}"
                    patch = {"metadata": {"labels": {"meddled": str(number)}}}
                    media = "application/merge-patch+json"
                    run.access.ask("PATCH", path, patch, media=media)

        meddler = threading.Thread(target=meddle)
        run.create(mixed(12))
        meddler.start()
        try:
            run.until_ended(12)
        finally:
            over.set()
            meddler.join()
        assert_all_well(verdict(), 12)


def test_a_busy_api_server_is_asked_again(kube_programs: Path, tmp_path: Path) -> None:
    """An API server that lets few in answers 429 to whoever is not of its own masters.

    The controller has the rights of its role and no more.
    """
    few = (
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=8",
        "--max-mutating-requests-inflight=2",
    )
    with Cluster(kube_programs, tmp_path / "kube", flags={"kube-apiserver": few}) as busy:
        install(busy.access)
        with recorded(busy.access, tmp_path) as (run, verdict):
            allow(busy.access, run.namespace)
            run.start(2, user=User.CONTROLLER)
            run.create(mixed(45))
            run.until_ended(45)
            assert_all_well(verdict(), 45)
            told = str(busy.access.ask("GET", "/metrics").body["message"])
            assert re.search(r'apiserver_request_total\{code="429"', told), "it was never too busy"
