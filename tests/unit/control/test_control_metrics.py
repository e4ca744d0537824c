"""The numbers: in a registry of their own, and as they are when somebody asks."""

from __future__ import annotations

from control_world import World, item
from prometheus_client import generate_latest

from interlock.control.metrics import Metrics


def test_two_control_planes_in_one_process_do_not_share_numbers() -> None:
    first, second = Metrics(["room"]), Metrics(["room"])
    first.rooms["room"].looks += 1

    assert first.registry.get_sample_value("interlock_looks_total", {"room": "room"}) == 1
    assert second.registry.get_sample_value("interlock_looks_total", {"room": "room"}) == 0


def test_the_queue_and_the_tasks_are_shown_as_they_are() -> None:
    world = World()
    metrics = Metrics([])
    metrics.watch(World().queue, world.fence, None)
    metrics.watch(world.queue, world.fence, world.reports)
    world.queue.wake(item("a"))
    world.queue.wake(item("b"))
    world.queue.take()
    text = generate_latest(metrics.registry).decode()

    assert "interlock_queue_depth 1.0" in text
    assert "interlock_queue_in_work 1.0" in text
    assert "interlock_leading 1.0" in text
    assert 'interlock_tasks{state="Running"} 0.0' in text


def test_durations_are_counted_in_buckets_that_add_up() -> None:
    metrics = Metrics(["room"])
    for seconds in (0.00001, 0.0001, 0.3, 99.0):
        metrics.rooms["room"].look.observe(seconds)
    text = generate_latest(metrics.registry).decode()

    assert 'interlock_look_seconds_bucket{le="0.0001",room="room"} 2.0' in text
    assert 'interlock_look_seconds_bucket{le="1.0",room="room"} 3.0' in text
    assert 'interlock_look_seconds_count{room="room"} 4.0' in text
