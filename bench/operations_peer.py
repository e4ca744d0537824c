"""What `python -m bench operations` has DBOS do, in an environment of its own.

`python operations_peer.py FILE`. Each line that comes in, with how many workflows, of how many
steps, and how many at once, is answered by seconds and seconds of a processor.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any


def main(file: str) -> None:
    """Serve until the input ends."""
    dbos: Any = import_module("dbos").DBOS
    url = f"sqlite:///{file}"
    dbos(
        config={
            "name": "bench",
            "system_database_url": url,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    @dbos.step()  # type: ignore[untyped-decorator]
    def add(number: int) -> int:
        return number + 1

    @dbos.workflow()  # type: ignore[untyped-decorator]
    def operation(number: int, steps: int) -> int:
        for _ in range(steps):
            number = add(number)
        return number

    dbos.launch()
    operation(0, 1)
    print("ready", flush=True)
    for line in sys.stdin:
        count, steps, at_once = map(int, line.split())
        begun, spent = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(at_once) as pool:
            results = list(pool.map(lambda number: operation(number, steps), range(count)))  # noqa: B023
        took, spent = time.perf_counter() - begun, time.process_time() - spent
        assert results == [number + steps for number in range(count)]
        print(took, spent, flush=True)
    dbos.destroy()


if __name__ == "__main__":
    main(sys.argv[1])
