"""Trials by real faults: ``python -m support.storm kills --minutes 30 --seed 1``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from support.storm.fuzz import FuzzPlan, run_fuzz
from support.storm.kills import Outcome, StormPlan, run_storm
from support.storm.plants import Plant
from support.storm.restores import RestorePlan, run_restores
from support.storm.weather import Keepers
from support.storm.workers import WorkersPlan, run_workers

#: So many faults of one check are printed; the folder has all.
_PRINTED = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and print what came of it; 1 when a promise was broken."""
    options = _options(arguments)
    outcome = _TRIALS[options.trial](options)
    for line in lines_of(outcome):
        sys.stdout.write(line + "\n")
    return 1 if outcome.broken else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m support.storm")
    parser.add_argument("--seed", type=int, default=1, help="what everything is drawn from")
    parser.add_argument("--where", type=Path, help="where to keep the data meanwhile")
    trials = parser.add_subparsers(dest="trial", required=True)
    kills = trials.add_parser("kills", help="kill a loaded server and its keeper")
    kills.add_argument("--minutes", type=float, default=0.0, help="how long")
    kills.add_argument("--jobs", type=int, default=60, help="how many Jobs, without --minutes")
    kills.add_argument("--faults", type=int, default=12, help="how many faults at least")
    kills.add_argument("--keepers", choices=list(Keepers), default=Keepers.RARELY)
    kills.add_argument("--plant", action="store_true", help="break a promise, to see it found")
    fuzz = trials.add_parser("fuzz", help="ask a server nonsense")
    fuzz.add_argument("--requests", type=int, default=100_000, help="how many requests")
    restores = trials.add_parser("restores", help="put the store back while tasks run")
    restores.add_argument("--times", type=int, default=20, help="how often")
    workers = trials.add_parser("workers", help="kill the workers of a loaded server")
    workers.add_argument("--kills", type=int, default=100, help="how many, of worker processes")
    workers.add_argument("--hangs", type=int, default=5, help="how many at least")
    workers.add_argument("--operations", type=int, default=300, help="how many at least")
    workers.add_argument("--programs", type=int, default=2, help="how many `interlock worker`")
    workers.add_argument("--processes", type=int, default=2, help="of each of them")
    workers.add_argument(
        "--plant", choices=list(Plant), default=Plant.NOTHING, help="break a promise"
    )
    return parser.parse_args(arguments)


def _restores(options: argparse.Namespace) -> Outcome:
    return run_restores(RestorePlan(seed=options.seed, times=options.times, where=options.where))


def _fuzz(options: argparse.Namespace) -> Outcome:
    return run_fuzz(FuzzPlan(seed=options.seed, requests=options.requests, where=options.where))


def _kills(options: argparse.Namespace) -> Outcome:
    return run_storm(
        StormPlan(
            seed=options.seed,
            jobs=options.jobs,
            faults=options.faults,
            minutes=options.minutes,
            keepers=Keepers(options.keepers),
            is_planted=options.plant,
            where=options.where,
        )
    )


def _workers(options: argparse.Namespace) -> Outcome:
    return run_workers(
        WorkersPlan(
            seed=options.seed,
            kills=options.kills,
            hangs=options.hangs,
            operations=options.operations,
            programs=options.programs,
            processes=options.processes,
            plant=Plant(options.plant),
            where=options.where,
        )
    )


_TRIALS = {"kills": _kills, "fuzz": _fuzz, "restores": _restores, "workers": _workers}


def lines_of(outcome: Outcome) -> list[str]:
    """The figures, then each check with how much it looked at and what it found."""
    width = max(len(each) for each in (*outcome.figures, *(c.name for c in outcome.checks)))
    lines = [f"{name:{width}}  {value}" for name, value in outcome.figures.items()]
    lines += ["", f"{'check':{width}}  {'found':>5}  looked at"]
    for check in outcome.checks:
        lines.append(f"{check.name:{width}}  {len(check.faults):>5}  {check.looked_at}")
    for check in outcome.broken:
        lines += ["", f"{check.name}:", *(f"  {fault}" for fault in check.faults[:_PRINTED])]
        if len(check.faults) > _PRINTED:
            lines.append(f"  and {len(check.faults) - _PRINTED} more")
    if outcome.broken:
        lines += ["", f"everything is kept in {outcome.folder}"]
    return lines


if __name__ == "__main__":
    sys.exit(main())
