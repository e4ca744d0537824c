"""The page that leads through the code: every module, function and class that it names is there."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs_pages import ROOT

PAGE = ROOT / "docs" / "life-of-a-job.md"
NAMED = re.findall(r"\[`([\w.]+)`\]\(([^)]+)\)", PAGE.read_text("utf-8"))


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize(("name", "link"), sorted(set(NAMED)))
def test_what_the_page_names_is_where_it_links_to(name: str, link: str) -> None:
    parts = ["interlock", *name.split(".")]
    ends = range(len(parts), 1, -1)
    end = next(end for end in ends if is_module(".".join(parts[:end])))
    module = import_module(".".join(parts[:end]))

    assert Path(str(module.__file__)) == (PAGE.parent / link).resolve()
    found: object = module
    for part in parts[end:]:
        found = getattr(found, part)


def test_the_page_leads_through_every_room_of_a_job() -> None:
    rooms = {name.split(".")[0] for name, _ in NAMED}

    assert {"api", "store", "control", "schedules", "admission", "execution", "runtimes"} <= rooms
