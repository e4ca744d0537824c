"""What the tasks wrote down: read back, and told apart by attempt."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from support.storm.task import EVIDENCE


class Kind(StrEnum):
    """What a line says."""

    #: A task found no free place: one too many is at work under this key.
    VIOLATION = "V"
    #: A task began, under these fencing tokens.
    BEGIN = "B"
    #: Its main process ends by itself, with this code.
    END = "E"
    #: A child that outlived the main process ends.
    LEFT = "L"
    #: Not by a task: the store was put back to an earlier state.
    RESTORED = "R"


class Attempt(NamedTuple):
    """Which attempt of which task; Interlock never uses one twice."""

    uid: str
    task: int
    number: int


class Line(NamedTuple):
    """One thing that a task said."""

    kind: Kind
    attempt: Attempt
    job: str
    pid: int
    #: The machine's monotonic clock, which all processes share.
    at: float
    detail: str

    @property
    def fences(self) -> dict[str, int]:
        """The tokens by key, of a beginning."""
        found: dict[str, int] = json.loads(self.detail)
        return found

    def __str__(self) -> str:
        return f"{self.job}-{self.attempt.task}-{self.attempt.number} (pid {self.pid})"


def read_evidence(folder: Path) -> list[Line]:
    """All that was written, in the order of writing; a line that is not whole yet is left out."""
    path = folder / EVIDENCE
    text = path.read_text("utf-8") if path.exists() else ""
    return parse(text.splitlines(keepends=True))


def parse(lines: Iterable[str]) -> list[Line]:
    """What lines say."""
    return [_line(text.rstrip("\n")) for text in lines if text.endswith("\n")]


def _line(text: str) -> Line:
    kind, uid, job, task, attempt, pid, at, detail = text.split("\t")
    which = Attempt(uid, int(task), int(attempt))
    return Line(Kind(kind), which, job, int(pid), float(at), detail)


def note_restore(folder: Path) -> None:
    """Write down that what follows happened after the store was put back."""
    with (folder / EVIDENCE).open("a") as evidence:
        evidence.write("R\t\t\t0\t0\t0\t0\t\n")
