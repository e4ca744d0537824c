"""Definitions in files: found, read, checked, and refused with the line of every problem."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from typing import Any

from interlock.client.errors import BAD_INPUT, AnswerError, CommandError
from interlock.errors import BadRequestError, InvalidError, Problem
from interlock.findings import shown
from interlock.importing.recognizing import import_for, import_for_text
from interlock.modes.cli.input.files import files_in, nothing_in, read_file
from interlock.modes.cli.main import tell
from interlock.resources.door.manifests import Document, ManifestError, read_manifests
from interlock.resources.door.validation import read_resource
from interlock.resources.kinds import KINDS

#: What the standard input is called.
STANDARD_INPUT = "standard input"


class Given:
    """A document, and the file it stands in."""

    def __init__(self, file: str, document: Document) -> None:
        self.file = file
        #: What to type for the file.
        self.source = "-" if file == STANDARD_INPUT else shlex.quote(file)
        self.data: dict[str, Any] = document.data
        self._document = document

    @property
    def title(self) -> str:
        """What the document calls itself."""
        metadata = self.data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return f"{self.data.get('kind') or 'a document'} {name or '(no name)'}"

    @property
    def line(self) -> int:
        """Where the document begins."""
        return self.line_of("")

    def line_of(self, path: str) -> int:
        """The line of a field, or of the nearest one around it."""
        return self._document.line_of(path)


class Refusal:
    """A document that was refused, and everything that is wrong with it."""

    def __init__(
        self, given: Given, problems: tuple[Problem, ...], *, done: str = "stored"
    ) -> None:
        self.given = given
        #: In the order of the file, as far as their lines are known.
        self.problems = tuple(sorted(problems, key=lambda one: given.line_of(one.path)))
        #: What was not done because of it.
        self._done = done

    def lines(self) -> list[str]:
        """The refusal for people: where, what was found, what to do."""
        title = f"{self.given.file}: {self.given.title} was refused, nothing was {self._done}"
        rows = [
            (f"line {line}" if line else "", problem.path, _found(problem.found), problem.message)
            for problem, line in zip(self.problems, self._lines(), strict=True)
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return [title, *(_in_columns(row, widths) for row in rows)]

    def data(self) -> dict[str, Any]:
        """The refusal for programs."""
        return {
            "file": self.given.file,
            "line": self.given.line,
            "document": self.given.title,
            "problems": [
                {"line": line, "path": p.path, "found": p.found, "message": p.message}
                for p, line in zip(self.problems, self._lines(), strict=True)
            ],
        }

    def _lines(self) -> list[int]:
        return [self.given.line_of(problem.path) for problem in self.problems]


def _in_columns(row: tuple[str, str, str, str], widths: list[int]) -> str:
    """A line of columns; one that is empty in every row takes no room."""
    padded = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False) if width]
    return "  " + "   ".join([*padded, row[3]])


def _found(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


class Reading:
    """What files hold: documents, and what is wrong with the files themselves."""

    def __init__(self) -> None:
        self.found: list[Given] = []
        #: Files that cannot be read, or that are not YAML.
        self.flaws: list[CommandError] = []
        self._read: set[str] = set()

    def add(self, name: str) -> None:
        """Read a file: what is whole of it, up to what is wrong with it.

        One that was named before, or is in a directory that was, is not read again.
        """
        place = name if name == "-" else os.path.realpath(name)
        if place in self._read:
            return
        self._read.add(place)
        shown = STANDARD_INPUT if name == "-" else name
        text = b""
        try:
            text = read_file(name)
            documents = read_manifests(text)
        except CommandError as error:
            self.flaws.append(error)
            return
        except ManifestError as error:
            place = f", line {error.line}" if error.line else ""
            hint = import_for_text(text, shlex.quote(name))
            told = f"{shown}{place}: {error.message}"
            self.flaws.append(CommandError(told, hint=hint, code=BAD_INPUT))
            documents = error.before
        self.found += [Given(shown, document) for document in documents]


def read_all(files: list[str], *, recursive: bool = False) -> Reading:
    """Every document of the files, and of the files in the directories, but not below them."""
    if not files:
        raise CommandError("which files?", hint="name them with -f FILE", code=BAD_INPUT)
    reading = Reading()
    for name in files:
        for file in files_in(name, recursive=recursive):
            if isinstance(file, CommandError):
                reading.flaws.append(file)
            else:
                reading.add(file)
    if not reading.found and not reading.flaws:
        raise nothing_in(files, recursive=recursive)
    return reading


def read_named(files: list[str], *, recursive: bool = False) -> list[Given]:
    """Every document, once all say what they are about; what else they say is not looked at."""
    reading = read_all(files, recursive=recursive)
    refusals = [
        Refusal(given, problems, done="deleted")
        for given in reading.found
        if (problems := _unnamed(given))
    ]
    refuse(reading.flaws, refusals)
    return reading.found


def _unnamed(given: Given) -> tuple[Problem, ...]:
    """What keeps a document from saying which object it is about."""
    problems = []
    kind, metadata = given.data.get("kind"), given.data.get("metadata")
    if kind not in KINDS:
        problems.append(Problem("kind", f"expected {' or '.join(KINDS)}", shown(kind)))
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        problems.append(Problem("metadata.name", "expected the name of what is meant", shown(name)))
    return tuple(problems)


def read_good(files: list[str], *, recursive: bool = False) -> list[Given]:
    """Every document, once all were found good and no two are the same."""
    reading = read_all(files, recursive=recursive)
    refuse(reading.flaws, refusals_of(reading.found))
    return reading.found


def refusal_of(given: Given) -> Refusal | None:
    """What is wrong with a document, as far as it can be told without a server; warnings aside."""
    if other := import_for(given.data, given.source):
        return Refusal(given, (Problem("kind", other, str(given.data.get("kind"))),))
    try:
        _, warnings = read_resource(given.data)
    except InvalidError as error:
        return Refusal(given, error.problems)
    except BadRequestError as error:
        return Refusal(given, (Problem("", str(error)),))
    for warning in warnings:
        print(f"{given.file}: {given.title}: {warning}", file=sys.stderr)
    return None


def refused_by_server(given: Given, error: AnswerError) -> Refusal | None:
    """The server's refusal in the same words; None when it is about something else."""
    if error.status != 422:
        return None
    problems = [
        Problem(str(cause.get("field") or ""), str(cause.get("message") or ""))
        for cause in error.causes
    ]
    return Refusal(given, tuple(problems) or (Problem("", error.message),))


#: Finds what is wrong with where a document is to go.
Placing = Callable[[Given], tuple[Problem, ...]]


def refusals_of(
    found: list[Given], *, namespace: str = "", placing: Placing = lambda _: ()
) -> list[Refusal]:
    """All that is wrong with documents, by themselves and beside each other.

    `namespace` is where those go that name none. Two of the same kind, namespace and name would
    be one object, and whichever comes last would win without a word.
    """
    refusals = []
    first: dict[tuple[str, str, str], Given] = {}
    for given in found:
        own = refusal_of(given)
        problems = (*(own.problems if own else ()), *placing(given))
        key = _key(given.data, namespace)
        before = first.setdefault(key, given) if key is not None else given
        if before is not given:
            place = f"{before.file}, line {before.line_of('metadata.name')}"
            message = f"is defined twice, and first in {place}: leave one of them out"
            problems += (Problem("metadata.name", message, key[2] if key else ""),)
        if problems:
            refusals.append(Refusal(given, problems))
    return refusals


def _key(data: dict[str, Any], namespace: str) -> tuple[str, str, str] | None:
    """What an object is found by; None when it has no name of its own."""
    kind = KINDS.get(str(data.get("kind")))
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        return None
    name = metadata.get("name")
    if kind is None or not isinstance(name, str) or not name:
        return None
    place = str(metadata.get("namespace") or namespace) if kind.namespaced else ""
    return kind.name, place, name


def refuse(flaws: list[CommandError], refusals: list[Refusal]) -> None:
    """Tell all that is wrong with files and documents, if anything is, and end."""
    if len(flaws) == 1 and not refusals:
        raise flaws[0]
    for flaw in flaws:
        tell(flaw)
    for refusal in refusals:
        print("\n".join(refusal.lines()), file=sys.stderr)
    if flaws or refusals:
        raise RefusedError


class RefusedError(CommandError):
    """Documents were refused, and everything about it was said."""

    def __init__(self) -> None:
        super().__init__("", code=BAD_INPUT)
