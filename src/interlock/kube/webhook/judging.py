"""Whether an object may become what somebody asks for: the rules of our own door, for a cluster.

Locks are not judged here. Only the controller's account may write them, by its role, and what
their definition cannot say the admission room checks at every look.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Any

import msgspec

from interlock.kube.webhook.review import Change, Document, Verdict
from interlock.resources.checks import check_due, check_update
from interlock.resources.codec import from_builtins
from interlock.resources.errors import BadRequestError, InvalidError, Problem
from interlock.resources.job import JOB_FINALIZER, Job
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import GROUP, Metadata, Resource
from interlock.resources.modes import Mode, problems_in_mode
from interlock.resources.transitions import has_ended
from interlock.resources.validation import FieldValidation, read_resource

#: What a person is told whose change left our finalizer out.
KEPT = f"the finalizer {JOB_FINALIZER} stays: it is removed when all tasks are proven gone"
#: What a person is told who takes it off a Job of which we cannot say whether it has tasks.
UNREADABLE = "this Job cannot be read here, so nobody has proven that its tasks are gone"

#: What is judged: all that people write.
JUDGED = tuple(
    kind.name for kind in KINDS.values() if kind.group == GROUP and not kind.made_by_system
)
_KNOWN = frozenset(Metadata.__struct_encode_fields__)


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
        return Verdict(problems=_read(given)[1], kind=_kind(given), name=_name(given))
    if change.user_info.username in controllers:
        return Verdict()
    return _judge_update(change.old_object, change.object, now)


def complete(change: Change, controllers: Set[str], _: datetime) -> Verdict:
    """Give a Job the finalizer that it must have, and give it back to one that loses it.

    A new Job saves the controller a write; one that is written back by somebody who left the
    finalizer out keeps it, as at our own door, with a warning.
    """
    new, old = change.object, change.old_object
    if change.sub_resource or new is None or JOB_FINALIZER in _finalizers(new):
        return Verdict()
    if old is None:
        return Verdict(patch=_hold(new))
    if change.user_info.username in controllers or JOB_FINALIZER not in _finalizers(old):
        return Verdict()
    held = _read(old)[0]
    if not isinstance(held, Job) or has_ended(held):
        return Verdict()
    return Verdict(patch=_hold(new), warnings=(KEPT,))


def _judge_update(before: Document, after: Document, now: datetime) -> Verdict:
    lets_go = JOB_FINALIZER in _finalizers(before) and JOB_FINALIZER not in _finalizers(after)
    changed = before.get("spec") != after.get("spec")
    if not changed and not lets_go:
        return Verdict()
    old, known = _read(before)
    new, found = _read(after) if changed else (_stored(_ours(after)), ())
    had = {(problem.path, problem.message) for problem in known}
    problems = [one for one in found if (one.path, one.message) not in had]
    if old is not None and new is not None:
        problems += check_update(old, new) + check_due(old, new, now)
    warnings = (UNREADABLE,) if lets_go and old is None else ()
    return Verdict(
        problems=tuple(problems), kind=_kind(after), name=_name(after), warnings=warnings
    )


def _read(given: Document) -> tuple[Resource | None, tuple[Problem, ...]]:
    """The resource, if it can be read, and everything that is wrong with it."""
    ours = _ours(given)
    try:
        # The API server has left out unknown fields, or refused them, as it was asked to.
        read, _ = read_resource(ours, _kind(ours), field_validation=FieldValidation.IGNORE)
    except InvalidError as error:
        stored = _stored(ours)
        return stored, (*error.problems, *_problems_here(stored))
    except BadRequestError as error:
        return None, (Problem("object", str(error), ""),)
    return read, _problems_here(read)


def _problems_here(resource: Resource | None) -> tuple[Problem, ...]:
    return problems_in_mode(resource, Mode.CLUSTER) if resource is not None else ()


def _stored(ours: Document) -> Resource | None:
    """The resource as far as its types go, whatever else is wrong with it."""
    try:
        read: Resource = from_builtins(ours, KINDS[_kind(ours)].type)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return None
    return read


def _kind(given: Document) -> str:
    """The kind of an object; the API server sends no other than those it was told to."""
    kind = given.get("kind")
    return kind if kind in JUDGED else "Job"


def _ours(given: Document) -> Document:
    """The object without what only the API server needs, managed fields above all."""
    metadata = {name: value for name, value in _metadata(given).items() if name in _KNOWN}
    return given | {"metadata": metadata}


def _metadata(given: Document) -> dict[str, Any]:
    return given.get("metadata") or {}


def _name(given: Document) -> str:
    metadata = _metadata(given)
    return metadata.get("name") or metadata.get("generateName") or ""


def _finalizers(given: Document) -> list[str]:
    return _metadata(given).get("finalizers") or []


def _hold(given: Document) -> tuple[Document, ...]:
    if _finalizers(given):
        return ({"op": "add", "path": "/metadata/finalizers/-", "value": JOB_FINALIZER},)
    return ({"op": "add", "path": "/metadata/finalizers", "value": [JOB_FINALIZER]},)
