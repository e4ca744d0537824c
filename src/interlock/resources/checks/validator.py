"""The validator: holds a noun against the rules that its annotations say.

Nearly everything that is looked at is good. So each noun first gets one quick answer, by a function
that is put together once for its type and makes no paths; only for what is bad the rules are walked
again, to tell every problem with its place. That function is written as source: to look at a field
costs no call, and nothing but a comparison where it has its default.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import NODEFAULT, Struct

from interlock.findings import Findings, child
from interlock.resources.rules import Items, Rules, noun_rules_of, rules_of

_Test = Callable[[Any], bool]


def check_rules(path: str, noun: Struct, to: Findings) -> None:
    """Check everything that the rules of a noun say, nouns inside it included."""
    keeps = _test_of_noun(type(noun))
    if keeps is not None and not keeps(noun):
        _tell(path, noun, to)


def make_ready(cls: type[Struct]) -> None:
    """Put together the test of a noun, which else the first one of them waits for."""
    _test_of_noun(cls)


def _tell(path: str, noun: Struct, to: Findings) -> None:
    for rule in noun_rules_of(type(noun)):
        if not rule.holds(noun):
            rule.tell(path, noun, to)
    written = noun.__struct_encode_fields__
    for (name, rules), place in zip(rules_of(type(noun)).items(), written, strict=True):
        _tell_value(f"{path}.{place}", getattr(noun, name), rules, to)


def _tell_value(path: str, value: Any, rules: Rules, to: Findings) -> None:
    if value is None:
        return
    for rule in rules.own:
        if not rule.holds(value):
            rule.tell(path, value, to)
            if isinstance(rule, Items):
                return
            break
    if rules.noun is not None:
        _tell(path, value, to)
    elif rules.items is not None and (keeps := _test_of(rules.items)) is not None:
        for name, one in value.items() if rules.is_map else enumerate(value):
            if not keeps(one):
                _tell_value(child(path, name), one, rules.items, to)


@cache
def _test_of_noun(cls: type[Struct]) -> _Test | None:
    """A function that says whether a noun keeps to all its rules; None when it has none."""
    scope: dict[str, Any] = {}
    lines = [f" if not ({rule.test('noun')}): return False" for rule in noun_rules_of(cls)]
    # `msgspec.structs.fields` would evaluate every annotation a second time.
    defaults = cls.__struct_defaults__
    required = len(cls.__struct_fields__) - len(defaults)
    usual = (*[NODEFAULT] * required, *defaults)
    for (name, rules), default in zip(rules_of(cls).items(), usual, strict=True):
        inside = _lines(rules, "one", "  ", scope)
        if inside:
            # Defaults keep to the rules by themselves; an empty map is a new one each time.
            scope[f"usual_{name}"] = default
            differs = "one" if hasattr(default, "factory") else f"one is not usual_{name}"
            lines += [f" one = noun.{name}", f" if {differs}:", *inside]
    return _made("noun", lines, scope) if lines else None


@cache
def _test_of(rules: Rules) -> _Test | None:
    """The same for a value of a field."""
    scope: dict[str, Any] = {}
    lines = _lines(rules, "one", " ", scope)
    return _made("one", lines, scope) if lines else None


def _lines(rules: Rules, one: str, indent: str, scope: dict[str, Any]) -> list[str]:
    """The source of the tests of a value; what it refers to is put into the scope."""
    lines: list[str] = []
    for rule in rules.own:
        name = f"rule_{len(scope)}"
        scope[name] = rule
        lines.append(f"{indent}if not ({rule.test(one, name)}): return False")
    if rules.noun is not None:
        name = f"keeps_{len(scope)}"
        scope[name] = _when_there_is_one(rules.noun, name, scope)
        lines.append(f"{indent}if not {name}({one}): return False")
    if rules.items is not None:
        inside = _lines(rules.items, f"{one}_", f"{indent} ", scope)
        values = f"{one}.values()" if rules.is_map else one
        lines += [f"{indent}for {one}_ in {values}:", *inside] if inside else []
    return lines


def _when_there_is_one(cls: type[Struct], name: str, scope: dict[str, Any]) -> _Test:
    """The test of a noun inside another, which is put together when there first is such a noun.

    It takes milliseconds for all that a Job may have inside, and one Job has little of it. What was
    put together takes the place of this in the scope.
    """

    def keeps(noun: Any) -> bool:
        scope[name] = made = _test_of_noun(cls) or _is_good
        return made(noun)

    return keeps


def _is_good(_: Any) -> bool:
    """The test of what has no rules."""
    return True


def _made(argument: str, lines: list[str], scope: dict[str, Any]) -> _Test:
    exec("\n".join([f"def keeps({argument}):", *lines, " return True"]), scope)
    made: _Test = scope["keeps"]
    return made
