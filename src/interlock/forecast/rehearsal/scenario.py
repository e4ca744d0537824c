"""The nouns of a scenario: what a person writes into the file.

Moments are texts here: they may be counted from the start, and are read by `reading`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import field

from interlock.resources.metadata import Noun
from interlock.resources.ready_gate import WaitForPodsReady
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration, parse_duration

#: What `lasts` says of work that does not end by itself.
FOREVER = "forever"
#: What `probeAfter` says of work that does not get ready by itself.
NEVER = "never"


Capacities = dict[str, Amount]


class RunsIn(StrEnum):
    """Where work would run."""

    #: On the machine of the server: processes.
    EMBEDDED = "embedded"
    #: In a Kubernetes cluster: pods and batch Jobs.
    CLUSTER = "cluster"


class Settings(Noun):
    """The installation that is rehearsed."""

    mode: RunsIn = RunsIn.EMBEDDED
    #: The namespace of objects that name none.
    namespace: str = "default"
    #: The zone in which moments without a zone are read, and the history is shown.
    timezone: str = "UTC"
    #: How many tasks run at a time.
    max_tasks: int = 1000
    #: How many workers there are for Python steps; each does one thing at a time.
    workers: int = 1
    #: What holds for all Queues that do not say otherwise about being ready in time.
    wait_for_pods_ready: WaitForPodsReady | None = None
    #: How much the machine has of each resource, `tasks` too, whatever the quota of a Queue says.
    #: Of what is not named it has enough.
    capacity: Capacities | None = None
    #: The same for machines of which every task is on one: in the place of `capacity`.
    nodes: tuple[Capacities, ...] = ()

    @property
    def all_nodes(self) -> tuple[Capacities, ...]:
        """What has room for tasks; nothing where there is room for all."""
        return self.nodes if self.capacity is None else (self.capacity,)


class WorkMatch(Noun):
    """Which attempts a rule is for."""

    #: A pattern for the name of the Job: * stands for anything.
    name: str = "*"
    #: The number of the task, from 0.
    task: int | None = None
    #: A pattern for the name of a step: attempts that are of no step do not match.
    step: str | None = None
    #: Whether it is for what undoes a step, or for what runs one; both when it is not given.
    undo: bool | None = None
    #: The number of the attempt, from 0; of a step of that step, and of its undo by itself.
    attempt: int | None = None


class OnTerm(StrEnum):
    """What work does when it is told to stop."""

    #: End, `exitAfter` later.
    EXIT = "exit"
    #: Go on until it is killed at the end of its grace period.
    IGNORE = "ignore"


class FlapSpec(Noun):
    """A readiness probe that succeeds for a while and then does not, again and again."""

    ready: Duration
    unready: Duration


class WorkRule(Noun):
    """What some attempts do."""

    match: WorkMatch = WorkMatch()
    #: A duration from when it runs, or `forever`.
    lasts: str | None = None
    #: The exit code at its end.
    exit: int = 0
    #: It fails, with these words.
    fails: str | None = None
    #: What it returns, as any JSON: earlier steps to later ones.
    result: Any = None
    #: The worker that does it dies at its end.
    kills_worker: bool = False
    #: From its launch until it runs.
    ready_after: Duration = Duration()
    #: From when it runs until its readiness probe succeeds: a duration, or `never`. Without it that
    #: is at once.
    probe_after: str | None = None
    #: From then on it fails and succeeds in turns.
    flaps: FlapSpec | None = None
    on_term: OnTerm = OnTerm.EXIT
    #: From being told to stop to its end.
    exit_after: Duration = Duration()

    @property
    def lasts_s(self) -> float:
        """How long it lasts."""
        if self.lasts is None or self.lasts == FOREVER:
            return 1e9
        return parse_duration(self.lasts).total_seconds()

    @property
    def probe_after_s(self) -> float | None:
        """How long it takes from when it runs until it is ready, if that is told."""
        if self.probe_after is None:
            return None
        if self.probe_after == NEVER:
            return 1e9
        return parse_duration(self.probe_after).total_seconds()


class PatchSpec(Noun):
    """A change of part of an object."""

    #: Which: kind/name, or {kind, name, namespace}.
    object: Any
    #: A merge patch: null takes a field away.
    merge: dict[str, Any]


class OutageSpec(Noun):
    """How long nobody is in control."""

    lasts: Duration = field(name="for")


class FinishSpec(Noun):
    """A task that ends by itself now."""

    #: A pattern for the name of the Job.
    job: str
    #: The number of the task; all that run when it is not given.
    task: int | None = None
    exit: int = 0


class TurnSpec(Noun):
    """A task whose readiness probe begins to succeed, or to fail, now."""

    #: A pattern for the name of the Job.
    job: str
    #: The number of the task; all that run when it is not given.
    task: int | None = None


class LoseSpec(Noun):
    """A task whose fate becomes unknown now."""

    job: str
    task: int | None = None


class KillWorkerSpec(Noun):
    """A worker that dies now, and is there again a second later."""

    #: A pattern for the name of the Job that it works for.
    job: str = "*"


class HangWorkerSpec(Noun):
    """A worker that does nothing, and says nothing, for a while."""

    lasts: Duration = field(name="for")
    #: A pattern for the name of the Job that it works for.
    job: str = "*"


class SweepSpec(Noun):
    """A look through all operations for those that nobody looks at."""

    #: Only what was left alone for longer than this, beyond the delay that it waits for anyhow.
    older_than: Duration = Duration(minutes=10)
    #: Only operations on this target, or on one below it.
    target: str = ""


class EventSpec(Noun):
    """Something that happens at a moment: exactly one of the orders."""

    at: str
    #: A manifest, a list of them, or {file: PATH}.
    apply: Any = None
    #: kind/name, or {kind, name, namespace}.
    delete: Any = None
    patch: PatchSpec | None = None
    #: The words after `interlock`, as a list.
    verb: tuple[str, ...] | None = None
    #: The control plane is killed.
    crash: Any = None
    #: The control plane is started, or stopped and started again.
    restart: Any = None
    #: The control plane is away for a while.
    outage: OutageSpec | None = None
    #: The leader dies, and another control plane takes over once the lease has run out.
    failover: Any = None
    finish: FinishSpec | None = None
    lose: LoseSpec | None = None
    ready: TurnSpec | None = None
    unready: TurnSpec | None = None
    #: Bare, or {job}.
    kill_worker: KillWorkerSpec | None = None
    hang_worker: HangWorkerSpec | None = None
    #: Bare, or {olderThan, target}.
    sweep: SweepSpec | None = None
    #: Whether it is expected to be refused.
    fails: bool = False


class LineMatch(Noun):
    """Which lines of the history count; each text is a pattern."""

    kind: str = "*"
    namespace: str = "*"
    name: str = "*"
    event: str = "*"
    reason: str = "*"
    detail: str = "*"


class Bounds(Noun):
    """How many there may be."""

    at_least: int = 0
    at_most: int | None = None


class ExpectSpec(Noun):
    """Something that must be so: a value of an object, the states of an operation, or a number of
    lines of the history.
    """

    at: str | None = None
    #: The first moment, and the one that ends it.
    between: tuple[str, ...] | None = None
    end: bool | None = None
    #: kind/name, {kind, name, namespace}; a kind alone stands for {items: [...]}.
    object: Any = None
    path: str | None = None
    value: Any = None
    #: Whether the object is there at all.
    exists: bool | None = None
    #: Every state that an operation went through: a list, or a text with blanks between them.
    states: Any = None
    match: LineMatch | None = None
    #: A number, or {atLeast, atMost}.
    count: Any = None


class ScenarioSpec(Noun):
    """A whole file."""

    start: str
    end: str
    #: A line for people.
    title: str = ""
    settings: Settings = Settings()
    objects: tuple[Any, ...] = ()
    work: tuple[WorkRule, ...] = ()
    events: tuple[EventSpec, ...] = ()
    expect: tuple[ExpectSpec, ...] = ()
