"""What a scenario about schedules can do on a stage, and how it waits.

Schedules are bound to real time, so nothing is told that depends on how fast a stage is: how often
something was due, or how long it took. A scenario waits for states that last.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from interlock.resources.tasks import task_name
from interlock.testing.serving import PATIENCE_S
from support.differential.scenario import ENDS, Exits, Object, Work
from support.differential.schedule_telling import Names, controlled_told, job_told, skips
from support.differential.stage import Stage

_API = "interlock.dev/v1alpha1"
_PLURALS = {
    "Job": "jobs",
    "JobConfig": "jobconfigs",
    "ControlledJob": "controlledjobs",
    "Calendar": "calendars",
}
_LABEL = "differential-scenario"
_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
_LOOK_EVERY_S = 0.1

SECONDLY = [{"cron": "* * * * * * *"}]
#: A window that is open all the year, but for the last minute, and one of a single day.
_NEW_YEAR = {"action": "start", "cron": "0 0 1 1 *"}
OPEN = [_NEW_YEAR, {"action": "stop", "cron": "59 23 31 12 *"}]
SHUT = [_NEW_YEAR, {"action": "stop", "cron": "1 0 1 1 *"}]

Holds = Callable[[Object], Any]


class SchedulePlay:
    """One scenario on one stage. Names are the scenario's own there, and plain in the story."""

    def __init__(self, stage: Stage, scenario: str) -> None:
        self.story: list[str] = []
        self._stage = stage
        self._scenario = scenario
        self._prefix = f"{scenario}--"
        #: Every Job that was ever seen, as it was last, in the order of numbers or of due times.
        self._jobs: dict[str, Object] = {}
        self._names = Names(self._prefix)
        self._made: list[tuple[str, str]] = []

    # What is made and changed

    def config(self, name: str, work: Work, **spec: Any) -> None:
        """Create a JobConfig of that work, due every second unless told otherwise."""
        given = {"schedules": SECONDLY, **spec, "template": self._template(work)}
        self._make("JobConfig", name, given)

    def controlled(self, name: str, work: Work, **spec: Any) -> None:
        """Create a ControlledJob of that work whose window is open unless told otherwise."""
        given = {"events": OPEN, **spec, "jobTemplate": self._template(work)}
        self._make("ControlledJob", name, given)

    def calendar(self, name: str, *days: str) -> None:
        """Create a Calendar."""
        self._make("Calendar", name, {"days": [{"day": day, "name": "closed"} for day in days]})

    def change(self, kind: str, name: str, **spec: Any) -> None:
        """Change fields of a specification."""
        self._ask("PATCH", self._path(kind, self.own(name)), {"spec": spec})

    def delete(self, kind: str, name: str) -> None:
        """Ask for something to be gone, and see it go."""
        path = self._path(kind, self.own(name))
        self._ask("DELETE", path)
        self._until(f"{kind} {name} is gone", lambda: self._send("GET", path)[0] == 404)

    def delete_job(self, job: str) -> None:
        """The same for a Job, told by the name that the story gives it."""
        path = self._path("Job", self._names.real(job))
        self._ask("DELETE", path)
        self._until(f"{job} is gone", lambda: self._send("GET", path)[0] == 404)

    def verb(self, *argv: str, code: int = 0) -> None:
        """Carry out a command line; names are written `@name`. What it says is told."""
        words = [self.own(word[1:]) if word.startswith("@") else word for word in argv]
        words = [word.replace("/@", f"/{self._prefix}") for word in words]
        command = [sys.executable, "-c", _START, *self._stage.flags(), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        told = done.stdout + done.stderr
        assert done.returncode == code, f"{argv} exits with {done.returncode}: {told}"
        self.tell(f"interlock {' '.join(argv)} exits with {code}")

    @contextmanager
    def outage(self, lasts_s: int) -> Iterator[None]:
        """Let nobody look for so many due times."""
        since = time.monotonic()
        with self._stage.outage():
            yield
            while time.monotonic() < since + lasts_s:
                select.select([], [], [], _LOOK_EVERY_S)

    # What is waited for

    def until(self, kind: str, name: str, words: str, holds: Holds) -> Object:
        """Wait until it is so of the status of something; tells that it came to be so."""
        found: Object = {}

        def is_so() -> bool:
            nonlocal found
            found = self._ask("GET", self._path(kind, self.own(name)))
            self.look()
            return bool(holds(found.get("status") or {}))

        self._until(f"{kind} {name} {words}", is_so, lambda: found)
        self.tell(f"{name} {words}")
        return found

    def until_job(self, job: str, *phases: str) -> Object:
        """Wait until a Job is in one of these phases."""

        def is_so() -> bool:
            self.look()
            found = self._jobs.get(self._names.find(job) or "", {})
            # One that nobody has looked at yet has no status.
            return (found.get("status") or {}).get("phase", "Queued") in phases if found else False

        self._until(f"{job} is {' or '.join(phases)}", is_so, lambda: self._jobs)
        self.tell(f"{job} is {' or '.join(phases)}")
        return self._jobs[self._names.real(job)]

    def until_running(self, job: str) -> None:
        """Wait until the task of a Job runs."""

        def is_so() -> bool:
            self.look()
            found = self._jobs.get(self._names.find(job) or "", {})
            active = (found.get("status") or {}).get("execution", {}).get("active", ())
            return any(task["state"] == "Running" for task in active)

        self._until(f"{job} runs", is_so, lambda: self._jobs)
        self.tell(f"{job} runs")

    def until_jobs(self, count: int) -> None:
        """Wait until so many Jobs are there."""
        self._until(f"{count} Jobs are there", lambda: len(self.look()) == count)
        self.tell(f"{count} Jobs are there")

    def let_go(self, job: str, code: int = 0) -> None:
        """Let a Job that waits end with a code, and see it end."""
        self._stage.let_go(task_name(self._names.real(job), 0, 0), code)
        self.until_job(job, *ENDS)

    def let_all_go(self) -> None:
        """Let every Job end, however many there are."""
        for name, job in self._jobs.items():
            if (job.get("status") or {}).get("phase") not in ENDS:
                self._stage.let_go(task_name(name, 0, 0), 0)
        self._until("all are over", self._is_all_over, lambda: self._jobs)

    def _is_all_over(self) -> bool:
        return all((job.get("status") or {}).get("phase") in ENDS for job in self.look().values())

    # What is told

    def tell(self, line: str) -> None:
        """Add a line to the story."""
        self.story.append(self._names.plain(line))

    def tell_skips(self, name: str) -> None:
        """Why due times became no Jobs, without how many."""
        found = self._ask("GET", self._path("JobConfig", self.own(name)))
        for line in skips(found):
            self.tell(f"{name} skips: {line}")

    def tell_controlled(self, name: str) -> None:
        """How a ControlledJob is going."""
        self.look()
        found = self._ask("GET", self._path("ControlledJob", self.own(name)))
        for line in controlled_told(found):
            self.tell(f"{name} {line}")

    def tell_received(self, job: str) -> None:
        """The arguments that the task of a Job was given."""
        args = self._stage.received(task_name(self._names.real(job), 0, 0))["args"]
        self.tell(f"{job} received {args}")

    def tell_jobs(self) -> None:
        """What became of each Job."""
        self.look()
        for name, job in self._jobs.items():
            for line in job_told(job):
                self.tell(f"{self._names.label(name)} {line}")

    def tell_crowd(self) -> None:
        """What became of Jobs of which there are more or fewer."""
        self.look()
        for line in sorted({line for job in self._jobs.values() for line in job_told(job)}):
            self.tell(f"some {line}")

    def look(self) -> dict[str, Object]:
        """Take in the Jobs as they are; gives those that are there."""
        query = urlencode({"labelSelector": f"{_LABEL}={self._scenario}"})
        items = self._ask("GET", f"{self._path('Job')}?{query}")["items"]
        found = {job["metadata"]["name"]: job for job in items}
        new = [job for name, job in found.items() if name not in self._jobs]
        for job in sorted(new, key=_order):
            self._names.add(job)
            self._jobs[job["metadata"]["name"]] = job
        self._jobs.update(found)
        return found

    # The stage

    def own(self, name: str) -> str:
        """The name of something of this scenario on the stage."""
        return f"{self._prefix}{name}"

    def clear(self) -> None:
        """Remove all that was made; Jobs go with it."""
        for kind, name in self._made:
            self._send("DELETE", self._path(kind, name))

    def _template(self, work: Work) -> Object:
        spec = self._stage.spec_of(work)
        if isinstance(work, Exits) and "process" in spec:
            spec = {**spec, "process": {k: v for k, v in spec["process"].items() if v}}
        return {"metadata": {"labels": {_LABEL: self._scenario}}, "spec": spec}

    def _make(self, kind: str, name: str, spec: Object) -> None:
        body = {"apiVersion": _API, "kind": kind, "metadata": {"name": self.own(name)}}
        self._ask("POST", self._path(kind), body | {"spec": spec})
        self._made.append((kind, self.own(name)))

    def _path(self, kind: str, name: str = "") -> str:
        place = f"/apis/{_API}/namespaces/{self._stage.namespace}/{_PLURALS[kind]}"
        return f"{place}/{name}" if name else place

    def _until(
        self, words: str, holds: Callable[[], bool], found: Callable[[], object] = dict
    ) -> None:
        until = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > until:
                told = json.dumps(found(), indent=1)
                raise AssertionError(f"not so in {self._stage.namespace}: {words}: {told}")
            select.select([], [], [], _LOOK_EVERY_S)

    def _ask(self, method: str, path: str, body: object = None) -> Object:
        status, told = self._send(method, path, body)
        assert status < HTTPStatus.MULTIPLE_CHOICES, f"{method} {path}: {status} {told}"
        return told

    def _send(self, method: str, path: str, body: object = None) -> tuple[int, Object]:
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        with self._stage.connected() as (connection, headers):
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {**headers, "Content-Type": media})
            answer = connection.getresponse()
            told: Object = json.loads(answer.read())
            return answer.status, told


def _order(job: Object) -> tuple[str, str]:
    annotations = job["metadata"].get("annotations") or {}
    return annotations.get("interlock.dev/scheduled-at", ""), job["metadata"]["name"]
