"""Our marks: the annotations and labels with which people and rooms say something of an object.

One table says of each who writes it, on what, and when it means something. The doors, ours and the
one of a cluster, check what is new or changed in a write against it: a mark that means nothing now
would be taken up later, when it does and nobody thinks of it. What the control plane writes
goes straight to the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from interlock.findings import Findings, child, did_you_mean
from interlock.resources.controlled_job import ControlledJob, Override
from interlock.resources.job import (
    CREATOR_ANNOTATION,
    OPERATE_ANNOTATION,
    OPERATE_FOR_ANNOTATION,
    OPERATE_REASON_ANNOTATION,
    OPERATED_BY_ANNOTATION,
    RELEASE_ANNOTATION,
    RELEASED_ATTEMPTS_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    REQUEST_ANNOTATION,
    REQUEUE_ANNOTATION,
    REQUEUE_ROUND_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    RETRY_OF_ANNOTATION,
    Job,
    interventions,
    is_operation,
    released_attempts,
    unknown_attempts,
)
from interlock.resources.job_config import JobConfig
from interlock.resources.kinds import KINDS, Moves
from interlock.resources.metadata import GROUP, Resource
from interlock.resources.redaction import redacted
from interlock.resources.schedule import (
    ACCOUNTED_TO_ANNOTATION,
    CONFIG_LABEL,
    CONTROLLED_LABEL,
    MANUAL_ANNOTATION,
    MOVE_ANNOTATION,
    MOVED_FROM_ANNOTATION,
    MOVED_TO_ANNOTATION,
    MOVING_LABEL,
    NEEDS_BOOKS_ANNOTATION,
    OFFSET_ANNOTATION,
    RUN_ID_ANNOTATION,
    SCHEDULED_AT_ANNOTATION,
    STOPPED_BECAUSE_ANNOTATION,
    STOPPED_BY_ANNOTATION,
    STOPS_AT_ANNOTATION,
    SUSPEND_REASON_ANNOTATION,
    SUSPENDED_BY_ANNOTATION,
    TAKES_OVER_ANNOTATION,
    TAKES_OVER_BECAUSE_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
    TIMEZONE_ANNOTATION,
)
from interlock.resources.scheduling import PUT_BACK_ANNOTATION
from interlock.resources.transitions import has_ended, is_admitted

PREFIX = f"{GROUP}/"
R = TypeVar("R", bound=Resource)


class Given(StrEnum):
    """When somebody who is not the control plane may write a mark; the value says so to people."""

    WITH_OBJECT = "with the object, and stays as it is"
    WHILE_STOPPED = "while spec.killAt is set, and the Job is not over"
    WHILE_HELD = "while spec.suspend is true"
    WHILE_STOPPED_OR_HELD = "while spec.killAt is set or spec.suspend is true"
    WHILE_UNKNOWN = "while the Job is Unknown, for the attempts that are"
    WHILE_OPERATING = "while the operation is let in and not over, for its interventions"
    WHILE_ADMITTED = "while the Job is let in and not over, for its round"
    UNTIL_ACCOUNTED = "while the JobConfig is suspended, or has not accounted for anything"
    NEVER = "never: it is the control plane's own"


class Writer(StrEnum):
    """Who writes a mark."""

    #: People, with a verb of the command line or by themselves.
    PEOPLE = "people"
    #: The door, in the name of whoever asks, if it can prove who that is.
    DOOR = "the door"
    #: Whoever makes a Job of a schedule: the control plane, or a person who starts one.
    MAKER = "whoever makes the Job"
    #: `interlock move`.
    MOVE = "interlock move"
    #: The control plane alone.
    PLANE = "the control plane"


class Mark(Struct, frozen=True):
    """What a mark says, on what, who writes it, and when that means something."""

    name: str
    #: The kinds it is for; none for all kinds that can be moved.
    only: tuple[str, ...]
    writer: Writer
    given: Given
    says: str
    is_label: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds it is for."""
        moved = (kind.name for kind in KINDS.values() if kind.moves is not Moves.NOT)
        return self.only or tuple(moved)


_JOB = ("Job",)
_SCHEDULES = ("JobConfig", "ControlledJob")
_HELD = ("Job", *_SCHEDULES)

#: Every mark there is. Anything else with our prefix is refused.
MARKS: tuple[Mark, ...] = (
    Mark(CREATOR_ANNOTATION, _HELD, Writer.DOOR, Given.WITH_OBJECT, "Who created it."),
    Mark(
        REQUEST_ANNOTATION, _JOB, Writer.DOOR, Given.WITH_OBJECT,
        "A digest of the request that it was made of, for whoever asks again with the same key.",
    ),
    Mark(RETRY_OF_ANNOTATION, _JOB, Writer.PEOPLE, Given.WITH_OBJECT, "The Job that it repeats."),
    Mark(
        RELEASE_ANNOTATION, _JOB, Writer.PEOPLE, Given.WHILE_UNKNOWN,
        "A person's word that the Unknown tasks are gone, and why that is sure.",
    ),
    Mark(
        RELEASED_ATTEMPTS_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_UNKNOWN,
        "The attempts that this word is about; about others it says nothing.",
    ),
    Mark(RELEASED_BY_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_UNKNOWN, "Who gave this word."),
    Mark(
        REQUEUE_ANNOTATION, _JOB, Writer.PEOPLE, Given.WHILE_ADMITTED,
        "A person's order to put the Job back, and why.",
    ),
    Mark(
        REQUEUE_ROUND_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_ADMITTED,
        "The round that this order is for; of another it says nothing.",
    ),
    Mark(
        REQUEUED_BY_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_ADMITTED, "Who gave this order."
    ),
    Mark(
        OPERATE_ANNOTATION, _JOB, Writer.PEOPLE, Given.WHILE_OPERATING,
        "A person's order about an operation: retry, roll-back, succeeded, failed or remove.",
    ),
    Mark(
        OPERATE_REASON_ANNOTATION, _JOB, Writer.PEOPLE, Given.WHILE_OPERATING,
        "Why this order was given.",
    ),
    Mark(
        OPERATE_FOR_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_OPERATING,
        "Which intervention this order is; of another it says nothing.",
    ),
    Mark(
        OPERATED_BY_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_OPERATING, "Who gave this order."
    ),
    Mark(
        SUSPEND_REASON_ANNOTATION, _HELD, Writer.PEOPLE, Given.WHILE_STOPPED_OR_HELD,
        "Why it is held back; user-stop on a Job: a person stopped it, for this window.",
    ),
    Mark(
        SUSPENDED_BY_ANNOTATION, _HELD, Writer.DOOR, Given.WHILE_HELD, "Who suspended it."
    ),
    Mark(
        STOPPED_BECAUSE_ANNOTATION, _JOB, Writer.PEOPLE, Given.WHILE_STOPPED,
        "Why it was stopped; written by the schedule, or by a person's verb.",
    ),
    Mark(STOPPED_BY_ANNOTATION, _JOB, Writer.DOOR, Given.WHILE_STOPPED, "Who stopped it."),
    Mark(
        SCHEDULED_AT_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "The due time, or the start of the window, that it was made for.",
    ),
    Mark(
        MANUAL_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "\"true\": a person started it, and no schedule contradicts that.",
    ),
    Mark(
        RUN_ID_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "Its number among the Jobs of its ControlledJob.",
    ),
    Mark(
        TEMPLATE_HASH_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "What the template was when it was made.",
    ),
    Mark(
        STOPS_AT_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "The stop that was planned for it: a killAt that differs is a person's.",
    ),
    Mark(
        TAKES_OVER_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "The Job whose place it takes.",
    ),
    Mark(
        TAKES_OVER_BECAUSE_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "That a person restarted that Job, and why: with these words it is stopped.",
    ),
    Mark(
        TIMEZONE_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "The zone of its ControlledJob when it was made.",
    ),
    Mark(
        OFFSET_ANNOTATION, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "The seconds that its ControlledJob adds to that zone.",
    ),
    Mark(
        PUT_BACK_ANNOTATION, _JOB, Writer.PLANE, Given.NEVER,
        "The uids of the Schedulings that have put it back, and so never claim it again.",
    ),
    Mark(
        NEEDS_BOOKS_ANNOTATION, _JOB, Writer.PLANE, Given.NEVER,
        "It stands in for a Job that a person started, and is in its schedule's books.",
    ),
    Mark(
        CONFIG_LABEL, _JOB, Writer.MAKER, Given.WITH_OBJECT, "The JobConfig that it is of.",
        is_label=True,
    ),
    Mark(
        CONTROLLED_LABEL, _JOB, Writer.MAKER, Given.WITH_OBJECT,
        "The ControlledJob that it is of.", is_label=True,
    ),
    Mark(
        ACCOUNTED_TO_ANNOTATION, ("JobConfig",), Writer.MOVE, Given.UNTIL_ACCOUNTED,
        "It comes from elsewhere: what was due up to then was accounted for there.",
    ),
    Mark(MOVED_TO_ANNOTATION, _HELD, Writer.MOVE, Given.WHILE_HELD, "Where it is being moved."),
    Mark(
        MOVE_ANNOTATION, _HELD, Writer.MOVE, Given.WHILE_HELD,
        "The cluster it goes to, and how it was suspended before.",
    ),
    Mark(
        MOVED_FROM_ANNOTATION, (), Writer.MOVE, Given.WITH_OBJECT,
        "The uid of what it is a copy of.",
    ),
    Mark(
        MOVING_LABEL, _HELD, Writer.MOVE, Given.WHILE_HELD,
        "The server that it comes from, until its move is over.", is_label=True,
    ),
)  # fmt: skip

_BY_PLACE = {
    place: {mark.name: mark for mark in MARKS if mark.is_label is (place == "labels")}
    for place in ("labels", "annotations")
}


def check_marks(old: Resource | None, new: Resource, to: Findings) -> None:
    """Refuse marks of ours that are new or changed and mean nothing now.

    What an object has had all along is nobody's fault today.
    """
    for place, known in _BY_PLACE.items():
        before = _of(old, place)
        for name, text in _of(new, place).items():
            if not name.startswith(PREFIX) or before.get(name) == text:
                continue
            problem = _problem(known, name, old, new)
            if problem:
                to.add(child(f"metadata.{place}", name), problem, text)


def _of(resource: Resource | None, place: str) -> Mapping[str, str]:
    given: Mapping[str, str] = getattr(resource.metadata, place) if resource is not None else {}
    return given


def _problem(known: Mapping[str, Mark], name: str, old: Resource | None, new: Resource) -> str:
    mark = known.get(name)
    if mark is None:
        hint = did_you_mean(name, list(known))
        return f"is not known; names with {PREFIX} are Interlock's own{hint}"
    if new.kind not in mark.kinds:
        return f"is for {' and '.join(f'{kind}s' for kind in mark.kinds)} alone"
    return "" if _MEANS_SOMETHING[mark.given](old, new) else f"may be given {mark.given.value}"


def _is_stopped(old: Resource | None, new: Resource) -> bool:
    return isinstance(new, Job) and new.spec.kill_at is not None and not _is_over(old)


def _is_held(old: Resource | None, new: Resource) -> bool:
    return (
        isinstance(new, Job | JobConfig | ControlledJob) and new.spec.suspend and not _is_over(old)
    )


def _is_over(old: Resource | None) -> bool:
    return isinstance(old, Job) and has_ended(old)


def _is_released(old: Resource | None, new: Resource) -> bool:
    """Whether a release is given for attempts whose fate is unknown at this moment."""
    if not isinstance(old, Job) or not isinstance(new, Job):
        return False
    unknown, named = unknown_attempts(old), released_attempts(new)
    return bool(unknown) and named <= unknown


def _is_put_back(old: Resource | None, new: Resource) -> bool:
    """Whether an order to put a Job back is given for the round that it is in."""
    if not isinstance(old, Job) or has_ended(old) or not is_admitted(old):
        return False
    named = new.metadata.annotations.get(REQUEUE_ROUND_ANNOTATION)
    return named is None or named == str(old.status.execution.round)


def _is_operated(old: Resource | None, new: Resource) -> bool:
    """Whether an order is given about an operation as it is at this moment."""
    if not isinstance(old, Job) or has_ended(old) or not is_admitted(old):
        return False
    named = new.metadata.annotations.get(OPERATE_FOR_ANNOTATION)
    return is_operation(old.spec) and (named is None or named == str(interventions(old)))


def _is_new_to_the_books(old: Resource | None, new: Resource) -> bool:
    assert isinstance(new, JobConfig)
    if not isinstance(old, JobConfig) or new.spec.suspend:
        return True
    return old.status.books.accounted_to is None


_MEANS_SOMETHING: dict[Given, Callable[[Resource | None, Resource], bool]] = {
    Given.WITH_OBJECT: lambda old, _: old is None,
    Given.WHILE_STOPPED: _is_stopped,
    Given.WHILE_HELD: _is_held,
    Given.WHILE_STOPPED_OR_HELD: lambda old, new: _is_stopped(old, new) or _is_held(old, new),
    Given.WHILE_UNKNOWN: _is_released,
    Given.WHILE_ADMITTED: _is_put_back,
    Given.WHILE_OPERATING: _is_operated,
    Given.UNTIL_ACCOUNTED: _is_new_to_the_books,
    Given.NEVER: lambda *_: False,
}

_STAY = (Given.WITH_OBJECT, Given.NEVER)


def with_kept_marks(old: Resource, new: R) -> tuple[R, tuple[str, ...]]:
    """The object with the marks that a change left out and that stay, and their names.

    Whoever writes an object back from a file of their own does not mean them.
    """
    lost: dict[str, dict[str, str]] = {}
    for place, known in _BY_PLACE.items():
        kept = _of(new, place)
        for name, text in _of(old, place).items():
            mark = known.get(name) if name not in kept else None
            if mark is not None and (mark.given in _STAY or _is_over(old)):
                lost.setdefault(place, {})[name] = text
    if not lost:
        return new, ()
    metadata = new.metadata
    for place, marks in lost.items():
        metadata = replace(metadata, **{place: {**_of(new, place), **marks}})
    return replace(new, metadata=metadata), tuple(n for marks in lost.values() for n in marks)


# Who did it


#: A text in which a client tells who gave an order; the name is not its to tell.
_TOLD_BY = re.compile(r"(stopped|restarted) by [^:]*(: .*)?", re.DOTALL)
#: Who says so, in the order of the marks that it is about.
_BY = (
    STOPPED_BY_ANNOTATION,
    SUSPENDED_BY_ANNOTATION,
    RELEASED_BY_ANNOTATION,
    REQUEUED_BY_ANNOTATION,
    OPERATED_BY_ANNOTATION,
)


def completed(old: Resource | None, new: R, person: str) -> R:
    """The object with what the door knows about this write: who asks, and what it is about.

    With nobody proven to be the one who asks (`person` is empty), nobody is named: no client is
    believed about that. What an order is about goes when it is taken back.
    """
    if not isinstance(new, Job | JobConfig | ControlledJob):
        return new
    # What somebody names as secret goes no further than the door.
    new = redacted(new)
    notes = dict(new.metadata.annotations)
    if old is None:
        _sign_creation(new, notes, person)
    else:
        assert isinstance(old, Job | JobConfig | ControlledJob), f"{new.key}: another kind before"
        _sign_suspension(old, new, notes, person)
        if isinstance(old, Job) and isinstance(new, Job):
            _sign_stop(old, new, notes, person)
            _sign_release(old, notes, person)
            _sign_requeue(old, notes, person)
            _sign_operating(old, notes, person)
    made = new
    if notes != new.metadata.annotations:
        made = replace(new, metadata=replace(new.metadata, annotations=notes))
    if isinstance(made, ControlledJob) and made.spec.overrides:
        before = old.spec.overrides if isinstance(old, ControlledJob) else ()
        signed = tuple(_signed(one, before, person) for one in made.spec.overrides)
        if signed != made.spec.overrides:
            made = replace(made, spec=replace(made.spec, overrides=signed))
    return made


def _sign_creation(
    new: Job | JobConfig | ControlledJob, notes: dict[str, str], person: str
) -> None:
    _sign(notes, CREATOR_ANNOTATION, person)
    for name in _BY:
        if name in notes or (name == SUSPENDED_BY_ANNOTATION and new.spec.suspend):
            _sign(notes, name, person)
    _take_out_name(notes)


def _sign(notes: dict[str, str], mark: str, person: str) -> None:
    """Name who asks, in the place of whom the client names; nobody, if nobody is proven to."""
    if person:
        notes[mark] = person
    else:
        notes.pop(mark, None)


def _forget(old: Resource, notes: dict[str, str], about: str, by: str, *, person: str) -> None:
    """Take away what belonged to an order that is taken back; a name without one is no other's."""
    if not _changed(old, notes, about):
        notes.pop(about, None)
    if not _changed(old, notes, by):
        notes.pop(by, None)
    elif by in notes:
        _sign(notes, by, person)


def _take_out_name(notes: dict[str, str]) -> None:
    because = _TOLD_BY.fullmatch(notes.get(STOPPED_BECAUSE_ANNOTATION, ""))
    if because is not None:
        notes[STOPPED_BECAUSE_ANNOTATION] = because[1] + (because[2] or "")


def _changed(old: Resource, notes: Mapping[str, str], *names: str) -> bool:
    before = old.metadata.annotations
    # Most writes change none at all.
    return before != notes and any(before.get(name) != notes.get(name) for name in names)


def _sign_stop(old: Job, new: Job, notes: dict[str, str], person: str) -> None:
    told = (STOPPED_BECAUSE_ANNOTATION, STOPPED_BY_ANNOTATION)
    if new.spec.kill_at is None:
        if not _changed(old, notes, STOPPED_BY_ANNOTATION):
            notes.pop(STOPPED_BY_ANNOTATION, None)
    elif old.spec.kill_at != new.spec.kill_at or _changed(old, notes, *told):
        _sign(notes, STOPPED_BY_ANNOTATION, person)
        if _changed(old, notes, STOPPED_BECAUSE_ANNOTATION):
            _take_out_name(notes)


def _sign_suspension(
    old: Job | JobConfig | ControlledJob,
    new: Job | JobConfig | ControlledJob,
    notes: dict[str, str],
    person: str,
) -> None:
    told = (SUSPEND_REASON_ANNOTATION, SUSPENDED_BY_ANNOTATION)
    if not new.spec.suspend:
        if not _changed(old, notes, SUSPENDED_BY_ANNOTATION):
            notes.pop(SUSPENDED_BY_ANNOTATION, None)
    elif _suspension(old) != _suspension(new) or _changed(old, notes, *told):
        _sign(notes, SUSPENDED_BY_ANNOTATION, person)


def _suspension(resource: Job | JobConfig | ControlledJob) -> tuple[bool, str]:
    reason = resource.spec.suspend_reason if isinstance(resource, Job) else ""
    return resource.spec.suspend, reason


def _sign_release(old: Job, notes: dict[str, str], person: str) -> None:
    about = (RELEASED_ATTEMPTS_ANNOTATION, RELEASED_BY_ANNOTATION)
    if RELEASE_ANNOTATION not in notes:
        _forget(old, notes, *about, person=person)
        return
    if not _changed(old, notes, RELEASE_ANNOTATION, *about):
        return
    if not _changed(old, notes, RELEASED_ATTEMPTS_ANNOTATION):
        notes[RELEASED_ATTEMPTS_ANNOTATION] = ",".join(sorted(unknown_attempts(old)))
    _sign(notes, RELEASED_BY_ANNOTATION, person)


def _sign_requeue(old: Job, notes: dict[str, str], person: str) -> None:
    about = (REQUEUE_ROUND_ANNOTATION, REQUEUED_BY_ANNOTATION)
    if REQUEUE_ANNOTATION not in notes:
        _forget(old, notes, *about, person=person)
        return
    if not _changed(old, notes, REQUEUE_ANNOTATION, *about):
        return
    if not _changed(old, notes, REQUEUE_ROUND_ANNOTATION):
        notes[REQUEUE_ROUND_ANNOTATION] = str(old.status.execution.round)
    _sign(notes, REQUEUED_BY_ANNOTATION, person)


def _sign_operating(old: Job, notes: dict[str, str], person: str) -> None:
    about = (OPERATE_FOR_ANNOTATION, OPERATED_BY_ANNOTATION)
    if OPERATE_ANNOTATION not in notes:
        _forget(old, notes, *about, person=person)
        return
    given = (OPERATE_ANNOTATION, OPERATE_REASON_ANNOTATION)
    if not _changed(old, notes, *given, *about):
        return
    if not _changed(old, notes, OPERATE_FOR_ANNOTATION):
        notes[OPERATE_FOR_ANNOTATION] = str(interventions(old))
    _sign(notes, OPERATED_BY_ANNOTATION, person)


def _signed(one: Override, before: tuple[Override, ...], person: str) -> Override:
    """An exception in the name of whoever makes or changes it; one that was there keeps its own."""
    for known in before:
        if replace(known, by="") == replace(one, by=""):
            return known
    return one if one.by == person else replace(one, by=person)
