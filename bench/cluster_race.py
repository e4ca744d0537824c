"""Two controllers race for the last unit of a quota on a real cluster: do both ever get it?

Each serves a namespace of its own, so both lead; the Queues they share have one unit each, which a
Job of each namespace wants at the same moment. The judge reads the API server's watches alone.

    python -m bench cluster_race [--races N] [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.kube_load import conflicts
from bench.table import show
from support.cluster_store import install
from support.kube import Cluster, find
from support.kube.binaries import HELP
from support.kube.quota_race import race

RACES = 1_000
QUICK = 50


def main(argv: Sequence[str] = ()) -> None:
    """Have them race, and print what came of it."""
    parser = argparse.ArgumentParser(prog="bench cluster_race", description=__doc__)
    parser.add_argument("--races", type=int, default=RACES)
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    races = QUICK if given.quick else given.races
    programs = find()
    if programs is None:
        print(f"nothing measured: {HELP}")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(programs.folder, Path(folder)) as cluster,
    ):
        install(cluster.access)
        before, begun = conflicts(cluster.access, "queuequotas"), time.perf_counter()
        outcome = race(cluster.access, Path(folder) / "controllers", races)
        took = time.perf_counter() - begun
        refused = conflicts(cluster.access, "queuequotas") - before
    show(
        f"Two controllers, one unit of quota, {races} times ({took:.0f} s)",
        ("", "times"),
        [
            ("both held it", len(outcome.both)),
            ("both were in line when one got it", outcome.met),
            *((f"first was {'AB'[at]}", count) for at, count in enumerate(outcome.first.values())),
            ("grants of the unit", outcome.grants),
            ("writes refused by the API server", refused),
            ("Jobs that came to their end", outcome.ended),
        ],
    )
    for told in outcome.both[:5]:
        print(f"    {told}")


if __name__ == "__main__":
    main()
