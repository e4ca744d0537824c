"""The move of Calendars, JobConfigs and ControlledJobs. The package tells why it is so."""

from __future__ import annotations

import select
from collections.abc import Callable

from interlock.modes.cli.errors import AnswerError
from interlock.modes.cli.moving import marks
from interlock.modes.cli.moving.books import accounted, history_of, is_settled
from interlock.modes.cli.moving.calendars import CalendarMover
from interlock.modes.cli.moving.judging import (
    CONFLICT,
    HELD_BACK,
    LEFT,
    MOVED,
    SCHEDULE_KINDS,
    THERE_ALREADY,
    WOULD_MOVE,
    Verdict,
    calendars_of,
    judge_schedule,
    schedule_in_the_way,
)
from interlock.modes.cli.moving.settling import (
    REFUSALS,
    ROUNDS,
    Bearings,
    Say,
    refusal,
    taken,
    unsettled,
)
from interlock.modes.cli.moving.sides import Thing

#: How often, and after which pause, it is looked whether what is in the way is over: 10 s in all,
#: which is enough for a server to see what was written, and for most Jobs that were told to stop.
_LOOKS, _LOOK_EVERY_S = 100, 0.1


class ScheduleMover:
    """Moves what makes Jobs. Calendars come first; a schedule acts on one side at a time."""

    def __init__(self, bearings: Bearings, say: Say) -> None:
        self._to = bearings
        self._source, self._goal = bearings.source, bearings.goal
        self._say = say
        #: By the uid at the source: what is on its way, and the copies.
        self._going: dict[str, Thing] = {}
        self._copies: dict[str, Thing] = {}
        self._looks_left = _LOOKS
        self._calendars = CalendarMover(bearings, say)

    def begin(self, *, dry_run: bool = False) -> None:
        """Judge everything; copy the Calendars; hold at the source what can be moved, and copy it.

        From then on no new Job comes from a schedule at the source.
        """
        self._calendars.run(dry_run=dry_run)
        self._plan()
        if dry_run:
            for thing in (*self._going.values(), *self._orphans()):
                self._say(thing, WOULD_MOVE, "")
            return
        for step in (self._hold, self._copy):
            for uid in list(self._going):
                step(uid)

    def finish(self) -> None:
        """Hand over what nothing is in the way of."""
        for uid in list(self._going):
            self._hand_over(uid)
        for copy in self._orphans():
            self._let_go(copy)

    def _orphans(self) -> list[Thing]:
        """Copies whose source was handed over, or is gone: they need it no more."""
        return [copy for uid, copy in self._copies.items() if uid not in self._going]

    # Before anything is handed over

    def _plan(self) -> None:
        for kind in SCHEDULE_KINDS:
            marked = self._goal.all(kind, self._to.namespace, f"{marks.MOVING}={self._to.origin}")
            self._copies |= {marks.annotation(one, marks.MOVED_FROM): one for one in marked}
            for thing in self._source.all(kind, self._to.namespace):
                if marks.is_finished(thing, self._to.cluster):
                    # A copy that is still marked is let go; else there is nothing more to do.
                    self._say(thing, THERE_ALREADY, "it stays at the source, suspended")
                    continue
                verdict = self._judge(thing)
                if verdict is None:
                    self._going[thing["metadata"]["uid"]] = thing
                else:
                    self._leave(thing, verdict)

    def _judge(self, thing: Thing) -> Verdict | None:
        return (
            judge_schedule(thing, self._to.cluster, self._to.image)
            or self._judge_calendars(thing)
            or self._fit(thing)
        )

    def _judge_calendars(self, thing: Thing) -> Verdict | None:
        namespace = thing["metadata"]["namespace"]
        for name in sorted(calendars_of(thing)):
            if (namespace, name) in self._calendars.others:
                return Verdict(CONFLICT, f"the cluster has no calendar/{name} like the one here")
        return None

    def _fit(self, thing: Thing) -> Verdict | None:
        """Why the cluster would not take it; None when it would, or has it already."""
        uid = thing["metadata"]["uid"]
        there = self._goal.read(thing)
        if there is None:
            try:
                self._goal.check(self._copy_of(thing))
            except AnswerError as error:
                return refusal(error)
            return None
        if marks.annotation(there, marks.MOVED_FROM) != uid:
            return taken(thing)
        if not marks.is_marked(there):
            return Verdict(CONFLICT, "it was moved, and then resumed here: suspend one of the two")
        self._copies[uid] = there
        return None

    def _leave(self, thing: Thing, verdict: Verdict) -> None:
        """Leave something at the source as if it had never been touched; a copy of it goes."""
        uid = thing["metadata"]["uid"]
        self._going.pop(uid, None)
        self._say(thing, *verdict)
        copy = self._copies.pop(uid, None)
        if copy is not None:
            self._discard(copy)
        if marks.is_held(thing, self._to.cluster):
            self._settle(thing, marks.release_schedule)

    def _discard(self, copy: Thing) -> None:
        """Remove a copy that never acted; one that a person resumed is theirs."""
        for _ in range(ROUNDS):
            now = self._goal.read(copy)
            if now is None or now["metadata"]["uid"] != copy["metadata"]["uid"]:
                return
            if not marks.is_marked(now) or not now["spec"].get("suspend"):
                return
            try:
                self._goal.remove(now)
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
            else:
                return
        raise unsettled(copy)

    def _settle(self, thing: Thing, change: Callable[[Thing], Thing]) -> None:
        for _ in range(ROUNDS):
            now = self._source.read(thing)
            if now is None or now["metadata"]["uid"] != thing["metadata"]["uid"]:
                return
            try:
                self._source.change(now, change(now))
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
            else:
                return
        raise unsettled(thing)

    # Step by step

    def _hold(self, uid: str) -> None:
        """Step 1: from here on it makes no Jobs at the source."""
        for _ in range(ROUNDS):
            thing = self._going[uid]
            if marks.is_held(thing, self._to.cluster):
                return
            try:
                change = marks.hold_schedule(thing, self._to.cluster, self._to.context)
                self._going[uid] = self._source.change(thing, change)
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
                if not self._look_again(uid):
                    return
        raise unsettled(self._going[uid])

    def _look_again(self, uid: str) -> bool:
        """Read something that has changed; False when it is not to be moved any more."""
        thing = self._going[uid]
        now = self._source.read(thing)
        if now is None or now["metadata"]["uid"] != uid:
            self._leave(thing, Verdict(LEFT, "it was deleted meanwhile"))
            return False
        self._going[uid] = now
        verdict = judge_schedule(now, self._to.cluster, self._to.image)
        if verdict is not None:
            self._leave(now, verdict)
        return verdict is None

    def _copy(self, uid: str) -> None:
        """Step 2: the cluster has it too, suspended."""
        if uid in self._copies or uid not in self._going:
            return
        thing = self._going[uid]
        try:
            self._copies[uid] = self._goal.create(self._copy_of(thing))
        except AnswerError as error:
            if error.status not in REFUSALS:
                raise
            there = self._goal.read(thing) if error.reason == "AlreadyExists" else None
            if there is not None and marks.annotation(there, marks.MOVED_FROM) == uid:
                self._copies[uid] = there
            else:
                self._leave(thing, taken(thing) if there is not None else refusal(error))

    def _copy_of(self, thing: Thing) -> Thing:
        return marks.schedule_copy_of(thing, self._to.origin, self._to.image)

    def _hand_over(self, uid: str) -> None:
        """Steps 3 to 5: tell the copy all, say at the source that it was moved, let it go.

        The source is read before the copy is told, and marked at the very version that was
        read: if it was resumed, or anything else happened there, all is told again.
        """
        for _ in range(ROUNDS):
            self._hold(uid)
            if uid not in self._going or not self._look_again(uid):
                return
            if why := self._why_not(self._going[uid]):
                self._say(self._going[uid], HELD_BACK, f"{why}: move again when that is over")
                return
            thing = self._going[uid]
            if not marks.is_held(thing, self._to.cluster):
                continue
            self._copy(uid)
            if uid not in self._going:
                return
            if not self._tell(uid, thing):
                continue
            try:
                self._source.change(thing, marks.finish(thing))
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
                continue
            del self._going[uid]
            return
        raise unsettled(self._going[uid])

    def _why_not(self, thing: Thing) -> str:
        """What is in the way of handing it over, even after a while; empty when nothing is."""
        uid = thing["metadata"]["uid"]
        while True:
            now = self._source.read(thing)
            if now is not None and now["metadata"]["uid"] == uid:
                thing = self._going[uid] = now
            why = "" if is_settled(thing) else "its server has not finished with it yet"
            why = schedule_in_the_way(thing, self._source.jobs(self._to.namespace)) or why
            if not why or not self._looks_left:
                return why
            self._looks_left -= 1
            select.select([], [], [], _LOOK_EVERY_S)

    def _tell(self, uid: str, thing: Thing) -> bool:
        """Have the copy know what the source knows; False when a person has removed the copy."""
        for _ in range(ROUNDS):
            copy = self._goal.read(self._copies[uid])
            if copy is None or copy["metadata"]["uid"] != self._copies[uid]["metadata"]["uid"]:
                del self._copies[uid]
                return False
            try:
                annotations = accounted(thing)
                if any(marks.annotation(copy, name) != text for name, text in annotations.items()):
                    change = {"annotations": annotations}
                    version = {"resourceVersion": copy["metadata"]["resourceVersion"]}
                    copy = self._goal.change(copy, {"metadata": change | version})
                history = history_of(thing)
                if history:
                    copy = self._goal.tell(copy, history)
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
            else:
                self._copies[uid] = copy
                return True
        raise unsettled(thing)

    def _let_go(self, copy: Thing) -> None:
        """Step 6: the copy acts, if the source did before."""
        for _ in range(ROUNDS):
            now = self._goal.read(copy)
            if now is None or now["metadata"]["uid"] != copy["metadata"]["uid"]:
                return
            if not marks.is_marked(now):
                break
            try:
                self._goal.change(now, marks.let_schedule_go(now))
            except AnswerError as error:
                if error.status not in (404, 409):
                    raise
            else:
                break
        else:
            raise unsettled(copy)
        self._say(copy, MOVED, "it stays at the source, suspended")
