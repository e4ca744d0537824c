"""Not-found errors: what to say when no resource has the name that was typed."""

from __future__ import annotations

from contextlib import contextmanager

from interlock.client.errors import AnswerError, did_you_mean
from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, Kind, instead_of
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: So many names are looked through for one that was probably meant.
_MOST = 500


@contextmanager
def found(
    session: Session, kind: Kind, name: str, hint: str = "", *, verb: str = ""
) -> Iterator[None]:
    """Add to the error about a missing resource what was probably meant.

    `verb` is what does, or tells, something alike of a schedule that has the name.
    """
    try:
        yield
    except AnswerError as error:
        if error.status == 404 and not error.hint:
            error.hint = _meant(session, kind, name, verb) or hint
        raise


def exists(session: Session, kind: Kind, name: str) -> bool:
    """Whether there is such a resource."""
    try:
        session.api.get(kind, session.namespace, name)
    except AnswerError as error:
        if error.status != 404:
            raise
        return False
    return True


def same_name(session: Session, name: str, kinds: tuple[Kind, ...]) -> str:
    """The way to write what has this name among some kinds; empty when nothing has."""
    written = [f"{kind.singular}/{name}" for kind in kinds if exists(session, kind, name)]
    return f"did you mean `{written[0]}`?" if written else ""


def other_verb(session: Session, name: str, verb: str) -> str:
    """What to type instead, when what has the name is a schedule."""
    try:
        for kind in (CONTROLLED_JOBS, JOB_CONFIGS):
            hint = instead_of(verb, kind, name)
            if hint and exists(session, kind, name):
                return f"{name} is a {kind.name}: {hint}"
    except AnswerError:
        pass  # It is only a hint.
    return ""


def _meant(session: Session, kind: Kind, name: str, verb: str) -> str:
    """A near name of the same kind, or the same name of another kind."""
    try:
        if exists(session, kind, name):
            return ""  # Something of it is missing, not itself.
        for other, usual in ((JOB_CONFIGS, "run"), (CONTROLLED_JOBS, "start")):
            if other is not kind and exists(session, other, name):
                order = f"{verb} {other.singular}/{name}" if verb else f"{usual} {name}"
                return f"{name} is a {other.name}: interlock {order}"
        page = session.api.call("GET", kind.path(session.namespace), {"limit": _MOST})
    except AnswerError:
        return ""
    return did_you_mean(name, [item["metadata"]["name"] for item in page.get("items") or []])
