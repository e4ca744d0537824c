"""`interlock` as a person calls it, for a cluster."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from interlock.modes.cli.main import main
from interlock.testing.serving import PATIENCE_S
from support.kube import Access, User

#: What would lead a command elsewhere.
_ELSEWHERE = ("INTERLOCK_SERVER", "INTERLOCK_DATA", "INTERLOCK_TOKEN_FILE", "KUBECONFIG")


class Program:
    """The program in a folder of its own, with the kubeconfig of a user and a namespace."""

    def __init__(
        self, access: Access, folder: Path, namespace: str = "", user: User = User.ADMIN
    ) -> None:
        self.access = access
        self.folder = folder
        self.namespace = namespace
        self.kubeconfig = str(access.kubeconfig(user))
        self.errors = ""

    def __call__(self, *argv: str, code: int = 0) -> str:
        """Carry out one command line in this process; gives what it printed."""
        flags = ["--kubeconfig", self.kubeconfig]
        if self.namespace:
            flags += ["-n", self.namespace]
        return self.plain(*flags, *argv, code=code)

    def plain(self, *argv: str, code: int = 0, **env: str) -> str:
        """The same without flags of its own."""
        out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        left = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
        with (
            patch.dict(os.environ, left | env, clear=True),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
            _alarm(),
        ):
            found = main(list(argv))
        out.flush()
        out.seek(0)
        told, self.errors = out.read(), errors.getvalue()
        assert found == code, (argv, found, told, self.errors)
        return told

    def json(self, *argv: str, code: int = 0) -> Any:
        """What a command printed for programs."""
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
