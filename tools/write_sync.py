"""Writes the client with threads from the one with an event loop: both say the same.

python tools/write_sync.py            write them
python tools/write_sync.py --check    only say whether they are up to date
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
SDK = ROOT / "src/interlock/sdk"


class Twin(Struct, frozen=True):
    """A module that is written from another one."""

    source: str
    #: What the module is, in its own words.
    docstring: str


TWINS = {
    "client.py": Twin(
        "async_client.py",
        """\
The client with threads: submit, read, wait for, stream and steer what there is.

It may be shared by threads. It is `interlock.sdk.async_client` without an event loop, and written
from that by tools/write_sync.py: change that one, then `make docs`.
""",
    ),
    "handle.py": Twin(
        "async_handle.py",
        """\
Handles for threads: one Job that was submitted or found, to wait for, read and steer.

It is `interlock.sdk.async_handle` without an event loop, and written from that by
tools/write_sync.py: change that one, then `make docs`.
""",
    ),
}
#: What is said otherwise without an event loop, in this order.
_WORDS = (
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAwaitable, ", ""),
    (r"\bAsyncWire\b", "SyncWire"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=\w)", ""),
    (r"\b__a(?=enter__|exit__)", "__"),
    (r"\baclosing\b", "closing"),
    (r"\basync (?=def |with |for )", ""),
    (r"\bawait ", ""),
)
_LEFT = re.compile(r"\b(?:async|await|aclosing|Async\w*|async_\w+)\b")


def without_loop(text: str, docstring: str) -> str:
    """A module as it is said without an event loop."""
    _, _, body = text.partition('"""\n\nfrom __future__')
    for asynchronous, plain in _WORDS:
        body = re.sub(asynchronous, plain, body)
    left = _LEFT.findall(body)
    assert not left, f"{', '.join(left)}: there is no word for that without an event loop"
    return _formatted(f'"""{docstring}"""\n\nfrom __future__{body}')


def _formatted(text: str) -> str:
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    at = ["--stdin-filename", str(SDK / "client.py"), "-"]
    # `for line in lines: yield line` is `yield from` where that can be said.
    tidy = ["check", "--quiet", "--select", "I,UP028", "--fix", "--unsafe-fixes"]
    for words in (tidy, ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *words, *at], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = done.stdout
    return text


def modules() -> dict[str, str]:
    """Every module that is written from another one, by its name in `interlock.sdk`."""
    return {
        name: without_loop((SDK / twin.source).read_text("utf-8"), twin.docstring)
        for name, twin in TWINS.items()
    }


def main() -> int:
    """Write what has changed; with `--check` only tell."""
    stale = [
        (name, text) for name, text in modules().items() if (SDK / name).read_text("utf-8") != text
    ]
    for name, text in stale:
        if "--check" not in sys.argv:
            (SDK / name).write_text(text, "utf-8")
        print(f"{'out of date:' if '--check' in sys.argv else 'wrote'} src/interlock/sdk/{name}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
