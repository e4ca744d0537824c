"""The pages that follow from the code are on disk as the code would write them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "write_docs.py"))
PAGES: dict[str, str] = TOOL["pages"]()


@pytest.mark.parametrize("page", list(PAGES))
def test_a_page_is_up_to_date(page: str) -> None:
    written = (ROOT / page).read_text("utf-8")

    assert written == PAGES[page], f"{page} is out of date: run `make docs`"


def test_the_pages_are_the_same_every_time() -> None:
    assert TOOL["pages"]() == PAGES
