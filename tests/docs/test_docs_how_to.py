"""Every command in the how-to guides is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_pages import name_of
from docs_runner import follow, pages_to_run

GUIDES = [page for page in pages_to_run() if page.parent.name == "how-to"]


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_what_a_guide_says_works(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)
