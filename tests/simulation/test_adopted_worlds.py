"""Batch Jobs and pods of others in worlds that once broke a promise."""

from __future__ import annotations

import pytest

from interlock.resources.adopted import QUEUE_LABEL
from interlock.resources.queue import QueueSpec
from interlock.resources.values.amounts import Amount
from support.simulation.adopted_world import AdoptedWorld, RivalAdoptedWorld
from support.simulation.faults import CALM
from support.simulation.script import ApplyQueue, ChangeTheirs, CreateTheirs, Step


@pytest.mark.parametrize("seed", [54])
def test_who_lets_go_of_an_attempt_does_not_let_go_of_the_next(seed: int) -> None:
    """Of two that believe they lead one knew the batch Job as that of the attempt before."""
    assert str(RivalAdoptedWorld(seed).run().broken) == "None"


@pytest.mark.parametrize("seed", [104])
def test_what_another_has_claimed_is_found_by_whoever_stops_it(seed: int) -> None:
    """It was looked for by the name of a pod of ours, and told as never launched while it ran."""
    assert str(RivalAdoptedWorld(seed).run().broken) == "None"


@pytest.mark.parametrize("seed", [236])
def test_a_batch_job_that_is_let_in_again_at_once_is_let_go_for_it(seed: int) -> None:
    """It was held for the attempt before for ever, since the next was on record already."""
    assert str(RivalAdoptedWorld(seed).run().broken) == "None"


@pytest.mark.parametrize("is_pod", [False, True])
@pytest.mark.parametrize("world", [AdoptedWorld, RivalAdoptedWorld])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_labelled_again_is_queued_again(
    world: type[AdoptedWorld], seed: int, is_pod: bool
) -> None:
    """Whatever had lost its label was taken for gone, until the controller was started anew."""
    free = QueueSpec(resources={"tasks": Amount.read(2)})
    label = {"metadata": {"labels": {QUEUE_LABEL: "blue"}}}
    theirs = CreateTheirs(name="theirs", command=("work", "1"), queue="red", is_pod=is_pod)
    script = (
        Step(1.0, ApplyQueue("blue", free)),
        Step(60.0, theirs),
        Step(120.0, ChangeTheirs("theirs", {"metadata": {"labels": {QUEUE_LABEL: None}}})),
        Step(300.0, ChangeTheirs("theirs", label)),
    )

    assert str(world(seed, script, CALM).run().broken) == "None"
