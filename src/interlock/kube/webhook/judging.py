"""Admission review: the rules of our own door, for objects of a cluster.

Locks are not judged here. Only the controller's account may write them, by its role, and what
their definition cannot say the admission room checks at every look.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import datetime
from typing import Any

import msgspec

from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.kube.webhook.review import Change, Document, Verdict
from interlock.resources.codec import from_builtins, to_builtins
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.checking import check_due, check_new, check_update, doubts_about
from interlock.resources.door.validation import FieldValidation, Judge, read_resource
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.kinds import JOBS, KINDS, Kind
from interlock.resources.marks import MARKS, PREFIX, Writer, completed, with_kept_marks
from interlock.resources.metadata import Metadata, Resource
from interlock.resources.modes import Mode, problems_in_mode
from interlock.resources.redaction import redacted
from interlock.resources.transitions import has_ended

#: What a person is told whose change left our finalizer out.
KEPT = f"the finalizer {JOB_FINALIZER} stays: it is removed when all tasks are proven gone"
#: What a person is told who takes it off a Job of which we cannot say whether it has tasks.
UNREADABLE = "this Job cannot be read here, so nobody has proven that its tasks are gone"

_KNOWN = frozenset(Metadata.__struct_encode_fields__)


def judged() -> tuple[Kind, ...]:
    """What is judged: all that people write."""
    return tuple(kind for kind in KINDS.values() if kind.is_written_by_people)


def signed() -> tuple[Kind, ...]:
    """On what it is written who asked for it."""
    marked = {name for mark in MARKS if mark.writer is Writer.DOOR for name in mark.kinds}
    return tuple(kind for kind in KINDS.values() if kind.name in marked)


def judge(change: Change, controllers: Set[str], now: datetime) -> Verdict:
    """Refuse what our own door refuses, and of a change only what it changes.

    The controller's own writes come first and always pass: it knows what runs. A Job that was
    taken by older rules can still be suspended, killed and deleted: problems that it has had
    all along are nobody's fault today.
    """
    if change.sub_resource or change.object is None:
        return Verdict()
    if change.old_object is None:
        given = change.object
        by_controller = change.user_info.username in controllers
        read, problems = _read(given, (lambda _: ()) if by_controller else check_new)
        doubts = doubts_about(read) if read is not None and not problems else ()
        return Verdict(problems=problems, kind=_kind(given), name=_name(given), warnings=doubts)
    if change.user_info.username in controllers:
        return Verdict()
    return _judge_update(change.old_object, change.object, now)


def complete(change: Change, controllers: Set[str], _: datetime) -> Verdict:
    """Give an object what our own door would: our finalizer, our marks, and who asks.

    A new Job saves the controller a write; one that is written back by somebody who left the
    finalizer or a mark out keeps it, with a warning. Who asks is what the API server has proven,
    whatever the client says.
    """
    if change.sub_resource or change.object is None:
        return Verdict()
    if change.user_info.username in controllers and change.old_object is not None:
        return Verdict()
    patch, warnings = _held(change)
    signed, kept = _signed(change, controllers)
    return Verdict(patch=patch + signed, warnings=warnings + kept)


def _held(change: Change) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The patch that gives a Job our finalizer, and what is told about it."""
    new, old = change.object, change.old_object
    assert new is not None
    if _kind(new) != JOBS.name or JOB_FINALIZER in _finalizers(new):
        return (), ()
    if old is None:
        return _hold(new), ()
    if JOB_FINALIZER not in _finalizers(old):
        return (), ()
    held = _read(old)[0]
    if not isinstance(held, Job) or has_ended(held):
        return (), ()
    return _hold(new), (KEPT,)


def _signed(change: Change, controllers: Set[str]) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The patch that writes down who asks and keeps the marks that stay; what cannot be read is
    left as it is."""
    assert change.object is not None
    person = change.user_info.username
    new = _stored(_ours(change.object))
    old = _stored(_ours(change.old_object)) if change.old_object is not None else None
    if new is None or person in controllers or (old is None and change.old_object is not None):
        return (), ()
    whole, lost = with_kept_marks(old, new) if old is not None else (new, ())
    made = completed(old, whole, person)
    patch: list[Document] = list(_redactions(new, made))
    for place in ("labels", "annotations"):
        marks = getattr(made.metadata, place)
        if marks != getattr(new.metadata, place):
            patch.append({"op": "add", "path": f"/metadata/{place}", "value": dict(marks)})
    if isinstance(made, ControlledJob) and isinstance(new, ControlledJob):
        pairs = zip(new.spec.overrides, made.spec.overrides, strict=True)
        patch += (
            {"op": "add", "path": f"/spec/overrides/{at}/by", "value": signed.by}
            for at, (given, signed) in enumerate(pairs)
            if given.by != signed.by
        )
    return tuple(patch), tuple(f"the mark {name} stays" for name in lost)


def _redactions(new: Resource, made: Resource) -> Iterator[Document]:
    """The patches that take out what an owner names as secret."""
    if redacted(new) is new:
        return
    before, after = to_builtins(new)["spec"], to_builtins(made)["spec"]
    for name in ("args", "python", "template", "jobTemplate"):
        if before.get(name) != after.get(name):
            yield {"op": "add", "path": f"/spec/{name}", "value": after[name]}


def _judge_update(before: Document, after: Document, now: datetime) -> Verdict:
    lets_go = JOB_FINALIZER in _finalizers(before) and JOB_FINALIZER not in _finalizers(after)
    changed = before.get("spec") != after.get("spec")
    if not changed and not lets_go and _marks(before) == _marks(after):
        return Verdict()
    old, known = _read(before)
    new, found = _read(after) if changed else (_stored(_ours(after)), ())
    had = {(problem.path, problem.message) for problem in known}
    problems = [one for one in found if (one.path, one.message) not in had]
    if old is not None and new is not None:
        problems += check_update(old, new) + check_due(old, new, now)
    warnings: tuple[str, ...] = (UNREADABLE,) if lets_go and old is None else ()
    if changed and new is not None and not problems:
        warnings += doubts_about(new)
    return Verdict(
        problems=tuple(problems), kind=_kind(after), name=_name(after), warnings=warnings
    )


def _read(
    given: Document, also: Judge = lambda _: ()
) -> tuple[Resource | None, tuple[Problem, ...]]:
    """The resource, if it can be read, and everything that is wrong with it."""
    ours = _ours(given)
    try:
        # The API server has left out unknown fields, or refused them, as it was asked to.
        read, _ = read_resource(
            ours,
            _kind(ours),
            field_validation=FieldValidation.IGNORE,
            also=lambda one: (*problems_in_mode(one, Mode.CLUSTER), *also(one)),
        )
    except InvalidError as error:
        return _stored(ours), error.problems
    except BadRequestError as error:
        return None, (Problem("object", str(error), ""),)
    return read, ()


def _stored(ours: Document) -> Resource | None:
    """The resource as far as its types go, whatever else is wrong with it."""
    try:
        read: Resource = from_builtins(ours, KINDS[_kind(ours)].type)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return None
    return read


def _kind(given: Document) -> str:
    """The kind of an object; the API server sends no other than those it was told to."""
    kind = KINDS.get(str(given.get("kind")))
    return kind.name if kind is not None and kind.is_written_by_people else JOBS.name


def _ours(given: Document) -> Document:
    """The object without what only the API server needs, managed fields above all."""
    metadata = {name: value for name, value in _metadata(given).items() if name in _KNOWN}
    return given | {"metadata": metadata}


def _metadata(given: Document) -> dict[str, Any]:
    return given.get("metadata") or {}


def _marks(given: Document) -> Document:
    """What is written on an object in our name."""
    places = (_metadata(given).get(place) or {} for place in ("labels", "annotations"))
    return {name: text for place in places for name, text in place.items() if PREFIX in name}


def _name(given: Document) -> str:
    metadata = _metadata(given)
    return metadata.get("name") or metadata.get("generateName") or ""


def _finalizers(given: Document) -> list[str]:
    return _metadata(given).get("finalizers") or []


def _hold(given: Document) -> tuple[Document, ...]:
    if _finalizers(given):
        return ({"op": "add", "path": "/metadata/finalizers/-", "value": JOB_FINALIZER},)
    return ({"op": "add", "path": "/metadata/finalizers", "value": [JOB_FINALIZER]},)
