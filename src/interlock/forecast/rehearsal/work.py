"""What tasks do in a rehearsal: rules by the name of the Job, the task or step, and the attempt."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import json

from interlock.execution.operations import step_spec
from interlock.forecast.rehearsal.scenario import FlapSpec, OnTerm, WorkMatch, WorkRule
from interlock.forecast.rehearsal.simulated_machine import Behaviour
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.resources.operation import ELABORATION, is_undo
from interlock.resources.tasks import TaskOrder, number_in_round

#: Longer than any world lives.
FOREVER_S = 1e9
#: How long a task lasts of which nothing is said.
USUAL_S = 1.0
#: What `match.step` calls the making of the steps.
ELABORATE = "elaborate"
#: The variable in which a task of an operation is told its step.
STEP = "INTERLOCK_STEP"


class Doing(Behaviour, frozen=True, kw_only=True):
    """What one attempt does."""

    #: Seconds from its launch until it runs.
    ready_s: float = 0.0
    #: How it fails.
    words: str = ""
    #: What it returns.
    result: Any = None
    #: The worker that does it dies at its end.
    kills_worker: bool = False

    @property
    def returns(self) -> bytes:
        """What it returns, as JSON; nothing when it returns nothing."""
        return b"" if self.result is None else json.encode(self.result)


class Attempt(NamedTuple):
    """Everything by which a rule may match."""

    job: str
    task: int
    attempt: int
    #: The step that it is of, if it is of one, and whether it undoes it.
    step: str | None
    undo: bool


def attempt_of(order: TaskOrder) -> Attempt:
    """Which attempt is ordered."""
    step = order.env.get(STEP)
    if step is None and order.index == ELABORATION:
        step = ELABORATE
    undo = step is not None and is_undo(order.index)
    return Attempt(order.job, order.index, number_in_round(order.attempt), step, undo)


def attempt_of_job(job: Job, task: int, attempt: int) -> Attempt:
    """Which attempt of a Job is meant."""
    spec = step_spec(job, task)
    step = spec.name if spec is not None else ELABORATE if task == ELABORATION else None
    undo = step is not None and is_undo(task)
    return Attempt(job.metadata.name, task, number_in_round(attempt), step, undo)


def fits(match: WorkMatch, attempt: Attempt) -> bool:
    """Whether a rule is for an attempt."""
    if not fnmatchcase(attempt.job, match.name) or match.task not in (None, attempt.task):
        return False
    if match.step is not None and not fnmatchcase(attempt.step or "", match.step):
        return False
    if (match.step is not None or match.undo is not None) and attempt.step is None:
        return False
    return match.undo in (None, attempt.undo) and match.attempt in (None, attempt.attempt)


class WorkModel:
    """Finds what an attempt does. The first rule that matches wins.

    Where a rule does not say how long work lasts, and where no rule matches, Jobs that are kept
    running (those of a ControlledJob) last until they are stopped, and others for a second.
    """

    def __init__(self, rules: tuple[WorkRule, ...], is_kept: Callable[[Key], bool]) -> None:
        self._rules = rules
        self._is_kept = is_kept
        self._fitting = lru_cache(maxsize=4096)(self._find)

    def of(self, order: TaskOrder) -> Doing:
        """What an attempt does."""
        return self.doing(attempt_of(order), order.namespace)

    def doing(self, attempt: Attempt, namespace: str) -> Doing:
        """What an attempt of a Job in a namespace does."""
        rule = self._fitting(attempt) or WorkRule()
        after_s = rule.probe_after_s
        usual_s = FOREVER_S if self._is_kept(Key("Job", namespace, attempt.job)) else USUAL_S
        return Doing(
            seconds=usual_s if rule.lasts is None else rule.lasts_s,
            exits=(rule.exit or int(rule.fails is not None),),
            deaf=rule.on_term is OnTerm.IGNORE,
            slow=rule.exit_after.total_seconds(),
            ready_after=0.0 if after_s is None and rule.flaps is not None else after_s,
            flaps=_turns(rule.flaps) if rule.flaps is not None else None,
            ready_s=rule.ready_after.total_seconds(),
            words=rule.fails or "",
            result=rule.result,
            kills_worker=rule.kills_worker,
        )

    def _find(self, attempt: Attempt) -> WorkRule | None:
        return next((rule for rule in self._rules if fits(rule.match, attempt)), None)


def _turns(flaps: FlapSpec) -> tuple[float, float]:
    return flaps.ready.total_seconds(), flaps.unready.total_seconds()
