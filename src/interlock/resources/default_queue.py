"""The default Queue: where a Job that names none has to find room on one machine.

A Job asks of it without saying so, and its definition stays as it is: it means the same on a
cluster, which has no default Queue. Only processes ask. One with a lock, a target or slots is
limited by that already, and stands in that line from the first: it asks for room too where it says
how much it takes. So what is kept running in a window, which has its schedule's lock, waits for
nobody's room.
An operation keeps its turn and may stand
still until somebody helps it, so its steps start without asking; what ends at once, and what is
carried out elsewhere, takes nothing of the machine.
"""

from __future__ import annotations

from interlock.resources.job import JobSpec
from interlock.resources.work_types import Mode

#: What it is called.
DEFAULT_QUEUE = "machine"


def default_queue_in(mode: Mode) -> str:
    """The name of the default Queue of an installation; empty where there is none."""
    return DEFAULT_QUEUE if mode is Mode.EMBEDDED else ""


def queue_asked(spec: JobSpec, default: str) -> str | None:
    """The Queue that a Job asks for room: the one that it names, or else the default one.

    None for a Job that asks none; `default` is empty where there is no default Queue.
    """
    if spec.queue is not None:
        return spec.queue
    if not default or spec.process is None:
        return None
    says_how_much = spec.resources is not None or spec.min_parallelism is not None
    is_limited = spec.target is not None or spec.slots is not None or bool(spec.locks)
    return default if says_how_much or not is_limited else None
