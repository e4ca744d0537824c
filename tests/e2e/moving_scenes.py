"""A server of our own and a cluster, between which things are moved by a mover that is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commanding import Program

from interlock.client.api import Api
from interlock.client.kinds import JOBS, Kind
from interlock.client.kubeconfig import read_context
from interlock.client.target import Target
from interlock.migration import annotations as marks
from interlock.migration.endpoints import Side
from interlock.migration.mover import Mover
from interlock.testing.serving import Server
from support.kube import Access

Job = dict[str, Any]


class StoppedError(Exception):
    """The mover was killed."""


class Budget:
    """How many writes are made before the mover is killed, and whether it sees the last answer."""

    def __init__(self, left: int | None = None, *, loses_answer: bool = False) -> None:
        self._left = left
        self._loses_answer = loses_answer
        #: Every write that was made: what, and to which Job.
        self.made: list[tuple[str, str]] = []
        #: Called before a write, by its name and the Job's.
        self.before: dict[tuple[str, str], Callable[[], object]] = {}

    @contextmanager
    def spend(self, what: str, job: Job) -> Iterator[None]:
        """Make a write, unless it is one too many."""
        write = (what, str(job["metadata"]["name"]))
        if hook := self.before.pop(write, None):
            hook()
        if self._left == 0 and not self._loses_answer:
            raise StoppedError
        yield
        self.made.append(write)
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise StoppedError

    def names(self, what: str) -> list[str]:
        """The Jobs that got a write, in order."""
        return [name for made, name in self.made if made == what]


class WatchedSide(Side):
    """A side whose writes are counted, and cut off."""

    def __init__(self, api: Api, target: Target, budget: Budget, word: str) -> None:
        super().__init__(api, target.url)
        self._budget = budget
        self._word = word

    def create(self, job: Job) -> Job:
        with self._budget.spend(f"create {self._word}", job):
            return super().create(job)

    def change(self, job: Job, change: Job) -> Job:
        with self._budget.spend(f"change {self._word}", job):
            return super().change(job, change)

    def tell(self, thing: Job, status: Job) -> Job:
        with self._budget.spend(f"tell {self._word}", thing):
            return super().tell(thing, status)

    def remove(self, job: Job) -> None:
        with self._budget.spend(f"remove {self._word}", job):
            super().remove(job)


class Ground:
    """A namespace that both sides have."""

    def __init__(self, server: Server, access: Access, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self.access = access
        self.url = server.url
        self.kubeconfig = str(access.kubeconfig())
        self.program = Program(access, folder)
        self.source = Target(server.url)
        self.goal = read_context(self.kubeconfig, "")
        self.ours, self.theirs = Api(self.source), Api(self.goal)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        self.ours.call("POST", "/api/v1/namespaces", None, body)

    def close(self) -> None:
        """Let connections go."""
        self.ours.close()
        self.theirs.close()

    def queue(self, name: str, **spec: Any) -> Job:
        """Create a Job at the server."""
        return put(self.ours, self.namespace, name, spec)

    def mover(self, budget: Budget | None = None, image: str = "") -> Mover:
        budget = budget or Budget()
        return Mover(
            WatchedSide(self.ours, self.source, budget, "source"),
            WatchedSide(self.theirs, self.goal, budget, "copy"),
            "there",
            namespace=self.namespace,
            image=image,
        )

    def move(self, budget: Budget | None = None, image: str = "") -> dict[str, str]:
        """Move to the end; what became of each Job."""
        mover = self.mover(budget, image)
        mover.run()
        return {what.name: verdict.outcome for what, verdict in mover.verdicts.items()}

    def jobs(self, api: Api, kind: Kind = JOBS) -> dict[str, Job]:
        """The Jobs of one side that are to stay there, or what there is of another kind."""
        found = [item for page in api.pages(kind, self.namespace) for item in page["items"]]
        return {
            job["metadata"]["name"]: job
            for job in found
            if not job["metadata"].get("deletionTimestamp")
        }

    def start(self, name: str) -> None:
        """Let a held or waiting Job of the server run to its end, as a person might."""
        change = {"spec": {"suspend": None, "startAfter": None}}
        self.ours.patch(JOBS, self.namespace, name, change)
        flags = ("--server", self.url, "-n", self.namespace)
        self.program.plain(*flags, "wait", name)


def put(api: Api, namespace: str, name: str, spec: Job) -> Job:
    what: Job = {} if {"process", "noop"} & set(spec) else {"noop": {}}
    job = {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": name}}
    made: Job = api.create(JOBS, namespace, job | {"spec": what | spec})
    return made


def is_suspended(job: Job | None) -> bool:
    return job is None or bool(job["spec"].get("suspend"))


def is_clean(job: Job) -> bool:
    """Whether a Job shows nothing of a move."""
    metadata = job["metadata"]
    found = {*(metadata.get("annotations") or {}), *(metadata.get("labels") or {})}
    return not found & {marks.MOVE, marks.MOVED_TO, marks.MOVING}


def context_of(ground: Ground) -> str:
    import yaml

    name: str = yaml.safe_load(Path(ground.kubeconfig).read_text())["current-context"]
    return name
