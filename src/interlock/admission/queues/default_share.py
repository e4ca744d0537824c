"""What a Job asks of the default Queue at the most: it did not choose that Queue."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.resources.queue import TASKS, Demand, QueueSpec


def narrowed(demand: Demand, queue: QueueSpec) -> Demand:
    """Ask for no more tasks at a time than the Queue has room for when nobody else is there.

    So a Job of many tasks starts all the same. Of `tasks` it asks for no more than half, so that
    others find some beside it.
    """
    most = demand.tasks
    for name, amount in demand.each.items():
        if name in queue.resources and amount:
            most = min(most, queue.resources[name].milli // amount)
    if TASKS in queue.resources:
        most = min(most, queue.resources[TASKS].milli // 2000)
    most = max(1, most)
    return replace(demand, tasks=most, least=min(demand.least, most))
