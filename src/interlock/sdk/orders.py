"""Orders: what a person may do about Jobs and schedules, once for both clients.

The rules are in `interlock.commands`: our own server applies them, and for a cluster they are
applied here, with the rights of whoever asks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar

from msgspec import Struct

from interlock.client.api import Api
from interlock.client.cluster.ordering import carry_out
from interlock.client.errors import CommandError
from interlock.client.http_client import quote
from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind, parse_name
from interlock.client.ordering import Place
from interlock.client.outcomes import execution_of, has_ended
from interlock.commands.exceptions import Extending, Holding, Skipping
from interlock.commands.jobs import Releasing, Requeuing, Retrying, Stopping
from interlock.commands.manual_runs import Restarting, Starting
from interlock.commands.on_demand import Running, Switching
from interlock.commands.operations import Operating, Outcome, Resolving
from interlock.commands.suspension import Resuming, Suspending
from interlock.errors import InvalidError
from interlock.private_files import user_name
from interlock.resources.codec import encode
from interlock.resources.door.validation import read_noun
from interlock.resources.job import OPERATE_FOR_ANNOTATION, WhenTaken
from interlock.resources.metadata import Noun
from interlock.resources.values.durations import Duration
from interlock.sdk.asking import Site, ask_json, find_cluster
from interlock.sdk.effects import Call, Plan, Tick, Work
from interlock.sdk.errors import BadInput, Refused, error_of
from interlock.sdk.record import JobRecord, record_of
from interlock.sdk.waiting import next_change

#: Orders about operations, and how long it may take until one of them is taken up.
_OPERATING = frozenset({"go-forward", "roll-back", "resolve"})
_TAKEN_UP_S = 10.0
#: What an order comes to: `Ordered`, or that to be awaited.
D = TypeVar("D", covariant=True)


class Ordered(Struct, frozen=True, kw_only=True):
    """What came of an order."""

    #: What was done, for people; may be several lines.
    message: str
    #: The object as it is stored now: the one that was changed or made, or that needed no change.
    object: dict[str, Any]
    #: Other objects that were changed.
    also: tuple[dict[str, Any], ...] = ()
    #: What does not come of it although it was asked for.
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of what was changed or made."""
        return str(self.object["metadata"]["name"])


def order(site: Site, kind: Kind, namespace: str, name: str, verb: str, how: Noun) -> Plan[Ordered]:
    """Give an order; one that may have been carried out is not given again.

    Of one about an operation the outcome is waited for: whoever waits for the operation next is not
    to be told what it was before.
    """
    ordered = yield from _given(site, kind, namespace, name, verb, how)
    if verb in _OPERATING:
        yield from _taken_up(site, ordered.object)
    return ordered


def _taken_up(site: Site, item: dict[str, Any]) -> Plan[None]:
    """Wait until an order about an operation was taken up; a controller may be away for long."""
    asked = (item["metadata"].get("annotations") or {}).get(OPERATE_FOR_ANNOTATION)
    begun: float = yield Tick()
    now = begun
    try:
        while asked is not None and _interventions(item) <= int(asked) and not has_ended(item):
            left_s = begun + _TAKEN_UP_S - now
            if left_s <= 0:
                return
            version = item["metadata"]["resourceVersion"]
            item = yield from next_change(site, item, version, left_s)
            now = yield Tick()
    except Refused:
        return  # It is gone, or what happened in between is not told any more.


def _interventions(item: dict[str, Any]) -> int:
    operation = execution_of(item).get("operation") or {}
    return int(operation.get("interventions") or 0)


def _given(
    site: Site, kind: Kind, namespace: str, name: str, verb: str, how: Noun
) -> Plan[Ordered]:
    if (yield from find_cluster(site)):
        done: Ordered = yield Work(lambda api: _carried_out(api, kind, namespace, name, verb, how))
        return done
    path = f"/{kind.plural}/{quote(namespace)}/{quote(name)}/{verb}"
    call = Call(method="POST", path=path, body=encode(how), repeatable=False)
    answer = yield from ask_json(site, call)
    return Ordered(
        message=answer["message"],
        object=answer["object"],
        also=tuple(answer.get("also") or ()),
        warnings=tuple(answer.get("warnings") or ()),
    )


def _carried_out(api: Api, kind: Kind, namespace: str, name: str, verb: str, how: Noun) -> Ordered:
    import os

    try:
        good = read_noun(encode(how), type(how), verb)
    except InvalidError as error:
        raise BadInput("; ".join(map(str, error.problems))) from None
    place = Place(api, namespace, user_name(os.geteuid()), on_cluster=True)
    carried = carry_out(place, kind, name, verb, good)
    first, *rest = carried.items
    return Ordered(
        message="\n".join(carried.lines),
        object=first,
        also=tuple(rest),
        warnings=carried.warnings,
    )


def named(word: str, *kinds: Kind) -> tuple[Kind, str]:
    """What NAME or KIND/NAME names; NAME is of the first kind."""
    try:
        return parse_name(word, *kinds)
    except CommandError as error:
        raise error_of(error) from None


class Orders(Generic[D]):
    """The orders. What is named is NAME, or KIND/NAME where several kinds take the order.

    All raise `NotFound`, `Conflict` when it is not in the state that the order needs, `Invalid`
    when an option is not good, and `Forbidden`.
    """

    @abstractmethod
    def give(self, kind: Kind, name: str, verb: str, how: Noun, namespace: str | None) -> D:
        """Give one order."""

    def _give(self, verb: str, word: str, how: Noun, namespace: str | None, *kinds: Kind) -> D:
        kind, name = named(word, *kinds)
        return self.give(kind, name, verb, how, namespace)

    # Jobs

    def stop(self, name: str, *, reason: str = "", namespace: str | None = None) -> D:
        """End a Job gracefully, or the Jobs of a `controlledjob/NAME` until its next window."""
        how = Stopping(reason=reason)
        return self._give("stop", name, how, namespace, JOBS, CONTROLLED_JOBS)

    def kill(self, name: str, *, reason: str = "", namespace: str | None = None) -> D:
        """End a Job at once."""
        return self._give("kill", name, Stopping(reason=reason), namespace, JOBS)

    def retry(self, name: str, *, namespace: str | None = None) -> D:
        """Run a Job that is over again, as a new Job, whose name the answer has."""
        return self._give("retry", name, Retrying(), namespace, JOBS)

    def requeue(self, name: str, *, reason: str, namespace: str | None = None) -> D:
        """Put a Job back: it is stopped, gives everything back, and waits again."""
        return self._give("requeue", name, Requeuing(reason=reason), namespace, JOBS)

    def release(self, name: str, *, reason: str, namespace: str | None = None) -> D:
        """Say that the tasks of a Job whose fate is unknown are gone: it ends."""
        return self._give("release", name, Releasing(reason=reason), namespace, JOBS)

    # Operations

    def go_forward(self, name: str, *, reason: str, namespace: str | None = None) -> D:
        """Have a stuck operation tried again, with all its retries."""
        return self._give("go-forward", name, Operating(reason=reason), namespace, JOBS)

    def roll_back(self, name: str, *, reason: str, namespace: str | None = None) -> D:
        """Have what was done of an operation undone."""
        return self._give("roll-back", name, Operating(reason=reason), namespace, JOBS)

    def resolve(
        self,
        name: str,
        *,
        reason: str,
        outcome: Outcome | str = Outcome.FAILED,
        namespace: str | None = None,
    ) -> D:
        """Say what a stuck operation came to, `succeeded` or `failed`: it is over."""
        try:
            how = Resolving(reason=reason, outcome=Outcome(outcome))
        except ValueError:
            known = " or ".join(one.value for one in Outcome)
            raise BadInput(f"outcome: expected {known}, found {outcome!r}") from None
        return self._give("resolve", name, how, namespace, JOBS)

    def let_go(self, name: str, *, reason: str, namespace: str | None = None) -> D:
        """Let a stuck operation go once it is deleted, whatever it left."""
        return self._give("let-go", name, Operating(reason=reason), namespace, JOBS)

    # Schedules

    def suspend(self, name: str, *, reason: str = "", namespace: str | None = None) -> D:
        """Hold back a Job, a `jobconfig/NAME` or a `controlledjob/NAME`."""
        how = Suspending(reason=reason)
        return self._give("suspend", name, how, namespace, JOBS, JOB_CONFIGS, CONTROLLED_JOBS)

    def resume(self, name: str, *, namespace: str | None = None) -> D:
        """Let what was suspended go on."""
        kinds = (JOBS, JOB_CONFIGS, CONTROLLED_JOBS)
        return self._give("resume", name, Resuming(), namespace, *kinds)

    def enable(self, name: str, *, schedule: int | None = None, namespace: str | None = None) -> D:
        """Switch schedules of a JobConfig on; all of them when none is named."""
        how = Switching(schedule=schedule)
        return self._give("enable", name, how, namespace, JOB_CONFIGS)

    def disable(self, name: str, *, schedule: int | None = None, namespace: str | None = None) -> D:
        """Switch schedules of a JobConfig off; all of them when none is named."""
        how = Switching(schedule=schedule)
        return self._give("disable", name, how, namespace, JOB_CONFIGS)

    def start(self, name: str, *, namespace: str | None = None) -> D:
        """Start the Job of a ControlledJob by hand, unless one runs."""
        return self._give("start", name, Starting(), namespace, CONTROLLED_JOBS)

    def restart(self, name: str, *, reason: str = "", namespace: str | None = None) -> D:
        """Stop the Job of a ControlledJob and start the next."""
        return self._give("restart", name, Restarting(reason=reason), namespace, CONTROLLED_JOBS)

    def skip(
        self,
        name: str,
        *,
        when: str = "",
        count: int | None = None,
        cancel: bool = False,
        reason: str = "",
        namespace: str | None = None,
    ) -> D:
        """Leave out a start of a ControlledJob, or several."""
        how = Skipping(when=when, count=count, cancel=cancel, reason=reason)
        return self._give("skip", name, how, namespace, CONTROLLED_JOBS)

    def extend(
        self,
        name: str,
        *,
        until: str | None = None,
        by: timedelta | None = None,
        cancel: bool = False,
        reason: str = "",
        namespace: str | None = None,
    ) -> D:
        """Let a ControlledJob run longer than its plan says, once."""
        how = Extending(until=until, by=length_of(by), cancel=cancel, reason=reason)
        return self._give("extend", name, how, namespace, CONTROLLED_JOBS)

    def hold(
        self,
        name: str,
        *,
        until: str | None = None,
        lasts: timedelta | None = None,
        cancel: bool = False,
        reason: str = "",
        namespace: str | None = None,
    ) -> D:
        """Let nothing of a ControlledJob run until a moment."""
        how = Holding(until=until, lasts=length_of(lasts), cancel=cancel, reason=reason)
        return self._give("hold", name, how, namespace, CONTROLLED_JOBS)


def length_of(time: timedelta | None) -> Duration | None:
    """A length of time as it is sent, in whole seconds."""
    return None if time is None else Duration(seconds=int(time.total_seconds()))


def running(
    name: str,
    options: Mapping[str, Any] | None,
    substitutions: Mapping[str, str] | None,
    at: str | None,
    after: timedelta | None,
    policy: str | None,
) -> Running:
    """How a JobConfig is run."""
    try:
        taken = None if policy is None else WhenTaken(policy)
    except ValueError:
        known = ", ".join(one.value for one in WhenTaken)
        raise BadInput(f"policy: expected one of {known}, found {policy!r}") from None
    return Running(
        name=name,
        options=dict(options or {}),
        substitutions=dict(substitutions or {}),
        at=at,
        after=length_of(after),
        policy=taken,
    )


def record_made(ordered: Ordered) -> JobRecord:
    """The record of the Job that an order made."""
    return record_of(ordered.object)
