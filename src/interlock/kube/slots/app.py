"""The extender's HTTP application: one address for each verb, and one that says it is there.

Who asks is not checked, for a scheduler does not say: an answer follows from pods as the API server
has them, and nobody gets more by asking than the pods in question asked for themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from interlock.errors import BadRequestError
from interlock.kube.answering import Receive, Scope, Send, read_body, send_answer, send_text
from interlock.kube.slots.extender import Extender
from interlock.kube.slots.protocol import (
    MAX_BODY_BYTES,
    encode,
    read_filter,
    read_preemption,
)

PREFIX = "/extender"
FILTER, PREEMPT = "filter", "preempt"
_LOG = logging.getLogger("interlock.slots")


class ExtenderApp:
    """Answers a scheduler's questions about pods and slots."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender
        self._verbs: dict[str, Callable[[bytes], Awaitable[bytes]]] = {
            f"{PREFIX}/{FILTER}": self._filter,
            f"{PREFIX}/{PREEMPT}": self._preempt,
        }

    def stop(self) -> None:
        """End what goes on; no answer here does."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        verb = self._verbs.get(scope["path"])
        if verb is None:
            await send_text(send, 404, "there is nothing here")
        elif scope["method"] != "POST":
            await send_text(send, 405, "a scheduler asks with POST")
        else:
            await self._answer(verb, receive, send)

    async def _answer(
        self, verb: Callable[[bytes], Awaitable[bytes]], receive: Receive, send: Send
    ) -> None:
        try:
            answer = await verb(await read_body(receive, MAX_BODY_BYTES))
        except BadRequestError as error:
            await send_text(send, 400, str(error))
            return
        except Exception:
            _LOG.exception("a scheduler's question could not be answered")
            await send_text(send, 500, "an internal error occurred")
            return
        await send_answer(send, 200, answer)

    async def _filter(self, body: bytes) -> bytes:
        return encode(await self._extender.filter(read_filter(body)))

    async def _preempt(self, body: bytes) -> bytes:
        return encode(await self._extender.preempt(read_preemption(body)))
