"""Holding back and letting go: Jobs, and the schedules that make them."""

from __future__ import annotations

from typing import Any

from interlock.modes.cli.choosing import LIVE, add_choice, chosen
from interlock.modes.cli.jobs import SUSPEND_REASON, Order
from interlock.modes.cli.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind, parse_name
from interlock.modes.cli.outcomes import has_ended, phase_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from interlock.modes.cli.session import Session

#: What can be held back; a bare name is that of a Job.
SUSPENDABLE = (JOBS, JOB_CONFIGS, CONTROLLED_JOBS)
NAMES_HELP = "a Job's name, jobconfig/NAME or controlledjob/NAME"


def add_names(parser: ArgumentParser) -> None:
    """Which."""
    add_choice(parser, "JOB | KIND/NAME", NAMES_HELP)


def names_of(session: Session, args: Namespace) -> list[tuple[Kind, str]]:
    """What was typed, or the Jobs that fit; all of it is read before anything is changed."""
    return chosen(session, args, lambda word: parse_name(word, *SUSPENDABLE), only=LIVE)


def setting(value: bool, word: str, reason: str = "") -> Callable[[Kind, dict[str, Any]], Order]:
    """The order to hold back, or to let go."""

    def order(kind: Kind, item: dict[str, Any]) -> Order:
        if kind is JOBS:
            if has_ended(item):
                return Order(f"already {phase_of(item).lower()}")
            spec = {"suspend": value or None, "suspendReason": reason or None}
            return Order(word, {"spec": spec})
        # Schedules have no field for the reason: their spec says when, not why not.
        metadata = {"annotations": {SUSPEND_REASON: reason or None}}
        change = {"metadata": metadata, "spec": {"suspend": value or None}}
        if bool((item.get("spec") or {}).get("suspend")) is not value:
            return Order(word, change)
        return Order("already suspended" if value else "not suspended", change if reason else None)

    return order
