"""Task output, handed on as it comes."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

from interlock.client.http_client import Answer
from interlock.client.moments import server_now, write_moment
from interlock.client.reports import Excerpt
from interlock.modes.cli.session import Session


class LogStream:
    """The output of one attempt; with a mark before each line, only whole lines are written."""

    def __init__(self, answer: Answer, mark: str) -> None:
        self.answer = answer
        self.done = False
        #: Whether it ended in the middle.
        self.is_cut = False
        self._mark = mark.encode()
        self._held = b""

    def receive(self) -> None:
        """Write what came. Call it when the answer is ready."""
        try:
            part = self.answer.receive()
        except OSError:
            part, self.is_cut = None, True
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
        self.done = True
        self.answer.close()


def write(data: bytes) -> None:
    """Hand bytes on as they are: what a process prints need not be text."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def excerpt_of(session: Session, args: Any, first: int = 0) -> Excerpt:
    """What the flags of `logs` ask for, by the number of the first attempt of their round.

    Times are the server's own.
    """
    since = ""
    if args.since is not None:
        session.api.call("GET", "/version")
        since = write_moment(server_now(session.api) - timedelta(seconds=args.since))
    return Excerpt(
        task=args.task or 0,
        # People count attempts from 1, names and fields from 0.
        attempt=None if args.attempt is None else first + args.attempt - 1,
        follow=args.follow,
        since=since,
        tail=args.tail,
        container=args.container,
    )
