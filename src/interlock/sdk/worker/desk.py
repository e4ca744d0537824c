"""The worker's books: attempts at work, results that are not known to be durable, what to send.

It knows no network, thread or clock: messages are told to it and taken from it. A result is kept
until the server has said that it is recorded, or that it does not count; after every broken
connection all of them are offered anew.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct

from interlock.resources.codec import encode as encode_noun
from interlock.resources.tasks import number_in_round
from interlock.resources.work import PythonCall
from interlock.runtimes.workers.protocol import (
    MAX_FRAME,
    PROTOCOL,
    Call,
    Cancel,
    Done,
    Drain,
    FromServer,
    FromWorker,
    Hello,
    Orders,
    Outcome,
    Ref,
    Touch,
    Touched,
    Welcome,
    Wrote,
)
from interlock.sdk.context import Context

if TYPE_CHECKING:
    from interlock.sdk.calling import Answer

#: What an attempt wrote and is not sent yet; beyond that lines are left out.
_MOST_UNSENT = 256 * 1024
#: What a result takes beside what it says.
_ENVELOPE = 256
_RETIRES = "this process takes nothing more, and ends once all else that it runs has"
_LEFT_OUT = "... lines were left out here: they came faster than they could be sent\n"


class WorkerIdentity(Struct, frozen=True, kw_only=True):
    """Who a worker says it is."""

    #: host/pid.
    name: str
    #: Made anew by every process.
    incarnation: str
    #: MODULE:APP.
    app: str
    functions: tuple[str, ...]
    queues: tuple[str, ...] = ()
    concurrency: int = 1


class Attempt:
    """An attempt at work. It takes in what its function says, from any thread."""

    def __init__(self, call: Call, changed: Callable[[], None]) -> None:
        self.call = call
        #: Whether it was told that it does not count.
        self.is_refused = False
        #: Whether nobody waits for its end any more: it goes on although it does not count.
        self.is_given_up = False
        #: Stops what is not asked to look at `ctx.cancelled` itself.
        self.on_cancel: Callable[[], object] = lambda: None
        self._changed = changed
        self._lock = Lock()
        self._unsent = ""
        self._percent: float | None = None
        self._text = ""
        self._progressed = False
        self.context = Context(
            step=call.step or call.job,
            job=call.job,
            namespace=call.namespace,
            target=call.target,
            creator=call.creator,
            attempt=number_in_round(call.ref.attempt) + 1,
            undoing=call.call is PythonCall.UNDO,
            results=call.results,
            fences=call.fences,
            sink=self,
        )

    @property
    def words(self) -> str:
        """What it does, for people."""
        if self.call.call is PythonCall.ELABORATE:
            return f"the steps of job {self.call.job}"
        undo = "undo of " if self.call.call is PythonCall.UNDO else ""
        return f"{undo}step {self.call.step} of job {self.call.job}"

    def report(self, percent: float, text: str) -> None:
        """Take in how far it is."""
        with self._lock:
            self._percent, self._text, self._progressed = percent, text, True
        self._changed()

    def log(self, text: str) -> None:
        """Take in lines."""
        with self._lock:
            if len(self._unsent) + len(text) <= _MOST_UNSENT:
                self._unsent += text
            elif not self._unsent.endswith(_LEFT_OUT):
                self._unsent += _LEFT_OUT
        self._changed()

    def cancel(self) -> None:
        """Tell its function to stop."""
        self.context.cancelled.set()
        self.on_cancel()

    def take_text(self) -> str:
        """What it wrote since the last time."""
        with self._lock:
            text, self._unsent = self._unsent, ""
        return text

    def take_progress(self) -> Touched:
        """That it goes on, and how far it is."""
        with self._lock:
            self._progressed = False
            return Touched(ref=self.call.ref, percent=self._percent, text=self._text)

    @property
    def progressed(self) -> bool:
        """Whether it said something of how far it is."""
        with self._lock:
            return self._progressed


def _most_bytes(outcome: Outcome) -> int:
    """As long as a result can be when it is sent: a character takes up to six bytes."""
    made = outcome.elaboration
    steps = 0 if made is None else len(encode_noun(made))
    return _ENVELOPE + steps + 6 * (len(outcome.returned) + len(outcome.error))


class Desk:
    """The books of one worker process. Everything but `Attempt` belongs to one thread."""

    def __init__(
        self,
        identity: WorkerIdentity,
        *,
        start: Callable[[Attempt], None],
        say: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
        refused: Callable[[Attempt], None] = lambda _: None,
        max_jobs: int = 0,
    ) -> None:
        self._identity = identity
        self._start = start
        self._say = say
        self._changed = changed
        #: Told of what is at work and does not count any more.
        self._refused = refused
        self._max_jobs = max_jobs
        self._jobs: set[str] = set()
        self.touch_every_s = 10.0
        self.at_work: dict[Ref, Attempt] = {}
        #: What came of attempts, and what is still to be sent of it.
        self._results: dict[Ref, tuple[Outcome, str]] = {}
        self._unsent: dict[Ref, None] = {}
        self._texts: list[Wrote] = []
        #: How many orders were read on this connection.
        self._read = 0
        self.is_draining = False
        self._drain_told = False

    # What is told to the server

    def hello(self) -> Hello:
        """Who comes."""
        known = self._identity
        counting = [ref for ref, attempt in self.at_work.items() if not attempt.is_refused]
        return Hello(
            protocol=PROTOCOL,
            worker=known.name,
            incarnation=known.incarnation,
            app=known.app,
            functions=known.functions,
            queues=known.queues,
            concurrency=known.concurrency,
            held=(*counting, *self._results),
            lost=tuple(ref for ref, attempt in self.at_work.items() if attempt.is_refused),
        )

    def take(self, *, touch: bool = False) -> list[FromWorker]:
        """Everything that is to be sent now, in its order."""
        told: list[FromWorker] = [*self._texts]
        self._texts = []
        for ref, attempt in self.at_work.items():
            text = "" if attempt.is_refused else attempt.take_text()
            if text:
                told.append(Wrote(ref=ref, text=text))
        told += self._done()
        if self.is_draining and not self._drain_told:
            self._drain_told = True
            told.append(Drain())
        at_work = self.at_work.values()
        if touch:
            items = tuple(one.take_progress() for one in at_work)
            told.append(Touch(items=items, read=self._read))
        elif any(one.progressed for one in at_work):
            moved = (one.take_progress() for one in at_work if one.progressed)
            told.append(Touch(items=tuple(moved), partial=True))
        return told

    def _done(self) -> list[Done]:
        """The results that are to be sent, as many in a message as one may hold."""
        parts: list[list[Outcome]] = []
        room = 0
        for ref in self._unsent:
            outcome, _ = self._results[ref]
            length = _most_bytes(outcome)
            if length > room:
                parts.append([])
                room = MAX_FRAME // 2
            parts[-1].append(outcome)
            room -= length
        self._unsent = {}
        return [Done(items=tuple(part)) for part in parts]

    # What the server says

    def connected(self, welcome: Welcome) -> None:
        """A connection is there: what was not recorded is offered anew."""
        self.touch_every_s = welcome.touch_every_s
        self._unsent = dict.fromkeys(self._results)
        self._drain_told = False
        self._read = 0

    def read(self, message: FromServer) -> None:
        """Take in what the server says."""
        if isinstance(message, Welcome):
            self.touch_every_s = message.touch_every_s
        elif isinstance(message, Cancel):
            for ref in message.items:
                attempt = self.at_work.get(ref)
                if attempt is not None:
                    attempt.cancel()
        else:
            self._read_orders(message)

    def _read_orders(self, orders: Orders) -> None:
        self._read += 1
        for ref in orders.recorded:
            self._forget(ref)
        for ref, why in orders.refused:
            self._refuse(ref, why)
        for call in orders.calls:
            self._take_on(call)

    def _take_on(self, call: Call) -> None:
        if call.ref in self.at_work:
            return
        if call.ref in self._results:
            self._unsent[call.ref] = None
            return
        self._jobs.add(call.ref.job_uid)
        attempt = Attempt(call, self._changed)
        self.at_work[call.ref] = attempt
        self._start(attempt)
        if self._max_jobs and len(self._jobs) >= self._max_jobs:
            self.drain()

    def _refuse(self, ref: Ref, why: str) -> None:
        attempt = self.at_work.get(ref)
        if attempt is not None:
            if not attempt.is_refused:
                self._say(f"result of {attempt.words} does not count: {why}")
                attempt.cancel()
                attempt.is_refused = True
                self._refused(attempt)
            return
        if ref in self._results:
            _, words = self._results[ref]
            self._say(f"result of {words} does not count: {why}")
            self._forget(ref)

    def _forget(self, ref: Ref) -> None:
        self._results.pop(ref, None)
        self._unsent.pop(ref, None)

    # What becomes of attempts

    def finished(self, attempt: Attempt, answer: Answer | None, error: str = "") -> None:
        """An attempt is over: it returned, or failed."""
        ref = attempt.call.ref
        del self.at_work[ref]
        if attempt.is_refused:
            return
        text = attempt.take_text()
        if text:
            self._texts.append(Wrote(ref=ref, text=text))
        outcome = Outcome(
            ref=ref,
            returned="" if answer is None else answer.returned,
            elaboration=None if answer is None else answer.elaboration,
            error=error,
        )
        self._results[ref] = (outcome, attempt.words)
        self._unsent[ref] = None

    def give_up(self, attempt: Attempt) -> bool:
        """Wait no more for what does not count, if it goes on: it ends with the process.

        Nothing more is taken, so that this comes soon. Returns whether it goes on.
        """
        if self.at_work.get(attempt.call.ref) is not attempt:
            return False
        self._say(f"{attempt.words} goes on although it counts for nothing: {_RETIRES}")
        attempt.is_given_up = True
        self.drain()
        return True

    def drain(self) -> None:
        """Take nothing more; what is at work ends."""
        self.is_draining = True
        self._changed()

    def cancel_all(self) -> None:
        """Tell everything at work to stop."""
        for attempt in tuple(self.at_work.values()):
            attempt.cancel()

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be done, and nothing to be told."""
        if not self.is_draining or self._results:
            return False
        return all(attempt.is_given_up for attempt in self.at_work.values())

    @property
    def left(self) -> list[str]:
        """What is at work, and what is not known to be recorded, for people."""
        return [
            *(one.words for one in self.at_work.values() if not one.is_refused),
            *(f"the result of {words}" for _, words in self._results.values()),
        ]
