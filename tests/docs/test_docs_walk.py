"""The README, the tutorial and the guides are one story: they can be walked on one server."""

from __future__ import annotations

from pathlib import Path

from docs_pages import ROOT, links_of
from docs_runner import pages_to_run, walk


def test_everything_can_be_walked_in_order(tmp_path: Path) -> None:
    index = ROOT / "docs" / "README.md"
    linked = [index.parent / link.partition("#")[0] for link in links_of(index.read_text("utf-8"))]
    guides = [page for page in linked if page.parent.name == "how-to"]
    runnable = set(pages_to_run())
    story = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *guides]
    walk([page for page in story if page in runnable], tmp_path)
