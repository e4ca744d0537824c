"""What a run gives for an option, and what the Job gets: the sheet's table, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.resources.option_values import evaluate_options, value_of_text
from interlock.resources.options import OptionSpec, OptionType
from interlock.resources.values.date_formats import format_moment
from interlock.testing.config_builders import moment

NOT_GIVEN = object()
VALUES = ("emea", "apac")


def evaluated(option: OptionSpec, given: object) -> str | list[str]:
    """The value, or what is wrong, path and message."""
    values, problems = evaluate_options((option,), {} if given is NOT_GIVEN else {"x": given})
    if problems:
        assert "option.x" not in values
        return [f"{problem.path}: {problem.message}" for problem in problems]
    return values["option.x"]


def option(type: OptionType, **more: Any) -> OptionSpec:
    return OptionSpec(name="x", type=type, **more)


def bools(**more: Any) -> OptionSpec:
    return option(OptionType.BOOL, **more)


def strings(**more: Any) -> OptionSpec:
    return option(OptionType.STRING, **more)


def selects(**more: Any) -> OptionSpec:
    return option(OptionType.SELECT, **({"values": VALUES} | more))


def multis(**more: Any) -> OptionSpec:
    return option(OptionType.MULTI, **({"values": VALUES} | more))


def dates(**more: Any) -> OptionSpec:
    return option(OptionType.DATE, **more)


DAY = "2026-01-31T09:30:05+08:00"


@pytest.mark.parametrize(
    ("spec", "given", "expected"),
    [
        pytest.param(bools(), NOT_GIVEN, "false", id="Bool: nothing is false"),
        pytest.param(bools(), None, "false", id="Bool: null is nothing"),
        pytest.param(bools(default=True), NOT_GIVEN, "true", id="Bool: default"),
        pytest.param(bools(default=True), False, "false", id="Bool: given false beats default"),
        pytest.param(bools(format="TrueFalse"), True, "true", id="Bool: TrueFalse"),
        pytest.param(bools(format="OneZero"), True, "1", id="Bool: OneZero true"),
        pytest.param(bools(format="OneZero"), False, "0", id="Bool: OneZero false"),
        pytest.param(bools(format="YesNo"), True, "yes", id="Bool: YesNo true"),
        pytest.param(bools(format="YesNo"), False, "no", id="Bool: YesNo false"),
        pytest.param(
            bools(format="Custom", true_value="--dry", false_value=""), True, "--dry",
            id="Bool: Custom true",
        ),
        pytest.param(
            bools(format="Custom", true_value="--dry", false_value=""), False, "",
            id="Bool: Custom may be empty",
        ),
        pytest.param(strings(), NOT_GIVEN, "", id="String: nothing is empty"),
        pytest.param(strings(), "hello", "hello", id="String: text"),
        pytest.param(strings(), " a ", " a ", id="String: spaces stay"),
        pytest.param(strings(trim_spaces=True), " a ", "a", id="String: spaces are trimmed"),
        pytest.param(strings(default="d"), NOT_GIVEN, "d", id="String: default"),
        pytest.param(
            strings(default=" d ", trim_spaces=True), NOT_GIVEN, "d", id="String: default trimmed"
        ),
        pytest.param(
            strings(default="d"), "", "", id="String: an explicit empty text beats the default"
        ),
        pytest.param(
            strings(default="d", required=True), NOT_GIVEN, "d", id="String: required with default"
        ),
        pytest.param(strings(), "${job.name}", "${job.name}", id="String: what looks like ours"),
        pytest.param(selects(), "emea", "emea", id="Select: a value"),
        pytest.param(selects(), NOT_GIVEN, "", id="Select: nothing, optional"),
        pytest.param(selects(default="apac"), NOT_GIVEN, "apac", id="Select: default"),
        pytest.param(selects(), "", "", id="Select: explicit empty, optional"),
        pytest.param(
            selects(default="apac"), "", "", id="Select: explicit empty beats the default"
        ),
        pytest.param(selects(allow_custom=True), "mars", "mars", id="Select: custom allowed"),
        pytest.param(multis(), ["apac", "emea"], "apac,emea", id="Multi: in the order given"),
        pytest.param(multis(), NOT_GIVEN, "", id="Multi: nothing, optional"),
        pytest.param(multis(default=("emea",)), NOT_GIVEN, "emea", id="Multi: default"),
        pytest.param(multis(default=("emea",)), [], "emea", id="Multi: empty list gets default"),
        pytest.param(multis(delimiter=" "), ["emea", "apac"], "emea apac", id="Multi: delimiter"),
        pytest.param(multis(delimiter=""), ["emea", "apac"], "emeaapac", id="Multi: no delimiter"),
        pytest.param(multis(allow_custom=True), ["mars"], "mars", id="Multi: custom allowed"),
        pytest.param(dates(), NOT_GIVEN, "", id="Date: nothing, optional"),
        pytest.param(dates(), "", "", id="Date: empty, optional"),
        pytest.param(dates(), DAY, DAY, id="Date: RFC 3339 by default, in its own offset"),
        pytest.param(
            dates(), "2026-01-31T01:30:05Z", "2026-01-31T01:30:05Z", id="Date: UTC stays Z"
        ),
        pytest.param(dates(format="YYYY-MM-DD"), DAY, "2026-01-31", id="Date: a day"),
        pytest.param(
            dates(format="D MMM YYYY, HH:mm"), DAY, "31 Jan 2026, 09:30",
            id="Date: formatted in the offset it was given in",
        ),
    ],
)  # fmt: skip
def test_what_a_job_gets(spec: OptionSpec, given: object, expected: str) -> None:
    assert evaluated(spec, given) == expected


@pytest.mark.parametrize(
    ("spec", "given", "told"),
    [
        pytest.param(bools(), "true", "expected true or false, found text", id="Bool: text"),
        pytest.param(bools(), 1, "expected true or false, found a whole number", id="Bool: 1"),
        pytest.param(bools(format="yesno"), True, 'did you mean "YesNo"?', id="Bool: bad format"),
        pytest.param(strings(), 5, "expected text, found a whole number", id="String: number"),
        pytest.param(strings(), ["a"], "expected text, found a list", id="String: list"),
        pytest.param(strings(required=True), NOT_GIVEN, "is required", id="String: required"),
        pytest.param(strings(required=True), "", "is required", id="String: required and empty"),
        pytest.param(
            strings(required=True, trim_spaces=True), "  ", "is required",
            id="String: required and empty after trim",
        ),
        pytest.param(selects(), 1, "expected one text", id="Select: number"),
        pytest.param(selects(), "emae", 'did you mean "emea"?', id="Select: near miss"),
        pytest.param(selects(), "mars", "expected one of emea, apac", id="Select: unknown"),
        pytest.param(selects(required=True), NOT_GIVEN, "is required", id="Select: required"),
        pytest.param(selects(required=True), "", "is required", id="Select: required and empty"),
        pytest.param(multis(), "emea", "expected a list of texts", id="Multi: one text"),
        pytest.param(multis(), [1], "expected a list of texts", id="Multi: a number in it"),
        pytest.param(multis(), ["emea", ""], "options.x[1]: expected text", id="Multi: empty one"),
        pytest.param(multis(), ["mars"], "options.x[0]: expected one of", id="Multi: unknown"),
        pytest.param(multis(required=True), [], "is required", id="Multi: required and empty"),
        pytest.param(dates(), 1767225600, "expected a date and time", id="Date: number"),
        pytest.param(dates(), "2026-01-31", "expected a date and time", id="Date: no time"),
        pytest.param(
            dates(), "2026-01-31T09:30:05", "expected a date and time", id="Date: no offset"
        ),
        pytest.param(dates(), "2026-02-30T00:00:00Z", "one that there is", id="Date: no such day"),
        pytest.param(dates(required=True), NOT_GIVEN, "is required", id="Date: required"),
        pytest.param(dates(required=True), "", "is required", id="Date: required and empty"),
    ],
)  # fmt: skip
def test_what_is_refused(spec: OptionSpec, given: object, told: str) -> None:
    problems = evaluated(spec, given)

    assert isinstance(problems, list)
    assert problems[0].startswith("options.x")
    assert told in problems[0]


def test_an_unknown_option_is_an_error_with_a_suggestion() -> None:
    _, (problem,) = evaluate_options((OptionSpec(name="region"),), {"regoin": "emea"})

    assert problem.path == "options.regoin"
    assert 'did you mean "region"?' in problem.message
    assert problem.found == "emea"


def test_without_options_none_is_taken() -> None:
    _, (problem,) = evaluate_options((), {"region": "emea"})

    assert "there are no options" in problem.message


def test_all_problems_are_told_at_once() -> None:
    options = (OptionSpec(name="a", required=True), OptionSpec(name="b", type=OptionType.BOOL))

    values, problems = evaluate_options(options, {"b": "yes", "c": 1})

    assert values == {}
    assert [problem.path for problem in problems] == ["options.c", "options.a", "options.b"]


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (bools(), "yes", True),
        (bools(), "False", False),
        (bools(), "perhaps", "perhaps"),
        (multis(), "emea,apac", ["emea", "apac"]),
        (multis(), "", []),
        (strings(), "a,b", "a,b"),
        (dates(), DAY, DAY),
        (dates(), "2026-11-20", "2026-11-20T00:00:00Z"),
    ],
)
def test_what_a_text_on_the_command_line_means(spec: OptionSpec, text: str, value: object) -> None:
    assert value_of_text(spec, text) == value


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("YYYY-MM-DDTHH:mm:ssZ", "2026-03-01T05:07:09+00:00"),
        ("YY M D H m s", "26 3 1 5 7 9"),
        ("MMMM Do, YYYY h:mm A", "March 1st, 2026 5:07 AM"),
        ("dddd ddd dd d E e", "Sunday Sun Su 0 7 0"),
        ("DDD DDDD DDDo", "60 060 60th"),
        ("Q Qo", "1 1st"),
        ("GGGG-[W]WW", "2026-W09"),
        ("gggg ww", "2026 10"),
        ("X x", "1772341629 1772341629000"),
        ("SSS S", "000 0"),
        ("hh:mm a, kk ZZ", "05:07 am, 05 +0000"),
        ("[Today is] dddd", "Today is Sunday"),
        ("\\Y\\M", "YM"),
        ("L LT LTS", "03/01/2026 5:07 AM 5:07:09 AM"),
        ("LLLL", "Sunday, March 1, 2026 5:07 AM"),
        ("Hmm hmmss", "507 50709"),
        ("", ""),
        ("0/0 [..]", "0/0 .."),
    ],
)
def test_the_tokens_of_moment(format: str, expected: str) -> None:
    assert format_moment(moment("2026-03-01 05:07:09"), format) == expected


@pytest.mark.parametrize(
    ("day", "text"),
    [("2026-01-11", "11th"), ("2026-01-02", "2nd"), ("2026-01-23", "23rd"), ("2026-01-31", "31st")],
)
def test_ordinals(day: str, text: str) -> None:
    assert format_moment(moment(f"{day} 00:00"), "Do") == text


@pytest.mark.parametrize(
    ("day", "week"),
    [("2026-01-01", "2026 01"), ("2025-12-28", "2026 01"), ("2025-12-27", "2025 52")],
)
def test_weeks_that_begin_on_sunday(day: str, week: str) -> None:
    assert format_moment(moment(f"{day} 00:00"), "gggg ww") == week
