"""Option values: what a run gives for a JobConfig's options, and what becomes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from interlock.errors import Problem
from interlock.findings import Findings, child, did_you_mean, type_of
from interlock.resources.options import BoolFormat, OptionSpec, OptionType
from interlock.resources.values.date_formats import format_moment

#: RFC 3339, with the offset that it must have.
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_PLAIN_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_EXPECTED = "expected a date and time such as 2026-01-31T09:30:00Z"
_BOOLS = {
    BoolFormat.TRUE_FALSE: ("true", "false"),
    BoolFormat.ONE_ZERO: ("1", "0"),
    BoolFormat.YES_NO: ("yes", "no"),
}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def evaluate_options(
    options: Sequence[OptionSpec], given: Mapping[str, object]
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """The value of each option as `option.NAME`, and all that is wrong with what was given.

    An option that is not given, or given as null, gets its default. What is wrong has no value.
    """
    found = Findings()
    _check_names(options, given, found)
    values: dict[str, str] = {}
    for option in options:
        value = _value(option, given.get(option.name), found)
        if value is not None:
            values[f"option.{option.name}"] = value
    return values, found.problems if len(found) else ()


def value_of_text(option: OptionSpec, text: str) -> object:
    """What a text on a command line means for an option; what makes no sense stays a text.

    A date without a time is its first moment in UTC.
    """
    match option.type:
        case OptionType.BOOL:
            word = text.strip().lower()
            return True if word in _TRUE else False if word in _FALSE else text
        case OptionType.MULTI:
            return text.split(",") if text else []
        case OptionType.DATE if _PLAIN_DATE.fullmatch(text):
            return f"{text}T00:00:00Z"
        case _:
            return text


def _check_names(options: Iterable[OptionSpec], given: Mapping[str, object], to: Findings) -> None:
    known = [option.name for option in options]
    for name in given:
        if name not in known:
            listed = f"expected one of {', '.join(known)}" if known else "there are no options"
            message = f"unknown option; {listed}{did_you_mean(name, known)}"
            to.add(child("options", name), message, given[name])


def _value(option: OptionSpec, given: object, to: Findings) -> str | None:
    path = child("options", option.name)
    match option.type:
        case OptionType.BOOL:
            return _bool(option, given, path, to)
        case OptionType.STRING:
            return _string(option, given, path, to)
        case OptionType.SELECT:
            return _select(option, given, path, to)
        case OptionType.MULTI:
            return _multi(option, given, path, to)
        case OptionType.DATE:
            return _date(option, given, path, to)


def _bool(option: OptionSpec, given: object, path: str, to: Findings) -> str | None:
    value = given if given is not None else option.default
    if value is None:
        value = False
    if not isinstance(value, bool):
        return _wrong(path, f"expected true or false, found {type_of(value)}", value, to)
    if option.format == BoolFormat.CUSTOM:
        return option.true_value if value else option.false_value
    try:
        words = _BOOLS[BoolFormat(option.format or BoolFormat.TRUE_FALSE)]
    except ValueError:
        formats = ", ".join(BoolFormat)
        message = f"its format is not known: expected one of {formats}"
        return _wrong(path, message + did_you_mean(option.format, BoolFormat), option.format, to)
    return words[0] if value else words[1]


def _string(option: OptionSpec, given: object, path: str, to: Findings) -> str | None:
    value = given if given is not None else option.default
    if value is None:
        value = ""
    if not isinstance(value, str):
        return _wrong(path, f"expected text, found {type_of(value)}", value, to)
    if option.trim_spaces:
        value = value.strip()
    if not value and option.required:
        return _required(path, given, to)
    return value


def _select(option: OptionSpec, given: object, path: str, to: Findings) -> str | None:
    value = given if given is not None else option.default
    if value is None:
        value = ""
    if not isinstance(value, str):
        return _wrong(path, f"expected one text, found {type_of(value)}", value, to)
    if not value:
        return _required(path, given, to) if option.required else value
    return value if _is_choice(option, value, path, to) else None


def _multi(option: OptionSpec, given: object, path: str, to: Findings) -> str | None:
    if given is not None and not _is_list_of_texts(given):
        return _wrong(path, f"expected a list of texts, found {type_of(given)}", given, to)
    chosen = given or option.default or ()
    if not isinstance(chosen, (list, tuple)):
        return _wrong(path, f"expected a list of texts, found {type_of(chosen)}", chosen, to)
    if not chosen and option.required:
        return _required(path, given, to)
    are_good = True
    for at, value in enumerate(chosen):
        if not value:
            to.add(f"{path}[{at}]", "expected text that is not empty", value)
            are_good = False
        elif not _is_choice(option, value, f"{path}[{at}]", to):
            are_good = False
    return option.delimiter.join(chosen) if are_good else None


def _date(option: OptionSpec, given: object, path: str, to: Findings) -> str | None:
    value = given if given is not None else option.default
    if value is None or value == "":
        return _required(path, given, to) if option.required else ""
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        return _wrong(path, _DATE_EXPECTED, value, to)
    try:
        moment = datetime.fromisoformat(value.upper())
        return format_moment(moment, option.format) if option.format else _plain(moment)
    except (ValueError, OverflowError):
        return _wrong(path, f"{_DATE_EXPECTED}, one that there is", value, to)


def _plain(moment: datetime) -> str:
    """RFC 3339 in the moment's own offset, without a fraction that says nothing."""
    text = moment.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _is_choice(option: OptionSpec, value: str, path: str, to: Findings) -> bool:
    if option.allow_custom or value in option.values:
        return True
    listed = ", ".join(option.values[:10]) + (", …" if len(option.values) > 10 else "")
    to.add(path, f"expected one of {listed}{did_you_mean(value, option.values)}", value)
    return False


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)


def _wrong(path: str, message: str, value: object, to: Findings) -> str | None:
    """Tell of a value that is of another type, or makes no sense; there is no value then."""
    to.add(path, message, value)
    return None


def _required(path: str, given: object, to: Findings) -> str | None:
    """Tell that a value has to be given; there is none then."""
    message = "is required" if given is None else "is required: expected a value that is not empty"
    to.add(path, message, given)
    return None
