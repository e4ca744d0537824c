"""Worlds whose tasks have readiness probes: they are late, never ready, flap, or die before."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from interlock.resources.process import FileProbe, ProcessSpec, ReadinessProbe
from interlock.resources.values.durations import Duration
from support.simulation.faults import FaultRates
from support.simulation.line_promises import LINE_PROMISES
from support.simulation.queue_world import GateWorld, RivalGateWorld
from support.simulation.ready_promises import READY_PROMISES
from support.simulation.script import ApplyQueue, CreateJob, Step
from support.simulation.world import World

PROBE = ReadinessProbe(file=FileProbe(path="ready"))


def with_probes(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with probes that most tasks have, and with limits for what has no place."""
    return tuple(_probed(step, random) for step in script)


def _probed(step: Step, random: Random) -> Step:
    act = step.act
    if isinstance(act, ApplyQueue) and act.spec.wait_for_pods_ready is not None:
        limit = random.choice((None, Duration(seconds=1), Duration(seconds=15)))
        policy = replace(act.spec.wait_for_pods_ready, unscheduled_timeout=limit)
        return Step(step.at, replace(act, spec=replace(act.spec, wait_for_pods_ready=policy)))
    if isinstance(act, CreateJob) and act.spec.process is not None:
        process = _with_probe(act.spec.process, random)
        return Step(step.at, replace(act, spec=replace(act.spec, process=process)))
    return step


def _with_probe(process: ProcessSpec, random: Random) -> ProcessSpec:
    """A process that is ready some time after it runs, or never, and may be so in turns."""
    if random.random() < 0.2:
        return process
    words = [f"ready={random.choice(('0', '0', '1', '4', '30', 'never'))}"]
    if random.random() < 0.3:
        words.append(f"flaps={random.choice((2, 9))},{random.choice((1, 6, 60))}")
    return replace(process, command=(*process.command, *words), readiness_probe=PROBE)


class _Probed(World):
    """Has most tasks of a world be ready later than they run."""

    promises = (*READY_PROMISES, *LINE_PROMISES)

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        if script is None:
            self.script = with_probes(self.script, Random(f"{seed}:probes"))


class ReadyWorld(_Probed, GateWorld):
    """Jobs that have to be ready in time, with probes, on one machine."""

    name = "ReadyWorld"


class RivalReadyWorld(_Probed, RivalGateWorld):
    """The same, with two control planes that both believe they lead."""

    name = "RivalReadyWorld"
