"""The diagnosing reader: finds everything that is wrong, where the decoder stops at once.

It follows the type and never the data, so data that is deep, huge or strange costs no more than
the fields it has. Null means "not given", as Kubernetes clients write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec import inspect as shape

from interlock.findings import (
    Findings,
    child,
    did_you_mean,
    nearest,
    shortened,
    type_of,
)
from interlock.resources.checks.pod_fields import POD_FIELDS
from interlock.resources.describe.shapes import fields_of, plain, shape_of, struct_of
from interlock.resources.door.stand_ins import Unusable
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Metadata, Moment
from interlock.resources.values.amounts import Amount
from interlock.resources.values.cron_lines import EXPECTED as CRON_EXPECTED
from interlock.resources.values.cron_lines import CronLines
from interlock.resources.values.durations import EXPECTED, Duration, parse_duration
from interlock.resources.values.free_form import Walk
from interlock.resources.values.indexes import IndexSet

#: Fields of Kubernetes' metadata that this system does not keep.
_DROPPED: dict[type[Struct], frozenset[str]] = {Metadata: frozenset({"managedFields", "selfLink"})}
#: The types of plain data.
_JSON = (dict, list, str, int, float, type(None))
_INT64 = range(-(1 << 63), 1 << 63)


class DoubledObject(dict[str, Any]):
    """A JSON object in which some names came twice; the last value of each was kept."""

    doubled: tuple[str, ...] = ()


class Reader:
    """Turns plain data into data that the decoder takes, noting what is wrong.

    It is of one kind or, without one, of a noun.
    """

    def __init__(self, kind: str = "") -> None:
        self._kind = kind
        #: What makes the data unreadable.
        self.problems = Findings()
        #: What can be left out: unknown fields, and fields given twice.
        self.extras = Findings()
        #: The places that are marked in what was read, for their values cannot be used.
        self.unusable: list[Unusable] = []

    def read(self, data: object) -> Any:
        """The data without nulls and extras, with a mark in each place of an unusable value."""
        if not isinstance(data, Mapping):
            self._wrong("object", "an object", data)
            return self._mark(shape_of(self._kind), "")
        known = {name: value for name, value in data.items() if name != "kind"}
        if isinstance(data, DoubledObject):
            known = _like(data, known)
        return self._struct(known, shape_of(self._kind).cls, "")

    def read_noun(self, data: object, cls: type[Struct]) -> Any:
        """The data of a noun that is no kind, read in the same way."""
        return self._struct(data, cls, "")

    def _value(self, value: object, kind: shape.Type, path: str) -> Any:
        """The value, or a mark; of what is only wrong inside, the inside is marked."""
        kind = plain(kind)[0]
        before = len(self.problems)
        made = self._read(value, kind, path)
        if len(self.problems) == before or (made is not None and _holds_marks(kind)):
            return made
        return self._mark(kind, path)

    def _mark(self, kind: shape.Type, path: str, *, optional: bool = False) -> Unusable:
        place = Unusable(kind, path)
        place.may_be_absent = optional
        self.unusable.append(place)
        return place

    def _read(self, value: object, kind: shape.Type, path: str) -> Any:
        match kind:
            case shape.StructType(cls=cls):
                return self._struct(value, cls, path)
            case shape.VarTupleType(item_type=item):
                return self._list(value, item, path)
            case shape.DictType(value_type=shape.AnyType()):
                return self._free_form(value, path)
            case shape.DictType(value_type=item):
                return self._map(value, item, path)
            case shape.EnumType(cls=cls):
                return self._choice(value, [str(member.value) for member in cls], path)
            case shape.CustomType(cls=cls):
                return self._special(value, cls, path)
            case shape.DateTimeType():
                return self._moment(value, path)
            case shape.UnionType(types=types):
                return self._one_of(value, types, path)
        return self._scalar(value, kind, path)

    def _struct(self, value: object, cls: type[Struct], path: str) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            self._wrong(path, "an object", value)
            return None
        fields = fields_of(cls)
        self._note_doubled(value, path)
        made: dict[str, Any] = {}
        for name, given in value.items():
            if name in fields:
                if given is not None:
                    found = self._value(given, fields[name].type, child(path, name))
                    made[name] = _optional(found) if not fields[name].required else found
            elif name not in _DROPPED.get(cls, ()):
                meant = self._unknown(path, name, given, cls)
                if meant is not None and value.get(meant) is None:
                    place = child(path, meant)
                    made[meant] = self._mark(fields[meant].type, place, optional=True)
        for name, field in fields.items():
            if field.required and value.get(name) is None:
                self.problems.add(child(path, name), "is required")
                made[name] = self._mark(field.type, child(path, name))
        return made

    def _unknown(self, path: str, name: object, value: object, cls: type[Struct]) -> str | None:
        """Note an unknown field; gives the one beside it that was probably meant."""
        if self.extras.is_full:
            self.extras.add(path, "unknown field")
            return None
        text = shortened(str(name))
        near = nearest(text, fields_of(cls))
        elsewhere = _places(self._kind).get(text, ()) if self._kind else ()
        places = elsewhere if near is None else (child(path, near),)
        meant = f"; did you mean {places[0]}?" if places else ""
        self.extras.add(child(path, name), f"unknown field{meant}", value)
        return near

    def _note_doubled(self, value: object, path: str) -> None:
        for name in getattr(value, "doubled", ()):
            self.extras.add(child(path, name), "given twice; the last one counts")

    def _list(self, value: object, item: shape.Type, path: str) -> list[Any] | None:
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            self._wrong(path, "a list", value)
            return None
        return [self._value(one, item, f"{path}[{at}]") for at, one in enumerate(value)]

    def _map(self, value: object, item: shape.Type, path: str) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            self._wrong(path, "an object", value)
            return None
        self._note_doubled(value, path)
        made: dict[str, Any] = {}
        for name, given in value.items():
            if not isinstance(name, str) or not _is_text(name):
                self.problems.add(path, "expected names that are text", name)
            elif given is not None:
                made[name] = _optional(self._value(given, item, child(path, name)))
        return made

    def _free_form(self, value: object, path: str) -> object:
        """Data that is not ours stays as it is, nulls included, if it can be stored at all."""
        if not isinstance(value, dict):
            self._wrong(path, "an object", value)
            return None
        walk = Walk(path, value)
        self._note_within(value, walk)
        for one in walk:
            if isinstance(one, dict):
                self._note_within(one, walk)
            elif isinstance(one, str) and not one.isascii():
                self._text(one, walk.path)
            elif not isinstance(one, _JSON):
                self._wrong(walk.path, "data that JSON knows", one)
        return value

    def _note_within(self, value: dict[Any, Any], walk: Walk) -> None:
        if isinstance(value, DoubledObject):
            self._note_doubled(value, walk.path)
        for name in value:
            if isinstance(name, str) and not _is_text(name):
                self.problems.add(walk.path, "expected names that are text", name)

    def _choice(self, value: object, known: list[str], path: str) -> object:
        if not isinstance(value, str) or value not in known:
            expected = f"expected one of {', '.join(known)}"
            self.problems.add(path, expected + did_you_mean(value, known), value)
        return value

    def _lines(self, value: object, path: str) -> object:
        """A text, or a list of texts."""
        if isinstance(value, str):
            self._text(value, path)
        elif isinstance(value, list):
            for at, line in enumerate(value):
                self._text(line, f"{path}[{at}]")
        else:
            self.problems.add(path, CRON_EXPECTED, value)
        return value

    def _one_of(self, value: object, choices: Sequence[shape.Type], path: str) -> object:
        """Data of one of several types, which JSON tells apart."""
        for choice in choices:
            if _may_be(value, plain(choice)[0]):
                return self._value(value, choice, path)
        self._wrong(path, " or ".join(_CALLED[type(one)] for one in choices), value)
        return value

    def _special(self, value: object, cls: type, path: str) -> object:
        if cls is CronLines:
            return self._lines(value, path)
        if cls is Amount:
            return self._amount(value, path)
        expected = EXPECTED if cls is Duration else 'expected ranges such as "0-99,105"'
        if not isinstance(value, str):
            self.problems.add(path, expected, value)
            return value
        try:
            _ = parse_duration(value) if cls is Duration else IndexSet.parse(value)
        except ValueError as error:
            self.problems.add(path, str(error), value)
        return value

    def _amount(self, value: object, path: str) -> object:
        try:
            Amount.read(value)
        except ValueError as error:
            self.problems.add(path, str(error), value)
        return value

    def _moment(self, value: object, path: str) -> object:
        try:
            if not isinstance(value, str):
                raise ValueError
            msgspec.convert(value, Moment)
        except (ValueError, msgspec.ValidationError):
            message = 'expected a moment with its zone, such as "2026-01-05T12:00:00Z"'
            self.problems.add(path, message, value)
        return value

    def _scalar(self, value: object, kind: shape.Type, path: str) -> object:
        match kind:
            case shape.BoolType():
                self._expect(isinstance(value, bool), path, "true or false", value)
            case shape.StrType():
                self._text(value, path)
            case shape.IntType():
                self._whole(value, path)
            case shape.FloatType():
                is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                self._expect(is_number and abs(value) <= 1e300, path, "a number", value)  # type: ignore[arg-type]
        return value

    def _text(self, value: object, path: str) -> None:
        if not isinstance(value, str):
            self._wrong(path, "text", value)
        elif not _is_text(value):
            self.problems.add(path, "holds half of a character (a lone surrogate)", value)

    def _whole(self, value: object, path: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            self._wrong(path, "a whole number", value)
        elif value not in _INT64:
            self.problems.add(path, "expected a whole number of at most 64 bits", value)

    def _expect(self, holds: bool, path: str, expected: str, found: object) -> None:
        if not holds:
            self._wrong(path, expected, found)

    def _wrong(self, path: str, expected: str, found: object) -> None:
        self.problems.add(path, f"expected {expected}, found {type_of(found)}", found)


#: The types that may be choices, and what to call them.
_CALLED: dict[type[shape.Type], str] = {
    shape.BoolType: "true or false",
    shape.StrType: "text",
    shape.VarTupleType: "a list",
}


def _holds_marks(kind: shape.Type) -> bool:
    """Whether what is wrong inside a value of the type is marked there."""
    match kind:
        case shape.DictType(value_type=shape.AnyType()):
            return False
    return isinstance(kind, shape.StructType | shape.VarTupleType | shape.DictType)


def _optional(found: Any) -> Any:
    if isinstance(found, Unusable):
        found.may_be_absent = True
    return found


def _may_be(value: object, kind: shape.Type) -> bool:
    match kind:
        case shape.BoolType():
            return isinstance(value, bool)
        case shape.StrType():
            return isinstance(value, str)
    return isinstance(value, list)


def _is_text(value: str) -> bool:
    """Whether UTF-8 can hold it: half of a surrogate pair cannot be stored."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _like(data: DoubledObject, known: dict[str, Any]) -> DoubledObject:
    made = DoubledObject(known)
    made.doubled = data.doubled
    return made


@cache
def _places(kind: str) -> dict[str, tuple[str, ...]]:
    """Where in a kind's spec and metadata a field of some name is, nearest to the top first."""
    found: dict[str, tuple[str, ...]] = {}
    level = [("", shape_of(kind).cls)]
    while level:
        below: list[tuple[str, type[Struct]]] = []
        for path, cls in level:
            for name, field in fields_of(cls).items():
                if not path and name == "status":
                    continue
                here = child(path, name)
                found[name] = (*found.get(name, ()), here)
                inner = struct_of(field.type)
                if inner is not None:
                    below.append((here, inner))
        level = below
    work = KINDS[kind].work_path
    if work:
        for name in POD_FIELDS - found.keys():
            found[name] = (f"{work}.pod.spec.{name}",)
    return found
