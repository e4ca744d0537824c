"""Carrying out commands: read what is stored, have the command work out the change, write it.

The rules are in `interlock.commands`. Everything is done with the rights of whoever types.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

from msgspec import ValidationError

from interlock.client.errors import BAD_INPUT, OK, AnswerError, CommandError
from interlock.client.kinds import CONTROLLED_JOBS, JOBS, Kind, kind_named, parse_name
from interlock.client.moments import server_now
from interlock.client.refusals import refusals
from interlock.client.schedules import noun_of
from interlock.commands.change import By, Change, Write, rebased
from interlock.commands.command import Command, command_for
from interlock.modes.cli.input.person import person
from interlock.modes.cli.main import tell
from interlock.modes.cli.not_found import found, other_verb, same_name
from interlock.modes.cli.session import Session
from interlock.resources.codec import encode, from_builtins, to_builtins
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import Noun, Resource
from interlock.resources.schedule import CONTROLLED_LABEL
from interlock.resources.values.durations import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from interlock.commands.controlled import ControlledView

#: How often an order is worked out anew because somebody else wrote meanwhile.
_TRIES = 10
#: These change fields of their own alone, so what a newer version wrote beside them is no obstacle.
_LENIENT = frozenset(
    {"stop", "kill", "requeue", "release", "suspend", "resume"}
    | {"go-forward", "roll-back", "resolve", "let-go"}
)

Item = dict[str, Any]


class Carried(NamedTuple):
    """What came of an order: what people are told, and the resources as they are stored now."""

    change: Change
    lines: tuple[str, ...]
    items: list[Item]


class Subject(NamedTuple):
    """What an order is about, as the command takes it, and everything that was read for it."""

    taken: Resource | ControlledView
    items: dict[str, Item]


def carry_out(
    session: Session, kind: Kind, name: str, order: str, how: Noun, *, dry_run: bool = False
) -> Carried:
    """Give one resource an order, and try again when somebody else was faster.

    Raises:
        CommandError: It is refused; nothing was changed.
    """
    command = command_for(kind.name, order)
    for tried in range(_TRIES):
        subject = _read(session, command, kind, name, passed_over=tried)
        by = By(person(), server_now(session.api))
        with refusals():
            change = command.order(subject.taken, how, by)
        try:
            first = _decide(session, change, subject, dry_run=dry_run)
        except AnswerError as error:
            if error.status == 422:
                _check_needless(session, command, kind, name, how, error)
            elif error.status != 409 or tried == _TRIES - 1:
                raise
            continue
        # From here on the order is given, and is not given a second time.
        rest = [_follow_up(session, write, subject) for write in change.writes[1:]]
        stored = change.writes[0].after if change.writes else change.shown
        assert stored is not None, "a change is about something"
        return Carried(change, change.lines(stored), [first, *rest])
    raise AssertionError("the last try returns or raises")


def _check_needless(
    session: Session, command: Command, kind: Kind, name: str, how: Noun, error: AnswerError
) -> None:
    """Raise a refusal again, unless the resource needs no order any more: it may be over by now."""
    subject = _read(session, command, kind, name)
    with refusals():
        change = command.order(subject.taken, how, By(person(), server_now(session.api)))
    if change.writes:
        raise error


def _read(
    session: Session, command: Command, kind: Kind, name: str, *, passed_over: int = 0
) -> Subject:
    """Read a resource and what goes with it."""
    data = session.api.fetch("GET", kind.path(session.namespace, name))
    noun = _noun(kind, name, data, lenient=command.name in _LENIENT and not command.needs_view)
    items: dict[str, Item] = {noun.metadata.uid: json.loads(data)}
    if not command.needs_view:
        return Subject(noun, items)
    from interlock.client.schedules import read_calendars
    from interlock.commands.controlled import ControlledView

    assert isinstance(noun, ControlledJob)
    jobs = []
    labels = f"{CONTROLLED_LABEL}={noun.metadata.name}"
    for page in session.api.pages(JOBS, session.namespace, labels=labels):
        for plain in page["items"]:
            item = {"apiVersion": JOBS.api_version, "kind": JOBS.name, **plain}
            items[item["metadata"]["uid"]] = item
            job = _noun(JOBS, item["metadata"]["name"], encode(item), lenient=True)
            assert isinstance(job, Job)
            jobs.append(job)
    calendars = tuple(read_calendars(session.api, noun))
    now = server_now(session.api)
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


def _decide(session: Session, change: Change, subject: Subject, *, dry_run: bool) -> Item:
    """Make the first write, which the rest follows from."""
    if change.writes:
        return _write(session, change.writes[0], subject, dry_run=dry_run)
    assert change.shown is not None, "a change is about something"
    return subject.items[change.shown.metadata.uid]


def _write(session: Session, write: Write, subject: Subject, *, dry_run: bool = False) -> Item:
    kind, metadata = kind_named(write.after.kind), write.after.metadata
    if write.before is None:
        made: Item = session.api.create(
            kind, session.namespace, body_of(write.after), dry_run=dry_run
        )
        return made
    patch = write.patch
    if not patch:
        return subject.items[metadata.uid]
    version = {"resourceVersion": write.before.metadata.resource_version}
    patch["metadata"] = {**patch.get("metadata", {}), **version}
    changed: Item = session.api.patch(
        kind, session.namespace, metadata.name, patch, dry_run=dry_run
    )
    return changed


def _follow_up(session: Session, write: Write, subject: Subject) -> Item:
    """Write what follows from an order that was begun, whatever else happens to the resource."""
    kind, name = kind_named(write.after.kind), write.after.metadata.name
    for tries_left in reversed(range(_TRIES)):
        try:
            return _write(session, write, subject)
        except AnswerError as error:
            stored = _found(session, kind, name)
            noun = _noun(kind, name, encode(stored), lenient=True) if stored else None
            again = rebased(write, noun)
            if again is None:
                return stored or subject.items[write.after.metadata.uid]
            if error.status != 409 or not tries_left:
                raise
            write = again
    raise AssertionError("the last try returns or raises")


def _found(session: Session, kind: Kind, name: str) -> Item | None:
    try:
        return session.api.get(kind, session.namespace, name)
    except AnswerError as error:
        if error.status != 404:
            raise
        return None


def body_of(resource: Resource) -> Item:
    """A new resource as it is sent."""
    body: Item = to_builtins(resource)
    body.pop("status", None)
    return body


def order_each(
    session: Session,
    args: Namespace,
    names: Iterable[tuple[Kind, str]],
    order: str,
    how: Noun,
    kinds: tuple[Kind, ...] = (),
) -> int:
    """Give each of the named an order, and say what was done about each.

    One that cannot be changed does not keep the others from being changed. For one that is not
    there, another of these kinds is suggested, or what does the like of the order to a schedule.
    """
    code, changed = OK, []
    for kind, name in names:
        try:
            carried = carry_out(session, kind, name, order, how)
        except AnswerError as error:
            if error.status == 404:
                error.hint = error.hint or same_name(session, name, kinds)
                error.hint = error.hint or other_verb(session, name, order)
            tell(error)
            code = code or error.code
            continue
        changed += carried.items
        print_lines(session, args, carried)
    return finish(session, args, changed, code)


def carry_out_found(
    session: Session,
    args: Namespace,
    kind: Kind,
    order: str,
    how: Noun,
    *,
    meant: str = "",
    instead: str = "",
) -> int:
    """Give the one that is named an order, and say what came of it.

    `meant` is the verb whose like there may be for another kind that was typed, `instead` the one
    for another kind that has the name.
    """
    _, name = parse_name(args.name, kind, verb=meant)
    with found(session, kind, name, verb=instead):
        carried = carry_out(
            session, kind, name, order, how, dry_run=getattr(args, "dry_run", False)
        )
    if args.output:
        session.terminal.data(carried.items[0], "json")
        return OK
    dry = " (dry run: nothing was changed)" if getattr(args, "dry_run", False) else ""
    first, *rest = carried.lines
    for line in (first + dry, *rest):
        session.terminal.print(line)
    return OK


def except_from_plan(session: Session, args: Namespace, order: str, how: Noun) -> int:
    """Make an exception to the plan of the ControlledJob that is named, or take it back."""
    if args.cancel and args.reason:
        raise CommandError("--reason is for an exception, not for --cancel", code=BAD_INPUT)
    return carry_out_found(session, args, CONTROLLED_JOBS, order, how, instead="suspend")


def length_of(typed: float | None, flag: str) -> Duration | None:
    """A length of time that was typed, in whole seconds; None when none was."""
    if typed is None:
        return None
    from interlock.commands.controlled import LONGEST

    if not 1 <= typed <= LONGEST.total_seconds():
        raise CommandError(f"{flag}: expected from a second to ten years", code=BAD_INPUT)
    return Duration(seconds=int(typed))


def print_lines(session: Session, args: Namespace, carried: Carried) -> None:
    """Say what was done, unless a program reads."""
    if not args.output:
        for line in carried.lines:
            session.terminal.print(line)


def finish(session: Session, args: Any, changed: list[Item], code: int) -> int:
    """Show what was changed to programs, and stay until Jobs ended if that was asked for."""
    if args.output == "json":
        session.terminal.data(changed if len(args.names) != 1 else (changed or [{}])[0], "json")
    jobs = [item["metadata"]["name"] for item in changed if item.get("kind") == JOBS.name]
    if code == OK and jobs and getattr(args, "wait", False):
        return _wait(session, args, jobs)
    return code


def _wait(session: Session, args: Any, names: list[str]) -> int:
    """Stay until all ended. That they did is the success here, however they did."""
    from interlock.client.errors import INTERRUPTED, TIMED_OUT
    from interlock.modes.cli.following import Follower
    from interlock.modes.cli.output.formats import Terminal

    progress = Terminal(sys.stderr) if args.output else None
    code = Follower(session, names, timeout_s=args.timeout, progress=progress).run()
    return code if code in (TIMED_OUT, INTERRUPTED) else OK
