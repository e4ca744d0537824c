"""A line that looks like one of Quartz or AWS is told of where its weekdays would shift by one."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.modes.cli.main import main
from interlock.resources.door.validation import FieldValidation, read_resource


def a_config(cron: str | list[str], format: str | None = None) -> dict[str, Any]:
    schedule = {"cron": cron} | ({"format": format} if format else {})
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "JobConfig",
        "metadata": {"name": "a"},
        "spec": {"schedules": [schedule], "template": {"spec": {"noop": {}}}},
    }


def a_controlled_job(cron: str, format: str | None = None) -> dict[str, Any]:
    event = {"action": "start", "cron": cron} | ({"format": format} if format else {})
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "ControlledJob",
        "metadata": {"name": "a"},
        "spec": {
            "timezone": {"name": "UTC"},
            "events": [event, {"action": "stop", "cron": "0 0 * * *"}],
            "jobTemplate": {"spec": {"noop": {}}},
        },
    }


@pytest.mark.parametrize(
    ("line", "format", "here", "there"),
    [
        ("0 15 10 ? * 2-6 *", None, "TUE-SAT", "MON-FRI"),
        ("0 15 10 ? * 2-6", "SecondsFirst", "TUE-SAT", "MON-FRI"),
        ("0 10 ? * 1 *", "YearLast", "MON", "SUN"),
        ("0 0 0 ? * 6L *", None, "SATL", "FRIL"),
        ("0 0 0 ? * 6#3 *", None, "SAT#3", "FRI#3"),
        ("0 0 0 ? * 2,4/2,SUN *", None, "TUE,THU/2,SUN", "MON,WED/2,SUN"),
        ("0 0 0 ? * 7 *", None, "SUN", "SAT"),
    ],
)
def test_numbers_beside_a_question_mark_are_told_with_the_names(
    line: str, format: str | None, here: str, there: str
) -> None:
    _, (warning,) = read_resource(a_config(line, format))

    assert warning.startswith("spec.schedules[0].cron: ")
    assert f"is {here} here, and {there} in Quartz and AWS" in warning
    _, (warning,) = read_resource(a_controlled_job(line, format))
    assert warning.startswith("spec.events[0].cron: ")


@pytest.mark.parametrize(
    ("line", "format"),
    [
        ("0 15 10 ? * MON-FRI *", None),
        ("0 15 10 ? * FRI#3 *", None),
        ("0 15 10 ? * */2 *", None),
        ("0 15 10 ? * 0-6 *", None),
        ("0 15 10 * * 2-6 *", None),
        ("0 15 10 5 * ? *", None),
        ("15 10 ? * 2-6", None),
        ("0 15 10 * * 2-6", "SecondsFirst"),
    ],
)
def test_other_lines_raise_no_doubt(line: str, format: str | None) -> None:
    assert read_resource(a_config(line, format))[1] == ()


def test_each_line_of_a_list_is_named() -> None:
    _, warnings = read_resource(a_config(["0 0 * * *", "0 0 0 ? * 2 *", "0 0 0 ? * 3 *"]))

    assert [warning.split(": ")[0] for warning in warnings] == [
        "spec.schedules[0].cron[1]",
        "spec.schedules[0].cron[2]",
    ]


def test_who_wants_no_warnings_gets_none() -> None:
    given = a_config("0 0 0 ? * 2 *")

    assert read_resource(given, field_validation=FieldValidation.IGNORE)[1] == ()
    assert len(read_resource(given, field_validation=FieldValidation.WARN)[1]) == 1


def test_check_tells_and_takes_it(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "quartz.yaml"
    file.write_text(
        "apiVersion: interlock.dev/v1alpha1\nkind: JobConfig\nmetadata: {name: a}\nspec:\n"
        '  schedules: [{cron: "0 15 10 ? * 2-6 *"}]\n  template: {spec: {noop: {}}}\n'
    )

    assert main(["check", "-f", str(file)]) == 0
    assert '"2-6" is TUE-SAT here, and MON-FRI in Quartz and AWS' in capsys.readouterr().err
