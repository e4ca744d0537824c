"""Small operations come to the same end wherever their control plane is killed.

Up to two steps here, all of them; `python -m support.simulation --crashes 3` takes three.
"""

from __future__ import annotations

import pytest

from support.simulation.crashes import CrashWorld, Pattern, differences, patterns, spec_of


@pytest.mark.parametrize("pattern", tuple(patterns(2)), ids=str)
def test_the_end_is_the_same_wherever_it_is_killed(pattern: Pattern) -> None:
    assert list(differences(pattern)) == []


@pytest.mark.parametrize(
    ("pattern", "ran"),
    [
        pytest.param(Pattern(1, 1, (1, 0), (0, 0)), ["s0", "s0", "s1"], id="retried"),
        pytest.param(
            Pattern(1, 1, (0, 2), (0, 1)), ["s0", "s1", "s1", "-s1", "-s1", "-s0"], id="undone"
        ),
        pytest.param(Pattern(1, 1, (0, 2), (0, 2)), ["s0", "s1", "s1", "-s1", "-s1"], id="stuck"),
    ],
)
def test_what_is_played_is_what_the_pattern_says(pattern: Pattern, ran: list[str]) -> None:
    world = CrashWorld(spec_of(pattern))

    assert world.run().broken is None
    assert world.end is not None
    assert list(world.end.ran) == ran
