"""HTTP actions: what a person may order, as routes. The rules are in `interlock.commands`.

An action is carried out for whoever the door has authenticated and found allowed, in their name:
who orders is read neither from the body nor from the query. Where the door has proven nobody, the
order is nobody's. The writes go the way of any other write of a person, with compare-and-set, the
checks of the door, and a line in the history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from interlock.api.answers import Answer, Cause, Details, RefusedError, bad_request, json_answer
from interlock.api.authorization import sees_job
from interlock.api.bodies import LARGE, read_beside, read_json, read_yaml
from interlock.api.callers import Access
from interlock.api.parameters import Parameter
from interlock.api.requests import Media, Request, Send
from interlock.api.routing import OnEach, OnResource, Right, Route, Said, Serve, on_jobs
from interlock.api.writes import TRIES, Writes
from interlock.commands.applying import apply
from interlock.commands.change import By, Change, Write, rebased
from interlock.commands.command import Command, Need
from interlock.commands.controlled import ControlledView
from interlock.commands.errors import OrderRefusedError, Refusal
from interlock.commands.table import COMMANDS
from interlock.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from interlock.resources.calendar import Calendar
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.validation import read_noun
from interlock.resources.job import Job
from interlock.resources.kinds import CALENDARS, JOBS, KINDS, Kind
from interlock.resources.metadata import Key, Noun, Resource
from interlock.resources.schedule import CONTROLLED_LABEL
from interlock.schedules.calendars import calendars_named_by
from interlock.store.contract import Now, Selection, Store

#: Mark the causes of a refusal that tell what to do about it, and what was given for the option.
SUGGESTION, FOUND = "Suggestion", "Found"
DRY_RUN = Parameter(
    name="dryRun", says="All: say what would happen, and change nothing.", enum=("All",)
)


class ActionAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of an order."""

    #: What was done, for people; may be several lines.
    message: str
    #: The object as it is stored now: the one that was changed or made, or that needed no change.
    object: dict[str, Any]
    #: Other objects that were changed.
    also: list[dict[str, Any]] = []
    #: What does not come of it although it was asked for.
    warnings: list[str] = []


class Actions:
    """Carries out commands for those who ask over HTTP."""

    def __init__(self, store: Store, writes: Writes, now: Now) -> None:
        self._store = store
        self._writes = writes
        self._now = now

    def routes(self) -> tuple[Route, ...]:
        """One for each command, and one for each kind that can be applied."""
        return (*self._orders(), *self._applies())

    def _applies(self) -> Iterator[Route]:
        there, named = Said("namespace"), Said("name")
        for kind in KINDS.values():
            if not kind.is_written_by_people or not kind.namespaced:
                continue
            rights = (
                OnResource(verb="create", resource=kind.plural, namespace=there),
                OnResource(verb="patch", resource=kind.plural, namespace=there, name=named),
            )
            yield Route(
                method="POST",
                path=f"/{kind.plural}/{{namespace}}/{{name}}/apply",
                right=OnEach(rights),
                serve=self._applying(kind),
                gives="make it what the body says, and leave alone what others wrote",
                takes=f"a {kind.name}, as a file would define it",
                query=(DRY_RUN,),
                shows=ActionAnswer,
                refusals=(404, 409, 413, 415, 422),
            )

    def _applying(self, kind: Kind) -> Serve:
        async def serve(request: Request, send: Send) -> Answer:  # noqa: ARG001
            dry_run = _is_dry(request.query)
            document = await _document(kind, request)
            parts = request.match.parts
            key = Key(kind.name, parts["namespace"], parts["name"])
            for left in reversed(range(TRIES)):
                stored = await self._found(key)
                change = await read_beside(LARGE, partial(apply, document, kind.name, stored))
                try:
                    first = await self._decide(change, request.person, dry_run=dry_run)
                except (ConflictError, AlreadyExistsError, NotFoundError):
                    if not left:
                        raise
                else:
                    return _answer(change, first, [])
            raise AssertionError("the last try returns or raises")

        return serve

    async def _found(self, key: Key) -> Resource | None:
        with suppress(NotFoundError):
            return await self._store.get(key)
        return None

    def _orders(self) -> tuple[Route, ...]:
        return tuple(
            Route(
                method="POST",
                path=f"/{command.kind.plural}/{{namespace}}/{{name}}/{command.name}",
                right=_right(command),
                access=Access.OPERATE,
                filtered=command.kind is JOBS,
                serve=self._serving(command),
                gives=command.says,
                takes="how, as an object; nothing at all is as good as {}",
                body=command.options,
                query=(DRY_RUN,),
                shows=ActionAnswer,
                refusals=(404, 409, 413, 415, 422),
            )
            for command in COMMANDS
        )

    def _serving(self, command: Command) -> Serve:
        async def serve(request: Request, send: Send) -> Answer:  # noqa: ARG001
            dry_run = _is_dry(request.query)
            how = await _options(command, request)
            name = request.match.parts["name"]
            try:
                return await self._carry_out(command, request, how, dry_run=dry_run)
            except OrderRefusedError as error:
                raise _refusal(error, command, name) from error

        return serve

    async def _carry_out(
        self, command: Command, request: Request, how: Noun, *, dry_run: bool
    ) -> Answer:
        """Read, order and write; all of it again when somebody else was faster."""
        for tried in range(TRIES):
            # People write and read moments to the second.
            by = By(request.person, self._now().replace(microsecond=0))
            subject = await self._read(command, request, by, passed_over=tried)
            # A plan may take a while to walk through; others are answered meanwhile.
            size = LARGE if command.needs_view else 0
            change: Change = await read_beside(size, lambda: command.order(subject, how, by))  # noqa: B023
            try:
                first = await self._decide(change, request.person, dry_run=dry_run)
            except ConflictError:
                if tried == TRIES - 1:
                    raise
            except AlreadyExistsError:
                # A number is taken meanwhile, or by a Job of somebody else; a name that was asked
                # for is just taken.
                if not command.needs_view or tried == TRIES - 1:
                    raise
            else:
                # From here on the order is given, and is not given a second time.
                rest = [
                    await self._follow_up(write, request.person, dry_run=dry_run)
                    for write in change.writes[1:]
                ]
                return _answer(change, first, rest)
        raise AssertionError("the last try returns or raises")

    async def _read(
        self, command: Command, request: Request, by: By, *, passed_over: int
    ) -> Resource | ControlledView:
        """What the order is about, as it is stored now."""
        parts = request.match.parts
        namespace, name = parts["namespace"], parts["name"]
        key = Key(command.kind.name, namespace, name)
        noun = await self._store.get(key)
        if isinstance(noun, Job) and not sees_job(request.caller, noun):
            raise NotFoundError(key)
        if not command.needs_view:
            return noun
        assert isinstance(noun, ControlledJob)
        labelled = Selection(namespace=namespace, labels=f"{CONTROLLED_LABEL}={name}")
        page = await self._store.list(JOBS.name, labelled)
        jobs = [job for job in page.items if isinstance(job, Job)]
        calendars: list[Calendar] = []
        for named in calendars_named_by(noun):
            with suppress(NotFoundError):
                found = await self._store.get(Key(CALENDARS.name, namespace, named))
                assert isinstance(found, Calendar)
                calendars.append(found)
        return await read_beside(
            LARGE, lambda: ControlledView(noun, calendars, jobs, by.now, passed_over=passed_over)
        )

    async def _decide(self, change: Change, person: str, *, dry_run: bool) -> Resource:
        """Make the first write, which the rest follows from."""
        if change.writes:
            return await self._write(change.writes[0], person, dry_run=dry_run)
        assert change.shown is not None, "a change is about something"
        return change.shown

    async def _write(self, write: Write, person: str, *, dry_run: bool) -> Resource:
        if write.before is None:
            return await self._writes.store_new(write.after, person, dry_run=dry_run)
        if write.after == write.before:
            return write.before
        return await self._writes.store_change(write.before, write.after, person, dry_run=dry_run)

    async def _follow_up(self, write: Write, person: str, *, dry_run: bool) -> Resource:
        """Write what follows from an order that was begun, whatever else changes meanwhile."""
        for left in reversed(range(TRIES)):
            try:
                return await self._write(write, person, dry_run=dry_run)
            except (ConflictError, InvalidError, NotFoundError):
                found = await self._found(write.after.key)
                again = rebased(write, found)
                if again is None:
                    return found or write.after
                if not left:
                    raise
                write = again
        raise AssertionError("the last try returns or raises")


def _answer(change: Change, first: Resource, rest: list[Resource]) -> Answer:
    answer: dict[str, Any] = {"message": "\n".join(change.lines(first)), "object": first}
    if rest:
        answer["also"] = rest
    if change.warnings:
        answer["warnings"] = change.warnings
    return json_answer(answer)


def _right(command: Command) -> Right:
    """What somebody must be allowed to do by themselves before it is done for them."""
    there, named = Said("namespace"), Said("name")
    plural = command.kind.plural
    rights = {
        Need.GET_IT: OnResource(verb="get", resource=plural, namespace=there, name=named),
        Need.PATCH_IT: OnResource(verb="patch", resource=plural, namespace=there, name=named),
        Need.LIST_JOBS: on_jobs("list", there),
        Need.CREATE_JOBS: on_jobs("create", there),
        Need.PATCH_JOBS: on_jobs("patch", there),
    }
    needed = tuple(rights[need] for need in command.needs)
    return needed[0] if len(needed) == 1 else OnEach(needed)


def _is_dry(query: Mapping[str, str]) -> bool:
    for name in query:
        if name != DRY_RUN.name:
            raise bad_request(f"{name[:40]}: unknown parameter; expected {DRY_RUN.name}")
    said = query.get(DRY_RUN.name, "")
    if said not in ("", "All"):
        raise bad_request(f"{DRY_RUN.name}: expected All, got {said[:40]!r}")
    return said == "All"


async def _options(command: Command, request: Request) -> Noun:
    """What the body says; what it says wrong is told field by field."""
    data = await request.body()
    if data.strip() and request.media() is not Media.JSON:
        raise RefusedError(415, f"expected {Media.JSON}, got {request.media()}")
    try:
        return await read_beside(len(data), lambda: read_noun(data, command.options, command.name))
    except InvalidError as error:
        told = "; ".join(map(str, error.problems))
        refused = OrderRefusedError(f"the body cannot be used: {told}", problems=error.problems)
        raise _refusal(refused, command, request.match.parts["name"]) from error


async def _document(kind: Kind, request: Request) -> dict[str, Any]:
    """The document to be applied, which must be about what the path names."""
    data = await request.body()
    media = request.media()
    if media not in (Media.JSON, Media.YAML):
        raise RefusedError(415, f"expected {Media.JSON} or {Media.YAML}, got {media}")
    read = read_json if media is Media.JSON else read_yaml
    given = await read_beside(len(data), lambda: read(data))
    if not isinstance(given, Mapping):
        raise bad_request(f"the body is no object: expected a {kind.name}")
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = {}
    for field in ("namespace", "name"):
        wanted = request.match.parts[field]
        if metadata.get(field, wanted) != wanted:
            raise bad_request(f"metadata.{field}: expected {wanted}, as the path says")
        metadata = {**metadata, field: wanted}
    known = {"apiVersion": kind.api_version, "kind": kind.name}
    return {**known, **given, "metadata": metadata}


def _refusal(error: OrderRefusedError, command: Command, name: str) -> RefusedError:
    """A refusal of a command in the words that Kubernetes' clients know."""
    causes = [
        Cause(
            "FieldValueRequired" if problem.found is None else "FieldValueInvalid",
            problem.message,
            problem.path,
        )
        for problem in error.problems
    ]
    if error.option:
        causes.append(Cause("FieldValueInvalid", error.message, error.option))
    if error.found:
        causes.append(Cause(FOUND, error.found))
    if error.hint:
        causes.append(Cause(SUGGESTION, error.hint))
    details = Details(
        name=name, group=command.kind.group, kind=command.kind.plural, causes=tuple(causes)
    )
    where = f"{error.option}: " if error.option else ""
    code = 409 if error.refusal is Refusal.CONFLICT else 422
    return RefusedError(code, f"{where}{error.message}", details=details)
