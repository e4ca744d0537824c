"""Measure two states of this tree in turns, and print their figures side by side.

`python tools/compare_bench.py BEFORE [NAME...]`: BEFORE is a commit or the folder of another tree.
Each round runs a measurement of `bench` in the one and then in the other, so that whatever else the
machine does falls on both alike. Of each figure the median is shown, how far its rounds lie apart,
and the median of the ratios of the rounds. A ratio counts for little where the rounds lie further
apart than it.

A commit is measured by the `bench` of this tree, as far as that runs on its code: so both are
measured alike, and what was wrong with a measurement of former days is wrong no more. A folder runs
its own. Figures that one of them does not have are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
#: What is measured, and how, when nothing else is named.
MEASUREMENTS: Mapping[str, Sequence[str]] = {
    "jobs": ("--count", "2000", "--rounds", "3"),
    "store": ("--rounds", "3"),
    "http": ("--seconds", "2"),
    "due": ("--quick",),
    "cli": ("15",),
}
#: How a measurement imports what has another name in trees of before.
_FORMERLY: Mapping[str, str] = {
    "from interlock.control.write_fence import WriteFence": (
        "from interlock.control.gate import Gate as WriteFence"
    ),
    "from interlock.resources.values.cron_lines import": (
        "from interlock.resources.cron_lines import"
    ),
}
_RUN = "import sys, importlib; importlib.import_module('bench.' + sys.argv[1]).main(sys.argv[2:])"
#: Prints which of the named modules cannot be imported.
_TRY = """
import sys, importlib
for name in sys.argv[1:]:
    try:
        importlib.import_module("bench." + name)
    except ImportError:
        print(name)
"""
#: A number with what it counts, as in "0.15%" and "2.50x".
_NUMBER = re.compile(r"(\d+(?:\.\d+)?) ?[%x]")

#: A figure's table, row and column.
Figure = tuple[str, str, str]
Read = tuple[Figure, float]
Rounds = Mapping[Figure, Sequence[float]]


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="compare_bench", description=__doc__)
    parser.add_argument("before", help="a commit, or the folder of another tree")
    parser.add_argument("names", nargs="*", default=list(MEASUREMENTS), help="of measurements")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="columns in whose name this is found")
    given = parser.parse_args(argv)
    with _tree_of(given.before) as before:
        for tree in (before, ROOT):
            _compile(tree)
        for name in given.names:
            then, now = in_turns((before, ROOT), name, given.rounds)
            print("\n".join(table(name, then, now, given.only)), flush=True)
    return 0


@contextmanager
def _tree_of(named: str) -> Iterator[Path]:
    """The folder of a commit, for as long as it is needed."""
    if Path(named).is_dir():
        yield Path(named).resolve()
        return
    # Beside what this tree measures: what is durable costs the same disk.
    with tempfile.TemporaryDirectory(dir=ROOT / "bench", prefix=".bench-") as place:
        folder = Path(place) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), named], check=True)
        try:
            _bring_measurements(folder)
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def _bring_measurements(tree: Path) -> None:
    """Have a tree measured by today's measurements; what cannot run there stays as it was."""
    before: dict[str, str | None] = {}
    for ours in (ROOT / "bench").glob("*.py"):
        theirs = tree / "bench" / ours.name
        before[ours.stem] = theirs.read_text() if theirs.exists() else None
        theirs.write_text(_in_names_of(tree, ours.read_text()))
    while names := [name for name in _not_importable(tree, sorted(before)) if name in before]:
        for name in names:
            place, text = tree / f"bench/{name}.py", before.pop(name)
            place.unlink() if text is None else place.write_text(text)


def _in_names_of(tree: Path, source: str) -> str:
    """A measurement that imports what it needs by the names that a tree has."""
    for now, then in _FORMERLY.items():
        module = now.split()[1].replace(".", "/")
        if not (tree / f"src/{module}.py").exists():
            source = source.replace(now, then)
    return source


def _not_importable(tree: Path, names: Sequence[str]) -> list[str]:
    order = [sys.executable, "-c", _TRY, *names]
    found = subprocess.run(order, cwd=tree, env=_env(tree), stdout=subprocess.PIPE, check=True)
    return found.stdout.decode().split()


def _compile(tree: Path) -> None:
    """Leave compiled modules where they are found: the first round is to be as the others."""
    places = [str(tree / name) for name in ("src", "bench", "tests/support")]
    order = [sys.executable, "-m", "compileall", "-q", *places]
    subprocess.run(order, cwd=tree, stdout=subprocess.DEVNULL, check=False)


def _env(tree: Path) -> dict[str, str]:
    """Both trees use this environment and its libraries."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree / "tests")])}


def in_turns(trees: tuple[Path, Path], name: str, rounds: int) -> tuple[Rounds, Rounds]:
    """The figures of each round, in both trees."""
    found: tuple[dict[Figure, list[float]], dict[Figure, list[float]]] = ({}, {})
    for number in range(rounds):
        for tree, figures in zip(trees, found, strict=True):
            for figure, value in _run(tree, name).items():
                figures.setdefault(figure, []).append(value)
        print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def _run(tree: Path, name: str) -> dict[Figure, float]:
    """The figures of one measurement."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as record:
        env = _env(tree) | {"INTERLOCK_BENCH_RECORD": record.name}
        # Programs that are started again and again compile their modules once, as anywhere else.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        order = [sys.executable, "-c", _RUN, name, *MEASUREMENTS.get(name, ())]
        subprocess.run(order, cwd=tree, env=env, stdout=subprocess.DEVNULL, check=True)
        return dict(_figures(map(json.loads, record)))


def _figures(tables: Iterable[tuple[str, list[str], list[list[object]]]]) -> Iterator[Read]:
    for title, columns, rows in tables:
        # A row is known by its first cells, as many as it takes: none, if it is the only one.
        known_by = next(n for n in range(len(columns)) if _are_apart([row[:n] for row in rows]))
        for row in rows:
            name = " ".join(map(str, row[:known_by]))
            for column, cell in zip(columns[known_by:], row[known_by:], strict=True):
                number = _NUMBER.fullmatch(cell.strip()) if isinstance(cell, str) else None
                if isinstance(cell, int | float) or number:
                    value = float(number[1]) if number else float(str(cell))
                    yield (title, name, column), value


def _are_apart(cells: Sequence[Sequence[object]]) -> bool:
    return len({tuple(each) for each in cells}) == len(cells)


def table(name: str, before: Rounds, after: Rounds, only: str) -> Iterator[str]:
    """Lines that say of each figure what it was and what it is."""
    yield f"\n{name:<62} {'before':>10} {'±':>5} {'after':>10} {'±':>5} {'ratio':>7}"
    last = ""
    for figure, now in after.items():
        title, row, column = figure
        if only not in column or figure not in before:
            continue
        if title != last:
            yield f"  {title}"
        last = title
        then = before[figure]
        ratios = [new / old for old, new in zip(then, now, strict=True) if old]
        ratio = f"{median(ratios):.3f}" if ratios else "-"
        told = f"{_told(then)} {_told(now)}"
        yield f"    {f'{row}, {column}':<58} {told} {ratio:>7}"


def _told(rounds: Sequence[float]) -> str:
    """The median, and half of how far the rounds lie apart, as a share of it."""
    middle = median(rounds)
    apart = (max(rounds) - min(rounds)) / 2 / abs(middle) if middle else 0.0
    return f"{middle:>10,.2f} {apart:>5.0%}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
