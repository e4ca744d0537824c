"""A change that files propose: what it concerns, and both sides of it."""

from __future__ import annotations

import sys
from typing import Any

from msgspec import Struct

from interlock.modes.cli.applying import Wanted, apply, read_wanted
from interlock.modes.cli.documents import refused_by_server
from interlock.modes.cli.errors import BAD_INPUT, OK, AnswerError
from interlock.modes.cli.kinds import (
    CALENDARS,
    CONTROLLED_JOBS,
    JOB_CONFIGS,
    JOBS,
    Kind,
    kind_named,
)
from interlock.modes.cli.main import tell
from interlock.modes.cli.merging import without_last_applied
from interlock.modes.cli.schedules import calendars_of, noun_of
from interlock.modes.cli.session import Session
from interlock.modes.cli.timemachine.coming import Definitions
from interlock.modes.cli.timemachine.comparing import Change, Field, different_fields
from interlock.modes.cli.timemachine.defining import listed
from interlock.resources.codec import encode
from interlock.resources.job import Job
from interlock.resources.metadata import Key, Resource
from interlock.resources.transitions import has_ended

_LOCKS = kind_named("locks")
_SCHEDULES = (JOB_CONFIGS, CONTROLLED_JOBS)


class Proposal(Struct, frozen=True, kw_only=True):
    """One object as it is and as it would be."""

    word: str
    #: created, configured, unchanged, or affected: another object that it names would change.
    verdict: str
    fields: tuple[Field, ...]
    change: Change

    @property
    def key(self) -> Key:
        """Which object."""
        return self.change.after.key


def read_proposals(session: Session, args: Any) -> tuple[int, list[Proposal]]:
    """Have the server work out each result without storing it; the exit code if one is refused."""
    code, proposals = OK, []
    for wanted in read_wanted(session, args):
        try:
            verdict, before, after = apply(session, wanted, dry_run=True)
        except AnswerError as error:
            _refused(wanted, error)
            code = max(code, error.code, BAD_INPUT)
            continue
        proposals.append(_proposal(wanted, verdict, before, after))
    return code, proposals


def _refused(wanted: Wanted, error: AnswerError) -> None:
    refusal = refused_by_server(wanted.given, error)
    if refusal is None:
        tell(error)
    else:
        print("\n".join(refusal.lines()), file=sys.stderr)


def _proposal(
    wanted: Wanted, verdict: str, before: dict[str, Any] | None, after: dict[str, Any]
) -> Proposal:
    fields = tuple(different_fields(_written(before), _written(after))) if before else ()
    return Proposal(
        word=str(wanted),
        verdict=verdict,
        fields=fields,
        change=Change(_noun(wanted, before) if before else None, _noun(wanted, after)),
    )


def _noun(wanted: Wanted, item: dict[str, Any]) -> Resource:
    return noun_of(wanted.kind, wanted.name, encode(item))


def _written(item: dict[str, Any]) -> dict[str, Any]:
    """What a person wrote, with the fields of the spec at the top."""
    plain = without_last_applied(item)
    metadata = plain["metadata"]
    kept = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    return {**(plain.get("spec") or {}), **({"metadata": kept} if kept else {})}


class State:
    """What is stored around a change."""

    def __init__(self, session: Session, proposals: list[Proposal]) -> None:
        self._api = session.api
        namespaces = {one.key.namespace for one in proposals if one.key.namespace}
        self._calendars = list(self._all(CALENDARS, namespaces))
        self._schedules: list[Resource] = []
        if any(one.key.kind == "Calendar" for one in proposals):
            self._schedules = [one for kind in _SCHEDULES for one in self._all(kind, namespaces)]
        self._jobs = list(self._all(JOBS, namespaces))
        self._locks = list(self._all(_LOCKS, namespaces))

    def _all(self, kind: Kind, namespaces: set[str]) -> list[Resource]:
        return [one for name in sorted(namespaces) for one in listed(self._api, kind, name)]

    def affected(self, proposals: list[Proposal]) -> list[Proposal]:
        """The proposals, and the schedules that name a calendar that would change."""
        calendars = {
            (one.key.namespace, one.key.name)
            for one in proposals
            if one.key.kind == "Calendar" and one.verdict != "unchanged"
        }
        known = {one.key for one in proposals}
        others = [
            Proposal(
                word=f"{one.kind.lower()}/{one.metadata.name}",
                verdict="affected",
                fields=(),
                change=Change(one, one),
            )
            for one in self._schedules
            if one.key not in known
            and any((one.metadata.namespace, name) in calendars for name in calendars_of(one))
        ]
        return [*proposals, *others]

    def definitions(self, proposals: list[Proposal], *, changed: bool) -> Definitions:
        """The schedules without the change, or with it."""
        made = Definitions()
        for calendar in self._calendars:
            if not changed or calendar.key not in {one.key for one in proposals}:
                made.add(calendar)
        for one in proposals:
            side = one.change.after if changed else one.change.before
            if side is not None:
                made.add(side)
        return made

    def stored(self, proposals: list[Proposal]) -> list[Resource]:
        """Everything that the decisions about a change may depend on, as it is stored."""
        before = [one.change.before for one in proposals if one.change.before is not None]
        keys = {one.key for one in before}
        owners = {one.metadata.uid for one in before}
        around = [one for one in (*self._calendars, *self._locks) if one.key not in keys]
        jobs = [
            one
            for one in self._jobs
            if isinstance(one, Job)
            and one.key not in keys
            and (not has_ended(one) or any(o.uid in owners for o in one.metadata.owner_references))
        ]
        return [*before, *around, *jobs]
