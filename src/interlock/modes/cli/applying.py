"""Making what is stored what a document says, as `kubectl apply` does it."""

from __future__ import annotations

from typing import Any

from interlock.client.errors import CONFLICT, AnswerError, CommandError
from interlock.client.kinds import Kind, kind_of
from interlock.commands.applying import written
from interlock.commands.merging import last_applied, three_way_patch, with_last_applied
from interlock.errors import Problem
from interlock.modes.cli.input.documents import Given, read_all, refusals_of, refuse
from interlock.modes.cli.session import Session
from interlock.resources.kinds import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

#: How often somebody else may create or delete the same thing in between.
_ROUNDS = 5


class Wanted:
    """A document, with the place where it belongs."""

    def __init__(self, session: Session, given: Given) -> None:
        self.given = given
        self.kind: Kind = kind_of(given.data)
        metadata = dict(given.data.get("metadata") or {})
        self.name = str(metadata.get("name") or "")
        self.namespace = str(metadata.get("namespace") or session.namespace)
        if self.kind.namespaced:
            metadata["namespace"] = self.namespace
        self.data: dict[str, Any] = {**given.data, "metadata": metadata}
        #: The server alone writes a status; a file that was read from it may have one.
        self.data.pop("status", None)

    def __str__(self) -> str:
        return f"{self.kind.singular}/{self.name}"


def read_wanted(session: Session, args: Namespace) -> list[Wanted]:
    """The documents of the files that were typed, once all of them were found good.

    Raises:
        CommandError: One is not good, or has no place to go: nothing is done about any of them.
    """
    reading = read_all(args.filename, recursive=args.recursive)
    refusals = refusals_of(
        reading.found,
        namespace=session.namespace,
        placing=lambda given: misplaced(given, args.namespace),
    )
    refuse(reading.flaws, refusals)
    return wanted_from(session, reading.found)


def misplaced(given: Given, namespace: str | None) -> tuple[Problem, ...]:
    """What keeps a document from being applied, in this namespace if one was typed."""
    metadata = given.data.get("metadata")
    if not isinstance(metadata, dict) or given.data.get("kind") not in KINDS:
        return ()
    problems = []
    if metadata.get("generateName") and not metadata.get("name"):
        message = "what is applied must be found again: give it metadata.name"
        problems.append(Problem("metadata.generateName", message, metadata["generateName"]))
    place = metadata.get("namespace")
    if namespace and place and place != namespace and KINDS[given.data["kind"]].namespaced:
        problems.append(Problem("metadata.namespace", f"expected {namespace}, as -n says", place))
    return tuple(problems)


def wanted_from(session: Session, found: list[Given]) -> list[Wanted]:
    """The documents in the order to apply them: namespaces before what is in them."""
    wanted = [Wanted(session, given) for given in found]
    return sorted(wanted, key=lambda one: one.kind.name != "Namespace")


def read_stored(session: Session, wanted: Wanted) -> dict[str, Any] | None:
    """What is stored under that name; None when nothing is."""
    try:
        return session.api.get(wanted.kind, wanted.namespace, wanted.name)
    except AnswerError as error:
        if error.status != 404:
            raise
        return None


def apply(
    session: Session, wanted: Wanted, *, dry_run: bool = False
) -> tuple[str, dict[str, Any] | None, dict[str, Any]]:
    """Create or change; says which, with what was stored before and what is stored now."""
    for _ in range(_ROUNDS):
        stored = read_stored(session, wanted)
        try:
            if stored is None:
                return "created", None, _create(session, wanted, dry_run)
            return _change(session, wanted, stored, dry_run)
        except AnswerError as error:
            gone = error.status == 404 and stored is not None
            if not gone and error.reason not in ("AlreadyExists", "Conflict"):
                raise
    raise CommandError(f"{wanted} changes too fast to be applied: try again", code=CONFLICT)


def _create(session: Session, wanted: Wanted, dry_run: bool) -> dict[str, Any]:
    made: dict[str, Any] = session.api.create(
        wanted.kind, wanted.namespace, with_last_applied(wanted.data), dry_run=dry_run
    )
    return made


def _change(
    session: Session, wanted: Wanted, stored: dict[str, Any], dry_run: bool
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    patch = three_way_patch(last_applied(stored), with_last_applied(wanted.data), stored)
    if not patch:
        return "unchanged", stored, stored
    changed: dict[str, Any] = session.api.patch(
        wanted.kind, wanted.namespace, wanted.name, patch, dry_run=dry_run
    )
    # A file may say what is the default anyway, or what was stored in another way: then there is
    # nothing to change but the record of what was applied.
    same = written(changed) == written(stored)
    return "unchanged" if same else "configured", stored, changed
