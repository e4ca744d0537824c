"""Partial validation: what else is wrong with data that cannot be read as a whole.

Where a value is unusable, another one stands in for it, so that the rules can look at the rest.
What they find then may be the fault of what stands in. So they look several times, each time with
other values in those places, and with none where none is needed: what they find every time holds
whatever the unusable values were meant to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Any

import msgspec
from msgspec import inspect as shape
from msgspec.structs import replace

from interlock.errors import Problem
from interlock.resources.codec import from_builtins
from interlock.resources.describe.shapes import fields_of, plain
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.values.amounts import Amount
from interlock.resources.values.cron_lines import CronLines
from interlock.resources.values.durations import Duration

#: Where variables get their names; while one of these is unusable, no variable is unknown.
_NAMING = re.compile(
    r"\.(options(\[\d+\](\.name)?)?|args|substitutions|parallelism(\.(keys|matrix))?)$"
)
_UNKNOWN = "unknown variable"
#: What must be among the values beside it.
_VALUES = re.compile(r"(\.options\[\d+\]\.)values\b.*")


class Unusable:
    """A place in the data whose value cannot be used, or is missing."""

    def __init__(self, kind: shape.Type, path: str) -> None:
        self.kind = kind
        self.path = path
        #: Whether the data would be whole without it.
        self.may_be_absent = False


class _Filling(Enum):
    """What is put into the places of unusable values."""

    LOW = auto()
    HIGH = auto()
    ABSENT = auto()


def problems_of_the_rest(
    made: object,
    kind: str,
    unusable: Iterable[Unusable],
    judge: Callable[[Resource], Iterable[Problem]],
) -> tuple[Problem, ...]:
    """What `judge` finds in data of a kind, whatever its unusable values were meant to be."""
    paths = {place.path for place in unusable}
    places = paths | {_VALUES.sub(r"\1default", path) for path in paths}
    rounds = [_judged(made, kind, filling, judge) for filling in (_Filling if places else ())]
    rounds = rounds or [_judged(made, kind, _Filling.ABSENT, judge)]
    first, *others = ({(one.path, one.message): one for one in found} for found in rounds)
    names_are_known = not any(_NAMING.search(place) for place in places)
    return tuple(
        problem
        for told, problem in first.items()
        if all(told in other for other in others)
        and not _is_within(problem.path, places)
        and (names_are_known or not problem.message.startswith(_UNKNOWN))
    )


def _judged(
    made: object, kind: str, filling: _Filling, judge: Callable[[Resource], Iterable[Problem]]
) -> tuple[Problem, ...]:
    try:
        resource: Resource = from_builtins(filled(made, filling), KINDS[kind].type)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return ()
    return tuple(judge(resource))


def _is_within(path: str, places: set[str]) -> bool:
    """Whether a path is one of the places, or leads into one."""
    return any(path == place or path.startswith((f"{place}.", f"{place}[")) for place in places)


def without(made: object) -> Any:
    """The data without what is unusable and may be absent."""
    return filled(made, _Filling.ABSENT)


def filled(made: object, filling: _Filling) -> Any:
    """The data with something else in the place of what is unusable."""
    if isinstance(made, Unusable):
        return _stand_in(made.kind, high=filling is _Filling.HIGH)
    if isinstance(made, list):
        return [filled(one, filling) for one in made]
    if not isinstance(made, dict):
        return made
    return {
        name: filled(value, filling)
        for name, value in made.items()
        if not (filling is _Filling.ABSENT and isinstance(value, Unusable) and value.may_be_absent)
    }


def stand_in_named(cls: type[Resource], metadata: Metadata) -> Resource:
    """A resource of that name with as little in it as a type lets one have."""
    made: Resource = from_builtins(_stand_in(shape.type_info(cls), high=False), cls)
    return replace(made, metadata=metadata)


def _stand_in(kind: shape.Type, *, high: bool) -> Any:
    """Some value of a type; the high one is another one than the low one where there are two."""
    kind = plain(kind)[0]
    match kind:
        case shape.StructType(cls=cls):
            required = {n: field for n, field in fields_of(cls).items() if field.required}
            return {name: _stand_in(field.type, high=high) for name, field in required.items()}
        case shape.VarTupleType(item_type=item):
            return [_stand_in(item, high=high)] if high else []
        case shape.DictType():
            return {}
        case shape.EnumType(cls=cls):
            return [member.value for member in cls][-1 if high else 0]
        case shape.UnionType(types=types):
            return _stand_in(types[-1 if high else 0], high=high)
        case shape.CustomType(cls=cls):
            return _SPECIAL.get(cls, ("0", "0-999"))[high]
    return _PLAIN[type(kind)][high]


_SPECIAL: dict[type, tuple[str, str]] = {
    Duration: ("1s", "1000d"),
    CronLines: ("0 0 1 1 *", "* * * * *"),
    Amount: ("1", "1000"),
}
_PLAIN: dict[type[shape.Type], tuple[object, object]] = {
    shape.BoolType: (False, True),
    shape.StrType: ("a", "b"),
    shape.IntType: (1, 1000),
    shape.FloatType: (0.0, 1.0),
    shape.DateTimeType: ("1970-01-01T00:00:00Z", "9000-01-01T00:00:00Z"),
}
