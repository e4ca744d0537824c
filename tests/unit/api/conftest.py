"""A fresh application for every test."""

from __future__ import annotations

import pytest

from interlock.testing.asking import Ask, Asker, asking


@pytest.fixture
def asker() -> Asker:
    """A fresh application."""
    return Asker()


@pytest.fixture
def ask(asker: Asker) -> Ask:
    """Ask the fresh application, one question after another."""
    return asking(asker)
