"""The controller's log: to the terminal, from where a cluster takes it.

Lines of one turn of the event loop are written together: there is one for each decision.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from interlock.forecast.rehearsal.silence import in_earnest
from interlock.modes.server_log import line_of


class TerminalLog(logging.Handler):
    """Collects lines and writes them together to the standard error."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; it is written before the event loop waits again."""
        try:
            self._lines.append(line_of(record))
            if len(self._lines) == 1:
                self._write_soon()
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Write what was collected."""
        lines, self._lines = self._lines, []
        try:
            sys.stderr.write("".join(lines))
            sys.stderr.flush()
        except OSError:
            # Whoever read it is gone. What is lost is a line of the log.
            return

    def close(self) -> None:
        """Write the last lines."""
        self.flush()
        super().close()

    def _write_soon(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:  # Before the loop runs, and after.
            self.flush()


def log_to_terminal() -> TerminalLog:
    """Begin to log to the terminal; close what is returned to end it."""
    log = TerminalLog()
    logger = logging.getLogger("interlock")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [log]
    log.addFilter(in_earnest)
    return log
