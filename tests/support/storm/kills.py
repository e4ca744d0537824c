"""The kill storm: a loaded server that is killed again and again, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

from msgspec import Struct

from interlock.testing.clients import Object
from interlock.testing.serving import PATIENCE_S
from support.storm.checker import (
    Check,
    DueSeconds,
    Told,
    Windows,
    check_all,
    missing_output,
    together,
    without_end,
)
from support.storm.evidence import Kind, Line
from support.storm.ground import Ground, StandstillError, pause, until
from support.storm.load import CONFIGS, LIMITS, WINDOWS_EVERY_S, planted, schedules
from support.storm.people import (
    API,
    JOBS,
    Company,
    Customer,
    Notes,
    Operator,
    Roster,
    Watcher,
)
from support.storm.weather import Keepers, Weather

_PLURALS = {"JobConfig": "jobconfigs", "ControlledJob": "controlledjobs"}
_CUSTOMERS = 3
#: So many Jobs wait or run at most; more would only wait.
_AT_MOST_OPEN = 30
#: A customer of a storm that is measured in minutes asks until it is over.
_NO_END = 1_000_000
#: Between two faults up to so many bytes of evidence are awaited, about a hundred lines, but no
#: longer than this: a fault may be what keeps the evidence from coming.
_EVIDENCE_BYTES = 12_000
_CALM_S = 3.0
#: When faults are over everything ends within this, or never.
_REST_S = 4 * PATIENCE_S


class StormPlan(Struct, frozen=True, kw_only=True):
    """How long and how bad. Without minutes it is over after so many faults and Jobs."""

    seed: int
    jobs: int = 60
    faults: int = 12
    minutes: float = 0.0
    keepers: Keepers = Keepers.RARELY
    #: Whether two Jobs are let in that break the promise, to see that it is found.
    is_planted: bool = False
    #: Where to keep the data; None is the machine's place for temporary things.
    where: Path | None = None


class Outcome(NamedTuple):
    """What a trial came to."""

    figures: dict[str, object]
    checks: tuple[Check, ...]
    #: Where everything is kept, when something was broken.
    folder: Path

    @property
    def broken(self) -> list[Check]:
        """The checks that found something."""
        return [check for check in self.checks if check.faults]


def run_storm(plan: StormPlan) -> Outcome:
    """Let a storm pass over a server of its own, and judge."""
    with Ground(plan.where) as ground:
        outcome = _Storm(plan, ground).run()
        ground.keep = bool(outcome.broken)
        return outcome


class _Storm:
    """One storm: who is in it, and what they have seen."""

    def __init__(self, plan: StormPlan, ground: Ground) -> None:
        self._plan = plan
        self._ground = ground
        self._notes, self._roster = Notes(), Roster()
        self._weather = Weather(ground, plan.keepers, Random(f"weather {plan.seed}"))
        self._calm = Random(f"calm {plan.seed}")
        self._due = {name: DueSeconds() for name in CONFIGS}
        self._windows = {name: Windows(every) for name, every in WINDOWS_EVERY_S.items()}
        self._standstills: list[str] = []

    def run(self) -> Outcome:
        """Do everything, from the first schedule to the last word."""
        began = monotonic()
        with Company() as staff:
            operator = Operator(self._ground, staff, self._roster)
            self._begin(staff, operator)
            try:
                self._blow()
                self._come_to_rest()
            except StandstillError as error:
                self._standstills.append(str(error))
            jobs: Sequence[Object] = self._ground.insist("GET", JOBS)["items"]
        memory = self._ground.memory()
        self._ground.server.stop()
        evidence = self._ground.evidence
        figures: dict[str, object] = {
            "seed": self._plan.seed,
            "seconds": round(monotonic() - began),
            **{str(fault): count for fault, count in sorted(self._weather.done.items())},
            "Jobs": len(jobs),
            "attempts": sum(line.kind is Kind.BEGIN for line in evidence),
            "released by a person": operator.released,
            "memory at the end": memory,
        }
        return Outcome(figures, tuple(self._judge(evidence, jobs)), self._ground.folder)

    # What happens

    def _begin(self, staff: Company, operator: Operator) -> None:
        """Make the schedules, and call in everybody who stays to the end."""
        for (kind, name), spec in schedules(self._ground.folder).items():
            body = {"metadata": {"name": name}, "spec": spec}
            self._ground.insist("POST", f"{API}/{_PLURALS[kind]}", body)
        if self._plan.is_planted:
            for number in range(2):
                body = {
                    "metadata": {"name": f"planted-{number}"},
                    "spec": planted(self._ground.folder),
                }
                self._notes.acknowledge(self._ground.insist("POST", JOBS, body))
        for plural, hear in (
            ("jobs", self._roster.hear),
            ("jobconfigs", self._hear_config),
            ("controlledjobs", self._hear_controlled),
        ):
            staff.add(Watcher(self._ground, staff, plural, hear).run)
        staff.add(operator.run)

    def _hear_config(self, config: Object, _is_gone: bool) -> None:
        self._due[config["metadata"]["name"]].take(config)

    def _hear_controlled(self, controlled: Object, _is_gone: bool) -> None:
        self._windows[controlled["metadata"]["name"]].take(controlled)

    def _blow(self) -> None:
        """Strike again and again while customers ask for Jobs."""
        plan = self._plan
        each = _NO_END if plan.minutes else -(-plan.jobs // _CUSTOMERS)
        until_at = monotonic() + plan.minutes * 60
        with Company() as customers:
            for number in range(_CUSTOMERS):
                name, seed = f"c{number}", f"customer {number} {plan.seed}"
                customer = Customer(self._ground, customers, self._notes, self._roster, name, seed)
                customers.add(partial(customer.run, each, _AT_MOST_OPEN))
            struck = 0
            while struck < plan.faults or monotonic() < until_at:
                self._stay_calm()
                self._weather.strike()
                struck += 1
            if not plan.minutes:
                customers.join()

    def _stay_calm(self) -> None:
        """Let some work be done before the next fault; how much is drawn, not how long."""
        enough = self._ground.evidence_size + self._calm.randrange(_EVIDENCE_BYTES)
        latest = monotonic() + _CALM_S
        while self._ground.evidence_size < enough and monotonic() < latest:
            pause(0.02)

    def _come_to_rest(self) -> None:
        """See that everything goes on after the last fault; then let it come to its end."""
        seconds = {name: due.accounted_to for name, due in self._due.items()}
        windows = {name: each.newest for name, each in self._windows.items()}
        until(
            lambda: self._has_gone_on(seconds, windows) or None,
            "a due second of each JobConfig and a window of each ControlledJob after the faults",
            _REST_S,
        )
        for kind, name in schedules(self._ground.folder):
            path = f"{API}/{_PLURALS[kind]}/{name}"
            media = "application/merge-patch+json"
            self._ground.insist("PATCH", path, {"spec": {"suspend": True}}, media)
        until(lambda: self._has_ended() or None, "the end of all Jobs", _REST_S)

    def _has_gone_on(
        self, seconds: dict[str, datetime | None], windows: dict[str, datetime | None]
    ) -> bool:
        return all(due.accounted_to != seconds[name] for name, due in self._due.items()) and all(
            each.newest != windows[name] for name, each in self._windows.items()
        )

    def _has_ended(self) -> bool:
        """Whether every Job has ended: as the watcher says, and then as the server says."""
        if self._roster.count_open():
            return False
        return not list(without_end(self._ground.insist("GET", JOBS)["items"]))

    # What is to be said of it

    def _judge(self, evidence: Sequence[Line], jobs: Sequence[Object]) -> Iterator[Check]:
        notes = self._notes
        told = Told(
            jobs=jobs,
            acknowledged=notes.acknowledged,
            deleted=frozenset(notes.deleted),
            limits=LIMITS,
            fates_may_be_unknown=self._weather.killed_keepers,
        )
        yield from check_all(evidence, told)
        missing = missing_output(evidence, jobs, self._ground.log_of)
        yield Check("output lost", len(evidence), tuple(missing))
        yield self._roster.check()
        due = (each.check(name, jobs, evidence) for name, each in self._due.items())
        yield together("due seconds unaccounted", due)
        windows = (each.check(name, jobs) for name, each in self._windows.items())
        yield together("windows unaccounted", windows)
        orphans = self._ground.left_over()
        yield Check("processes left", len(evidence), tuple(orphans))
        yield Check("Jobs refused", len(notes.acknowledged), tuple(notes.refused))
        yield self._ground.complaints()
        yield Check("standstills", 1, tuple(self._standstills))
