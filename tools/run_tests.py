"""Run the whole test suite on all cores, as `make test` and CI do.

Tests wait for processes and disks more than they compute, so there are more workers than cores.
Files stay together: a server that a file's tests share is started once. Those that take minutes
begin first, and many small ones fill the end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.kube.binaries import HELP, find

#: These folders of tests come first, in this order; then all others, and the quick ones last.
FIRST = ("e2e", "simulation", "docs", "contract")
LAST = "unit"


def main() -> int:
    """Run pytest with what was given on the command line, or everything."""
    # Tests start programs again and again, which then need not compile their modules each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    workers = max(4, 3 * (os.cpu_count() or 2))
    order = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    is_chosen = any("tests" in word for word in sys.argv[1:])
    code = pytest.main([*order, "-q", *sys.argv[1:], *([] if is_chosen else folders())])
    if find() is None:
        print(f"THE KUBERNETES TIER DID NOT RUN: {HELP}", flush=True)
    return code


def folders() -> list[str]:
    """All folders of tests, in the order in which they are to begin."""
    found = [each.name for each in Path("tests").iterdir() if any(each.rglob("test_*.py"))]
    tests = [name for name in found if not name.startswith(("_", "."))]
    rank = {name: place for place, name in enumerate(FIRST)} | {LAST: len(tests) + 1}
    return [f"tests/{name}" for name in sorted(tests, key=lambda n: (rank.get(n, len(tests)), n))]


if __name__ == "__main__":
    raise SystemExit(main())
