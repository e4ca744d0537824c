"""Furiko's options, as ours."""

from __future__ import annotations

from typing import Any

from interlock.importing.drafts import quoted
from interlock.importing.fields import Fields


def option_of(given: Fields) -> dict[str, Any]:
    """One option, in whatever type it is."""
    name, type_ = given.text("name"), given.text("type")
    given.require("name", name)
    given.require("type", type_)
    made: dict[str, Any] = {"name": name, "type": type_}
    if label := given.text("label"):
        made["description"] = label
    if given.flag("required"):
        made["required"] = True
    part = given.within((type_ or "").lower())
    match type_:
        case "Bool":
            made |= _bool(part)
        case "String":
            made |= _string(part)
        case "Select":
            made |= _select(part)
        case "Multi":
            made |= _multi(part)
        case "Date":
            made |= _given(part, format=part.text("format"))
        case _:
            given.note("type", f"{quoted(type_ or '')} is not known", "Furiko has no such", "")
    part.tell_rest()
    given.tell_rest()
    return made


def _given(part: Fields, **fields: Any) -> dict[str, Any]:
    del part
    return {name: value for name, value in fields.items() if value not in (None, "", [], False)}


def _bool(part: Fields) -> dict[str, Any]:
    made: dict[str, Any] = {"default": part.flag("default")}
    return made | _given(
        part,
        format=part.text("format") or "TrueFalse",
        trueValue=part.text("trueVal"),
        falseValue=part.text("falseVal"),
    )


def _string(part: Fields) -> dict[str, Any]:
    return _given(part, default=part.text("default"), trimSpaces=part.flag("trimSpaces"))


def _select(part: Fields) -> dict[str, Any]:
    return _given(
        part,
        default=part.text("default"),
        values=part.texts("values"),
        allowCustom=part.flag("allowCustom"),
    )


def _multi(part: Fields) -> dict[str, Any]:
    made = _given(
        part,
        default=part.texts("default"),
        values=part.texts("values"),
        allowCustom=part.flag("allowCustom"),
    )
    # Nothing stands between the values unless it is given.
    return made | {"delimiter": part.text("delimiter") or ""}
