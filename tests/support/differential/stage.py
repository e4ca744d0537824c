"""What has to be known of a place where scenarios are played."""

from __future__ import annotations

import http.client
from contextlib import AbstractContextManager
from typing import Protocol

from support.differential.scenario import Object, Work

#: A connection to an API, and the headers that say who asks.
Connection = tuple[http.client.HTTPConnection, dict[str, str]]


class Stage(Protocol):
    """A place where Jobs run, reached over its API. Tasks are told by the names of attempts."""

    @property
    def namespace(self) -> str:
        """Where the Jobs are."""
        ...

    def connected(self) -> AbstractContextManager[Connection]:
        """A connection of one's own to the API."""
        ...

    def spec_of(self, work: Work) -> Object:
        """The part of a Job's specification that makes its tasks do this work."""
        ...

    def wait_until_begun(self, task: str, work: Work) -> None:
        """Wait until an attempt that is said to run hears what it is told."""
        ...

    def let_go(self, task: str, code: int) -> None:
        """Tell an attempt that waits to exit with a code."""
        ...

    def received(self, task: str) -> Object:
        """The arguments and the variables with which an attempt was started."""
        ...

    def flags(self) -> list[str]:
        """What leads the command line here."""
        ...

    def outage(self) -> AbstractContextManager[None]:
        """Nobody looks at anything until the context is left; what runs goes on."""
        ...
