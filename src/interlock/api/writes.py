"""Create, update, patch and delete: what people may write, and what the door adds to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.api.answers import (
    Answer,
    RefusedError,
    bad_request,
    refusal_of,
    success,
    warning_headers,
)
from interlock.api.bodies import read_beside, read_json, read_yaml
from interlock.api.options import WriteOptions, deletion, write_options
from interlock.api.protobuf_bodies import read_namespace
from interlock.api.requests import Media, Request
from interlock.api.routing import Target
from interlock.api.views import Views
from interlock.control.decision_log import log_decision, logger
from interlock.control.lease import SYSTEM_NAMESPACE
from interlock.errors import ConflictError, InvalidError, NotFoundError
from interlock.resources.codec import encode, to_builtins
from interlock.resources.deeds import deed_of, deletion_of
from interlock.resources.door.checking import check_due, check_new, check_update, problems_of
from interlock.resources.door.patches import json_patch, merge_patch
from interlock.resources.door.validation import FieldValidation, Judge, read_resource
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.kinds import KINDS, NAMESPACES
from interlock.resources.marks import completed, with_kept_marks
from interlock.resources.metadata import GROUP, Resource
from interlock.resources.modes import Mode, problems_in_mode
from interlock.store.contract import Journal, JournalEntry, Now, Selection, Store
from interlock.store.rules import DEFAULT_NAMESPACE, created, updated

#: How often a write that names no version is tried again when others write too.
TRIES = 8
KEPT_FINALIZER = (
    f"the finalizer {JOB_FINALIZER} stays: it is removed when all tasks are proven gone"
)


class _Draft(Struct, frozen=True):
    """A resource that a client wants, and what it should be told about it."""

    resource: Resource
    warnings: tuple[str, ...] = ()


_Change = Callable[[Resource], _Draft]


class Writes:
    """The verbs that change something. Everything is checked before the store sees it."""

    def __init__(
        self,
        store: Store,
        views: Views,
        now: Now,
        mode: Mode = Mode.EMBEDDED,
        journal: Journal | None = None,
    ) -> None:
        self._store = store
        self._journal = journal
        self._views = views
        self._now = now
        self._mode = mode
        #: Where it is written down who did what; a cluster has its audit log for that.
        self._journal = journal

    async def create(self, target: Target, request: Request) -> Answer:
        """Store a new resource."""
        _check_writable(target)
        options = write_options(request)
        data = await request.body()
        draft = await read_beside(
            len(data), lambda: _read(target, request, data, options, _flaws_of_new(self._mode))
        )
        resource = _placed(draft.resource, target)
        if resource.metadata.resource_version:
            raise bad_request("resourceVersion should not be set on objects to be created")
        ready = completed(None, prepared(resource), request.person)
        made = await self._store.create(ready, dry_run=options.dry_run)
        return self._answer(target, request, _Draft(made, draft.warnings), 201)

    async def update(self, target: Target, request: Request) -> Answer:
        """Replace a resource."""
        _check_writable(target)
        options = write_options(request)
        data = await request.body()
        draft = await read_beside(len(data), lambda: _read(target, request, data, options))
        wanted = _Draft(_placed(draft.resource, target), draft.warnings)
        return await self._change(target, request, options, lambda _: wanted)

    async def patch(self, target: Target, request: Request) -> Answer:
        """Change part of a resource."""
        _check_writable(target)
        media = request.media()
        options = write_options(request)
        data = await request.body()
        apply = await read_beside(len(data), lambda: _patcher(target, media, data))

        def change(old: Resource) -> _Draft:
            patched = apply(to_builtins(old))
            resource, warnings = read_resource(
                patched,
                target.kind.name,
                field_validation=options.field_validation,
                stored=old,
            )
            return _Draft(_placed(resource, target), tuple(warnings))

        return await self._change(target, request, options, change, len(data))

    async def _change(
        self,
        target: Target,
        request: Request,
        options: WriteOptions,
        change: _Change,
        size: int = 0,
    ) -> Answer:
        """Read, change and write; again when someone else wrote in between.

        A client that names a version means that version: its conflict is its own.
        """
        for left in reversed(range(TRIES)):
            old = await self._store.get(target.key)
            draft = await read_beside(size, partial(change, old))
            new, warnings = _settled(old, draft)
            new = completed(old, new, request.person)
            try:
                made = await self._write(target, old, new, dry_run=options.dry_run)
            except ConflictError:
                if not left:
                    raise
                continue
            if not options.dry_run:
                self._note(made, deed_of(old, made, request.person, self._now()))
            return self._answer(target, request, _Draft(made, warnings), 200)
        raise AssertionError("the last try raises or returns")

    async def _write(
        self, target: Target, old: Resource, new: Resource, *, dry_run: bool
    ) -> Resource:
        _check_change(target, old, new, self._now(), self._mode)
        return await self._store.update(new, dry_run=dry_run)

    def read_new(self, document: bytes, kind: str) -> tuple[Resource, tuple[str, ...]]:
        """A new resource, checked as everything that is created, and what to say about it.

        Raises:
            BadRequestError: It cannot be read.
            InvalidError: It may not be.
        """
        return read_resource(document, kind, also=_flaws_of_new(self._mode))

    async def store_read(self, new: Resource, person: str) -> Resource:
        """Store what `read_new` gave, for whoever sent it."""
        return await self._store.create(completed(None, prepared(new), person))

    async def store_new(self, new: Resource, person: str, *, dry_run: bool) -> Resource:
        """Store what a command made, as if whoever ordered it had sent it.

        Raises:
            InvalidError: It may not be.
        """
        problems = (*problems_of(new), *_flaws_of_new(self._mode)(new))
        if problems:
            raise InvalidError(new.kind, new.metadata.name, problems)
        return await self._store.create(completed(None, prepared(new), person), dry_run=dry_run)

    async def store_change(
        self, old: Resource, new: Resource, person: str, *, dry_run: bool
    ) -> Resource:
        """Store what a command changed, as if whoever ordered it had sent it.

        Raises:
            ConflictError: The resource changed since it was read.
            InvalidError: It may not be.
        """
        had = {(one.path, one.message) for one in problems_of(old)}
        found = [one for one in problems_of(new) if (one.path, one.message) not in had]
        if found:
            raise InvalidError(new.kind, new.metadata.name, found)
        kind = KINDS[new.kind]
        target = Target(kind, new.metadata.namespace, new.metadata.name)
        made = await self._write(target, old, completed(old, new, person), dry_run=dry_run)
        if not dry_run:
            self._note(made, deed_of(old, made, person, self._now()))
        return made

    async def delete(self, target: Target, request: Request) -> Answer:
        """Delete a resource, or mark it as going."""
        if target.subresource:
            raise RefusedError(405, "a status cannot be deleted")
        _check_writable(target)
        if _stays(target, target.name):
            told = f'namespaces "{target.name}" is forbidden: this namespace may not be deleted'
            raise RefusedError(403, told)
        how = deletion(request, await request.body())
        gone = await self._store.delete(target.key, how.options, dry_run=how.dry_run)
        if not how.dry_run:
            self._note(gone, deletion_of(gone, request.person))
        if gone.is_going:
            return Answer(200, encode(gone))
        return Answer(200, encode(success(target.kind, target.name, gone.metadata.uid)))

    async def delete_collection(self, target: Target, request: Request) -> Answer:
        """Delete every resource that the selectors mean, one by one."""
        _check_writable(target)
        how = deletion(request, await request.body())
        query = request.query
        selection = Selection(
            namespace=target.namespace,
            labels=query.get("labelSelector", ""),
            fields=query.get("fieldSelector", ""),
        )
        page = await self._store.list(target.kind.name, selection)
        gone = []
        for resource in page.items:
            if _stays(target, resource.metadata.name):
                continue
            options = replace(how.options, uid=resource.metadata.uid)
            try:
                await self._store.delete(resource.key, options, dry_run=how.dry_run)
            except (NotFoundError, ConflictError):
                continue  # Someone else deleted it, and perhaps made another of its name.
            if not how.dry_run:
                self._note(resource, deletion_of(resource, request.person))
            gone.append(resource)
        return self._views.list(target, request, replace(page, items=tuple(gone)))

    def _note(self, resource: Resource, deed: str) -> None:
        """Write down who did what. Who made a resource stands on it, as long as it is there."""
        if not deed or self._journal is None:
            return
        kind, namespace, name = resource.key
        now = self._now()
        self._journal.append(
            JournalEntry(
                at=now,
                kind=kind,
                namespace=namespace,
                name=name,
                room="api",
                actions=(),
                reason=deed,
                version=resource.version,
            )
        )
        if logger.isEnabledFor(logging.INFO):
            log_decision(f"{resource.key} api v{resource.version}: {deed}", now)

    def _answer(self, target: Target, request: Request, draft: _Draft, status: int) -> Answer:
        shown = self._views.one(target, request, draft.resource)
        if status == 200 and not draft.warnings:
            return shown
        return replace(shown, status=status, headers=warning_headers(draft.warnings))


def proposed(
    target: Target, request: Request, data: bytes, old: Resource | None, now: datetime, mode: Mode
) -> Resource:
    """What a body would be stored as: in the place of what is there, or as something new.

    Raises:
        RefusedError: It cannot be read, or means another object.
        InvalidError: It would be refused.
    """
    _check_writable(target)
    options = WriteOptions(dry_run=True, field_validation=FieldValidation.STRICT)
    if old is None:
        draft = _read(target, request, data, options, _flaws_of_new(mode))
        new = completed(None, prepared(_placed(draft.resource, target)), request.person)
        return created(new, target.key, uid="", version=0, now=now)
    draft = _read(target, request, data, options)
    new, _ = _settled(old, _Draft(_placed(draft.resource, target), draft.warnings))
    new = completed(old, new, request.person)
    _check_change(target, old, new, now, mode)
    return updated(old, new, version=old.version + 1)


def _flaws_of_new(mode: Mode) -> Judge:
    """What keeps something new out, beside what nobody may ask for."""
    return lambda resource: problems_in_mode(resource, mode) + check_new(resource)


def _check_change(target: Target, old: Resource, new: Resource, now: datetime, mode: Mode) -> None:
    """Refuse a change that may not be, and one to what this installation cannot run."""
    problems = check_update(old, new) + check_due(old, new, now)
    if not problems and getattr(old, "spec", None) != getattr(new, "spec", None):
        problems = problems_in_mode(new, mode)
    if problems:
        raise InvalidError(target.kind.name, target.name, problems)


def _stays(target: Target, name: str) -> bool:
    """Whether it is a namespace that is always there: what is in it would go with it."""
    return target.kind is NAMESPACES and name in (DEFAULT_NAMESPACE, SYSTEM_NAMESPACE)


def _check_writable(target: Target) -> None:
    """Refuse what nobody may write from outside, whoever it is.

    A status is what the rooms know: whoever could write that a Job was let in, or that it is
    over, would have two at work on one lock.
    """
    kind = target.kind
    if target.subresource:
        told = f"the status of {kind.plural} is written by the control plane alone"
        raise RefusedError(403, f"{told}; it can only be read")
    if kind.made_by_system:
        raise RefusedError(
            403, f"{kind.plural} are made and removed by the system; they can only be read"
        )
    if kind.namespaced and target.namespace is None:
        raise RefusedError(405, f"{kind.plural} are written in one namespace at a time")


def _read(
    target: Target,
    request: Request,
    data: bytes,
    options: WriteOptions,
    also: Judge = lambda _: (),
) -> _Draft:
    media = request.media()
    given: bytes | Mapping[str, Any] = data
    if media is Media.YAML:
        given = read_yaml(data)
    elif media is Media.PROTOBUF and target.kind is NAMESPACES:
        given = read_namespace(data)
    elif media is not Media.JSON:
        raise RefusedError(415, f"expected {Media.JSON} or {Media.YAML}, got {media}")
    resource, warnings = read_resource(
        given, target.kind.name, field_validation=options.field_validation, also=also
    )
    return _Draft(resource, tuple(warnings))


def _placed(resource: Resource, target: Target) -> Resource:
    """The resource where its path says it is; a body that says otherwise is refused."""
    metadata = resource.metadata
    namespace = target.namespace or ""
    if target.name and metadata.name != target.name:
        raise bad_request(
            f"the name of the object ({metadata.name}) does not match the name on the URL "
            f"({target.name})"
        )
    if metadata.namespace == namespace:
        return resource
    if metadata.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return replace(resource, metadata=replace(metadata, namespace=namespace))


def prepared(resource: Resource) -> Resource:
    """A new resource as the door lets it in: no Job is without what keeps its end in order."""
    return _with_finalizer(resource) if isinstance(resource, Job) else resource


def _with_finalizer(job: Resource) -> Resource:
    metadata = job.metadata
    if JOB_FINALIZER in metadata.finalizers:
        return job
    kept = (*metadata.finalizers, JOB_FINALIZER)
    return replace(job, metadata=replace(metadata, finalizers=kept))


def _settled(old: Resource, draft: _Draft) -> tuple[Resource, tuple[str, ...]]:
    """The draft with the version it was made from, and with the finalizer and the marks that stay.

    A Job without its finalizer would vanish, and its locks pass on, while its processes run.
    """
    new, warnings = draft.resource, draft.warnings
    metadata, before = new.metadata, old.metadata
    given = metadata.resource_version
    if given and given != before.resource_version:
        raise _own_conflict(old, given)
    if metadata.uid and metadata.uid != before.uid:
        raise _own_conflict(old, f"uid {metadata.uid}")
    if not given:
        new = replace(new, metadata=replace(metadata, resource_version=before.resource_version))
    if JOB_FINALIZER in before.finalizers and JOB_FINALIZER not in metadata.finalizers:
        new, warnings = _with_finalizer(new), (*warnings, KEPT_FINALIZER)
    new, kept = with_kept_marks(old, new)
    return new, (*warnings, *(f"the mark {name} stays" for name in kept))


def _own_conflict(old: Resource, given: str) -> RefusedError:
    found = old.metadata.resource_version
    return refusal_of(ConflictError(old.key, expected=given, found=found))


def _patcher(target: Target, media: Media, data: bytes) -> Callable[[Any], Any]:
    """What applies a patch to a resource as plain values."""
    match media:
        case Media.MERGE_PATCH:
            patch = _object(read_json(data))
            return lambda old: merge_patch(old, patch)
        case Media.JSON_PATCH:
            operations = read_json(data)
            return lambda old: json_patch(old, operations)
        case Media.STRATEGIC_PATCH if target.kind.group != GROUP:
            patch = _without_directives(_object(read_json(data)))
            return lambda old: merge_patch(old, patch)
        case Media.APPLY_PATCH | Media.APPLY_PATCH_CBOR:
            raise RefusedError(
                415,
                "server-side apply is not served here, because no field owners are kept; "
                "use kubectl apply without --server-side",
            )
        case Media.STRATEGIC_PATCH:
            raise RefusedError(
                415,
                f"{target.kind.plural} have no strategic merge patch; "
                "use a merge patch (kubectl patch --type=merge) or a JSON patch",
            )
        case _:
            raise RefusedError(
                415, f"expected {Media.MERGE_PATCH} or {Media.JSON_PATCH}, got {media}"
            )


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise bad_request("a merge patch must be an object")
    return value


def _without_directives(patch: dict[str, Any]) -> dict[str, Any]:
    """A strategic patch of the kinds that Kubernetes has too, read as a merge patch.

    Orders of elements matter for none of their lists; other directives are refused.
    """
    plain: dict[str, Any] = {}
    for name, value in patch.items():
        if name.startswith("$setElementOrder/"):
            continue
        if name.startswith("$"):
            raise RefusedError(
                415, f"the directive {name} of strategic merge patches is not served"
            )
        plain[name] = _without_directives(value) if isinstance(value, dict) else value
    return plain
