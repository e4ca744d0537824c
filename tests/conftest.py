"""What holds for every test."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# The same inputs every time, and no clock: a slow machine must not fail a test. More inputs are
# tried by raising max_examples on the command line of a longer run.
settings.register_profile(
    "interlock",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("interlock")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor ever again among what they are.

    Each test process collects all of them, and looking cost a third of that.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
