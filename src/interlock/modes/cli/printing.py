"""What tasks print, handed on as it comes."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

from interlock.modes.cli.errors import AnswerError
from interlock.modes.cli.moments import server_now, write_moment
from interlock.modes.cli.session import Session
from interlock.modes.cli.wire import Answer, quote


class LogStream:
    """The output of one attempt; with a mark before each line, only whole lines are written."""

    def __init__(self, answer: Answer, mark: str) -> None:
        self.answer = answer
        self.done = False
        self._mark = mark.encode()
        self._held = b""

    def receive(self) -> None:
        """Write what came. Call it when the answer is ready."""
        try:
            part = self.answer.receive()
        except OSError:
            part = None
        if part is None:
            self.done = True
            self.answer.close()
            if self._held:
                write(self._mark + self._held + b"\n")
        elif not self._mark:
            write(part)
        elif part:
            *lines, self._held = (self._held + part).split(b"\n")
            write(b"".join(self._mark + line + b"\n" for line in lines))

    def close(self) -> None:
        """Stop reading."""
        self.answer.close()


def write(data: bytes) -> None:
    """Hand bytes on as they are: what a process prints need not be text."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def log_path(namespace: str, name: str) -> str:
    """Where the server serves what a Job printed."""
    return f"/jobs/{quote(namespace)}/{quote(name)}/log"


def open_log(
    session: Session, name: str, task: int, attempt: int, mark: str, more: dict[str, object]
) -> LogStream | None:
    """Follow the output of an attempt; None when the server has none to give."""
    query = more | {"task": task, "attempt": attempt, "follow": 1}
    try:
        path = log_path(session.namespace, name)
        answer = session.api.stream("GET", path, query, accept="text/plain")
    except AnswerError:
        return None
    return LogStream(answer, mark)


def log_query(session: Session, args: Any) -> dict[str, object]:
    """The flags of `logs` as the server reads them; times are the server's own."""
    query: dict[str, object] = {"task": args.task, "attempt": args.attempt, "tail": args.tail}
    if args.follow:
        query["follow"] = 1
    if args.since is not None:
        session.api.call("GET", "/version")
        query["since"] = write_moment(server_now(session.api) - timedelta(seconds=args.since))
    return query
