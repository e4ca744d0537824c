"""The move of what is only copied, such as Calendars: it does nothing by itself, so one on each
side does no harm."""

from __future__ import annotations

from interlock.client.errors import AnswerError
from interlock.migration import annotations as marks
from interlock.migration.context import REFUSALS, Context, Say, refusal, taken
from interlock.migration.endpoints import Thing
from interlock.migration.judging import (
    COPIED_KINDS,
    MOVED,
    THERE_ALREADY,
    WOULD_MOVE,
    Verdict,
    What,
)
from interlock.resources.default_queue import DEFAULT_QUEUE

#: What says how much this machine has says nothing of a cluster.
_OF_THIS_MACHINE = ("Queue", DEFAULT_QUEUE)


class CopyMover:
    """Copies what is only copied, and knows of what the cluster has others."""

    def __init__(self, bearings: Context, say: Say) -> None:
        self._source, self._goal = bearings.source, bearings.goal
        self._namespace = bearings.namespace
        self._say = say
        self.others: set[What] = set()

    def run(self, *, dry_run: bool = False) -> None:
        """Copy all that the cluster does not have."""
        for kind in COPIED_KINDS:
            for thing in self._source.all(kind, self._namespace):
                if (thing["kind"], thing["metadata"]["name"]) == _OF_THIS_MACHINE:
                    continue
                self._copy(thing, dry_run=dry_run)

    def _copy(self, thing: Thing, *, dry_run: bool) -> None:
        there = self._goal.read(thing)
        if there is not None:
            is_same = there["spec"] == thing["spec"]
            is_copy = marks.annotation(there, marks.MOVED_FROM) == thing["metadata"]["uid"]
            if is_same or is_copy:
                self._say(thing, THERE_ALREADY, "")
            else:
                self._refuse(thing, taken(thing))
            return
        copy = marks.plain_copy_of(thing)
        try:
            if dry_run:
                self._goal.check(copy)
            else:
                self._goal.create(copy)
        except AnswerError as error:
            if error.status not in REFUSALS:
                raise
            self._refuse(thing, refusal(error))
        else:
            self._say(thing, WOULD_MOVE if dry_run else MOVED, "")

    def _refuse(self, thing: Thing, verdict: Verdict) -> None:
        self.others.add(What.of(thing))
        self._say(thing, *verdict)
