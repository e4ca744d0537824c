"""Who is around in a storm: clients that ask for Jobs, watchers, and a person who looks after it.

Each is a thread. All of them bear that the server goes away at any moment and comes back elsewhere.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from random import Random
from types import TracebackType
from urllib.parse import urlsplit

from interlock.testing.clients import Object, phase_of
from interlock.testing.serving import PATIENCE_S
from support.storm.checker import ENDS, Check
from support.storm.ground import TROUBLE, Ground
from support.storm.load import Load

API = "/apis/interlock.dev/v1alpha1/namespaces/default"
JOBS = f"{API}/jobs"
_MERGE = "application/merge-patch+json"
_PAST = "2020-01-01T00:00:00Z"
#: How long somebody waits before trying again what a fault came in between.
_AGAIN_S = 0.05
#: A watch is asked to end after so many seconds, so that the watcher hears that it should stop.
_LASTS_S = 2
#: A person is not as quick as a machine: what is unknown is looked at twice.
_PERSON_S = 0.5


class Company:
    """Threads that work until they are told to stop; as a context."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._crashes: list[BaseException] = []

    @property
    def is_over(self) -> bool:
        """Whether everybody should go home."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Let time pass; True when everybody should go home."""
        return self._stop.wait(seconds)

    def add(self, work: Callable[[], None]) -> None:
        """Let somebody do something beside the others."""

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self._crashes.append(error)

        self._threads.append(threading.Thread(target=guarded, daemon=True))
        self._threads[-1].start()

    def __enter__(self) -> Company:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Send everybody home, and wait until they are."""
        self._stop.set()
        self.join()

    def join(self) -> None:
        """Wait until everybody is done.

        Raises:
            BaseException: What ended one of them that should have gone on, a defect of the storm.
        """
        for thread in self._threads:
            thread.join()
        if self._crashes:
            raise self._crashes[0]


class Watcher:
    """Follows one kind over all restarts, and hands on every state that it hears of."""

    def __init__(
        self, ground: Ground, company: Company, plural: str, hear: Callable[[Object, bool], None]
    ) -> None:
        self._ground = ground
        self._company = company
        self._path = f"{API}/{plural}"
        #: Gets each object, and whether it is gone.
        self._hear = hear
        self._heard = ""

    def run(self) -> None:
        """Follow until everybody goes home."""
        while not self._company.is_over:
            try:
                self._heard = self._heard or self._list()
                self._follow()
            except TROUBLE:
                self._company.wait(_AGAIN_S)

    def _list(self) -> str:
        status, listed = self._ground.client.ask("GET", self._path)
        if status != 200:
            raise ConnectionError(status)
        for found in listed["items"]:
            self._hear(found, False)
        return str(listed["metadata"]["resourceVersion"])

    def _follow(self) -> None:
        place = urlsplit(self._ground.server.url).netloc
        query = f"watch=1&resourceVersion={self._heard}&timeoutSeconds={_LASTS_S}"
        connection = HTTPConnection(place, timeout=PATIENCE_S)
        try:
            connection.request("GET", f"{self._path}?{query}&allowWatchBookmarks=true")
            stream = connection.getresponse()
            if stream.status != 200:
                raise ConnectionError(stream.status)
            while line := stream.readline():
                self._take(json.loads(line))
        finally:
            connection.close()

    def _take(self, event: Object) -> None:
        thing = event["object"]
        if event["type"] == "ERROR":
            # The version is too old: begin with what there is now.
            self._heard = ""
            raise ConnectionError(thing.get("message"))
        if event["type"] != "BOOKMARK":
            self._hear(thing, event["type"] == "DELETED")
        self._heard = thing["metadata"]["resourceVersion"]


class Roster:
    """The Jobs as far as a watcher has heard: which are open, and whether an end stays an end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._phases: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._unsaid: list[str] = []

    def hear(self, job: Object, is_gone: bool) -> None:
        """Take in a state of a Job."""
        uid, phase = job["metadata"]["uid"], phase_of(job)
        with self._changed:
            before = self._phases.get(uid)
            if before in ENDS and phase != before:
                self._unsaid.append(f"job/{job['metadata']['name']} was {before}, is {phase}")
            self._names[uid] = job["metadata"]["name"]
            self._phases[uid] = phase
            if is_gone:
                del self._phases[uid]
            self._changed.notify_all()

    def count_open(self) -> int:
        """How many Jobs have not ended."""
        with self._changed:
            return sum(phase not in ENDS for phase in self._phases.values())

    def wait_for_room(self, at_most: int, patience_s: float) -> bool:
        """Wait until fewer Jobs are open; False when that takes too long."""
        with self._changed:
            return self._changed.wait_for(
                lambda: sum(phase not in ENDS for phase in self._phases.values()) < at_most,
                patience_s,
            )

    def unknown(self) -> dict[str, str]:
        """The Jobs whose fate is unknown: uids by name."""
        with self._changed:
            return {self._names[u]: u for u, phase in self._phases.items() if phase == "Unknown"}

    def check(self) -> Check:
        """What has ended stays as it is."""
        return Check("ends unsaid", len(self._names), tuple(self._unsaid))


class Notes:
    """What clients were told: the promises that they hold in their hands."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.acknowledged: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.refused: list[str] = []

    def acknowledge(self, job: Object) -> None:
        """A Job was promised to be kept."""
        with self._guard:
            self.acknowledged[job["metadata"]["name"]] = job["metadata"]["uid"]


class Customer:
    """Asks for Jobs, one after another; stops and deletes some of them."""

    def __init__(
        self, ground: Ground, company: Company, notes: Notes, roster: Roster, name: str, seed: str
    ) -> None:
        self._ground = ground
        self._company = company
        self._notes = notes
        self._roster = roster
        self._name = name
        self._random = Random(seed)
        self._load = Load(ground.folder, self._random)

    def run(self, jobs: int, at_most_open: int) -> None:
        """Ask for so many Jobs, but never let too many wait."""
        for number in range(jobs):
            while not self._roster.wait_for_room(at_most_open, _LASTS_S):
                if self._company.is_over:
                    return
            if self._company.is_over:
                return
            self._one(f"{self._name}-{number}")

    def _one(self, name: str) -> None:
        job = self._create(name, self._load.job())
        if job is None:
            return
        self._notes.acknowledge(job)
        match self._random.randrange(20):
            case 0 | 1:
                self._ask("PATCH", f"{JOBS}/{name}", {"spec": {"killAt": _PAST}}, _MERGE)
            case 2:
                self._notes.deleted.add(job["metadata"]["uid"])
                self._ask("DELETE", f"{JOBS}/{name}")

    def _create(self, name: str, spec: Object) -> Object | None:
        status, told = self._ask("POST", JOBS, {"metadata": {"name": name}, "spec": spec})
        if status == 409:
            # The answer to an earlier try was lost: the Job is there, and is ours.
            status, told = self._ask("GET", f"{JOBS}/{name}")
        if status >= 300:
            self._notes.refused.append(f"job/{name}: {status} {told}")
        return told if 200 <= status < 300 else None

    def _ask(
        self, method: str, path: str, body: object = None, media: str = "application/json"
    ) -> tuple[int, Object]:
        """Ask until there is an answer; code 0 when everybody went home before there was one."""
        while not self._company.is_over:
            try:
                status, told = self._ground.client.ask(method, path, body, media)
            except TROUBLE:
                status, told = 503, {}
            if status != 503:
                return status, told
            self._company.wait(_AGAIN_S)
        return 0, {}


class Operator:
    """The person who is called when a fate is unknown: looks on the machine, then says so."""

    def __init__(self, ground: Ground, company: Company, roster: Roster) -> None:
        self._ground = ground
        self._company = company
        self._roster = roster
        self.released = 0
        self._looked: set[str] = set()

    def run(self) -> None:
        """Look around until everybody goes home."""
        while not self._company.wait(_PERSON_S):
            unknown = self._roster.unknown()
            gone = {uid for uid in unknown.values() if not self._ground.processes_of(uid)}
            for name, uid in unknown.items():
                # A process that was just about to start is not seen by one look alone.
                if uid in gone & self._looked and not self._company.is_over:
                    self._release(name)
            self._looked = gone

    def _release(self, name: str) -> None:
        try:
            status, job = self._ground.client.ask("GET", f"{JOBS}/{name}")
        except TROUBLE:
            return
        grants = job.get("status", {}).get("admission", {}).get("grants") if status == 200 else ()
        if grants:
            key, reason = grants[0]["key"], "no process of it is on the machine"
            told = self._ground.command("release", key, "--job", name, "--reason", reason)
            self.released += told.code == 0
