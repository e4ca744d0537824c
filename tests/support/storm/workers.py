"""The storm over workers: killed, hung and sent away under load, beside kills of the server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from threading import Condition
from time import monotonic
from typing import Any

from msgspec import Struct

from interlock.testing.clients import Object, phase_of
from interlock.testing.serving import PATIENCE_S
from support.storm.checker import ENDS, Check
from support.storm.crew import LEASE_S, Blow, Crew
from support.storm.ground import Ground, StandstillError, pause, until
from support.storm.kills import Outcome
from support.storm.people import JOBS, Company, Roster, Watcher
from support.storm.plants import Plant, program_of
from support.storm.steps_checker import End, Told, check_steps, read_steps
from support.storm.weather import Keepers, Weather
from support.storm.workers_app import EVIDENCE

_FUNCTION = "play"
_PLACES = 8
#: So many operations wait or run at most; more would only wait.
_AT_MOST_OPEN = 24
_ITEMS = 4
_ALWAYS = 10_000
_LONGEST_STEP_S = 0.3
#: Between two blows so many bytes of evidence are awaited at most, but no longer than this.
_EVIDENCE_BYTES = 4_000
_CALM_S = 2.0
#: One blow of so many is for the server.
_FOR_SERVER = 8
_REST_S = 4 * PATIENCE_S
#: Where an operation comes to rest.
_SETTLED = ENDS | {"Stuck"}


class WorkersPlan(Struct, frozen=True, kw_only=True):
    """How bad: it is over after so many worker processes were hit and so many operations."""

    seed: int
    kills: int = 100
    #: And at least so many stood still for longer than their lease.
    hangs: int = 5
    operations: int = 300
    programs: int = 2
    processes: int = 2
    plant: Plant = Plant.NOTHING
    where: Path | None = None


def run_workers(plan: WorkersPlan) -> Outcome:
    """Let a storm pass over workers and a server of its own, and judge."""
    arguments = ("--worker-lease", f"{LEASE_S:g}s")
    with Ground(plan.where, *arguments, program=program_of(plan.plant)) as ground:
        outcome = _Storm(plan, ground).run()
        ground.keep = bool(outcome.broken)
        return outcome


class Ledger:
    """The operations that were asked for, and which of them have come to rest."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._phases: dict[str, str] = {}
        #: In which phase each comes to rest, by its name.
        self.scripts: dict[str, str] = {}

    def acknowledge(self, name: str, phase: str) -> None:
        """An operation was promised to be kept."""
        with self._changed:
            self.scripts[name] = phase

    def hear(self, job: Object, _is_gone: bool) -> None:
        """Take in a state of a Job."""
        with self._changed:
            self._phases[job["metadata"]["name"]] = phase_of(job)
            self._changed.notify_all()

    def wait_for_room(self, patience_s: float) -> bool:
        """Wait until fewer are open; False when that takes too long."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open() < _AT_MOST_OPEN, patience_s)

    def is_at_rest(self) -> bool:
        """Whether nothing is open."""
        with self._changed:
            return not self._open()

    def _open(self) -> int:
        return sum(self._phases.get(name) not in _SETTLED for name in self.scripts)


class Script:
    """Draws operations, each with the phase in which it comes to rest."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def operation(self, name: str) -> tuple[Object, str]:
        """One operation."""
        random = self._random
        steps = [self._step() for _ in range(random.randint(1, 4))]
        place, phase = f"place-{random.randrange(_PLACES)}", "Succeeded"
        sort = random.randrange(12)
        if sort < 3:
            random.choice(steps)["fails"] = random.randint(1, 3)
        elif sort < 5:
            at = random.randrange(len(steps))
            steps[at] = {"redo": True, "seconds": self._seconds(), "fails": random.randint(0, 2)}
        elif sort < 8:
            steps[-1]["fails"], phase = _ALWAYS, "Failed"
        elif sort == 8:
            steps[-1]["fails"] = _ALWAYS
            random.choice(steps)["undo_fails"] = _ALWAYS
            # It blocks its target for ever: nobody else has that.
            place, phase = name, "Stuck"
        python = {"function": _FUNCTION, "args": {"place": place, "script": steps}}
        spec = {
            "python": python,
            "target": {"path": f"storm/{place}"},
            "maxInterruptions": 1000,
        }
        return {"metadata": {"name": name}, "spec": spec}, phase

    def _step(self) -> dict[str, Any]:
        return {"seconds": self._seconds(), "fails": 0, "undo_fails": 0}

    def _seconds(self) -> float:
        return round(self._random.uniform(0, _LONGEST_STEP_S), 3)


class _Storm:
    """One storm over workers."""

    def __init__(self, plan: WorkersPlan, ground: Ground) -> None:
        self._plan = plan
        self._ground = ground
        self._ledger, self._roster = Ledger(), Roster()
        self._script = Script(Random(f"script {plan.seed}"))
        self._random = Random(f"storm {plan.seed}")
        self._weather = Weather(ground, Keepers.SPARED, Random(f"weather {plan.seed}"))
        crew = Random(f"crew {plan.seed}")
        self._crew = Crew(ground, crew, programs=plan.programs, processes=plan.processes)
        self._refused: list[str] = []
        self._standstills: list[str] = []

    def run(self) -> Outcome:
        """Do everything, from the first operation to the last word."""
        began = monotonic()
        with self._crew as crew:
            with Company() as staff:
                staff.add(Watcher(self._ground, staff, "jobs", self._hear).run)
                try:
                    self._blow(crew)
                    crew.come_to_rest()
                    until(lambda: self._is_at_rest() or None, "the end of all", _REST_S)
                except StandstillError as error:
                    self._standstills.append(str(error))
            crew.stop()
            jobs: Sequence[Object] = self._ground.insist("GET", JOBS)["items"]
        memory = self._ground.memory()
        self._ground.server.stop()
        lines = read_steps(self._ground.folder / EVIDENCE)
        told = Told(lines, jobs, self._ledger.scripts)
        figures: dict[str, object] = {
            "seed": self._plan.seed,
            "seconds": round(monotonic() - began),
            "worker processes killed": crew.killed,
            **{str(blow): crew.done[blow] for blow in Blow},
            **{str(fault): count for fault, count in sorted(self._weather.done.items())},
            **_figures(told),
            "memory at the end": memory,
        }
        return Outcome(figures, tuple(self._judge(told)), self._ground.folder)

    def _hear(self, job: Object, is_gone: bool) -> None:
        self._ledger.hear(job, is_gone)
        self._roster.hear(job, is_gone)

    def _blow(self, crew: Crew) -> None:
        """Strike again and again while operations are asked for."""
        with Company() as customers:
            customers.add(partial(self._ask, customers))
            while crew.killed < self._plan.kills or crew.done[Blow.HANG] < self._plan.hangs:
                self._stay_calm()
                if self._random.randrange(_FOR_SERVER):
                    crew.strike()
                else:
                    self._weather.strike()
            until(lambda: self._has_asked() or None, "all to be asked for", _REST_S)

    def _has_asked(self) -> bool:
        return len(self._ledger.scripts) + len(self._refused) >= self._plan.operations

    def _ask(self, company: Company) -> None:
        """Ask for operations, some at a time, but never let too many wait."""
        number = 0
        while not company.is_over:
            if not self._ledger.wait_for_room(1.0):
                continue
            asked = [self._script.operation(f"op-{number + at}") for at in range(_ITEMS)]
            number += _ITEMS
            body = {"items": [job for job, _ in asked]}
            answer = self._ground.insist("POST", "/operations", body)
            for (job, phase), item in zip(asked, answer["items"], strict=True):
                self._note(job["metadata"]["name"], phase, item)

    def _note(self, name: str, phase: str, item: Object) -> None:
        refusal = item.get("refusal") or {}
        # The answer to an earlier try was lost: it is there, and is ours.
        if item.get("job_id") or refusal.get("reason") == "AlreadyExists":
            self._ledger.acknowledge(name, phase)
        else:
            self._refused.append(f"job/{name}: {refusal}")

    def _stay_calm(self) -> None:
        """Let some work be done before the next blow; how much is drawn, not how long."""
        file = self._ground.folder / EVIDENCE

        def size() -> int:
            return file.stat().st_size if file.exists() else 0

        enough, latest = size() + self._random.randrange(_EVIDENCE_BYTES), monotonic() + _CALM_S
        while size() < enough and monotonic() < latest:
            pause(0.02)

    def _is_at_rest(self) -> bool:
        """Whether everything is over or stuck: as the watcher says, and then as the server says."""
        if not self._ledger.is_at_rest():
            return False
        jobs = self._ground.insist("GET", JOBS)["items"]
        return all(phase_of(job) in _SETTLED for job in jobs)

    def _judge(self, told: Told) -> list[Check]:
        return [
            *check_steps(told),
            self._roster.check(),
            Check("operations refused", len(told.scripts), tuple(self._refused)),
            self._ground.complaints(),
            Check("standstills", 1, tuple(self._standstills)),
        ]


def _figures(told: Told) -> dict[str, object]:
    """What was seen of attempts that were cut off, and how much of it came late."""
    cut = [one for one, each in told.record.items() if each["result"] == End.INTERRUPTED]
    return {
        "operations": len(told.jobs),
        "attempts": len(told.begun),
        "attempts cut off": len(cut),
        "of them begun": sum(one in told.begun for one in cut),
        "of them ended late": sum(one in told.ended for one in cut),
        "operations told in part": len(told.jobs) - len(told.whole),
    }
