"""Writes what follows from the code: the reference pages, and the command line's table of kinds.

python tools/write_docs.py            write them
python tools/write_docs.py --check    only say whether they are up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from interlock.api.authorization import access_of
from interlock.api.callers import Access
from interlock.api.requests import SOCKET
from interlock.api.routing import Route
from interlock.modes.cli.reference import page
from interlock.resources.admission import RefusalReason, WaitReason
from interlock.resources.describe.explanation import Explanation, explain
from interlock.resources.describe.shapes import description_of, member_descriptions
from interlock.resources.job import JobPhase
from interlock.resources.kinds import KINDS, Kind, rows
from interlock.resources.tasks import (
    ExecutionReason,
    StopCause,
    TaskResult,
    TaskState,
)
from interlock.resources.transitions import JOB_MOVES
from interlock.testing.asking import Asker, a_store
from support.reports import Reports

ROOT = Path(__file__).resolve().parent.parent
_NOTE = "<!-- Written by tools/write_docs.py from the code. Change the code, then `make docs`. -->"


def pages() -> dict[str, str]:
    """Every generated page, by its path below the project."""
    return {
        "docs/reference/kinds.md": "\n".join(_kinds()) + "\n",
        "docs/reference/job-life-cycle.md": "\n".join(_life_cycle()) + "\n",
        "docs/reference/cli.md": page(),
        "docs/reference/routes.md": "\n".join(_routes()) + "\n",
        "src/interlock/client/kind_table.py": "\n".join(_kind_table()) + "\n",
    }


def _kinds() -> Iterator[str]:
    yield from ("# The kinds", "", _NOTE, "")
    yield (
        "Every kind there is, with every field. A duration is written `90s`, `5m` or `1h30m`; a"
        " moment as in RFC 3339, with its zone: `2026-01-05T12:00:00Z`. Fields without a default"
        " that are not required may be left out. The metadata, the same for all kinds, comes last."
    )
    for kind in KINDS.values():
        yield from _kind(kind)
    yield from ("", "## Metadata", "", explain("Job", "metadata").description, "")
    yield from _table(list(_all_fields("Job", explain("Job", "metadata"))))


def _kind(kind: Kind) -> Iterator[str]:
    top = explain(kind.name)
    yield from ("", f"## {kind.name}", "", top.description, "")
    facts = [f"`apiVersion: {kind.api_version}`", f"`{kind.plural}`"]
    facts += [f"short `{name}`" for name in kind.short_names]
    facts.append("in a namespace" if kind.namespaced else "outside namespaces")
    if kind.made_by_system:
        facts.append("made by the system, people only read it")
    yield " · ".join(facts)
    for part in top.children:
        if part.name not in ("apiVersion", "metadata"):
            fields = list(_all_fields(kind.name, explain(kind.name, part.path)))
            if fields:
                yield from ("", f"### {kind.name} {part.name}", "")
                if part.rule:
                    yield from (f"Rule: {part.rule}.", "")
                yield from _table(fields)


def _all_fields(kind: str, top: Explanation) -> Iterator[Explanation]:
    for field in top.children:
        yield field
        yield from _all_fields(kind, explain(kind, field.path))


def _table(fields: list[Explanation]) -> Iterator[str]:
    yield "| field | type | default | rule | what it is |"
    yield "|---|---|---|---|---|"
    for field in fields:
        default = "required" if field.required else f"`{field.default}`" if field.default else ""
        shape = f"| `{field.path}` | {field.type} | {default} |"
        yield f"{shape} {_cell(field.rule)} | {_cell(_told(field))} |"


def _told(field: Explanation) -> str:
    values = [f"`{value}`" + (f": {told}" if told else "") for value, told in field.values]
    return "<br>".join([field.description, *values])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _kind_table() -> Iterator[str]:
    yield '"""The registry of kinds for the command line, as `make docs` writes it."""'
    yield from ("", "from __future__ import annotations", "")
    yield "#: As `interlock.resources.kinds.rows` says."
    yield "ROWS: tuple[tuple[str, str, tuple[str, ...], str, bool, str], ...] = ("
    for row in rows():
        words = ", ".join(_word(word) for word in row)
        yield f"    ({words}),"
    yield ")"


def _word(word: object) -> str:
    if isinstance(word, tuple):
        return f"({', '.join(map(_word, word))}{',' if len(word) == 1 else ''})"
    return f'"{word}"' if isinstance(word, str) else repr(word)


def _life_cycle() -> Iterator[str]:
    yield from ("# The life of a Job", "", _NOTE, "")
    yield description_of(JobPhase)
    yield (
        "What happens between two looks is one move, so a phase that lasted for no time is passed"
        " over. Phases without a next phase are final."
    )
    yield from ("", "```mermaid", "stateDiagram-v2", "    [*] --> Queued")
    for phase, after in JOB_MOVES.items():
        for following in _in_order(after):
            yield f"    {phase.value} --> {following.value}"
        if not after:
            yield f"    {phase.value} --> [*]"
    yield from ("```", "", "| phase | what it means | next |", "|---|---|---|")
    told = member_descriptions(JobPhase)
    for phase, after in JOB_MOVES.items():
        moves = ", ".join(one.value for one in _in_order(after)) or "final"
        yield f"| `{phase.value}` | {_cell(told[phase.value])} | {moves} |"
    for title, reasons in _LISTS.items():
        yield from _values(title, reasons)


def _in_order(phases: frozenset[JobPhase]) -> list[JobPhase]:
    return [phase for phase in JobPhase if phase in phases]


_LISTS: dict[str, type[StrEnum]] = {
    "Why a Job waits": WaitReason,
    "Why a Job is refused": RefusalReason,
    "Why a Job ended as it did": ExecutionReason,
    "Where an attempt is": TaskState,
    "What an attempt came to": TaskResult,
    "Why an attempt was told to stop": StopCause,
}


def _values(title: str, cls: type[StrEnum]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| value | what it means |", "|---|---|")
    for value, told in member_descriptions(cls).items():
        yield f"| `{value}` | {_cell(told)} |"


def _routes() -> Iterator[str]:
    yield from ("# Routes and rights", "", _NOTE, "")
    yield (
        "Everything that the server answers, from the table that it answers by. A path that is not"
        " here is refused with 404, a method with 405, a WebSocket elsewhere with 404. GET is for"
        " HEAD too."
    )
    yield (
        "\nOn a cluster the last column is the right that the cluster must give to the one who"
        " asks; a right without a namespace is one in all of them. For everything that is not here,"
        " and so refused, it is asked whether they may use that path."
    )
    yield (
        "\nOn a server of its own the column before it is the right that a token must have:"
        " `read`, `operate` (which includes it), `admin` (which includes all) or `worker`; *own*"
        " means that it is answered about the Jobs that the caller sees, and *all* that the right"
        ' must be one over everything (`paths: ["/"]`). See'
        " [Secure the server](../how-to/secure-the-server.md)."
    )
    routes = Asker(routes=Reports(a_store()).routes()).app.router.routes
    others = [route for route in routes if route.kind is None]
    yield from ("", "## Reports, health and discovery", "")
    yield from ("| path | method | gives | token | needs |", "|---|---|---|---|---|")
    for route in others:
        when = str(route.when or "")
        row = f"| `{route.path}{when}` | {_method(route)} | {route.gives} |"
        yield f"{row} {_access(route)} | {route.right} |"
    for kind in KINDS.values():
        yield from ("", f"## {kind.name}", "", "| path | method | token | needs |")
        yield "|---|---|---|---|"
        for route in routes:
            if route.kind is kind:
                when = str(route.when or "")
                row = f"| `{route.path}{when}` | {_method(route)} |"
                yield f"{row} {_access(route)} | {route.right} |"


def _access(route: Route) -> str:
    access = access_of(route)
    if access is None:
        return "none"
    if access in (Access.ADMIN, Access.WORKER):
        return access
    return f"{access}, {'own' if route.filtered else 'all'}"


def _method(route: Route) -> str:
    return "WebSocket" if route.method == SOCKET else route.method


def main(arguments: list[str]) -> int:
    """Write the pages, or tell which are out of date."""
    stale = 0
    for name, text in pages().items():
        path = ROOT / name
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale += 1
        if "--check" in arguments:
            print(f"{name} is out of date: run make docs", file=sys.stderr)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        print(f"wrote {name}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
