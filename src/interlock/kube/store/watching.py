"""A resuming watch: a stream of changes that survives the connection it comes through.

API servers end watches when their time is up, drop watchers that they find slow without a word,
and are restarted. Each time the watch is resumed from the last version it was told, so nobody
notices; only what cannot be resumed is told: a version that is too old, or a server that stays
away.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

import msgspec
from msgspec.structs import replace

from interlock.control.backoff import delay_after
from interlock.control.clock import Clock, pause
from interlock.errors import ExpiredError, UnavailableError
from interlock.kube.client.api_client import Call, Client, Stream
from interlock.kube.client.errors import error_of, read_status
from interlock.kube.store.codec import Happening

logger = logging.getLogger("interlock.kube.watch")

#: The server is asked to end a watch after about this time, so that a dead one is noticed.
LASTS_S = 300
#: A watch that says nothing for so long is taken for dead. Bookmarks come about once a minute.
SILENT_S = 120.0
#: A connection that lasted this long did its duty, even if there was nothing to tell.
ENOUGH_S = 5.0
#: Resuming is tried so often in a row before the watch gives up.
ATTEMPTS = 5


class Lines:
    """Puts pieces of a stream together to whole lines."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def take(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes."""
        if b"\n" not in piece:
            # Kept apart until the line is whole: adding to one long line again and again would
            # copy it each time.
            self._held.append(piece)
            return []
        first, *lines = piece.split(b"\n")
        lines.insert(0, b"".join((*self._held, first)))
        last = lines.pop()
        self._held = [last] if last else []
        return [line for line in lines if line]


class Watch(AsyncIterator[Sequence[Happening]]):
    """What happens from a version on, in batches, through as many connections as it takes."""

    def __init__(
        self,
        client: Client,
        call: Call,
        read: Callable[[bytes], Happening],
        clock: Clock,
        luck: Random,
        *,
        lasts_s: int = LASTS_S,
        silent_s: float = SILENT_S,
    ) -> None:
        self._client = client
        self._call = call
        self._read = read
        self._clock = clock
        self._luck = luck
        self._lasts_s = lasts_s
        self._silent_s = silent_s
        self._lines = Lines()
        self._stream: Stream | None = None
        #: The newest version that was told.
        self.version = call.version
        #: Connections in a row that ended soon and told nothing.
        self._fruitless = 0
        self._opened_at = 0.0
        #: How often the watch was resumed.
        self.resumed = 0

    async def open(self) -> None:
        """Begin to watch, from the newest version that was told.

        Raises:
            ExpiredError: The version is too old.
            InterlockError: The server refuses, or does not answer.
        """
        # Spread, so that the watches of many do not all end at the same moment.
        lasts_s = max(round(self._lasts_s * (1.0 + self._luck.random())), 1)
        query = {
            **self._call.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self.version),
            "timeoutSeconds": str(lasts_s),
        }
        call = replace(self._call, query=query, version=self.version)
        self._lines = Lines()
        self._opened_at = self._clock.monotonic()
        self._stream = await self._client.stream(call, silent_s=self._silent_s)

    def close(self) -> None:
        """Watch no more."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def __anext__(self) -> Sequence[Happening]:
        while True:
            piece = await self._next_piece()
            happenings = self._understand(self._lines.take(piece))
            if happenings:
                self._fruitless = 0
                return happenings

    async def _next_piece(self) -> bytes:
        """The next bytes, of another connection if need be."""
        while True:
            if self._stream is not None:
                try:
                    if piece := await self._stream.read():
                        return piece
                except UnavailableError as error:
                    logger.info("%s; resuming from version %d", error, self.version)
            await self._resume()

    async def _resume(self) -> None:
        self.close()
        self.resumed += 1
        self._client.resumed[self._call.key.kind] += 1
        lasted_s = self._clock.monotonic() - self._opened_at
        self._fruitless = 1 if lasted_s >= ENOUGH_S else self._fruitless + 1
        # A watch that told something may end at any time; others must not spin.
        if self._fruitless > 1:
            await pause(self._clock, delay_after(self._fruitless, self._luck))
        try:
            await self.open()
        except UnavailableError:
            if self._fruitless >= ATTEMPTS:
                raise

    def _understand(self, lines: Sequence[bytes]) -> list[Happening]:
        happenings = []
        for line in lines:
            try:
                happening = self._read(line)
            except msgspec.DecodeError as error:
                # Something between us and the server put this there. Ask again from before it.
                logger.warning("watching %s: %s; resuming", self._call.key.kind, error)
                self.close()
                break
            if happening.type == "ERROR":
                self._refused(happening)
                break
            self.version = max(self.version, happening.version)
            happenings.append(happening)
        return happenings

    def _refused(self, happening: Happening) -> None:
        """The server ends the watch and says why."""
        status = read_status(500, happening.raw)
        error = error_of(status, self._call.key, version=self.version)
        if isinstance(error, ExpiredError):
            raise error
        logger.info("watching %s: ended by the server: %s", self._call.key.kind, error)
        self.close()
