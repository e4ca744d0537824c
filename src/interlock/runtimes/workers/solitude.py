"""Solitude: suspects are run with nothing beside them, so that what they kill is only their own.

A suspect goes to a worker that has nothing to do. While none has, one of those that can do it is
given nothing more; and another one too, whenever that has taken too long. A worker that comes again
after its connection broke has not died: what was cut off there need not be alone, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interlock.resources.tasks import TaskId
from interlock.runtimes.workers.attempts import Attempt, Worker
from interlock.runtimes.workers.crews import Crews

#: So many processes that are gone, and steps that were cut off there, are remembered.
_REMEMBERED = 10_000

#: A step of a Job, whatever the number of its attempt.
Step = tuple[str, int]


class Solitude:
    """Suspects that wait, and workers that are given nothing until they can have one."""

    def __init__(self, crews: Crews, patience_s: float) -> None:
        self._crews = crews
        #: Another worker is kept free when those that are were not for so long.
        self._patience_s = patience_s
        self._waiting: dict[Attempt, None] = {}
        self._kept_at = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, attempt: Attempt) -> bool:
        return attempt in self._waiting

    def __iter__(self) -> Iterator[Attempt]:
        return iter(tuple(self._waiting))

    def wait(self, attempt: Attempt) -> None:
        """Have a suspect wait for a worker that has nothing else to do."""
        self._waiting[attempt] = None

    def leave(self, attempt: Attempt) -> Iterable[Worker]:
        """A suspect does not wait any more; returns the workers that were kept free for it."""
        del self._waiting[attempt]
        freed = [one for one in self._crews.who_can_do(attempt.need) if one.kept_for is attempt]
        for worker in freed:
            worker.kept_for = None
            self._crews.room_changed(worker)
        return freed

    def idle_for(self, attempt: Attempt) -> Worker | None:
        """A worker that can do it, and has nothing else to do."""
        for worker in self._crews.who_can_do(attempt.need):
            if worker.is_idle and worker.kept_for in (None, attempt):
                return worker
        return None

    def keep_one_free(self, attempt: Attempt, tick: float) -> None:
        """Give one of those that can do it nothing more, if it is time for that."""
        there = [one for one in self._crews.who_can_do(attempt.need) if one.closed is None]
        is_kept = any(one.kept_for is not None or one.solo is not None for one in there)
        if is_kept and tick < self._kept_at + self._patience_s:
            return
        free = [one for one in there if one.kept_for is None and one.solo is None]
        if free:
            worker = min(free, key=lambda one: one.busy)
            worker.kept_for = attempt
            self._kept_at = tick
            self._crews.room_changed(worker)


class Pardons:
    """Who was lost with what, so that nobody is suspected whose worker did not die."""

    def __init__(self) -> None:
        #: Steps that were cut off beside others, by the process that was lost.
        self._lost: dict[str, tuple[Step, ...]] = {}
        #: Whether a step that was cut off in a process which came again was run since.
        self._used: dict[Step, bool] = {}

    def lost(self, incarnation: str, tasks: Iterable[TaskId]) -> None:
        """A process is gone, perhaps for good, and these are cut off."""
        self._lost[incarnation] = tuple((task.job_uid, task.task) for task in tasks)
        _bound(self._lost)

    def came_again(self, incarnation: str) -> Iterable[Step]:
        """A process is there again; returns what need not be alone because of its loss."""
        steps = [one for one in self._lost.pop(incarnation, ()) if one not in self._used]
        self._used.update(dict.fromkeys(steps, False))
        _bound(self._used)
        return steps

    def use(self, task: TaskId) -> bool:
        """Whether a suspect may be run beside others, this once."""
        step = (task.job_uid, task.task)
        if self._used.get(step, True):
            return False
        self._used[step] = True
        return True


def _bound(remembered: dict[str, tuple[Step, ...]] | dict[Step, bool]) -> None:
    while len(remembered) > _REMEMBERED:
        del remembered[next(iter(remembered))]  # type: ignore[arg-type]
