"""The rooms of a control plane: made from the list, with what each needs and is counted by."""

from __future__ import annotations

from control_world import World
from test_plane_terms import a_plane

from interlock.plane import ROOMS
from interlock.testing.config_builders import a_job_config, a_schedule


def test_they_stand_in_the_order_of_a_jobs_life() -> None:
    assert [room.name for room in ROOMS] == [
        "schedules",
        "admission",
        "slots",
        "plans",
        "execution",
        "garbage",
    ]


def test_what_schedules_make_is_counted_with_how_late_it_was() -> None:
    world = World()

    async def scene() -> None:
        plane = a_plane(world)
        plane.start()
        await world.store.create(a_job_config("report", a_schedule("* * * * *")))
        await world.passes(300)
        jobs = len((await world.store.list("Job")).items)
        sample = plane.metrics.registry.get_sample_value
        assert jobs > 0
        assert sample("interlock_scheduled_jobs_total") == jobs
        assert sample("interlock_due_lateness_seconds_count") == jobs

    world.run(scene())
