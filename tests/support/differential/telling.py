"""How is a played scenario told, so that the same story always has the same words?

A watch may merge changes and repeat them. So a story is made of facts, and a state implies every
fact that led to it: whoever hears of fewer states tells the same story.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from support.differential.differences import ALLOWED_FACTS, lines_of
from support.differential.scenario import Object


class Fact(NamedTuple):
    """Something that happened to a Job. The order is that of a Job's life, task by task."""

    stage: int
    task: int
    attempt: int
    turn: int
    words: str


_CREATED, _HELD, _ADMITTED, _STARTED, _TRIED, _STOPPING, _OVER, _GONE = range(8)


def facts_of(job: Object) -> Iterator[Fact]:
    """Every fact that the state of a Job implies."""
    status = job.get("status", {})
    admission, execution = status.get("admission", {}), status.get("execution", {})
    yield _fact(_CREATED, "is created")
    for wait in admission.get("waits", ()):
        yield _fact(_HELD, f"waits: {wait['reason']} {wait.get('key', '')}".rstrip())
    if admission.get("phase") == "Admitted":
        keys = ", ".join(grant["key"] for grant in admission.get("grants", ()))
        yield _fact(_ADMITTED, f"may start, holding {keys or 'nothing'}")
    if admission.get("phase") == "Refused":
        yield _fact(_ADMITTED, f"is refused: {admission.get('refusal')}")
    if admission.get("replacedBy"):
        yield _fact(_STOPPING, f"is replaced by {admission['replacedBy']}")
    if execution.get("startedAt"):
        yield _fact(_STARTED, "starts")
    yield from _attempts_of(execution)
    if execution.get("stoppingFor"):
        yield _fact(_STOPPING, f"stops: {execution['stoppingFor']}")
    if execution.get("result"):
        yield _fact(_OVER, f"is over: {execution['result']}, {execution.get('reason')}")


def _attempts_of(execution: Object) -> Iterator[Fact]:
    for one in (*execution.get("active", ()), *execution.get("ended", ())):
        index, attempt = one["index"], one["attempt"]
        name = f"task {index}, attempt {attempt}"
        yield Fact(_TRIED, index, attempt, 0, f"{name} is ordered")
        if one.get("startedAt"):
            yield Fact(_TRIED, index, attempt, 1, f"{name} runs")
        if one.get("stopCause"):
            yield Fact(_TRIED, index, attempt, 2, f"{name} is told to stop: {one['stopCause']}")
        if "result" in one:
            code = _code_of(one)
            yield Fact(_TRIED, index, attempt, 3, f"{name} is over: {one['result']}{code}")


def _code_of(attempt: Object) -> str:
    if "signal" in attempt:
        return f", code {128 + attempt['signal']}"
    return f", code {attempt['exitCode']}" if "exitCode" in attempt else ""


def _fact(stage: int, words: str) -> Fact:
    return Fact(stage, -1, -1, 0, words)


class Telling:
    """Hears of every change of a scenario's Jobs, and tells the story in the end."""

    def __init__(self) -> None:
        #: The last state of each Job that ever was.
        self.jobs: dict[str, Object] = {}
        self._facts: dict[str, set[Fact]] = {}
        self._notes: list[str] = []

    def saw(self, job: Object) -> None:
        """A Job is in this state, or was."""
        name = job["metadata"]["name"]
        self.jobs[name] = job
        self._facts.setdefault(name, set()).update(facts_of(job))

    def saw_gone(self, job: Object) -> None:
        """A Job was removed, in this state."""
        self.saw(job)
        self._facts[job["metadata"]["name"]].add(_fact(_GONE, "is gone"))

    def note(self, heading: str, told: object) -> None:
        """Something that was found at one step, and stays so."""
        self._notes += [f"{heading}: {line}" for line in lines_of(told)]

    @property
    def lines(self) -> list[str]:
        """The whole story: what happened to each Job, who had each lock, what was found."""
        lines = []
        for name, facts in sorted(self._facts.items()):
            told = [fact.words for fact in sorted(facts) if fact.words not in ALLOWED_FACTS]
            lines += [f"{name} {words}" for words in told]
        return [*lines, *grants_of(self.jobs.values()), *self._notes]


class _Grant(NamedTuple):
    token: int
    job: str
    admitted_at: datetime
    ended_at: datetime | None


def grants_of(jobs: Iterable[Object]) -> Iterator[str]:
    """Who was granted each lock, in order, and who had it already and was not over."""
    grants: dict[str, list[_Grant]] = {}
    for job in jobs:
        status = job.get("status", {})
        admission = status.get("admission", {})
        ended_at = status.get("execution", {}).get("endedAt")
        for grant in admission.get("grants", ()):
            held = _Grant(
                grant["token"],
                job["metadata"]["name"],
                datetime.fromisoformat(admission["admittedAt"]),
                datetime.fromisoformat(ended_at) if ended_at else None,
            )
            grants.setdefault(grant["key"], []).append(held)
    for key, holders in sorted(grants.items()):
        yield from _order_of(key, sorted(holders))


def _order_of(key: str, holders: list[_Grant]) -> Iterator[str]:
    for place, grant in enumerate(holders):
        before = holders[:place]
        beside = [one.job for one in before if not one.ended_at or one.ended_at > grant.admitted_at]
        told = f", beside {', '.join(sorted(beside))}" if beside else ""
        yield f"lock {key}: holder {place + 1} is {grant.job}{told}"
