"""Held answers: for how long whoever asks wants one to be held until something is over."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.api.parameters import LENGTH, Parameter
from interlock.errors import BadRequestError
from interlock.resources.values.durations import parse_duration

#: An answer is held for so long at most, and so long when nothing is said of it.
LONGEST_WAIT_S, USUAL_WAIT_S = 300, 60

WAIT = Parameter(
    name="wait",
    says=f"Hold the answer until it is over or stuck, at most so long ({LONGEST_WAIT_S}s).",
    pattern=LENGTH,
    shortest=1,
)


def wait_in(query: Mapping[str, str]) -> float | None:
    """For how many seconds an answer may be held; None when nothing is said.

    Raises:
        BadRequestError: It is no duration.
    """
    if "wait" not in query:
        return None
    try:
        wait = parse_duration(query["wait"]).total_seconds()
    except ValueError as error:
        raise BadRequestError(f"wait: {error}, got {query['wait'][:40]!r}") from error
    return min(wait, float(LONGEST_WAIT_S))
