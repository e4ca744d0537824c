"""Making what is stored what a document says, as `kubectl apply` does it."""

from __future__ import annotations

from typing import Any

from interlock.modes.cli.documents import Given
from interlock.modes.cli.errors import BAD_INPUT, CONFLICT, AnswerError, CommandError
from interlock.modes.cli.kinds import Kind, kind_of
from interlock.modes.cli.merging import last_applied, three_way_patch, with_last_applied
from interlock.modes.cli.session import Session

#: How often somebody else may create or delete the same thing in between.
_ROUNDS = 5


class Wanted:
    """A document, with the place where it belongs."""

    def __init__(self, session: Session, given: Given, namespace: str | None) -> None:
        self.given = given
        self.kind: Kind = kind_of(given.data)
        metadata = dict(given.data.get("metadata") or {})
        self.name = str(metadata.get("name") or "")
        if not self.name:
            raise CommandError(
                f"{given.file}, line {given.line}: {self.kind.name} has no name",
                hint="give it metadata.name: what is applied must be found again",
                code=BAD_INPUT,
            )
        self.namespace = str(metadata.get("namespace") or session.namespace)
        if namespace and self.kind.namespaced and self.namespace != namespace:
            raise CommandError(
                f"{given.file}: {given.title} is for namespace {self.namespace}, not {namespace}",
                code=BAD_INPUT,
            )
        if self.kind.namespaced:
            metadata["namespace"] = self.namespace
        self.data: dict[str, Any] = {**given.data, "metadata": metadata}
        #: The server alone writes a status; a file that was read from it may have one.
        self.data.pop("status", None)

    def __str__(self) -> str:
        return f"{self.kind.singular}/{self.name}"


def wanted_from(session: Session, found: list[Given], namespace: str | None) -> list[Wanted]:
    """The documents in the order to apply them: namespaces before what is in them."""
    wanted = [Wanted(session, given, namespace) for given in found]
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
    # A file may say what is the default anyway; then the server has nothing to store. The version
    # does not tell: the status may have moved on meanwhile.
    same = _lasting(changed) == _lasting(stored)
    return "unchanged" if same else "configured", stored, changed


def _lasting(item: dict[str, Any]) -> dict[str, Any]:
    """What stays as it is until somebody changes the definition."""
    moving = ("resourceVersion", "managedFields")
    metadata = {name: value for name, value in item["metadata"].items() if name not in moving}
    return {**item, "metadata": metadata, "status": None}
