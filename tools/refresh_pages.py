"""Run the commands of the documentation and show what they really print.

    python tools/refresh_pages.py [PAGE ...]

Each page is run as its test runs it; then the output under every command is replaced by what was
printed. Blocks that are not run, and those that show "..." on purpose, stay as they are.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "docs"))

from docs_pages import ASKS_FOR_CODE, Block, blocks_of, commands_of, name_of, pages
from docs_runner import PageRunner, kubectl_for


def refreshed(text: str, place: Path) -> str:
    """The page with true output."""
    lines = text.splitlines()
    shift = 0
    with PageRunner(place, kubectl=kubectl_for(text)) as reader:
        for block in blocks_of(text):
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


def main(names: list[str]) -> None:
    """Refresh the pages that are named, or all that have commands to run."""
    for page in pages():
        text = page.read_text("utf-8")
        if names and name_of(page) not in names:
            continue
        if not any(block.is_run for block in blocks_of(text)):
            continue
        with tempfile.TemporaryDirectory() as place:
            page.write_text(refreshed(text, Path(place)), "utf-8")
        print(f"refreshed {name_of(page)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
