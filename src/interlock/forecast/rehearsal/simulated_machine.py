"""A simulated machine that runs tasks: what its keeper has on record, and what really runs.

The two differ on purpose. Work goes on when the keeper is gone, ends unseen, ignores signals and
is slow to die. The checks look at what really runs (`lives`); the control planes only ever see
what the keeper has on record.

What a task does is written in its command, so that a script is all there is to know about a run:
``work 12.5 exits=1,0 deaf slow=3 unseen hangs=60 ready=5 flaps=20,2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from interlock.control.runtime import TaskStop
from interlock.forecast.rehearsal.simulated_loop import SimHandle, SimLoop
from interlock.resources.tasks import (
    ReportState,
    TaskId,
    TaskOrder,
    TaskReport,
    number_in_round,
    process_of,
)
from interlock.resources.work import PodWork, ProcessWork

SIGKILL, SIGTERM = 9, 15
#: Longer than any world lives.
NEVER_S = 1e9
_OVER = (ReportState.ENDED, ReportState.NOT_STARTED)


class Behaviour(Struct, frozen=True, kw_only=True):
    """What a task does, read from its command."""

    seconds: float = 1.0
    #: The exit code of each attempt; the last stands for all that follow.
    exits: tuple[int, ...] = (0,)
    #: It ignores SIGTERM.
    deaf: bool = False
    #: Seconds from the signal that ends it to its end.
    slow: float = 0.0
    #: Nobody sees it end.
    unseen: bool = False
    #: It cannot be started.
    broken: bool = False
    #: Seconds for which its start hangs: what its definition names does not answer.
    hangs: float = 0.0
    #: Seconds from its start until its probe succeeds; None for one that is ready when it runs.
    ready_after: float | None = None
    #: Seconds for which its probe succeeds and then does not, again and again; none: it stays so.
    flaps: tuple[float, float] | None = None

    def turns_after(self, ready: bool) -> float:
        """Seconds until its probe says something else, once it began to say this."""
        if self.flaps is None:
            return NEVER_S
        up_s, down_s = self.flaps
        return up_s if ready else down_s

    def exit_of(self, attempt: int) -> int:
        """The exit code of an attempt that is left alone."""
        return self.exits[min(attempt, len(self.exits) - 1)]


def read_behaviour(command: Sequence[str]) -> Behaviour:
    """Read what a command does; words that mean nothing here are passed over."""
    read: dict[str, object] = {}
    for word in command[1:]:
        name, _, value = word.partition("=")
        if name == "exits":
            read["exits"] = tuple(int(code) for code in value.split(","))
        elif name in ("slow", "hangs"):
            read[name] = float(value)
        elif name == "ready":
            read["ready_after"] = NEVER_S if value == "never" else float(value)
        elif name == "flaps":
            up, down = value.split(",")
            read["flaps"] = (float(up), float(down))
            read.setdefault("ready_after", 0.0)
        elif name in ("deaf", "unseen", "broken"):
            read[name] = True
        elif name.replace(".", "", 1).isdigit():
            read["seconds"] = float(name)
    return Behaviour(**read)  # type: ignore[arg-type]


class Life:
    """A process that really ran, from its start to its end, seen or not."""

    __slots__ = ("behaviour", "code", "ending", "order", "signal", "started_us", "stop_by_us")

    def __init__(self, order: TaskOrder, behaviour: Behaviour, started_us: int) -> None:
        self.order = order
        self.behaviour = behaviour
        self.started_us = started_us
        self.code: int | None = behaviour.exit_of(number_in_round(order.attempt))
        self.signal: int | None = None
        #: Its end, as far as it is settled now.
        self.ending: SimHandle | None = None
        self.stop_by_us: int | None = None


class Notes(Protocol):
    """Whoever writes down what happens on a machine."""

    def note(self, who: str, what: str, *about: str) -> None:
        """Write down that something happened."""
        ...


class Machine:
    """The keeper's records, the processes, and the connections of the control planes."""

    def __init__(self, loop: SimLoop, random: Random, notes: Notes, origin: datetime) -> None:
        self._loop = loop
        self._random = random
        self._notes = notes
        self._clock_origin = origin
        self.process = loop.start_process("machine")
        self.records: dict[TaskId, TaskReport] = {}
        self._orders: dict[TaskId, TaskOrder] = {}
        #: Attempts whose start hangs: they are not known to run, and may begin at any time.
        self._hanging: set[TaskId] = set()
        #: The highest attempt that was forgotten, per Job and task: none up to it starts again.
        self.forgotten: dict[tuple[str, int], int] = {}
        #: How forgotten attempts ended.
        self.pasts: dict[TaskId, TaskReport] = {}
        #: What really runs at this moment.
        self.lives: dict[TaskId, Life] = {}
        #: The newest term that was heard of; calls of older terms are refused.
        self.term = 0
        self.reachable = True
        self.listeners: dict[object, Callable[[Sequence[TaskReport]], None]] = {}
        self.started: list[Callable[[Life], None]] = []
        self.ended: list[Callable[[Life], None]] = []
        self.stopped: list[Callable[[TaskId], None]] = []
        #: Who asks the keeper at this moment.
        self.caller = ""
        #: How often the keeper was asked to do something.
        self.calls = 0
        #: How many processes were started; the number of each is its pid.
        self.starts = 0

    # What the keeper does when it is asked

    def launch(self, orders: Sequence[TaskOrder]) -> None:
        """Accept attempts that are not known, and start each a moment later."""
        self.calls += 1
        for order in orders:
            if order.id in self.records:
                self._note(order.id, f"was launched again by {self.caller}: it is known")
                continue
            self._orders[order.id] = order
            if self.was_forgotten(order.id):
                message = "was over and forgotten; it is not started again"
                known = replace(_report(order, ReportState.ENDED), message=message)
                self._record(self.pasts.get(order.id, known))
                continue
            self._accept(_report(order, ReportState.ACCEPTED))

    def stop(self, stops: Sequence[TaskStop]) -> None:
        """Stop attempts; one that is not known will never start."""
        self.calls += 1
        for stop in stops:
            self._note(stop.task, f"is to be stopped within {stop.grace_s:g} s: {self.caller}")
            for told in self.stopped:
                told(stop.task)
            record = self.records.get(stop.task)
            if record is None:
                self._record(self.pasts.get(stop.task) or self._tombstone(stop))
            elif stop.task in self._hanging:
                self._record(replace(record, stopped=True), quiet=True)
                self._later(self._behaviour_of(self._orders[stop.task]).slow, self._never, record)
            elif record.state is ReportState.ACCEPTED:
                self._never(record)
            elif record.state not in _OVER:
                # What is Unknown gets its signals all the same; nobody sees what comes of them.
                self._signal(stop.task, stop.grace_s)

    def forget(self, tasks: Sequence[TaskId]) -> None:
        """Drop records of attempts that are over, and keep that they were."""
        self.calls += 1
        for task in tasks:
            record = self.records.get(task)
            if record is not None and record.state not in (*_OVER, ReportState.UNKNOWN):
                continue
            self.records.pop(task, None)
            if record is not None and record.state in _OVER:
                self.pasts[task] = record
            self._note(task, "is forgotten")
            self._orders.pop(task, None)
            key = (task.job_uid, task.task)
            self.forgotten[key] = max(task.attempt, self.forgotten.get(key, -1))

    def was_forgotten(self, task: TaskId) -> bool:
        """Whether this attempt, or a later one of its task, was over and dropped."""
        return task.attempt <= self.forgotten.get((task.job_uid, task.task), -1)

    def _tombstone(self, stop: TaskStop) -> TaskReport:
        """An attempt that was stopped and is not known."""
        task = stop.task
        over = self.was_forgotten(task)
        return TaskReport(
            job_uid=task.job_uid,
            index=task.task,
            attempt=task.attempt,
            namespace=stop.namespace,
            job=stop.job,
            state=ReportState.ENDED if over else ReportState.NOT_STARTED,
            ended_at=self.now(),
            stopped=not over,
            message="was over and forgotten" if over else "stopped before it was launched",
        )

    def say(self, task: TaskId, **news: Any) -> None:
        """Have an attempt that runs say how far it is, whether it is ready, or what it returns."""
        record = self.records[task]
        assert record.state is ReportState.RUNNING, f"{task} does not run"
        self._record(replace(record, **news))

    def turn(self, task: TaskId, ready: bool) -> None:
        """Have the probe of an attempt that runs say that it is ready, or is not."""
        self.say(task, ready=ready, ready_at=self.now())

    def reports(self) -> list[TaskReport]:
        """All that is on record."""
        return list(self.records.values())

    # What happens to a machine

    def lose_keeper(self) -> None:
        """The keeper dies; what it started goes on, and the next keeper cannot prove its end."""
        self._notes.note("machine", "the keeper is killed and started again")
        for task, record in tuple(self.records.items()):
            if record.state is ReportState.RUNNING and self._random.random() < 0.7:
                self._record(replace(record, state=ReportState.UNKNOWN, message="keeper was lost"))
                if self._random.random() < 0.3:
                    self._later(self._random.uniform(5, 300), self._prove, task)

    def reboot(self) -> None:
        """Everything that ran is gone, and known to be gone."""
        self._notes.note("machine", "reboots")
        for task in tuple(self.lives):
            self._end_life(task, code=None, signal=SIGKILL)
        self._hanging.clear()
        for record in tuple(self.records.values()):
            if record.state is ReportState.ACCEPTED:
                self._record(replace(record, state=ReportState.NOT_STARTED, message="rebooted"))
            elif record.state not in _OVER:
                self._record(
                    replace(
                        record,
                        state=ReportState.ENDED,
                        ended_at=self.now(),
                        message="the machine was restarted",
                    )
                )

    def finish(self, task: TaskId) -> None:
        """Have a process end by itself now."""
        self._exit(task)

    def set_reachable(self, reachable: bool) -> None:
        """Lose or find the machine; its work goes on."""
        if reachable != self.reachable:
            self._notes.note("machine", "is found again" if reachable else "is lost")
        self.reachable = reachable
        if reachable:
            self._tell(list(self.records.values()))

    def now(self) -> datetime:
        """The machine's own clock."""
        return self._clock_origin + timedelta(microseconds=self._loop.now_us)

    # Processes

    def _accept(self, accepted: TaskReport) -> None:
        """Take an attempt on record, and start it a moment later."""
        order = self._orders[accepted.id]
        self._record(accepted)
        self._later(self._delay_of(order), self._start, order)

    def _delay_of(self, order: TaskOrder) -> float:  # noqa: ARG002 (others may want to know)
        """Seconds until an accepted attempt starts."""
        return self._random.choice((0.0, 0.001, 0.05, 2.0))

    def _behaviour_of(self, order: TaskOrder) -> Behaviour:
        """What an attempt does."""
        return read_behaviour(process_of(order).command)

    def _start(self, order: TaskOrder) -> None:
        record = self.records.get(order.id)
        if record is None or record.state is not ReportState.ACCEPTED:
            return
        behaviour = self._behaviour_of(order)
        if behaviour.hangs and order.id not in self._hanging:
            self._hanging.add(order.id)
            self._record(replace(record, message="waits for what it names"))
            self._later(behaviour.hangs, self._start, order)
            return
        self._hanging.discard(order.id)
        if record.stopped:
            self._never(record)
            return
        if behaviour.broken:
            self._record(replace(record, state=ReportState.NOT_STARTED, message="no such program"))
            return
        life = Life(order, behaviour, self._loop.now_us)
        self.lives[order.id] = life
        self.starts += 1
        runs = replace(record, state=ReportState.RUNNING, started_at=self.now(), pid=self.starts)
        self._record(self._at_work(life, runs))
        for told in self.started:
            told(life)

    def _at_work(self, life: Life, runs: TaskReport) -> TaskReport:
        """Have a process do what it does from now on; what is known of it then."""
        order, behaviour = life.order, life.behaviour
        life.ending = self._later(behaviour.seconds, self._exit, order.id)
        after_s = _ready_after(order, behaviour)
        if after_s is None:
            return runs
        next_s = after_s or behaviour.turns_after(True)
        self._later(next_s, self._turns, life, after_s > 0)
        return replace(runs, ready=after_s == 0, ready_at=self.now())

    def _turns(self, life: Life, ready: bool) -> None:
        """The probe of an attempt says something else, if it runs still and anybody looks."""
        task = life.order.id
        if self.lives.get(task) is not life:
            return
        if self.records[task].state is ReportState.RUNNING:
            self.turn(task, ready)
        self._later(life.behaviour.turns_after(ready), self._turns, life, not ready)

    def _never(self, record: TaskReport) -> None:
        """An attempt was stopped before its program began, and is gone now."""
        self._hanging.discard(record.id)
        known = self.records.get(record.id)
        if known is not None and known.state is ReportState.ACCEPTED:
            over = ReportState.NOT_STARTED
            self._record(replace(record, state=over, stopped=True, message="stopped"))

    def _signal(self, task: TaskId, grace_s: float) -> None:
        life = self.lives.get(task)
        record = self.records[task]
        self._record(replace(record, stopped=True), quiet=True)
        if life is None:
            return
        kill_us = self._loop.now_us + int(grace_s * 1e6)
        if life.stop_by_us is not None and life.stop_by_us <= kill_us:
            return
        first = life.stop_by_us is None
        life.stop_by_us = kill_us
        if first and not life.behaviour.deaf:
            self._later(min(life.behaviour.slow, grace_s), self._die, task, SIGTERM)
        self._later(grace_s, self._die, task, SIGKILL)

    def _die(self, task: TaskId, signal: int) -> None:
        life = self.lives.get(task)
        if life is None:
            return
        if signal == SIGKILL and life.signal == SIGKILL:
            return
        life.code, life.signal = None, signal
        if life.ending is not None:
            life.ending.cancel()
        delay = life.behaviour.slow if signal == SIGKILL else 0.0
        life.ending = self._later(delay, self._exit, task)

    def _exit(self, task: TaskId) -> None:
        life = self.lives.get(task)
        if life is None:
            return
        self._end_life(task, life.code, life.signal)
        record = self.records.get(task)
        if record is None or record.state is not ReportState.RUNNING:
            return
        if life.behaviour.unseen:
            self._record(replace(record, state=ReportState.UNKNOWN, message="nobody saw it end"))
        else:
            self._record(self._end_of(record, life))

    def _end_of(self, record: TaskReport, life: Life) -> TaskReport:
        """What is told of an attempt that ended by itself, or because it was told to."""
        return _ended(record, life, self.now())

    def _end_life(self, task: TaskId, code: int | None, signal: int | None) -> None:
        life = self.lives.pop(task)
        life.code, life.signal = code, signal
        if life.ending is not None:
            life.ending.cancel()
        for told in self.ended:
            told(life)

    def _prove(self, task: TaskId) -> None:
        """What became of an attempt is found out after all."""
        record = self.records.get(task)
        if record is None or record.state is not ReportState.UNKNOWN:
            return
        if task in self.lives:
            self._record(replace(record, state=ReportState.RUNNING, message=""))
        else:
            self._record(
                replace(record, state=ReportState.ENDED, ended_at=self.now(), message="is gone")
            )

    def _record(self, report: TaskReport, *, quiet: bool = False) -> None:
        self.records[report.id] = report
        if not quiet:
            how = f" {report.message}" if report.message else ""
            code = f" exit {report.exit_code}" if report.exit_code is not None else ""
            self._note(report.id, f"{report.state}{code}{how}")
        self._tell([report])

    def _tell(self, reports: list[TaskReport]) -> None:
        if self.reachable and reports:
            for listener in tuple(self.listeners.values()):
                listener(reports)

    def _later(self, seconds: float, callback: Callable[..., None], *args: object) -> SimHandle:
        context = self.process.context.copy()
        return self._loop.call_later(seconds, callback, *args, context=context)

    def _note(self, task: TaskId, what: str) -> None:
        order = self._orders.get(task)
        name = order.job if order else task.job_uid[:8]
        self._notes.note("machine", f"{name}-{task.task}-{task.attempt} {what}", name)


def _report(order: TaskOrder, state: ReportState) -> TaskReport:
    return TaskReport(
        job_uid=order.job_uid,
        index=order.index,
        attempt=order.attempt,
        namespace=order.namespace,
        job=order.job,
        state=state,
        job_version=order.job_version,
    )


def _ready_after(order: TaskOrder, behaviour: Behaviour) -> float | None:
    """Seconds until work is ready; None where nobody tells that apart from running.

    Of a pod its kubelet always tells. A probe of which a script says nothing succeeds at once.
    """
    if behaviour.ready_after is not None:
        return behaviour.ready_after
    work = order.work
    is_told = isinstance(work, PodWork) or (
        isinstance(work, ProcessWork) and work.readiness_probe is not None
    )
    return 0.0 if is_told else None


def _ended(record: TaskReport, life: Life, now: datetime) -> TaskReport:
    return replace(
        record,
        state=ReportState.ENDED,
        ended_at=now,
        exit_code=life.code,
        signal=life.signal,
        ready=None,
        ready_at=None,
    )
