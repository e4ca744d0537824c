"""A change that files propose: what it concerns, and both sides of it."""

from __future__ import annotations

import sys
from typing import Any

from interlock.client.errors import BAD_INPUT, OK, AnswerError
from interlock.client.kinds import (
    CALENDARS,
    CONTROLLED_JOBS,
    JOB_CONFIGS,
    JOBS,
    Kind,
    kind_named,
)
from interlock.client.schedules import noun_of
from interlock.forecast.plan import (
    Change,
    Proposal,
    Surroundings,
    Verdict,
    different_fields,
    written,
)
from interlock.modes.cli.applying import Wanted, apply, read_wanted
from interlock.modes.cli.input.documents import refused_by_server
from interlock.modes.cli.main import tell
from interlock.modes.cli.rehearsal.definitions import listed
from interlock.modes.cli.session import Session
from interlock.resources.codec import encode
from interlock.resources.metadata import Resource

_LOCKS = kind_named("locks")
_SCHEDULES = (JOB_CONFIGS, CONTROLLED_JOBS)


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
    fields = tuple(different_fields(written(before), written(after))) if before else ()
    return Proposal(
        verdict=Verdict(verdict),
        fields=fields,
        change=Change(_noun(wanted, before) if before else None, _noun(wanted, after)),
    )


def _noun(wanted: Wanted, item: dict[str, Any]) -> Resource:
    return noun_of(wanted.kind, wanted.name, encode(item))


def read_surroundings(session: Session, proposals: list[Proposal]) -> Surroundings:
    """What is stored around a change."""
    namespaces = {one.key.namespace for one in proposals if one.key.namespace}
    kinds = _SCHEDULES if any(one.key.kind == "Calendar" for one in proposals) else ()

    def every(*wanted: Kind) -> tuple[Resource, ...]:
        found = (listed(session.api, kind, name) for kind in wanted for name in sorted(namespaces))
        return tuple(one for some in found for one in some)

    return Surroundings(
        calendars=every(CALENDARS), schedules=every(*kinds), jobs=every(JOBS), locks=every(_LOCKS)
    )
