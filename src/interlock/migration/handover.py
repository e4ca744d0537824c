"""The handover of one resource after the other: the steps that Jobs and schedules have in common.

Each step is a write that a repeated move finds done, or does again. What Jobs and schedules do
differently is a `Plan`; the package tells what each step is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from interlock.client.errors import AnswerError
from interlock.client.kinds import Kind
from interlock.migration import annotations as marks
from interlock.migration.context import (
    REFUSALS,
    ROUNDS,
    Context,
    Say,
    refusal,
    taken,
    unsettled,
)
from interlock.migration.endpoints import Side, Thing
from interlock.migration.judging import CONFLICT, LEFT, Verdict, has_begun


class Plan(Protocol):
    """What is done with one sort of resource."""

    def judge(self, thing: Thing) -> Verdict | None:
        """Why it is not moved, by itself alone; None when it can be."""
        ...

    def judge_copy(self, copy: Thing) -> Verdict | None:
        """Why a copy that is there already is not gone on with; None when it is."""
        ...

    def copy_of(self, thing: Thing) -> Thing:
        """As it is created in the cluster: suspended, and marked."""
        ...

    def hold(self, thing: Thing) -> Thing:
        """The change that holds it at the source."""
        ...

    def release(self, thing: Thing) -> Thing:
        """The change that puts it back as it was."""
        ...

    def has_acted(self, copy: Thing) -> bool:
        """Whether a copy did something, or is a person's now: then it is not removed."""
        ...

    #: What is wrong when a copy has acted whose source is left; empty when nothing is.
    both_acted: str


class Handover:
    """What is on its way from one side to the other, step by step."""

    def __init__(self, bearings: Context, plan: Plan, say: Say) -> None:
        self._to = bearings
        self._source, self._goal = bearings.source, bearings.goal
        self._plan = plan
        self._say = say
        #: By the uid at the source: what is on its way, and the copies.
        self.going: dict[str, Thing] = {}
        self.copies: dict[str, Thing] = {}

    def find_copies(self, kind: Kind) -> None:
        """Take in the copies that an interrupted move has left."""
        marked = self._goal.all(kind, self._to.namespace, f"{marks.MOVING}={self._to.origin}")
        self.copies |= {marks.annotation(one, marks.MOVED_FROM): one for one in marked}

    def take_up(self, thing: Thing, verdict: Verdict | None) -> None:
        """Move something, unless there is a verdict or the cluster would not take it."""
        verdict = verdict or self._fit(thing)
        if verdict is None:
            self.going[_uid(thing)] = thing
        else:
            self.leave(thing, verdict)

    def _fit(self, thing: Thing) -> Verdict | None:
        """Why the cluster would not take it; None when it would, or has it already."""
        there = self._goal.read(thing)
        if there is None:
            try:
                self._goal.check(self._plan.copy_of(thing))
            except AnswerError as error:
                return refusal(error)
            return None
        if marks.annotation(there, marks.MOVED_FROM) != _uid(thing):
            return taken(thing)
        verdict = self._plan.judge_copy(there)
        if verdict is None:
            self.copies[_uid(thing)] = there
        return verdict

    def leave(self, thing: Thing, verdict: Verdict) -> None:
        """Leave something at the source as if it had never been touched; a copy of it goes."""
        self.going.pop(_uid(thing), None)
        self._say(thing, *verdict)
        copy = self.copies.pop(_uid(thing), None)
        if copy is not None and not self._discard(copy) and self._plan.both_acted:
            self._say(thing, CONFLICT, f"{verdict.why}; {self._plan.both_acted}")
        elif marks.is_held(thing, self._to.cluster) and not _has_gone_on(thing):
            self.settle(self._source, thing, self._plan.release)

    def _discard(self, copy: Thing) -> bool:
        """Remove a copy that never acted; False when it did, which took a person to happen."""
        for _ in range(ROUNDS):
            now = self._goal.read(copy)
            if now is None or _uid(now) != _uid(copy):
                return True
            if self._plan.has_acted(now):
                return False
            if _unless_changed(self._goal.remove, now):
                return True
        raise unsettled(copy)

    def hold(self, uid: str) -> None:
        """From here on it does nothing new at the source."""
        for _ in range(ROUNDS):
            thing = self.going[uid]
            if marks.is_held(thing, self._to.cluster):
                return
            try:
                self.going[uid] = self._source.change(thing, self._plan.hold(thing))
            except AnswerError as error:
                if error.status not in CHANGED:
                    raise
                if not self.look_again(uid):
                    return
        raise unsettled(self.going[uid])

    def look_again(self, uid: str) -> bool:
        """Read something that has changed; False when it is not to be moved any more."""
        thing = self.going[uid]
        now = self._source.read(thing)
        if now is None or _uid(now) != uid:
            self.leave(thing, Verdict(LEFT, "it was deleted meanwhile"))
            return False
        self.going[uid] = now
        verdict = self._plan.judge(now)
        if verdict is not None:
            self.leave(now, verdict)
        return verdict is None

    def copy(self, uid: str) -> None:
        """From here on the cluster has it too, suspended."""
        if uid in self.copies or uid not in self.going:
            return
        thing = self.going[uid]
        try:
            self.copies[uid] = self._goal.create(self._plan.copy_of(thing))
        except AnswerError as error:
            if error.status not in REFUSALS:
                raise
            there = self._goal.read(thing) if error.reason == "AlreadyExists" else None
            if there is not None and marks.annotation(there, marks.MOVED_FROM) == uid:
                self.copies[uid] = there
            else:
                self.leave(thing, taken(thing) if there is not None else refusal(error))

    def settle(self, side: Side, thing: Thing, change: Callable[[Thing], Thing | None]) -> bool:
        """Make a change however the thing has moved on; False when it is gone and needs none.

        Nothing is written where the change is None.
        """
        for _ in range(ROUNDS):
            now = side.read(thing)
            if now is None or _uid(now) != _uid(thing):
                return False
            wanted = change(now)
            if wanted is None or _unless_changed(side.change, now, wanted):
                return True
        raise unsettled(thing)


#: What a server answers when somebody else has changed or removed something meanwhile.
CHANGED = (404, 409)


def _unless_changed(write: Callable[..., object], *things: Thing) -> bool:
    """Whether a write was done; False when somebody else was quicker."""
    try:
        write(*things)
    except AnswerError as error:
        if error.status not in CHANGED:
            raise
        return False
    return True


def _uid(thing: Thing) -> str:
    return str(thing["metadata"]["uid"])


def _has_gone_on(thing: Thing) -> bool:
    """Whether it has gone on by itself, so that there is nothing to put back."""
    return has_begun(thing) or bool(thing["metadata"].get("deletionTimestamp"))
