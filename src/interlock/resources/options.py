"""Options: the values that a run of a JobConfig takes, and what is accepted for each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from interlock.resources.metadata import Noun
from interlock.resources.rules import Given, Items, Line, Longest, Matches, Unique
from interlock.resources.schedule_limits import MAX_OPTION_NAME, MAX_VALUE_LENGTH, MAX_VALUES

_NAME = Matches(
    "[A-Za-z0-9_.-]+",
    f"expected 1 to {MAX_OPTION_NAME} letters, digits, '_', '.' and '-'",
    longest=MAX_OPTION_NAME,
)
_Text = Annotated[str, Longest(MAX_VALUE_LENGTH)]
_Value = Annotated[str, Given(), Longest(MAX_VALUE_LENGTH)]


class OptionType(StrEnum):
    """What an option takes."""

    #: True or false.
    BOOL = "Bool"
    #: Any text.
    STRING = "String"
    #: One of some values.
    SELECT = "Select"
    #: Some of some values.
    MULTI = "Multi"
    #: A date and time.
    DATE = "Date"


class BoolFormat(StrEnum):
    """How a Bool is written into the Job."""

    #: true and false.
    TRUE_FALSE = "TrueFalse"
    #: 1 and 0.
    ONE_ZERO = "OneZero"
    #: yes and no.
    YES_NO = "YesNo"
    #: As trueValue and falseValue say.
    CUSTOM = "Custom"


class OptionSpec(Noun):
    """One option; ${option.NAME} stands for its value."""

    name: Annotated[str, _NAME]
    type: OptionType = OptionType.STRING
    #: A line for people.
    description: Line = ""
    #: A run must give a value, unless there is a default. Not for Bool.
    required: bool = False
    #: What a run gets that gives no value: true or false, a text, or a list of texts.
    default: bool | str | tuple[str, ...] | None = None
    #: What can be chosen; for Select and Multi.
    values: Annotated[tuple[_Value, ...], Items(0, MAX_VALUES, "values"), Unique()] = ()
    #: Other values than `values` are taken too; for Select and Multi.
    allow_custom: bool = False
    #: White space around a text is taken off; for String.
    trim_spaces: bool = False
    #: Stands between the values of a Multi.
    delimiter: _Text = ","
    #: How a Bool is written (TrueFalse, OneZero, YesNo, Custom), or a Date, in the tokens of
    #: Moment such as YYYY-MM-DD; a Date without it is written as RFC 3339.
    format: _Text = ""
    #: For a Bool of the format Custom.
    true_value: _Text = ""
    false_value: _Text = ""
