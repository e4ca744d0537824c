"""Slots in worlds where everything fails: none has two tenants, and none is lost."""

from __future__ import annotations

import pytest

from support.simulation.ghost_world import World


@pytest.mark.parametrize("seed", range(30))
def test_a_slot_has_one_tenant_and_is_given_back(seed: int) -> None:
    world = World(seed)
    assert world.run() == []
    assert world.placed


def test_a_world_is_the_same_every_time() -> None:
    first, second = World(3), World(3)
    assert first.run() == second.run()
    assert (first.api.version, first.placed) == (second.api.version, second.placed)
