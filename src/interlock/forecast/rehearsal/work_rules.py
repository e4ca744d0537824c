"""Checks the rules that say what work does, and that there is one where the work itself is made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from msgspec import json

from interlock.forecast.rehearsal.elaborating import MISSING, flaws_of, is_elaboration
from interlock.forecast.rehearsal.ground import Ground
from interlock.forecast.rehearsal.scenario import FOREVER, NEVER, WorkRule
from interlock.forecast.rehearsal.work import ELABORATE, Attempt, fits
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.operation import ELABORATION
from interlock.resources.tasks import MAX_RETURNED_BYTES
from interlock.resources.values.durations import parse_duration


def check_rules(ground: Ground, objects: Iterable[Resource]) -> None:
    """Note everything that is wrong with the rules of a scenario."""
    for at, rule in enumerate(ground.spec.work):
        _check(ground, rule, f"work[{at}]")
    for job in objects:
        if isinstance(job, Job) and job.spec.python is not None:
            _check_elaborated(ground, job)


def _check(ground: Ground, rule: WorkRule, path: str) -> None:
    _check_length(ground, f"{path}.lasts", rule.lasts, FOREVER)
    _check_length(ground, f"{path}.probeAfter", rule.probe_after, NEVER)
    if not 0 <= rule.exit <= 255:
        ground.wrong(f"{path}.exit", "expected an exit code from 0 to 255", rule.exit)
    if rule.flaps is not None:
        for name, lasts in (("ready", rule.flaps.ready), ("unready", rule.flaps.unready)):
            if lasts <= timedelta():
                ground.wrong(f"{path}.flaps.{name}", "expected a time longer than 0s", str(lasts))
    if rule.match.step == "":
        ground.wrong(f"{path}.match.step", "expected a pattern for the name of a step", "")
    for name in ("task", "attempt"):
        number = getattr(rule.match, name)
        if number is not None and number < 0:
            ground.wrong(f"{path}.match.{name}", "expected a number from 0", number)
    if rule.kills_worker and ground.spec.settings.workers == 0:
        ground.wrong(f"{path}.killsWorker", "there are no workers: give settings.workers", True)
    _check_result(ground, rule, path)


def _check_length(ground: Ground, path: str, given: str | None, word: str) -> None:
    if given is None or given == word:
        return
    try:
        parse_duration(given)
    except ValueError as error:
        ground.wrong(path, f"{error}, or {word}", given)


def _check_result(ground: Ground, rule: WorkRule, path: str) -> None:
    if rule.result is None:
        return
    others = {
        "exit": rule.exit != 0,
        "fails": rule.fails is not None,
        "killsWorker": rule.kills_worker,
    }
    against = [name for name, is_given in others.items() if is_given]
    if against:
        ground.wrong(f"{path}.result", f"what fails returns nothing: leave it out, or {against[0]}")
    elif is_elaboration(rule) and rule.match.undo is not True:
        ground.problems += flaws_of(rule.result, f"{path}.result")
    elif (length := len(json.encode(rule.result))) > MAX_RETURNED_BYTES:
        most = f"expected at most {MAX_RETURNED_BYTES} bytes as JSON"
        ground.wrong(f"{path}.result", most, f"{length} bytes")


def _check_elaborated(ground: Ground, job: Job) -> None:
    """See that some rule says which steps an operation has, or that this goes wrong."""
    first = Attempt(job.metadata.name, ELABORATION, 0, ELABORATE, undo=False)
    fitting = (rule for rule in ground.spec.work if _may_fit(rule, first))
    told = any(
        rule.result is not None or rule.fails is not None or rule.exit or rule.kills_worker
        for rule in fitting
    )
    if not told:
        ground.wrong("work", f"{job.metadata.name} is a function for a worker, and {MISSING}")


def _may_fit(rule: WorkRule, first: Attempt) -> bool:
    """Whether a rule is for one of the attempts of a Job to make its steps."""
    number = rule.match.attempt
    return fits(rule.match, first if number is None else first._replace(attempt=number))
