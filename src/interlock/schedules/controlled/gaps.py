"""Starts and stops that do not happen because clocks skip their time: what is told of them."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.resources.controlled_job import ActionRecord, ControlledAction
from interlock.resources.schedule import written_moment
from interlock.schedules.controlled.situation import Situation
from interlock.timing.plans import Action, Turn

#: So many are told at one look; there are two a year.
_TOLD = 4


def swallowed(situation: Situation) -> tuple[Turn, ...]:
    """Those since the last look that would have made a difference, oldest first.

    A start does so while no window is open, a stop while one is. What an edit put into the past
    was never to be.
    """
    timetable, books = situation.view.timetable, situation.controlled.status.books
    if timetable is None or books.schedule_hash != situation.view.schedule_hash:
        return ()
    since = max((m for m in (books.since, books.accounted_to) if m is not None), default=None)
    found: list[Turn] = []
    while since is not None and (turns := timetable.next_in_gap(since, situation.now)):
        since = turns[0].at
        is_open = timetable.state_at(since).window is not None
        found += (turn for turn in turns if is_open is (turn.action is Action.STOP))
    return tuple(found[-_TOLD:])


def skips_told(situation: Situation) -> Iterator[ActionRecord]:
    """How the history tells of them."""
    for turn in swallowed(situation):
        yield ActionRecord(
            type=ControlledAction.SKIPPED,
            timestamp=situation.now,
            message=f"the {turn.action.value} of {written_moment(turn.at)}: {turn.skipped}",
            scheduled_start_time=turn.at if turn.action is Action.START else None,
        )
