"""`interlock` as a person calls it, with a server of our own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from interlock.modes.cli.main import main
from interlock.testing.serving import PATIENCE_S

_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"


class Program:
    """`interlock` as a person calls it, in a directory of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | {"INTERLOCK_SERVER": url}
        self.errors = ""

    def command(self, *argv: str) -> list[str]:
        """The program in a process of its own; slower, for what only a process shows."""
        return [sys.executable, "-c", _START, *argv]

    def __call__(self, *argv: str, code: int = 0, given: str = "") -> str:
        """Carry out one command line in this process; gives what it printed."""
        out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        source = io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8")
        with (
            patch.dict(os.environ, self.env),
            patch.object(sys, "stdin", source),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
            _alarm(),
        ):
            found = main(list(argv))
        out.flush()
        out.seek(0)
        told, self.errors = out.read(), errors.getvalue()
        assert found == code, (argv, told, self.errors)
        return told

    def json(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self(*argv, "-o", "json", code=code))


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Fail instead of hanging when a command never ends."""

    def ring(*_: object) -> None:
        raise AssertionError("the command does not end")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
