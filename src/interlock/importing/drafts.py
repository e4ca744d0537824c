"""What an import makes: objects that are good, and notes about what is not as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from interlock.errors import BadRequestError, InvalidError
from interlock.findings import MAX_TOLD, shortened
from interlock.importing.naming import fitting_name, unused_name
from interlock.resources.door.validation import read_resource
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import API_VERSION
from interlock.resources.naming import (
    MAX_CONFIG_NAME,
    MAX_CONTROLLED_NAME,
    MAX_JOB_NAME,
    MAX_LABEL,
)

#: Patterns of fields of ours, each with what the source calls them.
Paths = Sequence[tuple[str, str]]
#: The longest names.
LONGEST = {
    "JobConfig": MAX_CONFIG_NAME,
    "ControlledJob": MAX_CONTROLLED_NAME,
    "Calendar": MAX_LABEL,
    "Queue": MAX_LABEL,
    "Cohort": MAX_LABEL,
    "Job": MAX_JOB_NAME,
}


class Wishes(NamedTuple):
    """What the person who imports asks for."""

    #: The file, as it is called in the report and in names.
    file: str
    #: Put into every object; None keeps what the source says.
    namespace: str | None = None
    #: Put before every name.
    prefix: str = ""
    #: The zone of whatever leaves it to the machine it runs on; None is UTC, and told.
    timezone: str | None = None
    #: Whether a crontab has a column with users; None is for the file to tell.
    has_users: bool | None = None
    #: People who have an account where the import is made: a crontab may name them.
    people: frozenset[str] = frozenset()
    #: Which program wrote the cron lines.
    dialect: str = ""
    #: Only clock changes after this moment are told of.
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)


class Note(NamedTuple):
    """Something that is not as it was: where, what, why, and what is done instead."""

    line: int
    where: str
    what: str
    why: str
    instead: str


class Flaw(NamedTuple):
    """Something that makes no sense in the source: what it is part of is left out."""

    line: int
    message: str
    #: The definition that it is part of.
    where: str = "this line"


class BadSourceError(Exception):
    """The file, or a definition in it, cannot be read as what it is said to be."""

    def __init__(self, flaws: Iterable[Flaw]) -> None:
        self.flaws = tuple(flaws)
        super().__init__("; ".join(f"line {flaw.line}: {flaw.message}" for flaw in self.flaws))


class Draft:
    """What was made so far of one file."""

    def __init__(self, wishes: Wishes) -> None:
        self.wishes = wishes
        self.objects: list[dict[str, Any]] = []
        self.notes: list[Note] = []
        #: Definitions of the source that became no object.
        self.left_out = 0
        #: Objects whose schedules got the zone of `zone`, because the source names none.
        self.without_zone = 0
        self._told: set[Note] = set()
        self._names: dict[tuple[str, str], set[str]] = {}
        #: The names in the order in which they were given.
        self._named: list[tuple[tuple[str, str], str]] = []
        self._flaws: list[Flaw] = []

    def note(self, line: int, where: str, what: str, why: str, instead: str) -> None:
        """Write down one thing that does not carry over."""
        note = Note(line, where, what, why, instead)
        if note not in self._told:
            self._told.add(note)
            self.notes.append(note)

    def leave_out(self, line: int, where: str, why: str, instead: str = "it is left out") -> None:
        """Write down a definition that becomes no object."""
        self.left_out += 1
        self.note(line, where, "is not imported", why, instead)

    def attempt(self, take: Callable[[], object]) -> None:
        """Take one definition wholly, or nothing of it when it makes no sense.

        What is wrong is told by `settle`.
        """
        objects, notes, names = len(self.objects), len(self.notes), len(self._named)
        left_out, without_zone = self.left_out, self.without_zone
        try:
            take()
        except BadSourceError as error:
            self._flaws.extend(error.flaws)
        else:
            return
        del self.objects[objects:]
        self._told.difference_update(self.notes[notes:])
        del self.notes[notes:]
        for key, name in self._named[names:]:
            self._names[key].discard(name)
        del self._named[names:]
        self.left_out, self.without_zone = left_out, without_zone

    @property
    def has_flaws(self) -> bool:
        """Whether something made no sense so far."""
        return bool(self._flaws)

    def flaw(self, flaw: Flaw) -> None:
        """Write down something that makes no sense; `settle` tells it."""
        self._flaws.append(flaw)

    def settle(self) -> None:
        """Tell what made no sense, now that all of the file was looked at.

        Raises:
            BadSourceError: There is nothing else in the file.
        """
        flaws, self._flaws = self._flaws, []
        if flaws and not self.objects and not self.left_out:
            raise BadSourceError(flaws[:MAX_TOLD])
        for flaw in flaws:
            self.leave_out(flaw.line, flaw.where, flaw.message)

    @property
    def zone(self) -> str:
        """The zone of whatever names none."""
        return self.wishes.timezone or "UTC"

    def by_hand(self, name: str, namespace: str = "") -> str:
        """What to type to run a JobConfig that has no schedule."""
        namespace = self.wishes.namespace or namespace
        return f"`interlock run {name}{f' -n {namespace}' if namespace else ''}`"

    def name_for(self, kind: str, wanted: str, namespace: str = "") -> str:
        """A good name near the wanted one, which no other object of this import has."""
        prefix = f"{self.wishes.prefix}-" if self.wishes.prefix else ""
        longest = LONGEST[kind]
        key = (kind, namespace)
        taken = self._names.setdefault(key, set())
        name = unused_name(fitting_name(prefix + wanted, longest), longest, taken)
        taken.add(name)
        self._named.append((key, name))
        return name

    def add(
        self,
        line: int,
        where: str,
        kind: str,
        name: str,
        *,
        paths: Paths = (),
        is_zoned: bool = True,
        **parts: Any,
    ) -> None:
        """Take an object, if it passes the door; else tell why not, in the words of the source.

        `parts` are its spec, and further metadata. `paths` are what our fields are called in the
        source: the first that fits counts. `is_zoned` is whether the source names its zone.
        """
        metadata = {"name": name, **parts.pop("metadata", {})}
        if self.wishes.namespace and KINDS[kind].namespaced:
            metadata["namespace"] = self.wishes.namespace
        made = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **parts}
        try:
            read_resource(made)
        except InvalidError as error:
            told = "; ".join(
                dict.fromkeys(
                    f"{in_words_of(paths, problem.path)}: {problem.message}"
                    for problem in error.problems[:5]
                )
            )
            self.leave_out(line, where, f"Interlock would refuse it: {told}")
        except BadRequestError as error:
            self.leave_out(line, where, f"Interlock would refuse it: {error}")
        else:
            self.objects.append(made)
            self.without_zone += not is_zoned


def in_words_of(paths: Paths, path: str) -> str:
    """A field of ours as the source calls it."""
    for ours, theirs in paths:
        if found := re.match(rf"{ours}(?![A-Za-z0-9])", path):
            return found.expand(theirs) + path[found.end() :]
    return path


def text_of(source: bytes) -> str:
    """The text of a file.

    Raises:
        BadSourceError: It is not UTF-8, or holds what no text has.
    """
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise BadSourceError([Flaw(line, "the file is not UTF-8")]) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadSourceError([Flaw(line, "a NUL character: this is no text")])
    return text


def quoted(text: str) -> str:
    """A text of the source, as notes show it."""
    return f'"{shortened(text)}"'
