"""Worlds tell their own history; thousands of log lines beside it only cost time."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Log nothing while worlds run."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
