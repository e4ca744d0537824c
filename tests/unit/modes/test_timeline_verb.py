"""Which days `interlock timeline` shows, and what it refuses."""

from __future__ import annotations

import argparse
from datetime import date
from importlib import import_module

import pytest
from timeline_objects import at

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.modes.cli.flags import parse
from interlock.modes.cli.main import main
from interlock.modes.cli.registry import VERBS
from interlock.modes.cli.verbs.timeline import days_in
from interlock.timing.zones import find_zone

NOW = at("2026-11-17T02:00:00")


def typed(*argv: str) -> argparse.Namespace:
    args = parse(VERBS["timeline"], import_module(VERBS["timeline"].module), list(argv))
    assert args is not None
    return args


@pytest.mark.parametrize(
    ("argv", "zone", "first", "last"),
    [
        ([], "UTC", "2026-11-16", "2026-11-18"),
        ([], "America/New_York", "2026-11-15", "2026-11-17"),
        (["--days", "1"], "UTC", "2026-11-17", "2026-11-17"),
        (["--days", "7"], "Asia/Tokyo", "2026-11-11", "2026-11-17"),
        (["--from", "2026-03-08"], "UTC", "2026-03-08", "2026-11-18"),
        (["--from", "2027-03-08"], "UTC", "2027-03-08", "2027-03-08"),
        (["--to", "friday"], "UTC", "2026-11-16", "2026-11-20"),
        (["--from", "yesterday", "--to", "today"], "UTC", "2026-11-16", "2026-11-17"),
        (["--from", "2026-11-01T00:00Z", "--to", "2026-11-02 12:00"], "America/New_York",
         "2026-10-31", "2026-11-02"),
    ],
)  # fmt: skip
def test_days_are_those_of_the_objects_own_zone(
    argv: list[str], zone: str, first: str, last: str
) -> None:
    found = days_in(find_zone(zone), typed(*argv), NOW)
    assert found == (date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    "argv",
    [
        ["--from", "2026-11-10", "--to", "2026-11-09"],
        ["--from", "2020-01-01", "--to", "2026-01-01"],
        ["--from", "sometime"],
        ["--days", "401"],
    ],
)
def test_days_that_make_no_picture_are_refused(argv: list[str]) -> None:
    with pytest.raises(CommandError) as caught:
        days_in(find_zone("UTC"), typed(*argv), NOW)
    assert caught.value.code == BAD_INPUT


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["timeline", "jobs"], "jobs have no timeline"),
        (["timeline", "--days", "2", "--to", "friday"], "either --days"),
        (["timeline", "-o", "png"], "is none of text, svg, json"),
        (["timeline", "--width", "3"], "from 40 up"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == BAD_INPUT
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""
