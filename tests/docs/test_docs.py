"""Every command in the documentation is run, and every link leads somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_pages import ROOT, anchors_of, blocks_of, commands_of, links_of, name_of, pages
from docs_runner import follow, pages_to_run

PAGES = pages()
#: The how-to guides have a file of their own, so that two workers can share the pages.
RUN = [page for page in pages_to_run() if page.parent.name != "how-to"]


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_what_a_page_says_works(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_link_leads_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for link in links_of(text):
        assert "://" not in link, f"{link}: pages link to each other only"
        target, _, anchor = link.partition("#")
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{link}: there is no such file"
        if anchor:
            assert anchor in anchors_of(place.read_text("utf-8")), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_expected_can_be_checked(page: Path) -> None:
    for block in blocks_of(page.read_text("utf-8")):
        assert not block.expected or block.is_run, f"line {block.line}: nothing is run"
        assert block.is_run is bool(block.is_run and list(commands_of(block)))


def test_every_page_can_be_reached() -> None:
    """A page that no other links to is lost."""
    start = ROOT / "README.md"
    found, due = {start}, [start]
    while due:
        page = due.pop()
        for link in links_of(page.read_text("utf-8")):
            place = (page.parent / link.partition("#")[0]).resolve()
            if place.suffix == ".md" and place not in found:
                found.add(place)
                due.append(place)
    assert set(PAGES) <= found
