"""Plays a scenario on a stage, and tells what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from interlock.resources.job import REQUEUE_ANNOTATION, REQUEUE_ROUND_ANNOTATION
from interlock.resources.tasks import task_name
from support.differential.jobs import ScenarioJobs
from support.differential.scenario import (
    ENDS,
    Change,
    Condition,
    Create,
    Delete,
    Exits,
    LetGo,
    Object,
    Receive,
    Requeue,
    Scenario,
    Step,
    Until,
    Work,
)
from support.differential.schedule_play import SchedulePlay
from support.differential.stage import Stage


def play(scenario: Scenario, stage: Stage) -> list[str]:
    """Take the steps one after another, and tell the story once all Jobs are over or gone."""
    with ScenarioJobs(stage, scenario.name) as jobs:
        player = _Player(stage, jobs)
        for number, step in enumerate(scenario.steps, 1):
            player.take(number, step)
        story = player.finish()
        jobs.clear()
        return story


def play_schedule(name: str, act: Callable[[SchedulePlay], None], stage: Stage) -> list[str]:
    """Play a scenario about schedules, and tell the story."""
    acting = SchedulePlay(stage, name)
    try:
        act(acting)
    finally:
        acting.clear()
    return acting.story


class _Player:
    def __init__(self, stage: Stage, jobs: ScenarioJobs) -> None:
        self._stage = stage
        self._jobs = jobs
        self._works: dict[str, Work] = {}
        self._begun: set[str] = set()

    def take(self, number: int, step: Step) -> None:
        jobs = self._jobs
        match step:
            case Create(job, work, spec):
                self._works[job] = work
                jobs.create(job, {**self._stage.spec_of(work), **spec})
            case Until(job, condition):
                self._until(number, job, condition)
            case LetGo(job, code, task, attempt):
                self._stage.let_go(jobs.own(task_name(job, task, attempt)), code)
            case Change(job, spec):
                jobs.change(job, {"spec": spec})
            case Delete(job):
                jobs.delete(job)
            case Requeue(job, round):
                order = {REQUEUE_ANNOTATION: "slow", REQUEUE_ROUND_ANNOTATION: str(round)}
                jobs.change(job, {"metadata": {"annotations": order}})
            case Receive(job, task, attempt):
                self._receive(job, task_name(job, task, attempt))
            case _:
                assert_never(step)

    def _receive(self, job: str, task: str) -> None:
        """Tell what an attempt was given; a process inherits more, which is not the Job's."""
        work = self._works[job]
        assert isinstance(work, Exits), f"{task} does not tell what it received"
        received = self._jobs.plain(self._stage.received(self._jobs.own(task)))
        ours = {
            name: value
            for name, value in received["env"].items()
            if name in work.env or name.startswith("INTERLOCK_")
        }
        self._jobs.telling.note(f"{task} received", {"args": received["args"], "env": ours})

    def finish(self) -> list[str]:
        """Wait until every Job is over or gone; then tell the story."""
        for name in self._works:
            self._jobs.wait(name, Condition("over or gone", _is_done))
        telling = self._jobs.telling
        for name, job in sorted(telling.jobs.items()):
            # One that went before it started need not have been looked at again.
            if name in self._jobs.present or _has_started(job):
                telling.note(f"in the end {name}", job)
        return telling.lines

    def _until(self, number: int, name: str, condition: Condition) -> None:
        job = self._jobs.wait(name, condition)
        if job is None:
            return
        self._jobs.telling.note(f"step {number}, {name} is {condition.words}", job)
        for task in job.get("status", {}).get("execution", {}).get("active", ()):
            if task["state"] == "Running" and task["name"] not in self._begun:
                self._begun.add(task["name"])
                self._stage.wait_until_begun(self._jobs.own(task["name"]), self._works[name])


def _is_done(job: Object | None) -> bool:
    return job is None or job.get("status", {}).get("phase") in ENDS


def _has_started(job: Object) -> bool:
    return "startedAt" in job.get("status", {}).get("execution", {})
