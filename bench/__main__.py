"""Run one measurement, or all: `python -m bench [NAME] [ARGUMENT...]`.

Every module here that has a `main(argv)` is one; it needs no entry anywhere else.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Sequence

import bench

Main = Callable[[Sequence[str]], None]


def measurements() -> dict[str, Main]:
    """The measurements there are, by name."""
    found: dict[str, Main] = {}
    for module in pkgutil.iter_modules(bench.__path__):
        if module.name.startswith("_"):
            continue
        main = getattr(importlib.import_module(f"bench.{module.name}"), "main", None)
        if main is not None:
            found[module.name] = main
    return found


def run(argv: Sequence[str]) -> int:
    """Run the measurement that is named, or every one."""
    known = measurements()
    if not argv:
        for main in known.values():
            main(())
        return 0
    name, *rest = argv
    if name not in known:
        print(f"there is no measurement {name!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    known[name](rest)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
