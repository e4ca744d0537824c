"""The steps of a move, for all Jobs one step after the other. The package tells why so.

Schedules are held before, so that no Job comes after the others, and handed over at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.modes.cli.errors import AnswerError
from interlock.modes.cli.moving import marks
from interlock.modes.cli.moving.judging import (
    CONFLICT,
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
from interlock.modes.cli.moving.schedules import ScheduleMover
from interlock.modes.cli.moving.settling import (
    REFUSALS,
    ROUNDS,
    Bearings,
    refusal,
    taken,
    unsettled,
)
from interlock.modes.cli.moving.sides import Side

Job = dict[str, Any]

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
        self._origin = ""
        self._cluster = ""
        #: By the uid at the source: Jobs on their way, and their copies.
        self._going: dict[str, Job] = {}
        self._copies: dict[str, Job] = {}
        #: What became of everything: what makes Jobs, then Jobs in the order of creation.
        self.verdicts: dict[What, Verdict] = {}

    def run(self, *, dry_run: bool = False) -> None:
        """Move all that can be moved; `verdicts` tells what became of each."""
        self._origin = self._source.identity(_OURS)
        self._cluster = self._goal.identity(_THEIRS)
        schedules = ScheduleMover(self._bearings(), self._say)
        schedules.begin(dry_run=dry_run)
        self._plan()
        if dry_run:
            for job in [*self._going.values(), *self._copies.values()]:
                self._say(job, WOULD_MOVE, "")
            return
        for step, order in (
            (self._hold, sorted(self._going.values(), key=place, reverse=True)),
            (self._copy, sorted(self._going.values(), key=marks.created)),
            (self._remove, sorted(self._going.values(), key=marks.created)),
        ):
            for job in order:
                self._take(step, job["metadata"]["uid"])
        self._let_go_all()
        schedules.finish()

    def _bearings(self) -> Bearings:
        return Bearings(
            source=self._source,
            goal=self._goal,
            origin=self._origin,
            cluster=self._cluster,
            context=self._context,
            namespace=self._namespace,
            image=self._image,
        )

    def _take(self, step: Callable[[str], None], uid: str) -> None:
        if uid in self._going:
            step(uid)

    def _say(self, job: Job, outcome: str, why: str) -> None:
        self.verdicts[What.of(job)] = Verdict(outcome, why)

    def _plan(self) -> None:
        """Judge every Job, and find the copies that an interrupted move has left."""
        jobs = sorted(self._source.jobs(self._namespace), key=marks.created)
        marked = self._goal.jobs(self._namespace, f"{marks.MOVING}={self._origin}")
        self._copies = {marks.annotation(copy, marks.MOVED_FROM): copy for copy in marked}
        for job in jobs:
            self._say(job, LEFT, "")
            uid = job["metadata"]["uid"]
            if _was_removed(job, self._cluster) and self._has_copy(job):
                self._say(job, MOVED, "")
                continue
            verdict = judge(job, self._cluster, self._image) or self._fit(job)
            if verdict is None:
                self._going[uid] = job
            else:
                self._leave(job, verdict)

    def _has_copy(self, job: Job) -> bool:
        uid = job["metadata"]["uid"]
        there = self._copies.get(uid) or self._goal.read(job)
        return there is not None and marks.annotation(there, marks.MOVED_FROM) == uid

    def _fit(self, job: Job) -> Verdict | None:
        """Why the cluster would not take the Job; None when it would, or has it already."""
        there = self._goal.read(job)
        if there is not None:
            if marks.annotation(there, marks.MOVED_FROM) == job["metadata"]["uid"]:
                self._copies[job["metadata"]["uid"]] = there
                return None
            return taken(job)
        try:
            self._goal.check(marks.copy_of(job, self._origin, self._source.url, self._image))
        except AnswerError as error:
            return refusal(error)
        return None

    def _leave(self, job: Job, verdict: Verdict) -> None:
        """Leave a Job at the source as if it had never been touched; a copy of it goes."""
        uid = job["metadata"]["uid"]
        self._going.pop(uid, None)
        self._say(job, *verdict)
        copy = self._copies.pop(uid, None)
        if copy is not None and not self._discard(copy):
            self._say(job, CONFLICT, f"{verdict.why}; and its copy in the cluster has started too")
        elif marks.is_held(job, self._cluster) and not _has_gone_on(job):
            self._settle(self._source, job, marks.release)

    def _discard(self, copy: Job) -> bool:
        """Remove a copy that never ran; False when it did, which took a person to happen."""
        for _ in range(ROUNDS):
            now = self._goal.read(copy)
            if now is None or now["metadata"]["uid"] != copy["metadata"]["uid"]:
                return True
            if has_begun(now) or not marks.is_marked(now):
                return False
            try:
                self._goal.remove(now)
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
            else:
                return True
        raise unsettled(copy)

    def _hold(self, uid: str) -> None:
        """Step 1: from here on the Job cannot start at the source."""
        for _ in range(ROUNDS):
            job = self._going[uid]
            if marks.is_held(job, self._cluster):
                return
            try:
                change = marks.hold(job, self._cluster, self._context)
                self._going[uid] = self._source.change(job, change)
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
                if not self._look_again(uid):
                    return
        raise unsettled(job)

    def _look_again(self, uid: str) -> bool:
        """Read a Job that somebody else changed; False when it is not to be moved any more."""
        job = self._going[uid]
        now = self._source.read(job)
        if now is None or now["metadata"]["uid"] != uid:
            self._leave(job, Verdict(LEFT, "it was deleted meanwhile"))
            return False
        self._going[uid] = now
        verdict = judge(now, self._cluster, self._image)
        if verdict is not None:
            self._leave(now, verdict)
        return verdict is None

    def _copy(self, uid: str) -> None:
        """Step 2: the cluster has the Job too, suspended."""
        if uid in self._copies:
            return
        job = self._going[uid]
        copy = marks.copy_of(job, self._origin, self._source.url, self._image)
        try:
            self._copies[uid] = self._goal.create(copy)
        except AnswerError as error:
            if error.status not in REFUSALS:
                raise
            there = self._goal.read(job) if error.reason == "AlreadyExists" else None
            if there is not None and marks.annotation(there, marks.MOVED_FROM) == uid:
                self._copies[uid] = there
            else:
                self._leave(job, taken(job) if there is not None else refusal(error))

    def _remove(self, uid: str) -> None:
        """Step 3: the copy is the only one, if the source is still held."""
        for _ in range(ROUNDS):
            try:
                self._source.remove(self._going[uid])
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
                if not self._look_again(uid):
                    return
                self._hold(uid)
                if uid not in self._going:
                    return
            else:
                del self._going[uid]
                return
        raise unsettled(self._going[uid])

    def _let_go_all(self) -> None:
        """Step 4, from the first in line to the last."""
        removed = set(self._copies)
        left = [
            job
            for job in self._source.jobs(self._namespace)
            if job["metadata"]["uid"] not in removed
        ]
        for copy in sorted(self._copies.values(), key=marks.place_before):
            if not marks.is_marked(copy):
                self._say(copy, MOVED, "it was let go before")
            elif why := in_the_way(copy, left):
                self._hold_back(copy, why)
            else:
                self._settle(self._goal, copy, marks.let_go)
                self._say(copy, MOVED, "")

    def _hold_back(self, copy: Job, why: str) -> None:
        reason = f"moved from {self._source.url}, where {why}"
        if copy["spec"].get("suspendReason") != reason:
            self._settle(self._goal, copy, lambda now: marks.hold_back(now, reason))
        self._say(copy, HELD_BACK, f"{why}: move again when that is over")

    def _settle(self, side: Side, job: Job, change: Callable[[Job], Job]) -> None:
        """Make a change however the Job has moved on; one that is gone needs none."""
        for _ in range(ROUNDS):
            now = side.read(job)
            if now is None or now["metadata"]["uid"] != job["metadata"]["uid"]:
                return
            try:
                side.change(now, change(now))
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
            else:
                return
        raise unsettled(job)


def _has_gone_on(job: Job) -> bool:
    """Whether the Job has gone on by itself, so that there is nothing to put back."""
    return has_begun(job) or bool(job["metadata"].get("deletionTimestamp"))


def _was_removed(job: Job, cluster: str) -> bool:
    """Whether the source is on its way out by step 3, and only its end is awaited."""
    return bool(job["metadata"].get("deletionTimestamp")) and marks.is_held(job, cluster)
