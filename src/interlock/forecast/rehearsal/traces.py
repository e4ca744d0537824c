"""Traces: the states that an operation goes through, as people write them and as they are shown.

A state is `executing(nil)(1)(0)`: the state, the completion state, the retries of the step that is
tried again and those of its undo; one that is over is `complete(success)`. In short these are `e10`
and `c(success)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from interlock.resources.operation import CompletionState, OperationState, OperationStatus

_COMPLETE = "complete"
_LETTERS = {state.value[0]: state.value for state in OperationState}
_ENDS = "|".join(CompletionState)
_LONG = re.compile(r"(queued|executing|reverting)\(nil\)\((\d+)\)\((\d+)\)")
_SHORT = re.compile(r"([qer])(\d)(\d)")
_OVER = re.compile(rf"(?:complete|c)\(({_ENDS})\)")
#: What may stand between two states: blanks, commas and arrows.
_BETWEEN = re.compile(r"(?:\s|,|-*>)+")
EXPECTED = "expected states such as q00 e00 e10 c(success), or executing(nil)(1)(0)"


def state_of(operation: OperationStatus) -> str:
    """Where an operation is, in one word."""
    if operation.completion_state is not None:
        return f"{_COMPLETE}({operation.completion_state})"
    counts = f"({operation.retry_count})({operation.rollback_retry_count})"
    return f"{operation.state}(nil){counts}"


def read_trace(given: object) -> tuple[str, ...]:
    """Read states from a list or a text, each in its long or its short form.

    Raises:
        ValueError: One of them is no state.
    """
    if not isinstance(given, str | list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError(EXPECTED)
    text = given if isinstance(given, str) else " ".join(given)
    words = [word for word in _BETWEEN.split(text) if word]
    if not words:
        raise ValueError(EXPECTED)
    return tuple(map(_read, words))


def _read(word: str) -> str:
    over = _OVER.fullmatch(word)
    if over is not None:
        return f"{_COMPLETE}({over[1]})"
    known = _LONG.fullmatch(word) or _SHORT.fullmatch(word)
    if known is None:
        raise ValueError(f"{EXPECTED}; {word!r} is none")
    state = _LETTERS.get(known[1], known[1])
    return f"{state}(nil)({int(known[2])})({int(known[3])})"


def in_short(states: Iterable[str]) -> str:
    """States as briefly as they can be told."""
    return " ".join(map(_short, states)) or "none"


def _short(state: str) -> str:
    over = _OVER.fullmatch(state)
    if over is not None:
        return f"c({over[1]})"
    known = _LONG.fullmatch(state)
    assert known is not None, state
    is_short = len(known[2]) == len(known[3]) == 1
    return f"{known[1][0]}{known[2]}{known[3]}" if is_short else state


def first_difference(expected: Sequence[str], found: Sequence[str]) -> str:
    """Where two traces part."""
    for at, (wanted, had) in enumerate(zip_longest(expected, found), 1):
        if wanted != had:
            told = "nothing more" if wanted is None else _short(wanted)
            return (
                f"from number {at} on: expected {told}, found {_short(had) if had else 'no more'}"
            )
    return ""
