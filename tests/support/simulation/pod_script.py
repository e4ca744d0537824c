"""Scripts for clusters: the same people and trouble, with pods for processes and nodes to lose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from msgspec.structs import replace

from interlock.resources.job import JobSpec
from interlock.resources.pods import PodTemplate
from interlock.resources.steps import Step as Operated
from interlock.resources.steps import StepWork
from interlock.resources.values.durations import Duration
from support.simulation.script import (
    Act,
    CrashNode,
    CreateJob,
    DeletePod,
    Denial,
    DenyPods,
    ForgeStatus,
    LoseKeeper,
    LoseMachine,
    LoseNode,
    RebootMachine,
    RemoveNode,
    Step,
)


def pod_of(*command: str) -> PodTemplate:
    """A pod of one container that runs a command."""
    container = {"name": "main", "image": "work", "command": list(command)}
    return PodTemplate(spec={"containers": [container]})


def in_pods(script: Sequence[Step], random: Random) -> tuple[Step, ...]:
    """A script for a cluster, made from one for a machine."""
    return tuple(replace(step, act=_moved(step.act, random)) for step in script)


def spoiled(script: Sequence[Step], random: Random) -> tuple[Step, ...]:
    """A script with more trouble of the sorts that only clusters have."""
    names = [step.act.name for step in script if isinstance(step.act, CreateJob)]
    length = script[-1].at if script else 0.0
    extra = [
        Step(random.uniform(1.0, length), _trouble(random, names))
        for _ in range(random.choice((0, 1, 3, 6)) if names else 0)
    ]
    denials = [
        Step(random.uniform(0.0, length), _denial(random))
        for _ in range(random.choice((0, 0, 1, 3)) if names else 0)
    ]
    return tuple(sorted((*script, *extra, *denials), key=lambda step: step.at))


def _moved(act: Act, random: Random) -> Act:
    """What takes the place of something that happens to a machine."""
    match act:
        case CreateJob(spec=JobSpec(process=process)) if process is not None:
            return replace(act, spec=_spec(act.spec, process.command, random))
        case CreateJob(spec=JobSpec(steps=steps)) if steps is not None:
            moved = tuple(map(_step, steps))
            return replace(act, spec=replace(act.spec, steps=moved))
        case ForgeStatus(spec=JobSpec(process=process)) if process is not None:
            spec = replace(act.spec, process=None, pod=pod_of(*process.command))
            return replace(act, spec=spec)
        case RebootMachine():
            return CrashNode(random.randrange(3), random.choice((10.0, 90.0, 400.0)))
        case LoseKeeper():
            return LoseNode(random.randrange(3), random.choice((10.0, 90.0, 400.0)))
    return act


def _step(step: Operated) -> Operated:
    """A step of an operation, in pods."""
    undo = _work(step.undo) if step.undo is not None else None
    return replace(step, run=_work(step.run), undo=undo)


def _work(work: StepWork) -> StepWork:
    if work.process is None:
        return work
    return StepWork(pod=pod_of(*(word for word in work.process.command if word != "unseen")))


def _spec(spec: JobSpec, command: Sequence[str], random: Random) -> JobSpec:
    words = [word for word in command if word != "unseen"]
    pending_timeout = Duration() if random.random() < 0.2 else spec.pending_timeout
    if "broken" in words and random.random() < 0.5:
        # It is not refused: it waits for an image that never comes.
        words[words.index("broken")] = "unpullable"
        pending_timeout = Duration(seconds=30)
    if random.random() < 0.15:
        words.append("polite")
    forced = random.random() < 0.25
    return replace(
        spec,
        process=None,
        pod=pod_of(*words),
        pending_timeout=pending_timeout,
        force_delete_after=Duration(seconds=random.choice((0, 30, 120))) if forced else None,
    )


def _trouble(random: Random, names: Sequence[str]) -> Act:
    node = random.randrange(3)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: LoseNode(node, random.choice((10.0, 90.0, 400.0))),
        lambda: LoseNode(node, random.choice((10.0, 90.0, 400.0))),
        lambda: CrashNode(node, random.choice((10.0, 90.0, 400.0))),
        lambda: RemoveNode(node),
        lambda: DeletePod(random.choice(names)),
        lambda: DeletePod(random.choice(names), force=True, strip=random.random() < 0.5),
        lambda: LoseMachine(random.choice((5.0, 60.0))),
    )
    return random.choice(acts)()


#: Drawn from these alone, so that the worlds of seeds stay as they are.
_DENIALS = (Denial.QUOTA, Denial.NO_CREATE, Denial.NO_DELETE, Denial.DEAD_WEBHOOK)


def _denial(random: Random) -> DenyPods:
    return DenyPods(random.choice(_DENIALS), random.choice((3.0, 60.0, 400.0)))
