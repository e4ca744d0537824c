"""Run the commands of the documentation and show what they really print.

    python tools/refresh_pages.py [PAGE ...]

Each page is run as its test runs it; then the output under every command is replaced by what was
printed. Blocks that are not run, and those that show "..." on purpose, stay as they are. What is
for a Kubernetes cluster is run on one, where its programs are there (`make kube`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "docs"))

from docs_cluster import ClusterRunner, a_cluster
from docs_pages import ASKS_FOR_CODE, Block, blocks_of, commands_of, name_of
from docs_runner import PageRunner, kubectl_for, pages_to_run

from support.kube import find

#: Makes a reader of a page, in a folder of its own.
Reads = Callable[[str, Path], PageRunner]


def refreshed(text: str, reader: PageRunner) -> str:
    """The page with true output."""
    lines = text.splitlines()
    shift = 0
    with reader:
        for block in blocks_of(text):
            if block.on_cluster is not reader.on_cluster:
                continue
            if not block.is_run or block.file:
                reader.run(block)
                continue
            shown = list(_shown(block, reader))
            if "..." in block.lines:
                continue
            begin = block.line + shift
            lines[begin : begin + len(block.lines)] = shown
            shift += len(shown) - len(block.lines)
    return "\n".join(lines) + "\n"


def _shown(block: Block, reader: PageRunner) -> list[str]:
    shown: list[str] = []
    for command in commands_of(block):
        shown += f"$ {command.text}".splitlines()
        shown += [line.rstrip() for line in reader.type(command).splitlines()]
        if command.code:
            shown += [f"$ {ASKS_FOR_CODE}", str(command.code)]
    return shown


def refresh(found: list[Path], reads: Reads) -> None:
    """Run pages, and write down what was printed."""
    for page in found:
        text = page.read_text("utf-8")
        with tempfile.TemporaryDirectory() as place:
            page.write_text(refreshed(text, reads(text, Path(place))), "utf-8")
        print(f"refreshed {name_of(page)}", flush=True)


def main(names: list[str]) -> None:
    """Refresh the pages that are named, or all that have commands to run."""
    ours, theirs = (
        [page for page in pages_to_run(on_cluster=where) if not names or name_of(page) in names]
        for where in (False, True)
    )
    refresh(ours, lambda text, place: PageRunner(place, kubectl=kubectl_for(text)))
    programs = find()
    if not theirs or programs is None:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        access = stack.enter_context(a_cluster(programs.folder, folder)).access
        refresh(theirs, lambda text, place: ClusterRunner(access, place, text))


if __name__ == "__main__":
    main(sys.argv[1:])
