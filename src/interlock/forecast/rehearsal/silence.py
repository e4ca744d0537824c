"""Log filter: what a rehearsal decides is not written to the log of the server it runs in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import LogRecord

_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silence() -> Iterator[None]:
    """Log nothing of what is begun here; everything else is logged meanwhile."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


def in_earnest(record: LogRecord) -> bool:  # noqa: ARG001 (who logs it is what matters)
    """Whether a record is to be logged: for the handlers of a server."""
    return not _SILENT.get()
