"""The default Queue of the embedded server: made once, and from then on whose data it is.

It is made at the first start on a data directory, also on one of before there was a default Queue.
That it was made is written down beside the resources, where a backup has it too. So a person's
edit of it stands, and one who deletes it does not get it back, but by asking for it: with a flag
that says how much it is to allow.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from msgspec.structs import replace

from interlock.errors import NotFoundError
from interlock.modes.machine_size import MachineSize, machine_size
from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.metadata import Key, Metadata
from interlock.resources.queue import TASKS, Queue, QueueSpec
from interlock.resources.values.amounts import Amount
from interlock.store.sqlite import SqliteStore

logger = logging.getLogger("interlock.server")

#: The fact in the store that the Queue was made.
MADE = "machine-queue"
#: So many tasks for each core, and so many at the least and at the most.
TASKS_PER_CORE = 32
LEAST_TASKS, MOST_TASKS = 64, 512


async def lay_out_queue(store: SqliteStore, wanted: Mapping[str, Amount]) -> None:
    """Make the default Queue if it never was; have it allow what is wanted, if anything is.

    Raises:
        InterlockError: The store cannot be written.
    """
    key = Key("Queue", "", DEFAULT_QUEUE)
    try:
        queue = await store.get(key)
        assert isinstance(queue, Queue)
        resources = {**queue.spec.resources, **wanted}
        if resources != queue.spec.resources:
            await store.update(replace(queue, spec=replace(queue.spec, resources=resources)))
            logger.info("queue %s allows %s", DEFAULT_QUEUE, _told(wanted))
    except NotFoundError:
        if MADE in store.facts and not wanted:
            return
        resources = {**usual_resources(machine_size()), **wanted}
        metadata = Metadata(name=DEFAULT_QUEUE)
        queue = Queue(metadata=metadata, spec=QueueSpec(resources=resources))
        await store.create(queue)
        logger.info("queue %s is made, and allows %s", DEFAULT_QUEUE, _told(resources))
    if MADE not in store.facts:
        await store.remember(MADE)


def usual_resources(size: MachineSize) -> dict[str, Amount]:
    """What it allows when nobody says otherwise."""
    cores = -(-size.cpu_milli // 1000)
    return {
        "cpu": Amount(size.cpu_milli),
        "memory": Amount.read(f"{size.memory_mib}Mi"),
        TASKS: Amount.read(min(max(LEAST_TASKS, TASKS_PER_CORE * cores), MOST_TASKS)),
    }


def _told(resources: Mapping[str, Amount]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(resources.items()))
