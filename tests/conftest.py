"""What holds for every test."""

from __future__ import annotations

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
