"""Admittance: which workers are let in."""

from __future__ import annotations

from interlock.runtimes.workers.protocol import PROTOCOL, Hello

_MAX_FUNCTIONS = 10_000
_MAX_QUEUES = 100
_MAX_CONCURRENCY = 1_000
_MAX_NAME = 200


class RefusedWorkerError(Exception):
    """A worker is not taken; the message says why."""


def check(hello: Hello) -> None:
    """Refuse what cannot be served.

    Raises:
        RefusedWorkerError: It cannot be taken.
    """
    flaw = ""
    if hello.protocol != PROTOCOL:
        flaw = f"protocol {hello.protocol} is spoken by the worker, {PROTOCOL} by this server"
    elif not 1 <= hello.concurrency <= _MAX_CONCURRENCY:
        flaw = f"concurrency: expected 1 to {_MAX_CONCURRENCY}, got {hello.concurrency}"
    elif len(hello.functions) > _MAX_FUNCTIONS:
        flaw = f"functions: expected at most {_MAX_FUNCTIONS}, got {len(hello.functions)}"
    elif len(hello.queues) > _MAX_QUEUES:
        flaw = f"queues: expected at most {_MAX_QUEUES}, got {len(hello.queues)}"
    for name in ("worker", "incarnation", "app"):
        length = len(getattr(hello, name))
        if not flaw and not 1 <= length <= _MAX_NAME:
            flaw = f"{name}: expected 1 to {_MAX_NAME} characters, got {length}"
    if flaw:
        raise RefusedWorkerError(flaw)
