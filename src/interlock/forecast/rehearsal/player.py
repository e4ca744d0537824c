"""Plays a script: what happens when, what is looked at, and what became of it all."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from msgspec import Struct

from interlock.forecast.rehearsal.checking import Checks, Difference
from interlock.forecast.rehearsal.front import Answer, Front
from interlock.forecast.rehearsal.lines import Line
from interlock.forecast.rehearsal.scenario import (
    FinishSpec,
    HangWorkerSpec,
    KillWorkerSpec,
    LoseSpec,
    RunsIn,
    SweepSpec,
)
from interlock.forecast.rehearsal.script import (
    Act,
    Apply,
    Crash,
    Delete,
    Failover,
    Outage,
    Patch,
    Restart,
    Script,
    Step,
    Turn,
    Verb,
)
from interlock.forecast.rehearsal.sweeps import sweep_now
from interlock.forecast.rehearsal.world import FAILOVER_S, PLANE, World
from interlock.resources.cluster import Node, NodeStatus
from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Key, Metadata
from interlock.resources.modes import Mode
from interlock.resources.values.amounts import Amount
from interlock.resources.words import plural

_MICROSECOND = timedelta(microseconds=1)
#: A control plane that crashed is started again by whoever watches over it.
SUPERVISED_S = 1.0
_MODES = {RunsIn.EMBEDDED: Mode.EMBEDDED, RunsIn.CLUSTER: Mode.CLUSTER}


class RefusedActError(Exception):
    """An act that could not be carried out."""


class Hands(Protocol):
    """Those who act in the way of people: with the command line."""

    def apply(self, manifests: Sequence[dict[str, Any]]) -> None:
        """Make what is stored what manifests say.

        Raises:
            RefusedActError: One of them was refused.
        """
        ...

    def run(self, words: Sequence[str]) -> tuple[int, str]:
        """Run a verb; its exit code, and what it printed."""
        ...


class Played(Struct, frozen=True, kw_only=True):
    """What came of a script."""

    lines: tuple[Line, ...]
    differences: tuple[Difference, ...]
    #: Callbacks that were run.
    steps: int


def play(script: Script, hands: Callable[[Front], Hands]) -> Played:
    """Play a script from its start to its end."""
    world = World(
        script.start,
        work=script.work,
        mode=_MODES[script.settings.mode],
        most_tasks=script.settings.max_tasks,
        workers=script.settings.workers,
        nodes=script.settings.all_nodes,
        wait_for_pods_ready=script.settings.wait_for_pods_ready,
    )
    # Little of what a rehearsal makes is garbage before its end, so nobody need look for any.
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _Player(script, world, hands).play()
    finally:
        world.close()
        if was_on:
            # What is left counts as old at once: to go through all of it for the first time would
            # take a good part of the time that the rehearsal took.
            gc.freeze()
            gc.unfreeze()
            gc.enable()


def _machine(script: Script) -> Node:
    """The machine itself, where no scenario says which nodes there are: with room for all."""
    has = script.settings.capacity or {"cpu": Amount.read(1000), "memory": Amount.read("1Ti")}
    allocatable = {name: str(amount) for name, amount in has.items()}
    return Node(metadata=Metadata(name=DEFAULT_QUEUE), status=NodeStatus(allocatable=allocatable))


class _Player:
    def __init__(self, script: Script, world: World, hands: Callable[[Front], Hands]) -> None:
        self._script = script
        self._world = world
        self._front = Front(world)
        self._hands = hands(self._front)
        self._checks = Checks(script.expected, world)
        self._refused: list[Difference] = []

    def play(self) -> Played:
        world, script = self._world, self._script
        if self._checks.lasting:
            world.loop.on_settled = self._checks.look
        world.put(script.objects)
        if not any(isinstance(one, Node) for one in script.objects):
            world.put((_machine(script),))
        world.begin()
        moments = sorted({*(step.at for step in script.steps), *self._checks.moments})
        steps = list(script.steps)
        for moment in moments:
            world.play_until(max(script.start, moment - _MICROSECOND))
            world.loop.arrive((moment - script.start) // _MICROSECOND)
            while steps and steps[0].at == moment:
                self._act(steps.pop(0), steps)
            world.play_until(moment)
            self._checks.look()
        world.play_until(script.end)
        self._checks.look()
        if world.loop.errors:
            raise RuntimeError(world.loop.errors[0])
        return Played(
            lines=tuple(world.lines),
            differences=(*self._refused, *self._checks.differences()),
            steps=world.loop.steps,
        )

    # Acts

    def _act(self, step: Step, later: list[Step]) -> None:
        try:
            self._do(step.act, later)
        except RefusedActError as error:
            if not step.fails:
                self._differs(step, "carried out", f"refused: {error}")
            return
        if step.fails:
            self._differs(step, "refused", "carried out")

    def _do(self, act: Act, later: list[Step]) -> None:
        world = self._world
        match act:
            case Apply(manifests):
                self._hands.apply(manifests)
            case Delete(key):
                self._ask("DELETE", key)
            case Patch(key, merge):
                self._ask("PATCH", key, merge)
            case Verb(words):
                self._run(words)
            case Crash():
                self._crash("crash")
                if not _is_restarted(later):
                    world.later(SUPERVISED_S, self._start)
            case Restart():
                self._crash("restart")
                self._start()
            case Outage(seconds):
                self._crash("outage", f"for {timedelta(seconds=seconds)}")
                world.later(seconds, self._start)
            case Failover():
                self._crash("failover", "another takes over once the lease has run out")
                world.later(FAILOVER_S, self._start)
            case FinishSpec():
                how = (act.job, act.task, act.exit)
                self._found(act.job, [*world.stage.end(*how), *world.workers.finish(*how)])
            case Turn(job, task, ready):
                self._found(job, world.stage.turn_each(job, task, ready=ready))
            case LoseSpec():
                self._found(act.job, world.stage.lose(act.job, act.task))
            case KillWorkerSpec():
                self._met(act.job, world.workers.kill(act.job))
            case HangWorkerSpec():
                met = world.workers.hang(act.job, act.lasts.total_seconds())
                self._met(act.job, met)
            case SweepSpec():
                self._sweep(act)

    def _sweep(self, act: SweepSpec) -> None:
        life = self._world.plane
        if life is None:
            raise RefusedActError("the control plane is down")
        context = life.process.context.copy()
        found = context.run(sweep_now, life.plane, self._world.now(), act)
        for wake_up in found.wake_ups:
            self._world.note(wake_up.job.key, "Woken", wake_up.reason.value)
        counts = f"{len(found.wake_ups)} woken, {len(found.stuck)} stuck"
        told = f"{plural(found.operations, 'operation')}, {found.under_way} under way, {counts}"
        self._world.note(PLANE, "Swept", "", told)

    def _crash(self, reason: str, detail: str = "") -> None:
        if self._world.plane is not None:
            self._world.note(PLANE, "Down", reason, detail)
            self._world.crash()

    def _start(self) -> None:
        if self._world.plane is None:
            self._world.note(PLANE, "Up")
            self._world.begin()

    def _run(self, words: Sequence[str]) -> None:
        code, printed = self._hands.run(words)
        told = printed.strip().partition("\n")[0]
        key = Key("Verb", "", " ".join(words))
        self._world.note(key, "Ran" if code == 0 else "Failed", f"exit {code}", told)
        if code != 0:
            raise RefusedActError(f"exit {code}: {told}")

    def _found(self, job: str, found: Sequence[object]) -> None:
        if not found:
            raise RefusedActError(f"no task of {job} runs")

    def _met(self, job: str, met: bool) -> None:
        if not met:
            told = "there is no worker now" if job == "*" else f"no worker works for {job}"
            raise RefusedActError(told)

    def _ask(self, method: str, key: Key, body: object = None) -> None:
        kind = KINDS[key.kind]
        root = "/apis/" if kind.group else "/api/"
        place = f"namespaces/{key.namespace}/" if kind.namespaced else ""
        path = f"{root}{kind.api_version}/{place}{kind.plural}/{key.name}"
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/merge-patch+json"
        data = json.dumps(body).encode() if body is not None else b""
        _check(self._front.ask(method, path, headers, data))

    def _differs(self, step: Step, expected: str, found: str) -> None:
        self._refused.append(
            Difference(
                path=step.path,
                at=self._world.now(),
                told=step.path.rpartition(".")[2],
                expected=expected,
                found=found,
            )
        )


def _is_restarted(later: list[Step]) -> bool:
    """Whether the scenario says itself when the control plane comes back."""
    for step in later:
        if isinstance(step.act, Restart):
            return True
        if isinstance(step.act, Crash | Outage | Failover):
            return False
    return False


def _check(answer: Answer) -> None:
    if answer.status >= 300:
        body = json.loads(answer.data)
        raise RefusedActError(str(body.get("message") or answer.status))
