"""Scripts with batch Jobs and pods of others that stand in Queues, and what their owners do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from interlock.resources.adopted import PRIORITY_LABEL, QUEUE_LABEL
from support.simulation.queue_script import QUEUES
from support.simulation.script import (
    Act,
    ChangeTheirs,
    CreateTheirs,
    DeletePart,
    DeleteTheirs,
    OrderStandIn,
    StandInVerb,
    Step,
)


def with_theirs(script: tuple[Step, ...], random: Random) -> tuple[Step, ...]:
    """The script with things of others, that come and are changed and go."""
    length = script[-1].at if script else 300.0
    # What is of ours leaves them some room.
    steps = [step for step in script if random.random() < 0.8]
    names = [f"theirs-{number}" for number in range(random.choice((2, 4, 8)))]
    odd = random.choice((0.0, 0.2, 0.5))
    steps += [Step(random.uniform(0.0, length * 0.7), _creation(random, n, odd)) for n in names]
    steps += [
        Step(random.uniform(1.0, length), _meddling(random, names, odd))
        for _ in range(random.choice((0, 3, 8, 20)))
    ]
    return tuple(sorted(steps, key=lambda step: step.at))


def _creation(random: Random, name: str, odd: float) -> CreateTheirs:
    is_pod = random.random() < 0.3
    pods = random.choice((1, 1, 2, 3))
    return CreateTheirs(
        name=name,
        command=_command(random),
        queue=random.choice(QUEUES[: random.choice((1, 2))]),
        is_pod=is_pod,
        parallelism=1 if is_pod else pods,
        completions=random.choice((None, pods, pods + 2)),
        least=random.choice((None, 1)),
        priority=random.choice(("", "", "5", "-5", "high")) if random.random() < odd else "",
        requests=random.choice(({}, {"gpu": "1"}, {"example.com/gpu": "1", "memory": "1Gi"})),
        labels_parts=random.random() < 0.2,
        is_held=random.random() >= odd / 2,
        is_replaced=random.random() < 0.3,
    )


def _command(random: Random) -> tuple[str, ...]:
    words = ["work", f"{random.choice((1.0, 20.0, 90.0))}"]
    if random.random() < 0.15:
        words.append("exits=1")
    if random.random() < 0.2:
        words.append("deaf")
    if random.random() < 0.2:
        words.append(f"slow={random.choice((0.5, 8.0))}")
    return tuple(words)


def _meddling(random: Random, names: list[str], odd: float) -> Act:
    name = random.choice(names)
    acts: tuple[Callable[[], Act], ...] = (
        lambda: ChangeTheirs(name, {"spec": {"suspend": random.random() < 0.3}}),
        lambda: ChangeTheirs(name, {"spec": {"parallelism": random.choice((1, 2, 4))}}),
        lambda: ChangeTheirs(name, _labels(QUEUE_LABEL, random.choice((*QUEUES, None)))),
        lambda: ChangeTheirs(name, _labels(PRIORITY_LABEL, random.choice(("9", "-9", None, "x")))),
        lambda: DeleteTheirs(name),
        lambda: DeletePart(name),
        lambda: OrderStandIn(random.choice(tuple(StandInVerb)), random.random()),
        # The same name again: another object, that must not be taken for the first.
        lambda: _creation(random, name, odd),
    )
    return random.choice(acts)()


def _labels(label: str, value: str | None) -> dict[str, dict[str, dict[str, str | None]]]:
    return {"metadata": {"labels": {label: value}}}
