"""A fenced client: writes only while something holds, such as a lead."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.kube.client.api_client import Call, Client, Stream
from interlock.kube.client.sending import Guard


class GuardedClient(Client):
    """The connections of another client; every write asks the guard when it is about to be sent.

    However long a write waited, for a free place, between two attempts or for a connection: once
    the guard refuses, it is not sent any more.
    """

    def __init__(self, client: Client, guard: Guard) -> None:
        # Nothing is opened here: all is the other client's, and is closed with it.
        self._client = client
        self._guard = guard
        self.config = client.config
        self.answers = client.answers
        self.resumed = client.resumed

    async def close(self) -> None:
        """Leave the connections to their owner."""

    @property
    def open_sockets(self) -> int:
        """How many connections there are."""
        return self._client.open_sockets

    async def send(self, call: Call) -> bytes:
        """The body of the answer.

        Raises:
            FencedError: The guard let it pass no more, and nothing was done.
            InterlockError: What the server refused, or that it does not answer.
        """
        return await self._client.send(call if call.is_read else replace(call, guard=self._guard))

    async def stream(self, call: Call, *, silent_s: float) -> Stream:
        """The beginning of an answer that goes on; only what is read does."""
        return await self._client.stream(call, silent_s=silent_s)
