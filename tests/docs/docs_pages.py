"""Reads pages of the documentation: the commands a reader would type, and the files to save.

A block is told what to do by comments directly above it:

    <!-- not run -->             the block is only to be read
    <!-- expect: some words -->  what its commands print holds these words; may be repeated
    <!-- file: NAME -->          the block is saved under this name
    <!-- server -->              the block's `interlock up` serves the rest of the page
    <!-- worker -->              the block's `interlock worker` works for the rest of the page

What stands alone in a line counts for the rest of the page:

    <!-- on a cluster -->        the blocks are for a Kubernetes cluster: tests/e2e runs them
    <!-- on an empty cluster --> the same, and nothing of ours is installed there yet
    <!-- on a server -->         they are for a server of our own again

In a console block a line that begins with `$ ` is a command, and a command that ends with a
backslash goes on in the next line. It must succeed, unless `$ echo $?` follows and shows another
code. What else the page shows as output is not compared: times and numbers differ from run to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
ASKS_FOR_CODE = "echo $?"

#: Where the blocks that follow are run.
EMPTY = "on an empty cluster"
_PLACES = {"on a cluster": True, EMPTY: True, "on a server": False}

_NOTE = re.compile(r"<!-- (.*) -->")
_FENCE = re.compile(r"```(\w*)")
#: A link to something: [words](target), and not a picture's or an inline code's brackets.
_LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")


class Block(Struct, frozen=True, kw_only=True):
    """A fenced block, and the notes above it."""

    language: str
    #: The line of the fence, counted from 1.
    line: int
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    #: Whether it is for a Kubernetes cluster, and not for a server of our own.
    on_cluster: bool = False

    @property
    def is_run(self) -> bool:
        """Whether its commands are run."""
        if self.language != "console" or {"not run", "server", "worker"} & set(self.notes):
            return False
        return any(line.startswith("$ ") for line in self.lines)

    @property
    def is_server(self) -> bool:
        """Whether its one command is a server that goes on."""
        return "server" in self.notes

    @property
    def is_worker(self) -> bool:
        """Whether its one command is a worker that goes on."""
        return "worker" in self.notes

    @property
    def file(self) -> str:
        """The name to save it under; empty when it is not saved."""
        return next(iter(self._noted("file: ")), "")

    @property
    def expected(self) -> tuple[str, ...]:
        """The words that its commands print."""
        return tuple(self._noted("expect: "))

    def _noted(self, start: str) -> Iterator[str]:
        return (note.removeprefix(start) for note in self.notes if note.startswith(start))


class Command(Struct, frozen=True):
    """Something to type, and the code it ends with."""

    text: str
    code: int
    line: int


def pages() -> list[Path]:
    """Every page there is."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """A page's path below the project."""
    return str(page.relative_to(ROOT))


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = text.splitlines()
    notes: list[str] = []
    on_cluster = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.fullmatch(line):
            end = lines.index("```", at + 1)
            yield Block(
                language=fence[1],
                line=at + 1,
                lines=tuple(lines[at + 1 : end]),
                notes=tuple(notes),
                on_cluster=on_cluster,
            )
            at = end
        found = _NOTE.fullmatch(line)
        if found:
            on_cluster = _PLACES.get(found[1], on_cluster)
        notes = [*notes, found[1]] if found else []
        at += 1


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a console block; those that ask for a code are folded into the one before.

    Raises:
        AssertionError: A code is asked for, and none is shown.
    """
    typed = [at for at, line in enumerate(block.lines) if line.startswith("$ ")]
    for number, at in enumerate(typed):
        text, _ = _typed_at(block, at)
        if text == ASKS_FOR_CODE:
            continue
        code = 0
        if number + 1 < len(typed):
            following, after = _typed_at(block, typed[number + 1])
            if following == ASKS_FOR_CODE:
                assert block.lines[after : after + 1], "the code is missing under echo $?"
                code = int(block.lines[after])
        yield Command(text, code, block.line + 1 + at)


def _typed_at(block: Block, at: int) -> tuple[str, int]:
    """The command that begins in a line, and the line after it."""
    text = block.lines[at].removeprefix("$ ")
    while text.endswith("\\"):
        at += 1
        text += "\n" + block.lines[at]
    return text, at + 1


def links_of(text: str) -> list[str]:
    """What a page links to, its blocks left out."""
    prose, inside = [], False
    for line in text.splitlines():
        if _FENCE.fullmatch(line):
            inside = not inside
        elif not inside:
            prose.append(line)
    return _LINK.findall("\n".join(prose))


def anchors_of(text: str) -> set[str]:
    """The headings of a page, as links name them."""
    anchors, inside = set(), False
    for line in text.splitlines():
        if _FENCE.fullmatch(line):
            inside = not inside
        elif not inside and line.startswith("#"):
            title = line.lstrip("#").strip().lower()
            anchors.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return anchors
