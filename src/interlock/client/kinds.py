"""The kinds that can be typed: as the registry says, or as the copy of it that is fast to read.

A process that has the registry (`interlock.resources.kinds`) already reads that, and so knows what
was registered in it. Others do without: its types take longer to load than most commands last. They
read `kind_table`, which `make docs` writes.
"""

from __future__ import annotations

import sys

from interlock.client.errors import BAD_INPUT, CommandError, did_you_mean
from interlock.client.http_client import quote
from interlock.client.kind_table import ROWS

_OURS = "interlock.dev/v1alpha1"


class Kind:
    """What the command line needs to know of a kind."""

    __slots__ = ("api_version", "moves", "name", "namespaced", "plural", "short_names")

    def __init__(
        self,
        name: str,
        plural: str,
        short_names: tuple[str, ...],
        api_version: str,
        namespaced: bool,
        moves: str,
    ) -> None:
        self.name = name
        self.plural = plural
        self.short_names = short_names
        self.api_version = api_version
        self.namespaced = namespaced
        #: How `interlock move` takes it to a cluster; empty when it stays.
        self.moves = moves

    @property
    def is_ours(self) -> bool:
        """Whether it is one of Interlock's own kinds."""
        return self.api_version == _OURS

    @property
    def singular(self) -> str:
        """The kind as it stands before a name: `job/x`."""
        return self.name.lower()

    def path(self, namespace: str | None = None, name: str = "") -> str:
        """Where the API serves the kind, its resources in a namespace, or one of them."""
        root = "/apis/" if "/" in self.api_version else "/api/"
        parts = [root + self.api_version]
        if self.namespaced and namespace is not None:
            parts.append(f"namespaces/{quote(namespace)}")
        parts.append(self.plural)
        if name:
            parts.append(quote(name))
        return "/".join(parts)


_REGISTRY = sys.modules.get("interlock.resources.kinds")
KINDS: tuple[Kind, ...] = tuple(
    Kind(*row) for row in (ROWS if _REGISTRY is None else _REGISTRY.rows())
)
_BY_NAME = {kind.name: kind for kind in KINDS}
JOBS = _BY_NAME["Job"]
JOB_CONFIGS = _BY_NAME["JobConfig"]
CONTROLLED_JOBS = _BY_NAME["ControlledJob"]
CALENDARS = _BY_NAME["Calendar"]

#: What does something alike of a schedule, for verbs that are about Jobs or the other kind.
_INSTEAD = {
    ("kill", "ControlledJob"): "interlock stop controlledjob/{name}",
    ("kill", "JobConfig"): "interlock suspend jobconfig/{name} keeps it from making more Jobs",
    ("start", "JobConfig"): "interlock run {name}",
    ("stop", "JobConfig"): "interlock suspend jobconfig/{name} keeps it from making more Jobs",
    ("wait", "ControlledJob"): "wait for its Job, which interlock why controlledjob/{name} names",
    ("wait", "JobConfig"): "wait for one of its Jobs; interlock why jobconfig/{name} names them",
}

_BY_WORD: dict[str, Kind] = {
    word: kind
    for kind in KINDS
    for word in (
        kind.singular,
        kind.plural,
        *kind.short_names,
        f"{kind.plural}.{kind.api_version.rpartition('/')[0]}".rstrip("."),
    )
}


def kind_named(word: str) -> Kind:
    """The kind that somebody typed, in any of its spellings."""
    kind = _BY_WORD.get(word.lower())
    if kind is None:
        hint = did_you_mean(word.lower(), _BY_WORD)
        known = ", ".join(kind.plural for kind in KINDS)
        raise CommandError(
            f"there is no kind {word!r}", hint=hint or f"there are: {known}", code=BAD_INPUT
        )
    return kind


def is_kind(word: str) -> bool:
    """Whether it is one of the spellings of a kind."""
    return word.lower() in _BY_WORD


def kind_of(document: dict[str, object]) -> Kind:
    """The kind of a document that was read from a file."""
    return kind_named(str(document.get("kind") or ""))


def parse_names(words: list[str]) -> list[tuple[Kind, str]]:
    """What `KIND NAME...`, `KIND,KIND` or `KIND/NAME...` names; an empty name means all of it."""
    if not words:
        known = ", ".join(kind.plural for kind in KINDS)
        raise CommandError("which kind?", hint=f"there are: {known}", code=BAD_INPUT)
    if any("/" in word for word in words):
        return [_parse_pair(word) for word in words]
    first, *names = words
    kinds = [kind_named(word) for word in first.split(",") if word]
    return [(kind, name) for kind in kinds for name in names or [""]]


def _parse_pair(word: str) -> tuple[Kind, str]:
    kind, slash, name = word.partition("/")
    if not slash or not name:
        raise CommandError(
            f"{word!r} is not of the form KIND/NAME",
            hint="write every one as KIND/NAME, or the kind once: KIND NAME NAME",
            code=BAD_INPUT,
        )
    return kind_named(kind), name


def job_name(word: str, *, verb: str = "") -> str:
    """The name in NAME or job/NAME, for verbs that are about Jobs alone."""
    return parse_name(word, JOBS, verb=verb)[1]


def instead_of(verb: str, kind: Kind, name: str) -> str:
    """What to type instead of a verb that is not about the kind; empty when nothing is alike."""
    return _INSTEAD.get((verb, kind.name), "").format(name=name)


def parse_name(word: str, *among: Kind, verb: str = "") -> tuple[Kind, str]:
    """What NAME or KIND/NAME names, for verbs that are about some kinds; NAME is of the first."""
    typed, slash, name = word.rpartition("/")
    kind = kind_named(typed) if slash else among[0]
    if kind not in among:
        known = " or ".join(one.name for one in among)
        hint = instead_of(verb, kind, name)
        raise CommandError(f"{word!r} is not a {known}", hint=hint, code=BAD_INPUT)
    if not name:
        raise CommandError(
            f"{word!r} names nothing", hint=f"write {kind.singular}/NAME", code=BAD_INPUT
        )
    return kind, name
