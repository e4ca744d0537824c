"""How much room the simulated machine, or its nodes, really have, whatever a quota says.

A task is placed whole on the first node that has what it asks for. One that finds none waits, and
takes its place when others have gone: those that came first before those that came later, and a
small one before a wide one that does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlock.resources.job import Job
from interlock.resources.queue import demand_of, taken
from interlock.resources.tasks import TaskId

#: What a task takes, in thousandths; `tasks` is one of what it takes.
Needs = Mapping[str, int]


class Capacity:
    """The nodes, who is placed on which, and who waits for a place."""

    def __init__(self, nodes: Sequence[Mapping[str, int]]) -> None:
        """`nodes` are in thousandths; what is not named of one, it has as much of as is wanted."""
        self._free = [dict(node) for node in nodes]
        self._placed: dict[TaskId, tuple[int, Needs]] = {}
        self._waiting: dict[TaskId, Needs] = {}

    def waits(self, task: TaskId) -> bool:
        """Whether a task has no place yet."""
        return task in self._waiting

    def take(self, task: TaskId, needs: Needs) -> bool:
        """Place a task, or have it wait; whether it has a place."""
        at = next((at for at, free in enumerate(self._free) if _fits(needs, free)), None)
        if at is None:
            self._waiting[task] = needs
            return False
        self._waiting.pop(task, None)
        self._placed[task] = (at, needs)
        _add(self._free[at], needs, -1)
        return True

    def give_back(self, task: TaskId) -> None:
        """Have a task neither wait nor hold a place any more."""
        self._waiting.pop(task, None)
        at, needs = self._placed.pop(task, (0, {}))
        _add(self._free[at], needs, 1)

    def place_more(self) -> list[TaskId]:
        """Place those who waited and fit now, in the order in which they came."""
        return [task for task, needs in tuple(self._waiting.items()) if self.take(task, needs)]


def needs_of(job: Job | None) -> Needs:
    """What each task of a Job takes, by its own definition; one of a Job that is gone just that."""
    if job is None:
        return taken(1, {})
    # It takes what it would ask a Queue for, whether it is of one or not.
    demand = demand_of(replace(job, spec=replace(job.spec, queue=job.spec.queue or "any")))
    assert demand is not None, f"{job.key}: a Job of a Queue asks it for something"
    return taken(1, demand.each)


def _fits(needs: Needs, free: Mapping[str, int]) -> bool:
    named = ((_known(name, free), amount) for name, amount in needs.items())
    return all(amount <= free[known] for known, amount in named if known)


def _add(free: dict[str, int], needs: Needs, sign: int) -> None:
    for name, amount in needs.items():
        if known := _known(name, free):
            free[known] += sign * amount


def _known(name: str, free: Mapping[str, int]) -> str:
    """What a node calls a resource: `gpu` where it does not know `nvidia.com/gpu`."""
    short = name.rpartition("/")[2]
    return name if name in free else short if short in free else ""
