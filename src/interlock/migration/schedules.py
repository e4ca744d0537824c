"""The move of JobConfigs and ControlledJobs. The package tells why it is so."""

from __future__ import annotations

import select

from interlock.client.errors import AnswerError
from interlock.client.kinds import CALENDARS
from interlock.migration import annotations as marks
from interlock.migration.books import accounted, history_of, is_settled
from interlock.migration.context import ROUNDS, Context, Say, unsettled
from interlock.migration.copying import CopyMover
from interlock.migration.endpoints import Thing
from interlock.migration.handover import CHANGED, Handover
from interlock.migration.judging import (
    CONFLICT,
    HELD_BACK,
    MOVED,
    SCHEDULE_KINDS,
    THERE_ALREADY,
    WOULD_MOVE,
    Verdict,
    What,
    calendars_of,
    judge_schedule,
    schedule_in_the_way,
)

#: How often, and after which pause, it is looked whether what is in the way is over: 10 s in all,
#: which is enough for a server to see what was written, and for most Jobs that were told to stop.
_LOOKS, _LOOK_EVERY_S = 100, 0.1


class SchedulePlan:
    """What is done with a JobConfig or a ControlledJob."""

    #: A copy that a person resumed is theirs.
    both_acted = ""

    def __init__(self, bearings: Context) -> None:
        self._to = bearings

    def judge(self, thing: Thing) -> Verdict | None:
        """Leave what goes away, and what another move has."""
        return judge_schedule(thing, self._to.cluster, self._to.image)

    def judge_copy(self, copy: Thing) -> Verdict | None:
        """A copy that was let go acts: its source must not be moved once more."""
        if marks.is_marked(copy):
            return None
        return Verdict(CONFLICT, "it was moved, and then resumed here: suspend one of the two")

    def copy_of(self, thing: Thing) -> Thing:
        """The schedule in the cluster."""
        return marks.schedule_copy_of(thing, self._to.origin, self._to.image)

    def hold(self, thing: Thing) -> Thing:
        """Suspend it: it makes no Jobs at the source."""
        return marks.hold_schedule(thing, self._to.cluster, self._to.context)

    def release(self, thing: Thing) -> Thing:
        """Give it the suspension that it had."""
        return marks.release_schedule(thing)

    def has_acted(self, copy: Thing) -> bool:
        """Whether it may have made Jobs."""
        return not marks.is_marked(copy) or not copy["spec"].get("suspend")


class ScheduleMover:
    """Moves what makes Jobs. What is only copied comes first; a schedule acts on one side alone."""

    def __init__(self, bearings: Context, say: Say) -> None:
        self._to = bearings
        self._source, self._goal = bearings.source, bearings.goal
        self._say = say
        self._plan = SchedulePlan(bearings)
        self._handover = Handover(bearings, self._plan, say)
        self._looks_left = _LOOKS
        self._copied = CopyMover(bearings, say)

    def begin(self, *, dry_run: bool = False) -> None:
        """Judge everything; copy what does nothing by itself; hold and copy what can be moved.

        From then on no new Job comes from a schedule at the source.
        """
        self._copied.run(dry_run=dry_run)
        self._find()
        if dry_run:
            for thing in (*self._handover.going.values(), *self._orphans()):
                self._say(thing, WOULD_MOVE, "")
            return
        for step in (self._handover.hold, self._handover.copy):
            for uid in list(self._handover.going):
                step(uid)

    def finish(self) -> None:
        """Hand over what nothing is in the way of."""
        for uid in list(self._handover.going):
            self._hand_over(uid)
        for copy in self._orphans():
            self._let_go(copy)

    def _orphans(self) -> list[Thing]:
        """Copies whose source was handed over, or is gone: they need it no more."""
        going = self._handover.going
        return [copy for uid, copy in self._handover.copies.items() if uid not in going]

    def _find(self) -> None:
        for kind in SCHEDULE_KINDS:
            self._handover.find_copies(kind)
            for thing in self._source.all(kind, self._to.namespace):
                if marks.is_finished(thing, self._to.cluster):
                    # A copy that is still marked is let go; else there is nothing more to do.
                    self._say(thing, THERE_ALREADY, "it stays at the source, suspended")
                else:
                    verdict = self._plan.judge(thing) or self._judge_calendars(thing)
                    self._handover.take_up(thing, verdict)

    def _judge_calendars(self, thing: Thing) -> Verdict | None:
        namespace = thing["metadata"]["namespace"]
        for name in sorted(calendars_of(thing)):
            if What(namespace, CALENDARS.name, name) in self._copied.others:
                return Verdict(CONFLICT, f"the cluster has no calendar/{name} like the one here")
        return None

    def _hand_over(self, uid: str) -> None:
        """Steps 3 to 5: tell the copy all, say at the source that it was moved, let it go.

        The source is read before the copy is told, and marked at the very version that was
        read: if it was resumed, or anything else happened there, all is told again.
        """
        steps, going = self._handover, self._handover.going
        for _ in range(ROUNDS):
            steps.hold(uid)
            if uid not in going or not steps.look_again(uid):
                return
            if why := self._why_not(going[uid]):
                self._say(going[uid], HELD_BACK, f"{why}: move again when that is over")
                return
            thing = going[uid]
            if not marks.is_held(thing, self._to.cluster):
                continue
            steps.copy(uid)
            if uid not in going:
                return
            if not self._tell(uid, thing):
                continue
            try:
                self._source.change(thing, marks.finish(thing))
            except AnswerError as error:
                if error.status not in CHANGED:
                    raise
                continue
            del going[uid]
            return
        raise unsettled(going[uid])

    def _why_not(self, thing: Thing) -> str:
        """What is in the way of handing it over, even after a while; empty when nothing is."""
        uid = thing["metadata"]["uid"]
        while True:
            now = self._source.read(thing)
            if now is not None and now["metadata"]["uid"] == uid:
                thing = self._handover.going[uid] = now
            why = "" if is_settled(thing) else "its server has not finished with it yet"
            why = schedule_in_the_way(thing, self._source.jobs(self._to.namespace)) or why
            if not why or not self._looks_left:
                return why
            self._looks_left -= 1
            select.select([], [], [], _LOOK_EVERY_S)

    def _tell(self, uid: str, thing: Thing) -> bool:
        """Have the copy know what the source knows; False when a person has removed the copy."""
        copies = self._handover.copies
        for _ in range(ROUNDS):
            copy = self._goal.read(copies[uid])
            if copy is None or copy["metadata"]["uid"] != copies[uid]["metadata"]["uid"]:
                del copies[uid]
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
                if error.status not in CHANGED:
                    raise
            else:
                copies[uid] = copy
                return True
        raise unsettled(thing)

    def _let_go(self, copy: Thing) -> None:
        """Step 6: the copy acts, if the source did before."""
        if self._handover.settle(self._goal, copy, _let_go_if_marked):
            self._say(copy, MOVED, "it stays at the source, suspended")


def _let_go_if_marked(copy: Thing) -> Thing | None:
    return marks.let_schedule_go(copy) if marks.is_marked(copy) else None
