"""The door: what comes from outside becomes a resource here, or is refused with every reason.

Good data takes the fast way, one pass of the decoder. Only data that the decoder refuses is read
the slow way, which finds all problems at once. What every kind must keep to beyond its types is
in `checking`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.findings import Findings, did_you_mean, shortened, shown
from interlock.resources.checks.validator import check_rules
from interlock.resources.codec import decoder_for, encode, from_builtins
from interlock.resources.door.checking import doubts_about, problems_of
from interlock.resources.door.moments import in_utc
from interlock.resources.kinds import KINDS, ByKind
from interlock.resources.metadata import Noun, Resource
from interlock.resources.values.texts import MAX_OBJECT_BYTES

#: A body beyond this is refused before it is read. It leaves room for white space.
MAX_BODY_BYTES = 3 * MAX_OBJECT_BYTES

_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_NINETEEN_DIGITS = b"0" * 19
_DECODERS: ByKind[msgspec.json.Decoder[Any]] = ByKind(lambda kind: decoder_for(kind.type))
_HEAD = msgspec.json.Decoder(dict[str, msgspec.Raw])
_REFUSALS = (
    *(msgspec.DecodeError, UnicodeError, RecursionError, OverflowError, ValueError),
    # What plain data cannot hold, inside data that is not ours.
    *(TypeError, NotImplementedError),
)
#: Finds what is wrong with a resource by rules that are not everybody's.
Judge = Callable[[Resource], Iterable[Problem]]
N = TypeVar("N", bound=Noun)


class FieldValidation(StrEnum):
    """What to do about unknown fields, and fields that are given twice."""

    #: Refuse the object.
    STRICT = "Strict"
    #: Leave them out, and say so.
    WARN = "Warn"
    #: Leave them out.
    IGNORE = "Ignore"


def read_resource(
    data: bytes | Mapping[str, Any],
    kind: str | None = None,
    *,
    field_validation: FieldValidation = FieldValidation.STRICT,
    stored: Resource | None = None,
    also: Judge = lambda _: (),
) -> tuple[Resource, tuple[str, ...]]:
    """Read what came from outside, and check everything that can be checked without the store.

    Gives the resource and the warnings. Without `kind` any known kind is taken. What `also` finds
    is told with the rest. What was wrong with the `stored` one already is nobody's fault today:
    one that was taken by older rules can still be suspended and changed.

    Raises:
        BadRequestError: The data is not JSON at all.
        InvalidError: It is not a good resource; all problems are told.
    """
    if isinstance(data, bytes) and len(data) > MAX_BODY_BYTES:
        raise BadRequestError(f"the body is larger than {MAX_BODY_BYTES} bytes")
    warnings: tuple[str, ...] = ()
    resource = _read_quickly(data, kind, field_validation)
    if resource is None:
        resource, warnings = _read_slowly(_plain(data), kind, field_validation, also)
    resource, problems = _judged(resource, also)
    if problems and stored is not None:
        had = {(one.path, one.message) for one in problems_of(stored)}
        problems = tuple(one for one in problems if (one.path, one.message) not in had)
    problems = (*_problems_of_size(data, resource), *problems)
    if problems:
        raise InvalidError(resource.kind, resource.metadata.name, problems)
    if field_validation is not FieldValidation.IGNORE:
        warnings += doubts_about(resource)
    return resource, warnings


def read_noun(data: bytes, cls: type[N], title: str) -> N:
    """Read a noun that is no resource, and check what its rules say; nothing at all is `{}`.

    Raises:
        BadRequestError: The data is not JSON at all.
        InvalidError: It is not good; all problems are told, under this title.
    """
    from interlock.resources.door.reading import Reader

    plain = _plain(data) if data.strip() else {}
    if not isinstance(plain, Mapping):
        raise BadRequestError(f"the body is no object: expected one such as {{}}, for {title}")
    reader = Reader()
    made = reader.read_noun(plain, cls)
    problems = (*reader.extras.problems, *reader.problems.problems)
    if problems:
        raise InvalidError(title, "", problems)
    try:
        noun: N = from_builtins(made, cls)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        message, _, place = str(error).partition(" - at `$.")
        raise InvalidError(title, "", [Problem(place.rstrip("`"), message)]) from error
    found = Findings()
    check_rules("", noun, found)
    if len(found):
        told = (one._replace(path=one.path.removeprefix(".")) for one in found.problems)
        raise InvalidError(title, "", told)
    return noun


def _judged(resource: Resource, also: Judge) -> tuple[Resource, tuple[Problem, ...]]:
    """The resource with its moments in UTC, and everything that the rules find.

    They look at the rest also when one of the moments has none.
    """
    beyond: tuple[Problem, ...] = ()
    try:
        resource = in_utc(resource)
    except InvalidError as error:
        beyond = error.problems
    return resource, (*beyond, *problems_of(resource), *also(resource))


def _read_quickly(data: object, kind: str | None, validation: FieldValidation) -> Resource | None:
    """The resource; None when the slow way has to look at it.

    What is no text comes from a patch or from YAML, and may be anything at all.
    """
    try:
        if not isinstance(data, bytes):
            return _convert(data, kind)
        name = kind or _kind_in(data)
        decoder = _DECODERS[name] if name in KINDS else None
        if decoder is None or _has_long_number(data):
            return None
        resource: Resource = decoder.decode(data)
        if validation is not FieldValidation.IGNORE:
            _PAIRS.decode(str(data, "utf-8"))
    except _REFUSALS:
        return None
    return resource


def _convert(data: object, kind: str | None) -> Resource | None:
    name = kind or (data.get("kind") if isinstance(data, Mapping) else None)
    if not isinstance(name, str) or name not in KINDS:
        return None
    resource: Resource = from_builtins(data, KINDS[name].type)
    # Half a surrogate pair cannot be encoded, and goes the slow way.
    return None if _has_long_number(encode(resource)) else resource


def _has_long_number(data: bytes) -> bool:
    """Whether some number may need more than 64 bits: the decoder takes it, nobody else does."""
    return _NINETEEN_DIGITS in data.translate(_DIGITS)


def _kind_in(data: bytes) -> str:
    kind = _HEAD.decode(data).get("kind")
    return msgspec.json.decode(kind, type=str) if kind is not None else ""


def _read_slowly(
    data: object, kind: str | None, validation: FieldValidation, also: Judge
) -> tuple[Resource, tuple[str, ...]]:
    # Reading types at run time is dear to import, and only bad data needs it.
    from interlock.resources.door.reading import Reader
    from interlock.resources.door.stand_ins import problems_of_the_rest, without

    given = data.get("kind") if isinstance(data, Mapping) else None
    name = _name_in(data)
    kind = _agreed_kind(kind, given, name)
    reader = Reader(kind)
    made = reader.read(data)
    problems = reader.problems.problems
    if validation is FieldValidation.STRICT:
        problems = (*reader.extras.problems, *problems)
    if problems:
        # Where so much is wrong that it is only counted, not every unusable place is worth a look.
        rest = (
            problems_of_the_rest(made, kind, reader.unusable, lambda one: _judged(one, also)[1])
            if not reader.problems.is_full
            else ()
        )
        raise InvalidError(kind, name, problems + rest)
    warnings = map(str, reader.extras.problems) if validation is FieldValidation.WARN else ()
    return _finished(without(made), kind, name), tuple(warnings)


def _agreed_kind(kind: str | None, given: object, name: str) -> str:
    """The kind that is asked for and given; an object of another kind is refused."""
    if given is None and kind is not None:
        return kind
    if isinstance(given, str) and given in KINDS and given == (kind or given):
        return given
    known = [kind] if kind else list(KINDS)
    if given is None:
        message = "is required"
    else:
        message = f"expected {' or '.join(known)}{did_you_mean(given, known)}"
    raise InvalidError(kind or "object", name, [Problem("kind", message, shown(given))])


def _finished(made: object, kind: str, name: str) -> Resource:
    try:
        resource: Resource = from_builtins(made, KINDS[kind].type)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        # The slow reading is meant to be at least as strict as the decoder; where it is not,
        # the decoder has the last word.
        message, _, place = str(error).partition(" - at `$.")
        raise InvalidError(kind, name, [Problem(place.rstrip("`"), message)]) from error
    return resource


def _name_in(data: object) -> str:
    metadata = data.get("metadata") if isinstance(data, Mapping) else None
    if not isinstance(metadata, Mapping):
        return ""
    name = metadata.get("name") or metadata.get("generateName")
    return shortened(name) if isinstance(name, str) else ""


def _plain(data: object) -> object:
    """The data as dictionaries and lists.

    Raises:
        BadRequestError: It is not JSON.
    """
    if not isinstance(data, bytes):
        return data
    from interlock.resources.door.reading import DoubledObject

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        doubled = DoubledObject(made)
        doubled.doubled = _doubled(pairs)
        return doubled

    try:
        return json.loads(
            str(data, "utf-8"), object_pairs_hook=object_of, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise BadRequestError(f"the body is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise BadRequestError(f"the body is not JSON at {place}: {error.msg}") from error
    except RecursionError as error:
        raise BadRequestError("the body is nested too deeply") from error
    except ValueError as error:
        raise BadRequestError(f"the body is not JSON: {shortened(str(error))}") from error


def _doubled(pairs: list[tuple[str, Any]]) -> tuple[str, ...]:
    seen: set[str] = set()
    twice = {name: None for name, _ in pairs if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
    return tuple(twice)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


def _all_different(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len(dict(pairs)) != len(pairs):
        raise ValueError("a name is given twice")


#: Reads JSON for nothing but to see that no object names a field twice.
_PAIRS = json.JSONDecoder(object_pairs_hook=_all_different)


def _problems_of_size(data: object, resource: Resource) -> tuple[Problem, ...]:
    if isinstance(data, bytes) and len(data) <= MAX_OBJECT_BYTES:
        return ()
    size = len(encode(resource))
    if size <= MAX_OBJECT_BYTES:
        return ()
    return (Problem("object", f"expected at most {MAX_OBJECT_BYTES} bytes, found {size}"),)
