"""A workshop of pods: work as fake pods of a real control plane, and a watch that counts them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

from interlock.control.clock import SystemClock
from interlock.control.write_fence import WriteFence
from interlock.kube.client.api_client import Client
from interlock.kube.client.config import load_config
from interlock.kube.pods import naming
from interlock.kube.pods.informers import Informers
from interlock.kube.pods.models import Pod
from interlock.kube.pods.reporting import has_run
from interlock.kube.pods.runtime import PodRuntime
from interlock.kube.pods.unreachable_nodes import PodTimes
from interlock.resources.metadata import API_VERSION
from interlock.resources.pods import BatchJobTemplate, PodTemplate, TemplateMetadata
from interlock.resources.tasks import TaskId, TaskOrder, task_name
from interlock.resources.values.durations import Duration
from interlock.resources.work import BatchWork, PodWork
from interlock.testing.runtime_contract import (
    CannotStart,
    Exits,
    ExitsWhenTold,
    IgnoresSigterm,
    LeavesChild,
    ReadyWhenTold,
    RunsOn,
    Scene,
    Told,
    Work,
)
from interlock.testing.serving import PATIENCE_S
from support.cluster_store import PATIENT
from support.kube.access import Access
from support.kube.pods import Play

_ASK_AGAIN_S = 0.5


class PodShop:
    """Implements `runtime_contract.WorkShop` in one namespace of a cluster."""

    def __init__(self, access: Access, namespace: str, times: PodTimes | None = None) -> None:
        self.access = access
        self.namespace = namespace
        self.clock = SystemClock()
        self._times = times
        self._client = Client(
            load_config(access.kubeconfig()), self.clock, Random(7), patience=lambda _: PATIENT
        )
        self._jobs: dict[str, str] = {}
        self._leaders: list[tuple[PodRuntime, WriteFence, asyncio.Task[None]]] = []
        self._news = asyncio.Event()
        self._witness = self._look_on()
        self._begun: dict[TaskId, set[str]] = {}
        self._witness.pods.subscribe(
            lambda changes: self._saw([seen.after for seen in changes if seen.after is not None])
        )
        self._watching = asyncio.get_running_loop().create_task(self._witness.run())

    # What the contract asks for

    @property
    def runtime(self) -> PodRuntime:
        """The runtime of the present leader."""
        return self._leaders[-1][0]

    @property
    def fence(self) -> WriteFence:
        """The fence of the present leader."""
        return self._leaders[-1][1]

    @property
    def client(self) -> Client:
        """What everybody here asks the API server with."""
        return self._client

    @property
    def witness(self) -> Informers:
        """What somebody sees who only looks on."""
        return self._witness

    async def lead(self) -> PodRuntime:
        """Become the leader."""
        sight = self._look_on()
        fence = WriteFence(self.clock)
        fence.open(len(self._leaders) + 1)
        runtime = sight.lead(fence.check, times=self._times)
        runtime.subscribe(lambda _: self._news.set())
        task = asyncio.get_running_loop().create_task(sight.run())
        self._leaders.append((runtime, fence, task))
        await runtime.reports()
        return runtime

    def order(
        self, work: Work, *, job: str = "job", index: int = 0, attempt: int = 1, **more: Any
    ) -> TaskOrder:
        """An order for some work, as a pod that is told by annotations what to do."""
        spec = {"containers": [{"name": "main", "image": "none"}]}
        if isinstance(work, CannotStart):
            spec = {"containers": [{"name": "No Such Name", "image": "none"}]}
        played = {str(key): value for key, value in more.pop("played", {}).items()}
        told = TemplateMetadata(annotations={**_told(work), **played})
        pod = PodTemplate(spec={**spec, **more.pop("spec", {})}, metadata=told)
        return self._order(job, index, attempt, work=PodWork(template=pod), **more)

    def batch_order(
        self, played: dict[Play, str], *, job: str = "job", index: int = 0, **spec: Any
    ) -> TaskOrder:
        """An order for a batch Job whose pods do what they are told."""
        template = {
            "metadata": {"annotations": {str(key): value for key, value in played.items()}},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }
        batch_job = BatchJobTemplate(spec={"template": template, **spec})
        return self._order(job, index, 1, work=BatchWork(template=batch_job))

    async def until(self, true: Callable[[Told], bool]) -> Told:
        """Wait until the reports are so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._news.clear()
                told = {report.id: report for report in await self.runtime.reports()}
                if true(told):
                    return told
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), _ASK_AGAIN_S)

    async def until_begun(self, task: TaskId) -> None:
        """Wait until a pod was seen to run."""
        await self.until(lambda _: self.starts(task) > 0)

    def let_go(self, task: TaskId) -> None:
        """Tell a pod to exit, with the code it was made for."""
        for pod in self._pods_of(task):
            code = pod["metadata"]["annotations"][_LATER]
            mark = {"metadata": {"annotations": {str(Play.EXIT_CODE): code}}}
            self.access.change(f"{self.pods}/{pod['metadata']['name']}", mark)

    def make_ready(self, task: TaskId, ready: bool) -> None:
        """Say in the place of its kubelet, which never calls it ready by itself, that it is."""
        said = {"type": "Ready", "status": "True" if ready else "False"}
        for pod in self._pods_of(task):
            others = [one for one in pod["status"]["conditions"] if one["type"] != "Ready"]
            status = {"status": {"conditions": [*others, said]}}
            self.access.change(f"{self.pods}/{pod['metadata']['name']}/status", status)

    def starts(self, task: TaskId) -> int:
        """How many pods of an attempt have run, those that are gone included."""
        here = {pod["metadata"]["uid"] for pod in self._pods_of(task) if _has_run(pod)}
        return len(here | self._begun.get(task, set()))

    def alive(self) -> int:
        """How many pods run."""
        pods = self.access.read(self.pods)["items"]
        return sum(pod["status"]["phase"] == "Running" for pod in pods)

    async def crash(self) -> None:
        """The leader is gone without a word, and another one comes."""
        runtime, _, task = self._leaders[-1]
        runtime.abandon()
        task.cancel()
        await self.lead()

    async def usurp(self) -> PodRuntime:
        """A newer leader takes over; the old one's lease has run out."""
        old, fence, _ = self._leaders[-1]
        fence.shut("the lease ran out")
        await self.lead()
        return old

    # More than the contract asks for

    @property
    def pods(self) -> str:
        """Where the pods are."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def batch_jobs(self) -> str:
        """Where the batch Jobs are."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    def uid_of(self, job: str) -> str:
        """The uid of a Job; it is made when it is asked for first."""
        if job not in self._jobs:
            jobs = f"/apis/{API_VERSION}/namespaces/{self.namespace}/jobs"
            made = self.access.create(
                jobs,
                {
                    "apiVersion": API_VERSION,
                    "kind": "Job",
                    "metadata": {"name": job},
                    "spec": {"noop": {}},
                },
            )
            self._jobs[job] = made["metadata"]["uid"]
        return self._jobs[job]

    def forget_job(self, job: str) -> None:
        """Make a new Job when one of that name is asked for again."""
        self._jobs.pop(job, None)

    async def close(self) -> None:
        """End every leader there was, and let go of what they held."""
        for runtime, _, task in self._leaders:
            await runtime.close()
            task.cancel()
        self._watching.cancel()
        tasks = [task for _, _, task in self._leaders]
        await asyncio.gather(self._watching, *tasks, return_exceptions=True)
        await self._client.close()
        self.clock.close()
        for place in (self.pods, self.batch_jobs):
            for item in self.access.read(place)["items"]:
                if naming.FINALIZER in item["metadata"].get("finalizers", ()):
                    path = f"{place}/{item['metadata']['name']}"
                    patch = {"metadata": {"finalizers": None}}
                    self.access.ask("PATCH", path, patch, media="application/merge-patch+json")

    @classmethod
    def play(cls, scene: Scene, access: Access) -> None:
        """Run a scene in a fresh namespace."""

        async def run(namespace: str) -> None:
            shop = cls(access, namespace)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await shop.lead()
                    await scene(shop)
            finally:
                await shop.close()

        with access.namespace() as namespace:
            asyncio.run(run(namespace))

    def _order(self, job: str, index: int, attempt: int, **more: Any) -> TaskOrder:
        name = task_name(job, index, attempt)
        return TaskOrder(
            job_uid=self.uid_of(job),
            index=index,
            attempt=attempt,
            name=name,
            namespace=self.namespace,
            job=job,
            env={"INTERLOCK_TASK": name},
            **{"grace": Duration(seconds=30), **more},
        )

    def _look_on(self) -> Informers:
        return Informers.of(self._client, self.clock, Random(7), namespace=self.namespace)

    def _saw(self, pods: list[Pod]) -> None:
        for pod in pods:
            if pod.task is not None and has_run(pod):
                self._begun.setdefault(pod.task, set()).add(pod.metadata.uid)
        self._news.set()

    def _pods_of(self, task: TaskId) -> list[dict[str, Any]]:
        marks = {naming.JOB_UID: task.job_uid, naming.TASK: task.task, naming.ATTEMPT: task.attempt}
        selector = ",".join(f"{name}={value}" for name, value in marks.items())
        items: list[dict[str, Any]] = self.access.read(f"{self.pods}?labelSelector={selector}")[
            "items"
        ]
        return items


#: The code that a pod ends with once it is told to.
_LATER = "play.interlock.dev/exit-code-later"


def _told(work: Work) -> dict[str, str]:
    match work:
        case Exits(code):
            return {str(Play.EXIT_CODE): str(code)}
        case ExitsWhenTold(code):
            return {_LATER: str(code)}
        case IgnoresSigterm():
            return {str(Play.IGNORES_STOP): "true"}
        case ReadyWhenTold():
            return {str(Play.NEVER_READY): "true"}
        case RunsOn() | CannotStart():
            return {}
        case LeavesChild():
            raise AssertionError("a pod is over with its last process: that is the node's work")


def _has_run(pod: dict[str, Any]) -> bool:
    states = [one["state"] for one in pod["status"].get("containerStatuses", ())]
    return any("running" in state or "terminated" in state for state in states)
