"""The move of everything, and of Jobs: each step for all Jobs, one after the other.

Schedules are held before, so that no Job comes after the others, and handed over at the end.
"""

from __future__ import annotations

from interlock.client.errors import AnswerError
from interlock.client.kinds import JOBS
from interlock.migration import annotations as marks
from interlock.migration.context import ROUNDS, Context, Say, unsettled
from interlock.migration.endpoints import Side, Thing
from interlock.migration.handover import CHANGED, Handover
from interlock.migration.judging import (
    HELD_BACK,
    LEFT,
    MOVED,
    WOULD_MOVE,
    Verdict,
    What,
    has_begun,
    in_the_way,
    judge,
    place,
)
from interlock.migration.schedules import ScheduleMover

#: Namespaces that are there from the beginning, whose uids tell servers apart.
_OURS, _THEIRS = "default", "kube-system"


class Mover:
    """Moves what is in a namespace, or in all, from one side to the other."""

    def __init__(
        self,
        source: Side,
        goal: Side,
        context: str,
        *,
        namespace: str | None = None,
        image: str = "",
    ) -> None:
        self._source = source
        self._goal = goal
        self._context = context
        self._namespace = namespace
        self._image = image
        #: What became of everything: what makes Jobs, then Jobs in the order of creation.
        self.verdicts: dict[What, Verdict] = {}

    def run(self, *, dry_run: bool = False) -> None:
        """Move all that can be moved; `verdicts` tells what became of each."""
        bearings = Context(
            source=self._source,
            goal=self._goal,
            origin=self._source.identity(_OURS),
            cluster=self._goal.identity(_THEIRS),
            context=self._context,
            namespace=self._namespace,
            image=self._image,
        )
        schedules = ScheduleMover(bearings, self._say)
        jobs = JobMover(bearings, self._say)
        schedules.begin(dry_run=dry_run)
        jobs.run(dry_run=dry_run)
        if not dry_run:
            schedules.finish()

    def _say(self, thing: Thing, outcome: str, why: str) -> None:
        self.verdicts[What.of(thing)] = Verdict(outcome, why)


class JobPlan:
    """What is done with a Job."""

    both_acted = "and its copy in the cluster has started too"

    def __init__(self, bearings: Context) -> None:
        self._to = bearings

    def judge(self, thing: Thing) -> Verdict | None:
        """Leave what started or is over."""
        return judge(thing, self._to.cluster, self._to.image)

    def judge_copy(self, copy: Thing) -> Verdict | None:  # noqa: ARG002 (a contract's names)
        """A copy that was let go is told of as such."""
        return None

    def copy_of(self, thing: Thing) -> Thing:
        """The Job in the cluster."""
        return marks.copy_of(thing, self._to.origin, self._to.source.url, self._to.image)

    def hold(self, thing: Thing) -> Thing:
        """Suspend it: it cannot start at the source."""
        return marks.hold(thing, self._to.cluster, self._to.context)

    def release(self, thing: Thing) -> Thing:
        """Give it the suspension that it had."""
        return marks.release(thing)

    def has_acted(self, copy: Thing) -> bool:
        """Whether it was let in, or is no copy any more."""
        return has_begun(copy) or not marks.is_marked(copy)


class JobMover:
    """Moves Jobs that never started: held, copied, removed, let go."""

    def __init__(self, bearings: Context, say: Say) -> None:
        self._to = bearings
        self._source, self._goal = bearings.source, bearings.goal
        self._say = say
        self._plan = JobPlan(bearings)
        self._handover = Handover(bearings, self._plan, say)

    def run(self, *, dry_run: bool) -> None:
        """Move all that can be moved, each step for all of them."""
        self._find()
        going, copies = self._handover.going, self._handover.copies
        if dry_run:
            for job in [*going.values(), *copies.values()]:
                self._say(job, WOULD_MOVE, "")
            return
        for step, order in (
            (self._handover.hold, sorted(going.values(), key=place, reverse=True)),
            (self._handover.copy, sorted(going.values(), key=marks.created)),
            (self._remove, sorted(going.values(), key=marks.created)),
        ):
            for job in order:
                uid = job["metadata"]["uid"]
                if uid in going:
                    step(uid)
        self._let_go_all()

    def _find(self) -> None:
        """Judge every Job, and find the copies that an interrupted move has left."""
        jobs = sorted(self._source.jobs(self._to.namespace), key=marks.created)
        self._handover.find_copies(JOBS)
        for job in jobs:
            self._say(job, LEFT, "")
            if _was_removed(job, self._to.cluster) and self._has_copy(job):
                self._say(job, MOVED, "")
            else:
                self._handover.take_up(job, self._plan.judge(job))

    def _has_copy(self, job: Thing) -> bool:
        uid = job["metadata"]["uid"]
        there = self._handover.copies.get(uid) or self._goal.read(job)
        return there is not None and marks.annotation(there, marks.MOVED_FROM) == uid

    def _remove(self, uid: str) -> None:
        """Step 3: the copy is the only one, if the source is still held."""
        going = self._handover.going
        for _ in range(ROUNDS):
            try:
                self._source.remove(going[uid])
            except AnswerError as error:
                if error.status not in CHANGED:
                    raise
                if not self._handover.look_again(uid):
                    return
                self._handover.hold(uid)
                if uid not in going:
                    return
            else:
                del going[uid]
                return
        raise unsettled(going[uid])

    def _let_go_all(self) -> None:
        """Step 4, from the first in line to the last."""
        copies = self._handover.copies
        jobs = self._source.jobs(self._to.namespace)
        left = [job for job in jobs if job["metadata"]["uid"] not in copies]
        for copy in sorted(copies.values(), key=marks.place_before):
            if not marks.is_marked(copy):
                self._say(copy, MOVED, "it was let go before")
            elif why := in_the_way(copy, left):
                self._hold_back(copy, why)
            else:
                self._handover.settle(self._goal, copy, marks.let_go)
                self._say(copy, MOVED, "")

    def _hold_back(self, copy: Thing, why: str) -> None:
        reason = f"moved from {self._source.url}, where {why}"
        if copy["spec"].get("suspendReason") != reason:
            change = marks.hold_back
            self._handover.settle(self._goal, copy, lambda now: change(now, reason))
        self._say(copy, HELD_BACK, f"{why}: move again when that is over")


def _was_removed(job: Thing, cluster: str) -> bool:
    """Whether the source is on its way out by step 3, and only its end is awaited."""
    return bool(job["metadata"].get("deletionTimestamp")) and marks.is_held(job, cluster)
