"""Validation rules as data: what a field must keep to, written once, beside its type.

A noun says in its annotations what one field must keep to (`Annotated[int, Limit(1, 64)]`), and in
`RULES` what several must together (`ExactlyOne("process", "pod")`). Of that are made the check
at the door (`checks.validator`), the schemas (`describe.schema`; those of a cluster with CEL,
`kube.install.rules`), and the reference page. A rule speaks of values that have their type
already; to read what was stored asks for none, so that an older version's objects stay readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import timedelta
from functools import cache, cached_property
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from interlock.findings import Findings, child, shortened
from interlock.resources.naming import LABEL, LABEL_RULE, check_label_name
from interlock.resources.values.durations import Duration, parse_duration
from interlock.resources.values.quantities import parse_quantity
from interlock.resources.values.texts import MAX_ARGUMENT_BYTES, check_word
from interlock.timing.flaws import UnreadableError

Schema = dict[str, Any]

#: Characters of a line for people.
MAX_LINE = 1_000
#: So many flaws of one text are told in one line.
_TOLD = 3


def whole(pattern: str) -> str:
    """A pattern for the whole text: a schema's patterns match anywhere."""
    return f"^(?:{pattern})$"


class Rule:
    """What one value must keep to."""

    def __init__(self, expected: str) -> None:
        #: What is told of a value that does not keep to it.
        self.expected = expected

    def test(self, one: str, rule: str) -> str:
        """The test as an expression, of a value and of this rule by the names they have in it.

        The checks of a noun are put together of these: a call for each rule would take longer than
        the tests themselves.
        """
        raise NotImplementedError

    @cached_property
    def holds(self) -> Callable[[Any], bool]:
        """Whether a value keeps to it."""
        made: Callable[[Any], bool] = eval(
            f"lambda one: {self.test('one', 'rule')}", {"rule": self}
        )
        return made

    def tell(self, path: str, value: Any, to: Findings) -> None:
        """Say what is wrong with a value that does not keep to it."""
        to.add(path, self.expected, value)

    def schema(self) -> Schema:
        """What JSON schema can say of it; never more than the rule itself demands."""
        return {}

    @property
    def words(self) -> str:
        """The rule for the reference page."""
        return self.expected.removeprefix("expected ")


class Limit(Rule):
    """A number between two others, both included."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(f"expected {low} to {high}")
        self.low, self.high = low, high

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        return f"{self.low} <= {one} <= {self.high}"

    def schema(self) -> Schema:
        return {"minimum": self.low, "maximum": self.high}


class Items(Rule):
    """How many items a list has, or names a map. Those of one with too many are not looked at."""

    def __init__(
        self, low: int = 0, high: int | None = None, of: str = "", *, expected: str = ""
    ) -> None:
        number = f"{low} to {high}" if low else f"at most {high}"
        super().__init__(expected or f"expected {number} {of}")
        self.low, self.high = low, high
        self._words = f"at least {low}" if high is None else f"{number} {of}"

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        most = "" if self.high is None else f" <= {self.high}"
        return f"{self.low} <= len({one}){most}"

    def tell(self, path: str, value: Collection[Any], to: Findings) -> None:
        to.add(path, self.expected, len(value) or value)

    def schema(self) -> Schema:
        low = {"minItems": self.low} if self.low else {}
        return low | ({"maxItems": self.high} if self.high is not None else {})

    @property
    def words(self) -> str:
        return self._words


class Entries(Items):
    """How many names a map has."""

    def schema(self) -> Schema:
        return {name.replace("Items", "Properties"): n for name, n in super().schema().items()}


class Unique(Rule):
    """A list in which nothing is twice: no text, or no value of one field of its items."""

    def __init__(self, by: str = "") -> None:
        super().__init__("is there twice")
        self.by = by
        self._values: Callable[[Any], str] = attrgetter(by) if by else str

    def is_kept(self, value: Collection[Any]) -> bool:
        """Whether nothing is twice."""
        return len(set(map(self._values, value))) == len(value)

    def test(self, one: str, rule: str) -> str:
        return f"len({one}) < 2 or {rule}.is_kept({one})"

    def tell(self, path: str, value: Collection[Any], to: Findings) -> None:
        seen: set[str] = set()
        for at, one in enumerate(map(self._values, value)):
            if one in seen:
                to.add(f"{path}[{at}]" + (self.by and f".{self.by}"), self.expected, one)
            seen.add(one)

    def schema(self) -> Schema:
        return {} if self.by else {"uniqueItems": True}

    @property
    def words(self) -> str:
        return f"no {self.by} twice" if self.by else "none twice"


class FirstGiven(Rule):
    """A list whose first item is not empty."""

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        return f"not {one} or {one}[0] != ''"

    def tell(self, path: str, value: tuple[str, ...], to: Findings) -> None:
        to.add(f"{path}[0]", self.expected, value[0])

    @property
    def words(self) -> str:
        return "the first not empty"


class Given(Rule):
    """A text that is not empty."""

    def __init__(self, expected: str = "expected text that is not empty") -> None:
        super().__init__(expected)

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        return f"{one} != ''"

    def schema(self) -> Schema:
        return {"minLength": 1}

    @property
    def words(self) -> str:
        return "not empty"


class Longest(Rule):
    """A text of at most so many characters."""

    def __init__(self, most: int) -> None:
        super().__init__(f"expected at most {most} characters")
        self.most = most

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        return f"len({one}) <= {self.most}"

    def schema(self) -> Schema:
        return {"maxLength": self.most}


class Matches(Rule):
    """A text that a pattern describes as a whole, in the words that all programs know.

    Those of Python, of Go and of ECMAScript must read it alike: no look-around, no `\\d`.
    """

    def __init__(self, pattern: str, expected: str, *, longest: int) -> None:
        super().__init__(expected)
        self.pattern, self.longest = pattern, longest
        self.match = re.compile(pattern).fullmatch

    def test(self, one: str, rule: str) -> str:
        return f"len({one}) <= {self.longest} and {rule}.match({one})"

    def schema(self) -> Schema:
        return {"maxLength": self.longest, "pattern": whole(self.pattern)}


class DnsLabel(Matches):
    """A name that has to be a DNS label."""

    def __init__(self, longest: int) -> None:
        super().__init__(LABEL, LABEL_RULE, longest=longest)

    def tell(self, path: str, value: str, to: Findings) -> None:
        check_label_name(path, value, self.longest, to)

    @property
    def words(self) -> str:
        return f"a DNS label of at most {self.longest} characters"


class Word(Rule):
    """A text that a program can be given."""

    def __init__(self) -> None:
        super().__init__("")  # Nobody would think otherwise.

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        # To encode a text is dear, and few are long enough to need it.
        brief = f"len({one}) <= {MAX_ARGUMENT_BYTES // 4}"
        return f"'\\0' not in {one} and ({brief} or len({one}.encode()) <= {MAX_ARGUMENT_BYTES})"

    def tell(self, path: str, value: str, to: Findings) -> None:
        check_word(path, value, to)

    def schema(self) -> Schema:
        return {"maxLength": MAX_ARGUMENT_BYTES, "pattern": r"^[^\x00]*$"}


class OneLine(Rule):
    """A line for people. It keeps terminal escapes out of everybody's tables."""

    def __init__(self) -> None:
        super().__init__("expected one line without control characters")

    def test(self, one: str, rule: str) -> str:  # noqa: ARG002
        return f"len({one}) <= {MAX_LINE} and {one}.isprintable()"

    def tell(self, path: str, value: str, to: Findings) -> None:
        too_long = f"expected at most {MAX_LINE} characters"
        to.add(path, too_long if len(value) > MAX_LINE else self.expected, value)

    def schema(self) -> Schema:
        # What else no screen shows only some dialects of patterns can name.
        return {"maxLength": MAX_LINE, "pattern": r"^[^\x00-\x1f\x7f-\xa0]*$"}

    @property
    def words(self) -> str:
        return f"one line of at most {MAX_LINE} characters"


class Names(Rule):
    """A map whose names a pattern describes."""

    def __init__(self, pattern: str, expected: str) -> None:
        super().__init__(f"bad name: {expected}")
        self.pattern = pattern
        self.match = re.compile(pattern).fullmatch

    def test(self, one: str, rule: str) -> str:
        return f"not {one} or all(map({rule}.match, {one}))"

    def tell(self, path: str, value: dict[str, Any], to: Findings) -> None:
        for name in value:
            if not self.match(name):
                to.add(child(path, name), self.expected, name)

    @property
    def words(self) -> str:
        return self.expected.replace("bad name: expected", "names of")


class MoreThanNothing(Rule):
    """A length of time that is not 0."""

    def __init__(self) -> None:
        super().__init__("expected more than 0s")
        self.least = timedelta(0)

    def test(self, one: str, rule: str) -> str:
        return f"{one} > {rule}.least"

    def tell(self, path: str, value: timedelta, to: Findings) -> None:
        to.add(path, self.expected, str(value))

    def schema(self) -> Schema:
        return {"not": {"type": "string", "pattern": "^[0.dhms]*$"}}


class AtLeast(MoreThanNothing):
    """A length of time that is not shorter than another."""

    def __init__(self, least: str) -> None:
        super().__init__()
        self.expected = f"expected at least {least}"
        self.least = parse_duration(least)

    def test(self, one: str, rule: str) -> str:
        return f"{one} >= {rule}.least"


class Quantity(Rule):
    """An amount as Kubernetes writes it, more than nothing."""

    PATTERN = (
        r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})"
        r"(?:[eE][+-]?[0-9]{1,3}|[KMGTPE]i|[kMGTPE])?"
    )

    def __init__(self) -> None:
        super().__init__("expected more than nothing")

    def test(self, one: str, rule: str) -> str:
        return f"not {rule}.flaw({one})"

    def tell(self, path: str, value: str, to: Findings) -> None:
        to.add(path, self.flaw(value), value)

    def flaw(self, value: str) -> str:
        """What is wrong with it; empty when nothing is."""
        try:
            return "" if parse_quantity(value) >= 1 else self.expected
        except ValueError as error:
            return str(error)

    def schema(self) -> Schema:
        return {"maxLength": 72, "pattern": whole(self.PATTERN)}

    @property
    def words(self) -> str:
        return "a quantity of more than nothing"


class Reads(Rule):
    """A text that a reader of ours can read; a schema knows of it what it is told here."""

    def __init__(self, read: Callable[[str], object], schema: Schema | None = None) -> None:
        super().__init__(
            ""
        )  # The reader says what is wrong, and the field's comment what is right.
        self.read = read
        self._schema = schema or {}

    def test(self, one: str, rule: str) -> str:
        return f"{rule}.can_read({one})"

    def can_read(self, value: str) -> bool:
        """Whether it can be read."""
        try:
            self.read(value)
        except UnreadableError:
            return False
        return True

    def tell(self, path: str, value: str, to: Findings) -> None:
        try:
            self.read(value)
        except UnreadableError as error:
            to.add(path, flaws_in_words(error), value)

    def schema(self) -> Schema:
        return self._schema


def flaws_in_words(error: UnreadableError) -> str:
    """What is wrong with a text, in one line; parts of it are named where they are wrong."""
    text = shortened(error.text)
    told = [
        flaw.message if flaw.found == text else f'"{flaw.found}": {flaw.message}'
        for flaw in error.flaws[:_TOLD]
    ]
    more = len(error.flaws) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


# Rules about several fields of a noun


class NounRule:
    """What several fields of one noun must keep to together."""

    def __init__(self, *fields: str) -> None:
        self.fields = fields
        self._get: Callable[[Any], Any] = attrgetter(*fields)

    def test(self, noun: str) -> str:
        """The test as an expression, of a noun by the name it has in it."""
        raise NotImplementedError

    @cached_property
    def holds(self) -> Callable[[Any], bool]:
        """Whether a noun keeps to it."""
        made: Callable[[Any], bool] = eval(f"lambda noun: {self.test('noun')}")
        return made

    def tell(self, path: str, noun: Any, to: Findings) -> None:
        """Say what is wrong with a noun that does not keep to it."""
        raise NotImplementedError

    def expected(self, cls: type[Struct]) -> str:
        """What is told of a noun that does not keep to it."""
        raise NotImplementedError

    def words(self, cls: type[Struct]) -> str:
        """The rule for the reference page."""
        return self.expected(cls).removeprefix("expected ")

    def written(self, cls: type[Struct]) -> tuple[str, ...]:
        """The names that the fields have in JSON."""
        names = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
        return tuple(names[field] for field in self.fields)


class ExactlyOne(NounRule):
    """Of some fields one is given, and only one. An empty text is none."""

    def test(self, noun: str) -> str:
        given = (f"({noun}.{field} not in (None, ''))" for field in self.fields)
        return f"{' + '.join(given)} == 1"

    def tell(self, path: str, noun: Any, to: Findings) -> None:
        values = zip(self.written(type(noun)), self._get(noun), strict=True)
        given = " and ".join(name for name, value in values if value not in (None, ""))
        to.add(path, f"{self.expected(type(noun))}, found {given or 'none'}")

    def expected(self, cls: type[Struct]) -> str:
        *most, last = self.written(cls)
        return f"expected exactly one of {', '.join(most)} and {last}"


class AtLeastOne(NounRule):
    """Of some fields one or more are given. What is empty is none."""

    def __init__(self, *fields: str, expected: str) -> None:
        super().__init__(*fields)
        self._expected = expected

    def test(self, noun: str) -> str:
        return " or ".join(f"{noun}.{field}" for field in self.fields)

    def tell(self, path: str, noun: Any, to: Findings) -> None:
        to.add(path, self.expected(type(noun)))

    def expected(self, cls: type[Struct]) -> str:  # noqa: ARG002 (others name the fields)
        return self._expected


class OnlyWith(NounRule):
    """A field that means nothing unless one of some others is given."""

    def __init__(self, field: str, *others: str, expected: str) -> None:
        super().__init__(field, *others)
        self._expected = expected

    def test(self, noun: str) -> str:
        field, *others = self.fields
        given = (f"{noun}.{other} is not None" for other in others)
        return f"{noun}.{field} is None or {' or '.join(given)}"

    def tell(self, path: str, noun: Any, to: Findings) -> None:
        name, found = self.written(type(noun))[0], self._get(noun)[0]
        # How large a map is says more than how our code writes it.
        is_whole = isinstance(found, dict)
        told = found if is_whole else "{…}" if isinstance(found, Struct) else str(found)
        to.add(f"{path}.{name}", self._expected, told)

    def expected(self, cls: type[Struct]) -> str:  # noqa: ARG002 (others name the fields)
        return self._expected

    def words(self, cls: type[Struct]) -> str:
        field, *others = self.written(cls)
        return f"{field} only with {' or '.join(others)}"


class After(NounRule):
    """A moment that comes after another one, where both are given."""

    def __init__(self, field: str, other: str, *, expected: str, or_at: bool = False) -> None:
        super().__init__(field, other)
        self._expected = expected
        self.or_at = or_at

    def test(self, noun: str) -> str:
        last, first = (f"{noun}.{field}" for field in self.fields)
        later = ">=" if self.or_at else ">"
        return f"{last} is None or {first} is None or {last} {later} {first}"

    def tell(self, path: str, noun: Any, to: Findings) -> None:
        name = self.written(type(noun))[0]
        to.add(f"{path}.{name}", self._expected, self._get(noun)[0].isoformat())

    def expected(self, cls: type[Struct]) -> str:  # noqa: ARG002 (others name the fields)
        return self._expected

    def words(self, cls: type[Struct]) -> str:
        last, first = self.written(cls)
        return f"{last} {'not before' if self.or_at else 'after'} {first}"


# What several nouns need

Line = Annotated[str, OneLine()]
ProgramWord = Annotated[str, Word()]
FilePath = Annotated[str, Given("expected a path"), Word()]
Choice = Annotated[str, Given(), Word()]
SomeTime = Annotated[Duration, MoreThanNothing()]
ASecondOrMore = Annotated[Duration, AtLeast("1s")]


# Where the rules of a noun are found


class Rules(NamedTuple):
    """The rules of a field, and of what is inside it."""

    own: tuple[Rule, ...] = ()
    #: Of the items of a list, or the values of a map.
    items: Rules | None = None
    is_map: bool = False
    #: The noun whose own rules hold inside.
    noun: type[Struct] | None = None

    @property
    def words(self) -> str:
        """All of it for the reference page, without what is inside nouns."""
        told = [rule.words for rule in self.own if rule.words]
        if self.items is not None and self.items.words:
            told.append(f"each {self.items.words}")
        return ", ".join(told)


@cache
def rules_of(cls: type[Struct]) -> dict[str, Rules]:
    """The rules of the fields of a noun, by the names they have in our code."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: _rules_in(hints[name]) for name in cls.__struct_fields__}


def noun_rules_of(cls: type[Struct]) -> tuple[NounRule, ...]:
    """The rules of several fields of a noun."""
    found: tuple[NounRule, ...] = getattr(cls, "RULES", ())
    return found


def _rules_in(hint: Any) -> Rules:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner = _rules_in(inside[0])
        own = tuple(one for one in inside[1:] if isinstance(one, Rule))
        return inner._replace(own=(*inner.own, *own))
    if origin in (Union, UnionType):
        (one, *others) = [part for part in inside if part is not NoneType]
        return Rules() if others else _rules_in(one)
    if origin in (tuple, dict):
        is_map = origin is dict
        return Rules(items=_rules_in(inside[is_map]), is_map=is_map)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Rules(noun=hint)
    return Rules()
