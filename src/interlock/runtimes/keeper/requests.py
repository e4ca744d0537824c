"""Request handling of the keeper: what servers ask, answered once it is durable."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, assert_never

from interlock.resources.tasks import TaskId
from interlock.runtimes.keeper.connections import Connection, Connections
from interlock.runtimes.keeper.journal import Failure
from interlock.runtimes.keeper.moments import wall_clock
from interlock.runtimes.keeper.orders import ProcessOrder
from interlock.runtimes.keeper.protocol import (
    ABILITIES,
    PROTOCOL,
    Done,
    Forget,
    Hello,
    Launch,
    Leave,
    Refusal,
    Refused,
    Request,
    Stop,
    StopOrder,
    Tell,
    batches,
)
from interlock.runtimes.keeper.records import Forgot, Intended, StopAsked, TookOver

if TYPE_CHECKING:
    from interlock.runtimes.keeper.loop import Keeper


class Requests:
    """Turns requests into records, and durable records into deeds."""

    def __init__(self, keeper: Keeper, connections: Connections) -> None:
        self._keeper = keeper
        self._connections = connections
        self._ledger = keeper.ledger
        self._journal = keeper.journal
        #: Serial numbers are given out before the records that carry them are durable.
        self._next_serial = self._ledger.next_serial
        self._term = self._ledger.term
        #: Launches that are on their way to the disk.
        self._pending: set[TaskId] = set()

    def handle(self, connection: Connection, request: Request) -> None:
        """Carry out one request, or refuse it."""
        if isinstance(request, Hello):
            self._hello(connection, request)
        elif connection.fenced:
            message = f"a newer server with term {self._term} has taken over"
            connection.send(Refused(request.seq, Refusal.FENCED, message))
        elif connection.term is None:
            connection.send(Refused(request.seq, Refusal.UNAVAILABLE, "say hello first"))
        else:
            self._serve(connection, request)

    def _serve(
        self, connection: Connection, request: Launch | Stop | Forget | Tell | Leave
    ) -> None:
        match request:
            case Launch():
                self._launch(connection, request)
            case Stop():
                self._stop(connection, request)
            case Forget():
                self._forget(connection, request)
            case Tell(seq):
                for told in batches(self._ledger.reports(), seq):
                    connection.send(told)
            case Leave(seq):
                self._keeper.leaving = True
                connection.send(Done(seq))
            case _:
                assert_never(request)

    def _hello(self, connection: Connection, hello: Hello) -> None:
        if hello.protocol != PROTOCOL:
            message = f"the keeper speaks protocol {PROTOCOL}, the server {hello.protocol}"
            self._keeper.leaving = True
            connection.send(Refused(hello.seq, Refusal.UNAVAILABLE, message))
            return
        if hello.term < self._term:
            message = f"a newer server has taken over: its term is {self._term}, not {hello.term}"
            connection.send(Refused(hello.seq, Refusal.FENCED, message))
            return
        # At once, and not when it is durable: nothing of an older server is taken in from here on.
        self._term = hello.term
        for other in self._connections.open.values():
            other.fenced = other.fenced or (other.term is not None and other.term < hello.term)
        self._keeper.leaving = False
        record = TookOver(hello.term, hello.working_dir, hello.env, hello.umask)

        def then() -> None:
            self._ledger.apply(record)
            connection.term = hello.term
            connection.fenced = hello.term < self._term
            connection.send(Done(hello.seq, os.getpid(), ABILITIES))

        self._journal.append(record, then, self._refusal(connection, hello.seq))

    def _launch(self, connection: Connection, request: Launch) -> None:
        fresh = [
            order
            for order in {order.id: order for order in request.orders}.values()
            if not self._ledger.is_settled(order.id) and order.id not in self._pending
        ]
        record = self._intended(fresh, request) if fresh else None
        self._next_serial += len(fresh)
        self._pending.update(order.id for order in fresh)
        refuse = self._refusal(connection, request.seq)

        def then() -> None:
            if record is not None:
                self._ledger.apply(record)
                self._accepted(record)
            connection.send(Done(request.seq))

        def failed(error: OSError) -> None:
            self._pending.difference_update(order.id for order in fresh)
            refuse(error)

        self._journal.append(record, then, failed)

    def _intended(self, fresh: list[ProcessOrder], request: Launch) -> Intended:
        given = {request.orders[at].id: probe for at, probe in request.probes.items()}
        probes = {at: given[order.id] for at, order in enumerate(fresh) if order.id in given}
        return Intended(self._next_serial, tuple(fresh), probes)

    def _accepted(self, record: Intended) -> None:
        for serial, order in enumerate(record.orders, record.first_serial):
            self._pending.discard(order.id)
            if serial in self._ledger.open:
                self._keeper.starter.add(serial)
            elif serial in self._ledger.by_serial:
                self._keeper.changed(self._ledger.by_serial[serial])

    def _stop(self, connection: Connection, request: Stop) -> None:
        refuse = self._refusal(connection, request.seq)
        held = self._keeper.starter.held

        def then() -> None:
            connection.send(Done(request.seq))

        for order in request.stops:
            held.add(order.task)
            self._stop_one(order)
        self._journal.append(None, then, refuse)

    def _stop_one(self, order: StopOrder) -> None:
        entry = self._ledger.entries.get(order.task)
        if entry is not None and entry.serial not in self._ledger.open:
            # What is over stays as it is. Servers that come back ask for it again and again.
            self._keeper.starter.held.discard(order.task)
            self._keeper.stop(entry)
            return
        record = StopAsked(
            order.task,
            order.grace_s,
            wall_clock(),
            self._next_serial,
            order.namespace,
            order.job,
        )
        self._next_serial += 1

        def then() -> None:
            self._ledger.apply(record)
            self._keeper.starter.held.discard(order.task)
            self._keeper.stop(self._ledger.entries[order.task])

        def failed(_: OSError) -> None:
            self._keeper.starter.held.discard(order.task)

        self._journal.append(record, then, failed)

    def _forget(self, connection: Connection, request: Forget) -> None:
        over = tuple(
            task
            for task in request.tasks
            if (entry := self._ledger.entries.get(task)) is not None
            and entry.serial not in self._ledger.open
        )
        record = Forgot(over) if over else None

        def then() -> None:
            if record is not None:
                self._ledger.apply(record)
            connection.send(Done(request.seq))

        self._journal.append(record, then, self._refusal(connection, request.seq))

    def _refusal(self, connection: Connection, seq: int) -> Failure:
        def refuse(error: OSError) -> None:
            message = f"the keeper's journal cannot be written: {error.strerror}"
            connection.send(Refused(seq, Refusal.UNAVAILABLE, message))

        return refuse
