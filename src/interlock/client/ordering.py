"""Orders to a server: stop, retry, skip and all the others that a person may give.

Our own server carries an order out by itself, in the name that it has proven
(`interlock.api.actions`): it is told what is wanted, and tells what came of it. A cluster has
nothing that would, so there it is done here, with the rights of whoever asks
(`interlock.client.cluster.ordering`). Either way the rules are those of `interlock.commands`, which
take longer to load than most orders last: they are loaded for a cluster alone.
"""

from __future__ import annotations

from interlock.client.errors import AnswerError
from interlock.client.http_client import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from interlock.client.api import Api
    from interlock.client.kinds import Kind

    Item = dict[str, Any]

#: The causes of a refusal that tell what to do about it, and what was given for an option.
_SUGGESTION, _FOUND = "Suggestion", "Found"
#: What a server says before it tells several of them.
_OF_OPTIONS = "the body cannot be used: "
#: Options of commands that are typed by another name.
_FLAGS = {"lasts": "for"}


class Place:
    """Where an order is carried out, and who gives it."""

    __slots__ = ("api", "namespace", "on_cluster", "person")

    def __init__(self, api: Api, namespace: str, person: str, *, on_cluster: bool) -> None:
        self.api = api
        self.namespace = namespace
        #: Who says to ask, for a cluster without our webhook; a server of ours is not told.
        self.person = person
        self.on_cluster = on_cluster


class Carried:
    """What came of an order."""

    __slots__ = ("items", "lines", "warnings")

    def __init__(self, lines: tuple[str, ...], items: list[Item], warnings: tuple[str, ...]):
        #: What people are told.
        self.lines = lines
        #: The resources as they are stored now: first the one that was changed or made.
        self.items = items
        #: What does not come of it although it was asked for.
        self.warnings = warnings


def carry_out(
    where: Place,
    kind: Kind,
    name: str,
    order: str,
    how: Mapping[str, object],
    *,
    dry_run: bool = False,
) -> Carried:
    """Give one resource an order; options that are None were not given.

    Raises:
        AnswerError: It is refused; nothing was changed.
    """
    given = {option: value for option, value in how.items() if value is not None}
    if where.on_cluster:
        from interlock.client.cluster.ordering import carry_out_given

        return carry_out_given(where, kind, name, order, given, dry_run=dry_run)
    path = f"/{kind.plural}/{quote(where.namespace)}/{quote(name)}/{order}"
    query = {"dryRun": "All" if dry_run else ""}
    try:
        answer = where.api.call("POST", path, query, given)
    except AnswerError as error:
        _tell_in_flags(error)
        raise
    return Carried(
        tuple(answer["message"].split("\n")),
        [answer["object"], *answer.get("also", ())],
        tuple(answer.get("warnings", ())),
    )


def _tell_in_flags(error: AnswerError) -> None:
    """Have the refusal of an order name flags, where the server names options."""
    causes = {str(cause.get("reason")): cause for cause in error.causes}
    if hint := causes.get(_SUGGESTION):
        error.hint = hint.get("message", "")
    found = causes.get(_FOUND, {}).get("message", "")
    wrong = [(cause["field"], cause["message"]) for cause in error.causes if cause.get("field")]
    # What is wrong with other things than options is told in words for people already.
    told_so = error.message.removeprefix(_OF_OPTIONS)
    if wrong and told_so == "; ".join(f"{path}: {told}" for path, told in wrong):
        error.message = "\n".join(flag_told(path, told, found) for path, told in wrong)


def flag_told(option: str, message: str, found: str = "") -> str:
    """What is wrong with an option, by the name that it is typed by."""
    given = f" {found!r}" if found else ""
    return f"--{_FLAGS.get(option, option)}{given}: {message}"
