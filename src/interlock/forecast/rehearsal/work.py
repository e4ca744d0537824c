"""What tasks do in a rehearsal: rules by the name of the Job, the task and the attempt."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache

from interlock.forecast.rehearsal.scenario import OnTerm, WorkRule
from interlock.forecast.rehearsal.simulated_machine import Behaviour
from interlock.resources.tasks import TaskOrder, number_in_round

#: Longer than any world lives.
FOREVER_S = 1e9
#: How long a task lasts of which nothing is said.
USUAL_S = 1.0


class Doing(Behaviour, frozen=True, kw_only=True):
    """What one attempt does."""

    #: Seconds from its launch until it runs.
    ready_s: float = 0.0


class WorkModel:
    """Finds what an attempt does. The first rule that matches wins.

    Where a rule does not say how long work lasts, and where no rule matches, Jobs that are kept
    running (those of a ControlledJob) last until they are stopped, and others for a second.
    """

    def __init__(self, rules: tuple[WorkRule, ...], is_kept: Callable[[TaskOrder], bool]) -> None:
        self._rules = rules
        self._is_kept = is_kept
        self._fitting = lru_cache(maxsize=4096)(self._find)

    def of(self, order: TaskOrder) -> Doing:
        """What an attempt does."""
        rule = self._fitting(order.job, order.index, number_in_round(order.attempt)) or WorkRule()
        usual_s = FOREVER_S if self._is_kept(order) else USUAL_S
        return Doing(
            seconds=usual_s if rule.lasts is None else rule.lasts_s,
            exits=(rule.exit,),
            deaf=rule.on_term is OnTerm.IGNORE,
            slow=rule.exit_after.total_seconds(),
            ready_s=rule.ready_after.total_seconds(),
        )

    def _find(self, job: str, task: int, attempt: int) -> WorkRule | None:
        for rule in self._rules:
            match = rule.match
            if (
                fnmatchcase(job, match.name)
                and match.task in (None, task)
                and match.attempt in (None, attempt)
            ):
                return rule
        return None
