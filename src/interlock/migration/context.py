"""The migration's context: source and target, shared limits, and how parts give up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from interlock.client.errors import CONFLICT as CONFLICT_CODE
from interlock.client.errors import AnswerError, CommandError
from interlock.migration.endpoints import Side, Thing
from interlock.migration.judging import CONFLICT, Verdict, What

#: How often somebody else may change the same thing in between.
ROUNDS = 20
#: Whoever answers so has refused something, and would refuse it again.
REFUSALS = (400, 403, 404, 409, 413, 422)

#: Says what becomes of something: an outcome, and why.
Say = Callable[[Thing, str, str], None]


class Context(NamedTuple):
    """Whence, whither, and what of it."""

    source: Side
    goal: Side
    #: What tells the two servers from all others.
    origin: str
    cluster: str
    #: The cluster, for people.
    context: str
    #: None is all of them.
    namespace: str | None
    #: What processes become pods with.
    image: str


def taken(thing: Thing) -> Verdict:
    """Another one has the name."""
    return Verdict(CONFLICT, f"the cluster has another {What.of(thing).told}")


def refusal(error: AnswerError) -> Verdict:
    """The cluster does not want it."""
    return Verdict(CONFLICT, f"the cluster refuses it: {error.message}")


def unsettled(thing: Thing) -> CommandError:
    """Somebody changes it all the time."""
    told = f"{What.of(thing).told} changes too fast to be moved: try again"
    return CommandError(told, code=CONFLICT_CODE)
