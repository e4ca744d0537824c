"""Restores in place: a store is put back again and again while tasks run, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic

from msgspec import Struct

from interlock.testing.clients import Object, phase_of
from interlock.testing.serving import PATIENCE_S
from support.storm.checker import Check, Told, check_all, together, without_end
from support.storm.evidence import Kind, note_restore
from support.storm.ground import TROUBLE, Ground, StandstillError, until
from support.storm.kills import Outcome
from support.storm.load import LIMITS, held
from support.storm.people import (
    JOBS,
    Company,
    Customer,
    Notes,
    Operator,
    Roster,
    Watcher,
)

#: The keys under which somebody is at work while the store is put back: one whom the backup knows,
#: one whom it knows as waiting, and one whom it does not know. No other Job replaces them.
_KNOWN, _WAITING, _UNKNOWN = "archive", "vault", "fan"
_JOBS_BEFORE, _JOBS_AFTER = 6, 4
_AT_MOST_OPEN = 15
_MOST_RESTARTS = 2


class RestorePlan(Struct, frozen=True, kw_only=True):
    """How often the store is put back."""

    seed: int
    times: int = 20
    #: A server that is not ready so long after a restore never will be.
    ready_within_s: float = PATIENCE_S
    where: Path | None = None


def run_restores(plan: RestorePlan) -> Outcome:
    """Back up and restore a server of its own, and judge."""
    with Ground(plan.where) as ground:
        outcome = _Trial(plan, ground).run()
        ground.keep = bool(outcome.broken)
        return outcome


class _Trial:
    """Rounds of work, a backup, more work, and a restore while tasks run."""

    def __init__(self, plan: RestorePlan, ground: Ground) -> None:
        self._plan = plan
        self._ground = ground
        self._random = Random(f"restores {plan.seed}")
        self._notes = Notes()
        self._released = self._restores = 0
        self._unsaid: list[Check] = []
        self._standstills: list[str] = []

    def run(self) -> Outcome:
        """Do all rounds, or as many as go well, and judge."""
        began = monotonic()
        jobs: list[Object] = []
        try:
            for number in range(self._plan.times):
                self._round(number)
            jobs = self._ground.insist("GET", JOBS)["items"]
        except StandstillError as error:
            self._standstills.append(f"round {self._restores}: {error}")
        memory = self._ground.memory()
        self._ground.server.stop()
        evidence = self._ground.evidence
        begun = [line.attempt for line in evidence if line.kind is Kind.BEGIN]
        figures: dict[str, object] = {
            "seed": self._plan.seed,
            "seconds": round(monotonic() - began),
            "restores": self._restores,
            "Jobs in the end": len(jobs),
            "attempts": len(begun),
            "attempts begun again": len(begun) - len(set(begun)),
            "released by a person": self._released,
            "memory at the end": memory,
        }
        return Outcome(figures, tuple(self._judge(jobs)), self._ground.folder)

    def _round(self, number: int) -> None:
        ground, backup = self._ground, self._ground.folder / f"backup-{number}"
        with self._staffed() as (company, roster):
            self._begin(f"known-{number}", _KNOWN, "known")
            self._begin(f"first-{number}", _WAITING, f"first-{number}")
            self._ask(f"waiting-{number}", held(ground.folder, _WAITING, "known"))
            self._customer(company, roster, f"before-{number}").run(_JOBS_BEFORE, _AT_MOST_OPEN)
            self._command("backup", str(backup))
            known = set(self._notes.acknowledged)
            # Who waited then is at work now, and who is at work now did not even exist then.
            (ground.folder / f"first-{number}").touch()
            self._await(f"waiting-{number}")
            self._begin(f"unknown-{number}", _UNKNOWN, "never")
            self._customer(company, roster, f"after-{number}").run(_JOBS_AFTER, _AT_MOST_OPEN)
            for _ in range(self._random.randint(0, _MOST_RESTARTS)):
                self._random.choice((ground.server.kill, ground.server.stop))()
                ground.server.start()
        ground.server.stop()
        self._command("restore", str(backup), "--data", str(ground.server.data), "--force")
        note_restore(ground.folder)
        self._forget(known)
        ground.server.start()
        self._restores += 1
        self._wait_until_ready()
        with self._staffed() as (company, roster):
            (ground.folder / "known").touch()
            self._customer(company, roster, f"anew-{number}").run(_JOBS_AFTER, _AT_MOST_OPEN)
            until(lambda: self._has_ended(roster) or None, "the end of all Jobs after a restore")
        (ground.folder / "known").unlink()

    # What happens

    @contextmanager
    def _staffed(self) -> Iterator[tuple[Company, Roster]]:
        """With a watcher and a person on duty, who know nothing of what was before."""
        roster = Roster()
        with Company() as company:
            operator = Operator(self._ground, company, roster)
            company.add(Watcher(self._ground, company, "jobs", roster.hear).run)
            company.add(operator.run)
            yield company, roster
        self._released += operator.released
        self._unsaid.append(roster.check())

    def _customer(self, company: Company, roster: Roster, name: str) -> Customer:
        seed = f"{name} {self._plan.seed}"
        return Customer(self._ground, company, self._notes, roster, name, seed)

    def _begin(self, name: str, key: str, gate: str) -> None:
        """Let somebody be at work until the gate is opened, and see that it is."""
        self._ask(name, held(self._ground.folder, key, gate))
        self._await(name)

    def _ask(self, name: str, spec: Object) -> None:
        body = {"metadata": {"name": name}, "spec": spec}
        self._notes.acknowledge(self._ground.insist("POST", JOBS, body))

    def _await(self, name: str) -> None:
        def has_begun() -> bool | None:
            lines = self._ground.evidence
            return any(line.job == name and line.kind is Kind.BEGIN for line in lines) or None

        until(has_begun, f"the beginning of {name}")

    def _command(self, *argv: str) -> None:
        told = self._ground.command(*argv)
        if told.code != 0:
            raise StandstillError(f"interlock {argv[0]} ended with {told.code}: {told.text}")

    def _forget(self, known: set[str]) -> None:
        """Expect nothing of Jobs that are younger than the backup."""
        for name in self._notes.acknowledged.keys() - known:
            self._notes.deleted.add(self._notes.acknowledged.pop(name))

    def _wait_until_ready(self) -> None:
        said = ""

        def is_ready() -> bool | None:
            nonlocal said
            try:
                status, said = self._ground.client.ask("GET", "/readyz")
            except TROUBLE as error:
                status, said = 0, repr(error)
            return status == 200 or None

        try:
            until(is_ready, "/readyz to be ok after a restore", self._plan.ready_within_s)
        except StandstillError as error:
            raise StandstillError(f"{error}; it says: {said}") from None

    def _has_ended(self, roster: Roster) -> bool:
        if roster.count_open():
            return False
        return not list(without_end(self._ground.insist("GET", JOBS)["items"]))

    # What is to be said of it

    def _judge(self, jobs: list[Object]) -> Iterator[Check]:
        evidence, notes = self._ground.evidence, self._notes
        told = Told(
            jobs=jobs,
            acknowledged=notes.acknowledged if jobs else {},
            deleted=frozenset(notes.deleted),
            limits=LIMITS,
            fates_may_be_unknown=True,
            is_restored=True,
        )
        yield Check("standstills", self._plan.times, tuple(self._standstills))
        # A trial that stood still says nothing more of its Jobs than what their tasks wrote.
        about_jobs = check_all(evidence, told)
        yield from (
            about_jobs
            if jobs
            else (
                check
                for check in about_jobs
                if check.name in ("overlaps", "fences that do not rise")
            )
        )
        yield together("ends unsaid", self._unsaid)
        yield _found_again(jobs)
        yield Check(
            "processes left", len(evidence), tuple(self._ground.left_over() if jobs else ())
        )
        yield self._ground.complaints()


def _found_again(jobs: list[Object]) -> Check:
    """Tasks that the backup knew at work went on through the restore, and their end was seen."""
    known = {job["metadata"]["name"]: phase_of(job) for job in jobs}
    phases = {name: phase for name, phase in known.items() if name.startswith("known-")}
    faults = [f"job/{name} is {phase}" for name, phase in phases.items() if phase != "Succeeded"]
    return Check("tasks not found again", len(phases), tuple(faults))
