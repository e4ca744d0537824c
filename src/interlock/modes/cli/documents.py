"""Definitions in files: found, read, checked, and refused with the line of every problem."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from interlock.modes.cli.errors import BAD_INPUT, AnswerError, CommandError, did_you_mean
from interlock.resources.errors import BadRequestError, InvalidError, Problem
from interlock.resources.manifests import Document, ManifestError, read_manifests
from interlock.resources.validation import read_resource

_ENDINGS = (".yaml", ".yml", ".json")


class Given:
    """A document, and the file it stands in."""

    def __init__(self, file: str, document: Document) -> None:
        self.file = file
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

    def __init__(self, given: Given, problems: tuple[Problem, ...]) -> None:
        self.given = given
        self.problems = problems

    def lines(self) -> list[str]:
        """The refusal for people: where, what was found, what to do."""
        title = f"{self.given.file}: {self.given.title} was refused, nothing was stored"
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


def read_documents(files: list[str], *, recursive: bool = False) -> list[Given]:
    """Every document of the files, and of the files in the directories, but not below them."""
    if not files:
        raise CommandError("which files?", hint="name them with -f FILE", code=BAD_INPUT)
    found = [given for file in files for given in _read(file, recursive)]
    if not found:
        hint = "" if recursive else "-R reads what is below a directory too"
        raise CommandError(f"nothing is defined in {', '.join(files)}", hint=hint, code=BAD_INPUT)
    return found


def _read(name: str, recursive: bool) -> list[Given]:
    if name == "-":
        return _parse("standard input", sys.stdin.buffer.read())
    path = Path(name)
    if path.is_dir():
        every = path.rglob("*") if recursive else path.glob("*")
        inside = sorted(file for file in every if file.suffix in _ENDINGS)
        return [given for file in inside if file.is_file() for given in _parse_file(file)]
    return _parse_file(path)


def _parse_file(path: Path) -> list[Given]:
    try:
        return _parse(str(path), path.read_bytes())
    except OSError as error:
        near = [str(path.with_name(one.name)) for one in path.parent.glob("*")] if path.parent.is_dir() else []  # fmt: skip  # noqa: E501
        raise CommandError(
            f"cannot read {path}: {error.strerror}",
            hint=did_you_mean(str(path), near),
            code=BAD_INPUT,
        ) from None


def _parse(file: str, text: bytes) -> list[Given]:
    try:
        return [Given(file, document) for document in read_manifests(text)]
    except ManifestError as error:
        place = f", line {error.line}" if error.line else ""
        raise CommandError(f"{file}{place}: {error.message}", code=BAD_INPUT) from None


def refusal_of(given: Given) -> Refusal | None:
    """What is wrong with a document, as far as it can be told without a server; warnings aside."""
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


def check_all(found: list[Given]) -> None:
    """Refuse everything when one document is bad: nothing is stored before all were checked."""
    refusals = [refusal for given in found if (refusal := refusal_of(given))]
    for refusal in refusals:
        print("\n".join(refusal.lines()), file=sys.stderr)
    if refusals:
        raise RefusedError


class RefusedError(CommandError):
    """Documents were refused, and everything about it was said."""

    def __init__(self) -> None:
        super().__init__("", code=BAD_INPUT)
