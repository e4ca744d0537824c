"""Query parameters of reports. Whoever reads one knows no other names than these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

import msgspec

from interlock.api.parameters import Parameter, flag, number
from interlock.api.waits import WAIT
from interlock.errors import BadRequestError
from interlock.resources.job import JobPhase
from interlock.resources.kinds import KINDS
from interlock.resources.operation import CompletionState, OperationState

#: Items in a page when nothing is said, and at most.
PAGE, LARGEST_PAGE = 100, 1000
#: Longer numbers are of no task, attempt or line.
_LARGEST = 10**9 - 1

#: At most so many Jobs are asked for by their ids in one request.
MOST_IDS = 500
#: Where a Job is, in the words of the status API.
STATE_WORDS = tuple(state.value for state in OperationState)
_COMPLETIONS = "|".join(state.value for state in CompletionState)
_ONE_STATE = "|".join((*STATE_WORDS, *(phase.value for phase in JobPhase)))
_NAMESPACE = Parameter(name="namespace", says="Only this one.")
_LABEL = Parameter(name="label", says="A selector, such as team=ops,tier!=test.")


def _moment(name: str, says: str) -> Parameter:
    return Parameter(name=name, says=says, format="date-time")


LISTING = (
    _NAMESPACE,
    Parameter(
        name="state",
        says="States or phases, with commas.",
        pattern=f"^({_ONE_STATE})?(,({_ONE_STATE})?)*$",
    ),
    Parameter(
        name="completion_state",
        says="What they came to, with commas.",
        pattern=f"^({_COMPLETIONS})?(,({_COMPLETIONS})?)*$",
    ),
    Parameter(name="ids", says=f"Ids, with commas, 1 to {MOST_IDS}.", shortest=1),
    Parameter(name="id", says="The same as ids.", shortest=1),
    Parameter(name="creator", says="Who made it."),
    Parameter(name="owner", says="Whose target it is."),
    _LABEL,
    _moment("createdAfter", "Only newer than this moment."),
    _moment("createdBefore", "Only older than this moment."),
    Parameter(name="sort", says="-created is newest first.", enum=("created", "-created")),
    number("limit", f"At most so many ({PAGE}).", 1, LARGEST_PAGE),
    Parameter(name="cursor", says="The next of the page before, of the same list."),
)
STATUS = (WAIT,)
STREAM = (
    Parameter(name="since", says="The version to go on from.", pattern="^[0-9]{0,18}$"),
    _NAMESPACE,
    _LABEL,
    Parameter(name="state", says="Only in this phase."),
)
LOG = (
    number("task", "Which task (0).", 0, _LARGEST),
    number("attempt", "Which attempt, from 0 (the newest).", 0, _LARGEST),
    flag("follow", "Go on until the attempt is over."),
    _moment("since", "Only what is newer than this moment."),
    number("tail", "Only the last lines.", 0, _LARGEST),
)
LOCKS = (_NAMESPACE,)
QUEUE = (number("limit", "At most so many of those who wait (20).", 0, LARGEST_PAGE),)
HISTORY = (
    Parameter(name="name", says="Only of the resource with this name."),
    Parameter(name="kind", says="Of this kind (Job); only with name.", enum=tuple(KINDS)),
    Parameter(name="namespace", says="In this namespace (default); only with name."),
    number("limit", f"At most so many ({PAGE}).", 1, LARGEST_PAGE),
    number("before", "Older than this number: the next of the page before."),
)

#: How many due times are told when nothing is said.
NEXT_USUAL = 20
#: How many days a timeline may show, and a plan may compare.
TIMELINE_DAYS, PLAN_DAYS = 400, 366
NEXT_OF_ONE = (
    _moment("from", "From this moment on (now)."),
    _moment("to", "Up to this moment."),
    number("limit", f"At most so many ({NEXT_USUAL}).", 1, LARGEST_PAGE),
)
NEXT = (_NAMESPACE, *NEXT_OF_ONE)
TIMELINE_OF_ONE = (
    Parameter(name="from", says="The first day (yesterday).", format="date"),
    Parameter(name="to", says=f"The last day, {TIMELINE_DAYS} at most (tomorrow).", format="date"),
)
TIMELINE = (
    _NAMESPACE,
    *TIMELINE_OF_ONE,
    number("limit", f"At most so many objects ({PAGE}).", 1, LARGEST_PAGE),
    Parameter(name="after", says="Where the page before ended: its next."),
)
PLAN = (number("days", "So many days, today first (7).", 1, PLAN_DAYS),)


def check_known(query: Mapping[str, str], known: Sequence[Parameter]) -> None:
    """Refuse what is not known.

    Raises:
        BadRequestError: It is not.
    """
    names = sorted(parameter.name for parameter in known)
    unknown = sorted(set(query) - set(names))
    if unknown:
        told = ", ".join(names)
        raise BadRequestError(f"{unknown[0][:40]}: unknown parameter; known are {told}")


def moment_in(query: Mapping[str, str], name: str) -> datetime | None:
    """A moment; None when it is not given.

    Raises:
        BadRequestError: It is none, or has no zone.
    """
    if name not in query:
        return None
    try:
        moment = msgspec.convert(query[name], datetime)
    except msgspec.ValidationError as error:
        told = f"expected a moment such as 2026-01-05T12:00:00Z, got {query[name][:40]!r}"
        raise BadRequestError(f"{name}: {told}") from error
    if moment.tzinfo is None:
        raise BadRequestError(
            f"{name}: the moment needs a zone, such as the Z of 2026-01-05T12:00:00Z, "
            f"got {query[name][:40]!r}"
        )
    return moment


def day_in(query: Mapping[str, str], name: str) -> date | None:
    """A day; None when it is not given.

    Raises:
        BadRequestError: It is none.
    """
    if name not in query:
        return None
    try:
        return msgspec.convert(query[name], date)
    except msgspec.ValidationError as error:
        told = f"expected a day such as 2026-01-05, got {query[name][:40]!r}"
        raise BadRequestError(f"{name}: {told}") from error


def number_in(
    query: Mapping[str, str], name: str, least: int = 0, most: int = _LARGEST
) -> int | None:
    """A whole number; None when it is not given.

    Raises:
        BadRequestError: It is none, or out of bounds.
    """
    if name not in query:
        return None
    text = query[name]
    if text.isascii() and text.isdigit() and len(text) <= 18 and least <= int(text) <= most:
        return int(text)
    raise BadRequestError(f"{name}: expected {least} to {most}, got {text[:40]!r}")
