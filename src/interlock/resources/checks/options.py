"""Validation of a JobConfig's options: each type has its own fields, and its defaults."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.findings import Findings, did_you_mean, shortened, type_of
from interlock.resources.options import BoolFormat, OptionSpec, OptionType
from interlock.resources.schedule_limits import (
    MAX_OPTIONS,
    MAX_VALUE_LENGTH,
    MAX_VALUES,
)
from interlock.resources.values.date_formats import unknown_in

_BOOL, _STRING, _SELECT, _MULTI, _DATE = OptionType
#: What a date is mostly made of; other programs write it in other cases.
_DATE_TOKENS = ("YYYY", "YY", "MM", "DD", "HH", "mm", "ss", "SSS", "Z")
_PLAIN = "; text that stands for itself is put in [brackets]"
#: A word is compared with so many others, because each takes time.
_COMPARED = 100
#: Fields that only some types have: name, name in JSON, what it is when it is not given, whose.
_FIELDS: tuple[tuple[str, str, object, tuple[OptionType, ...]], ...] = (
    ("default", "default", None, (_BOOL, _STRING, _SELECT, _MULTI)),
    ("required", "required", False, (_STRING, _SELECT, _MULTI, _DATE)),
    ("values", "values", (), (_SELECT, _MULTI)),
    ("allow_custom", "allowCustom", False, (_SELECT, _MULTI)),
    ("trim_spaces", "trimSpaces", False, (_STRING,)),
    ("delimiter", "delimiter", ",", (_MULTI,)),
    ("format", "format", "", (_BOOL, _DATE)),
    ("true_value", "trueValue", "", (_BOOL,)),
    ("false_value", "falseValue", "", (_BOOL,)),
)


def check_options(options: tuple[OptionSpec, ...], to: Findings) -> None:
    """Check what the rules do not say of the options of a config."""
    for at, option in enumerate(options[:MAX_OPTIONS]):
        _check_option(f"spec.options[{at}]", option, to)


def longest_option_values(options: Iterable[OptionSpec]) -> dict[str, int]:
    """The variables that the options give, with how long a value is that the config knows of."""
    return {f"option.{option.name}": _longest(option) for option in options}


def _longest(option: OptionSpec) -> int:
    if option.type is _MULTI:
        return sum(map(len, option.values)) + len(option.values) * len(option.delimiter)
    known = [*option.values, option.true_value, option.false_value, option.format]
    if isinstance(option.default, str):
        known.append(option.default)
    return max(map(len, known), default=0)


def _check_option(path: str, option: OptionSpec, to: Findings) -> None:
    for name, written, empty, types in _FIELDS:
        value = getattr(option, name)
        if value != empty and option.type not in types:
            to.add(f"{path}.{written}", _not_for(option.type, written, types), value)
    match option.type:
        case OptionType.BOOL:
            _check_bool(path, option, to)
        case OptionType.STRING:
            _check_default_text(path, option, to)
        case OptionType.SELECT:
            _check_any(path, option.values, to)
            if _check_default_text(path, option, to):
                _check_among(f"{path}.default", option.default, option.values, to)
        case OptionType.MULTI:
            _check_any(path, option.values, to)
            _check_default_list(path, option, to)
        case OptionType.DATE:
            _check_date(path, option, to)


def _not_for(type: OptionType, field: str, types: tuple[OptionType, ...]) -> str:
    if field == "required":
        return "a Bool that is not given has its default, or is false"
    if field == "default":
        return "a Date has no default"
    return f"is for {' and '.join(types)}, and this is a {type}"


def _check_bool(path: str, option: OptionSpec, to: Findings) -> None:
    known = [format.value for format in BoolFormat]
    if option.format and option.format not in known:
        message = f"expected one of {', '.join(known)}{did_you_mean(option.format, known)}"
        to.add(f"{path}.format", message, option.format)
    elif option.format != BoolFormat.CUSTOM:
        for written, value in (
            ("trueValue", option.true_value),
            ("falseValue", option.false_value),
        ):
            if value:
                to.add(f"{path}.{written}", "is for the format Custom alone", value)
    if option.default is not None and not isinstance(option.default, bool):
        _wrong(f"{path}.default", "true or false", option.default, to)


def _check_default_text(path: str, option: OptionSpec, to: Findings) -> bool:
    """Check that the default is a text; whether there is a good one."""
    if option.default is None:
        return False
    if not isinstance(option.default, str):
        _wrong(f"{path}.default", "text", option.default, to)
        return False
    return True


def _check_default_list(path: str, option: OptionSpec, to: Findings) -> None:
    default = option.default
    if default is None:
        return
    if not isinstance(default, tuple):
        _wrong(f"{path}.default", "a list of texts", default, to)
        return
    if len(default) > MAX_VALUES:
        to.add(f"{path}.default", f"expected at most {MAX_VALUES} values", len(default))
        return
    for at, value in enumerate(default):
        _check_among(f"{path}.default[{at}]", value, option.values, to)


def _check_among(path: str, value: object, values: tuple[str, ...], to: Findings) -> None:
    if values and value not in values and not to.is_full:
        near = did_you_mean(value, values[:_COMPARED])
        to.add(path, f"expected one of values{near}", value)


def _check_any(path: str, values: tuple[str, ...], to: Findings) -> None:
    if not values:
        to.add(f"{path}.values", "expected at least one value to choose")


def _check_date(path: str, option: OptionSpec, to: Findings) -> None:
    unknown = unknown_in(option.format[:MAX_VALUE_LENGTH])
    if unknown:
        near = did_you_mean(unknown[0], _DATE_TOKENS)
        message = f'"{shortened(unknown[0])}" is no part of a date{near}{_PLAIN}'
        to.add(f"{path}.format", message, option.format)


def _wrong(path: str, expected: str, found: object, to: Findings) -> None:
    to.add(path, f"expected {expected}, found {type_of(found)}", found)
