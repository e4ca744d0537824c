"""The stage of an embedded server: work is a process of this machine."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import assert_never
from urllib.parse import urlsplit

from interlock.resources.default_queue import DEFAULT_QUEUE
from interlock.resources.metadata import API_VERSION
from interlock.testing.serving import PATIENCE_S, Server
from support.differential.scenario import (
    CannotStart,
    Exits,
    IgnoresStop,
    Nothing,
    Object,
    Waits,
    Work,
)
from support.differential.stage import Connection

# Each is called with a path that is its attempt's own.
_EXIT = """\
code=$1; shift
for word; do printf '%s\\0' "$word"; done > "$0.args"
env -0 > "$0.env"
exit "$code"
"""
#: It waits at a pipe, which both sides make: whoever comes second finds it there.
_WAIT = 'mkfifo "$0" 2>/dev/null; read code < "$0"; exit "$code"'
#: It says that it is deaf before it goes on.
_IGNORE = 'trap "" TERM; mkfifo "$0" 2>/dev/null; echo > "$0"; while :; do sleep 100000; done'


class EmbeddedStage:
    """`interlock up` in a folder of its own; nothing is left when the context is."""

    namespace = "default"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._attempts = folder / "attempts"
        self._attempts.mkdir()
        self._server = Server(folder / "data", cwd=folder)
        self._open = ExitStack()

    def __enter__(self) -> EmbeddedStage:
        self._open.enter_context(self._server)
        self._without_default_queue()
        return self

    def _without_default_queue(self) -> None:
        """Have processes ask nobody for room, as pods do: a cluster has no default Queue."""
        path = f"/apis/{API_VERSION}/queues/{DEFAULT_QUEUE}"
        with self.connected() as (connection, headers):
            connection.request("DELETE", path, headers=headers)
            answer = connection.getresponse()
            told = answer.read()
            assert answer.status == 200, told

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection; nobody asks who we are."""
        connection = HTTPConnection(urlsplit(self._server.url).netloc, timeout=PATIENCE_S)
        try:
            yield connection, {}
        finally:
            connection.close()

    def spec_of(self, work: Work) -> Object:
        """A shell script that does the work."""
        match work:
            case Exits(code, args, env):
                return self._process(_EXIT, str(code), args=list(args), env=env)
            case Waits():
                return self._process(_WAIT)
            case IgnoresStop():
                return self._process(_IGNORE)
            case CannotStart():
                return {"process": {"command": [str(self._folder / "no-such-program")]}}
            case Nothing():
                return {"noop": {}}
            case _:
                assert_never(work)

    def wait_until_begun(self, task: str, work: Work) -> None:
        """A script may be told to stop before its first line has run, unless it says so."""
        if not isinstance(work, IgnoresStop):
            return
        pipe = os.open(self._pipe(task), os.O_RDONLY | os.O_NONBLOCK)
        try:
            ready, _, _ = select.select([pipe], [], [], PATIENCE_S)
            assert ready, f"{task} did not say that it has begun"
        finally:
            os.close(pipe)

    def let_go(self, task: str, code: int) -> None:
        """Write the code into the pipe, which keeps it until it is read."""
        pipe = os.open(self._pipe(task), os.O_RDWR | os.O_NONBLOCK)
        self._open.callback(os.close, pipe)
        os.write(pipe, f"{code}\n".encode())

    def received(self, task: str) -> Object:
        """What the script wrote down."""
        args = self._written(task, "args")
        env = dict(line.split("=", 1) for line in self._written(task, "env"))
        return {"args": args, "env": env}

    def flags(self) -> list[str]:
        """The address of the server."""
        return ["--server", self._server.url]

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Kill the server, and start it again."""
        self._server.kill()
        try:
            yield
        finally:
            self._server.start()

    def _written(self, task: str, sort: str) -> list[str]:
        text = (self._attempts / f"{task}.{sort}").read_text("utf-8")
        return text.split("\0")[:-1]

    def _process(self, script: str, *words: str, **more: object) -> Object:
        place = f"{self._attempts}/${{task.name}}"
        return {"process": {"command": ["sh", "-c", script, place, *words], **more}}

    def _pipe(self, task: str) -> Path:
        path = self._attempts / task
        with suppress(FileExistsError):
            os.mkfifo(path)
        return path
