"""The decision journal of this process, kept in its memory.

An API server is no place for a record that grows with every decision: a thousand small writes a
second would cost more than the decisions. What matters beyond a restart stands in the objects
themselves and in their events; `interlock history` on a cluster tells what the present leader
decided since it began to lead.
"""

from __future__ import annotations

from interlock.store.memory import MemoryJournal


class KubernetesJournal(MemoryJournal):
    """The newest decisions of this process; gone when it ends."""
