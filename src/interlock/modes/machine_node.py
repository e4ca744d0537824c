"""The Node of the embedded server: its machine, on which TestBeds have their slots."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.errors import NotFoundError
from interlock.modes.machine_size import MachineSize, machine_size
from interlock.resources.cluster import Node, NodeStatus
from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.metadata import Key, Metadata
from interlock.store.sqlite import SqliteStore

#: What it is called: as the Queue that has its cores and memory.
MACHINE = DEFAULT_QUEUE


async def lay_out_node(store: SqliteStore) -> None:
    """Make the Node, or write down what the machine has now. Its labels are a person's.

    Raises:
        InterlockError: The store cannot be written.
    """
    status = NodeStatus(allocatable=allocatable(machine_size()))
    try:
        node = await store.get(Key("Node", "", MACHINE))
    except NotFoundError:
        node = await store.create(Node(metadata=Metadata(name=MACHINE)))
    assert isinstance(node, Node)
    if node.status != status:
        await store.update_status(replace(node, status=status))


def allocatable(size: MachineSize) -> dict[str, str]:
    """What there is for work, as Kubernetes writes it."""
    return {"cpu": f"{size.cpu_milli}m", "memory": f"{size.memory_mib}Mi"}
