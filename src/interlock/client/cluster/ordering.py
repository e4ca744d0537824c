"""Orders on a cluster: read what is stored, have the command work out the change, write it.

The rules are in `interlock.commands`. Everything is done with the rights of whoever asks. Our own
server does the same by itself (`interlock.api.actions`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from msgspec import ValidationError
from msgspec.structs import replace

from interlock.client.errors import BAD_INPUT, AnswerError
from interlock.client.kinds import JOBS, Kind, kind_named
from interlock.client.moments import server_now
from interlock.client.ordering import Carried, Place, flag_told
from interlock.client.refusals import refusals
from interlock.client.schedules import noun_of
from interlock.commands.change import By, Change, Write, rebased
from interlock.commands.command import Command, command_for
from interlock.errors import InvalidError
from interlock.resources.codec import encode, from_builtins, to_builtins
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.validation import read_noun
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Noun, Resource
from interlock.resources.schedule import CONTROLLED_LABEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.client.ordering import Item
    from interlock.commands.controlled import ControlledView

#: How often an order is worked out anew because somebody else wrote meanwhile.
_TRIES = 10
#: These change fields of their own alone, so what a newer version wrote beside them is no obstacle.
_LENIENT = frozenset(
    {"stop", "kill", "requeue", "release", "suspend", "resume"}
    | {"go-forward", "roll-back", "resolve", "let-go"}
)


class Subject(NamedTuple):
    """What an order is about, as the command takes it, and everything that was read for it."""

    taken: Resource | ControlledView
    items: dict[str, Item]


def carry_out_given(
    where: Place, kind: Kind, name: str, order: str, how: Item, *, dry_run: bool = False
) -> Carried:
    """Give one resource an order, whose options are read first as a server reads them.

    Raises:
        AnswerError: It is refused; nothing was changed.
    """
    try:
        options = read_noun(encode(how), command_for(kind.name, order).options, order)
    except InvalidError as error:
        told = "\n".join(flag_told(one.path, one.message) for one in error.problems)
        raise AnswerError(422, {}, told, BAD_INPUT) from None
    return carry_out(where, kind, name, order, options, dry_run=dry_run)


def carry_out(
    where: Place, kind: Kind, name: str, order: str, how: Noun, *, dry_run: bool = False
) -> Carried:
    """Give one resource an order, and try again when somebody else was faster.

    Raises:
        AnswerError: It is refused; nothing was changed.
    """
    command = command_for(kind.name, order)
    for tried in range(_TRIES):
        subject = _read(where, command, kind, name, passed_over=tried)
        by = By(where.person, server_now(where.api))
        with refusals():
            change = command.order(subject.taken, how, by)
        try:
            first = _decide(where, change, subject, dry_run=dry_run)
        except AnswerError as error:
            if error.status == 422:
                _check_needless(where, command, kind, name, how, error)
            elif error.status != 409 or tried == _TRIES - 1 or _is_taken(command, error):
                raise
            continue
        # From here on the order is given, and is not given a second time.
        rest = [_follow_up(where, write, subject) for write in change.writes[1:]]
        return Carried(_lines(change, first), [first, *rest], change.warnings)
    raise AssertionError("the last try returns or raises")


def _is_taken(command: Command, error: AnswerError) -> bool:
    """Whether a name that was asked for is taken; a number that is taken has another after it."""
    return error.reason == "AlreadyExists" and not command.needs_view


def _lines(change: Change, first: Item) -> tuple[str, ...]:
    """What people are told; something new may have got its name only now."""
    written = change.writes[0].after if change.writes else change.shown
    assert written is not None, "a change is about something"
    metadata = replace(written.metadata, name=first["metadata"]["name"])
    return change.lines(replace(written, metadata=metadata))


def _check_needless(
    where: Place, command: Command, kind: Kind, name: str, how: Noun, error: AnswerError
) -> None:
    """Raise a refusal again, unless the resource needs no order any more: it may be over by now."""
    subject = _read(where, command, kind, name)
    with refusals():
        change = command.order(subject.taken, how, By(where.person, server_now(where.api)))
    if change.writes:
        raise error


def _read(
    where: Place, command: Command, kind: Kind, name: str, *, passed_over: int = 0
) -> Subject:
    """Read a resource and what goes with it."""
    from interlock.client.schedules import read_calendars
    from interlock.commands.controlled import ControlledView

    data = where.api.fetch("GET", kind.path(where.namespace, name))
    noun = _noun(kind, name, data, lenient=command.name in _LENIENT and not command.needs_view)
    items: dict[str, Item] = {noun.metadata.uid: json.loads(data)}
    if not command.needs_view:
        return Subject(noun, items)
    assert isinstance(noun, ControlledJob)
    jobs = []
    labels = f"{CONTROLLED_LABEL}={noun.metadata.name}"
    for page in where.api.pages(JOBS, where.namespace, labels=labels):
        for plain in page["items"]:
            item = {"apiVersion": JOBS.api_version, "kind": JOBS.name, **plain}
            items[item["metadata"]["uid"]] = item
            job = _noun(JOBS, item["metadata"]["name"], encode(item), lenient=True)
            assert isinstance(job, Job)
            jobs.append(job)
    calendars = tuple(read_calendars(where.api, noun))
    now = server_now(where.api)
    with refusals():
        return Subject(ControlledView(noun, calendars, jobs, now, passed_over=passed_over), items)


def _noun(kind: Kind, name: str, data: bytes, *, lenient: bool) -> Resource:
    """The resource that a server's answer tells of; leniently, without fields that are unknown."""
    if not lenient:
        return noun_of(kind, name, data)
    from interlock.kube.store.codec import WIRES

    try:
        return WIRES[kind.name].one(data)
    except ValidationError:
        from interlock.resources.door.reading import Reader

        reader = Reader(kind.name)
        known = reader.read(json.loads(data))
        if reader.problems:
            return noun_of(kind, name, data)
        made: Resource = from_builtins(known, KINDS[kind.name].type)
        return made


def _decide(where: Place, change: Change, subject: Subject, *, dry_run: bool) -> Item:
    """Make the first write, which the rest follows from."""
    if change.writes:
        return _write(where, change.writes[0], subject, dry_run=dry_run)
    assert change.shown is not None, "a change is about something"
    return subject.items[change.shown.metadata.uid]


def _write(where: Place, write: Write, subject: Subject, *, dry_run: bool = False) -> Item:
    kind, metadata = kind_named(write.after.kind), write.after.metadata
    if write.before is None:
        made: Item = where.api.create(kind, where.namespace, body_of(write.after), dry_run=dry_run)
        return made
    patch = write.patch
    if not patch:
        return subject.items[metadata.uid]
    version = {"resourceVersion": write.before.metadata.resource_version}
    patch["metadata"] = {**patch.get("metadata", {}), **version}
    changed: Item = where.api.patch(kind, where.namespace, metadata.name, patch, dry_run=dry_run)
    return changed


def _follow_up(where: Place, write: Write, subject: Subject) -> Item:
    """Write what follows from an order that was begun, whatever else happens to the resource."""
    kind, name = kind_named(write.after.kind), write.after.metadata.name
    for tries_left in reversed(range(_TRIES)):
        try:
            return _write(where, write, subject)
        except AnswerError as error:
            stored = _found(where, kind, name)
            noun = _noun(kind, name, encode(stored), lenient=True) if stored else None
            again = rebased(write, noun)
            if again is None:
                return stored or subject.items[write.after.metadata.uid]
            if error.status != 409 or not tries_left:
                raise
            write = again
    raise AssertionError("the last try returns or raises")


def _found(where: Place, kind: Kind, name: str) -> Item | None:
    try:
        return where.api.get(kind, where.namespace, name)
    except AnswerError as error:
        if error.status != 404:
            raise
        return None


def body_of(resource: Resource) -> Item:
    """A new resource as it is sent."""
    body: Item = to_builtins(resource)
    body.pop("status", None)
    return body
