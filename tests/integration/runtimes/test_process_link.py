"""What a server hears of its keeper: in the order in which it became true, on any machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from interlock.resources.tasks import ReportState, TaskReport
from interlock.runtimes.keeper.connections import listen
from interlock.runtimes.keeper.protocol import Done, Frames, Hello, Request, Tell, Told, frame
from interlock.runtimes.processes import ProcessRuntime
from interlock.testing.serving import PATIENCE_S

BEFORE = TaskReport(
    job_uid="uid", index=0, attempt=0, namespace="default", job="lost", state=ReportState.RUNNING
)
AFTER = TaskReport(
    job_uid="uid", index=0, attempt=0, namespace="default", job="lost", state=ReportState.UNKNOWN
)


class ScriptedKeeper:
    """Speaks a keeper's protocol: all that it knows is that a task runs, and then that is news.

    Both go out in one piece, as from a keeper whose task is lost while a server asks.
    """

    def __init__(self) -> None:
        self._talking: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one server until it leaves."""
        self._talking = writer
        frames = Frames(Request)
        while data := await reader.read(1 << 16):
            for request in frames.feed(data):
                writer.write(self._answer(request))
        writer.close()

    def hang_up(self) -> None:
        """End the connection, as a keeper that dies."""
        assert self._talking is not None, "nobody is connected"
        self._talking.close()

    def _answer(self, request: Request) -> bytes:
        match request:
            case Hello(seq):
                return frame(Done(seq, 1))
            case Tell(seq):
                return frame(Told(seq, (BEFORE,))) + frame(Told(0, (AFTER,)))
            case _:
                return frame(Done(request.seq))


def test_what_a_keeper_knew_is_not_heard_after_its_news(tmp_path: Path) -> None:
    """Else a task that is lost while a server connects again runs for ever in its eyes."""

    async def scene() -> list[ReportState]:
        keeper, heard = ScriptedKeeper(), list[ReportState]()
        both = asyncio.Event()

        def hear(reports: Sequence[TaskReport]) -> None:
            heard.extend(report.state for report in reports)
            if len(heard) > 1:
                both.set()

        async with await asyncio.start_unix_server(keeper.serve, sock=listen(tmp_path)):
            runtime = await ProcessRuntime.connect(tmp_path, term=1)
            runtime.subscribe(hear)
            keeper.hang_up()
            async with asyncio.timeout(PATIENCE_S):
                await both.wait()
            await runtime.close()
        return heard

    assert asyncio.run(scene()) == [ReportState.RUNNING, ReportState.UNKNOWN]
