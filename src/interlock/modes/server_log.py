"""The server's log: a file in the data directory, and warnings to the terminal too.

One line per decision is written, so a line has to be cheap: lines of one turn of the event loop
go to the file in one write.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import TextIO

from interlock.forecast.rehearsal.silence import in_earnest
from interlock.private_files import open_private

LOG_FILE = "server.log"
#: The log is cut off at this size; what came before is kept in one older file.
LARGEST = 20 * 1024 * 1024


class ServerLog(logging.Handler):
    """Collects lines and writes them together; turns the file over when it has grown large."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        super().__init__(logging.INFO)
        self._path = path
        self._largest = largest
        self._lines: list[str] = []
        self._file = _open(path)

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
        if not self._lines or self._file.closed:
            return
        data = "".join(self._lines).encode("utf-8", "replace")
        self._lines.clear()
        try:
            self._file.write(data)
            if self._file.tell() > self._largest:
                self._turn_over()
        except OSError as error:
            # A full disk must not stop the server; what is lost is a line of the log.
            sys.stderr.write(f"{self._path}: {error.strerror}\n")

    def reopen(self) -> None:
        """Go on in the file of this name, which is a new one when the old was moved away.

        Raises:
            OSError: There cannot be one; what was written to before still is.
        """
        self.flush()
        file = _open(self._path)
        self._file.close()
        self._file = file

    def close(self) -> None:
        """Write the last lines."""
        self.flush()
        self._file.close()
        super().close()

    def _write_soon(self) -> None:
        try:
            asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:  # Before the loop runs, and after.
            self.flush()

    def _turn_over(self) -> None:
        self._file.close()
        self._path.replace(self._path.with_suffix(".log.1"))
        self._file = _open(self._path)


def _open(path: Path) -> FileIO:
    """The file, for its owner alone: what Jobs are called and do is nobody else's business."""
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.fchmod(fd, 0o600)
    return FileIO(fd, "ab")


def line_of(record: logging.LogRecord) -> str:
    """A record as one line, or several when it holds a traceback."""
    at = datetime.fromtimestamp(record.created, UTC)
    text = record.getMessage().replace("\n", "\\n")
    if record.exc_info:
        text += "\n" + logging.Formatter().formatException(record.exc_info)
    return f"{at.isoformat()} {record.levelname} {record.name[10:]} {text}\n"


class _Warnings(logging.StreamHandler[TextIO]):
    """Warnings for the person who started the server, in one line each."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setLevel(logging.WARNING)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))


def log_to(data: Path) -> ServerLog:
    """Begin to log to a data directory; close what is returned to end it."""
    log = ServerLog(data / LOG_FILE)
    logger = logging.getLogger("interlock")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [log, _Warnings()]
    for handler in logger.handlers:
        handler.addFilter(in_earnest)
    return log
