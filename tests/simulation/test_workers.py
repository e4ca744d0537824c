"""Workers and the control planes that they speak to: what the simulation has found."""

from __future__ import annotations

import pytest

from support.simulation.worker_world import RivalWorkerOperationWorld


@pytest.mark.parametrize("seed", [0, 33, 46])
def test_a_step_is_not_stopped_by_who_has_not_heard_yet_which_steps_there_are(seed: int) -> None:
    """Attempts to make the steps were taken for attempts of the first of them."""
    assert str(RivalWorkerOperationWorld(seed).run().broken) == "None"
