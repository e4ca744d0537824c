"""Runs worlds: ``python -m support.simulation --seeds 1000``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterable, Sequence

from interlock.control.clock import SystemClock
from support.simulation.batch import Result, run_all
from support.simulation.crashes import differences, patterns
from support.simulation.shrink import Shrinker
from support.simulation.world import Outcome
from support.simulation.worlds import WORLDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 when a promise was broken."""
    options = _options(arguments)
    logging.disable(logging.CRITICAL)
    worlds = list(WORLDS) if options.world == "all" else [options.world]
    if options.crashes:
        return _crash_all(options.crashes)
    if options.seed is not None:
        return max(_tell_one(name, options.seed, options.verbose) for name in worlds)
    return _run_many(worlds, range(options.start, options.start + options.seeds), options.jobs)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m support.simulation")
    parser.add_argument("--seeds", type=int, default=100, help="how many worlds of each sort")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run this world alone, and tell of it")
    parser.add_argument("--world", choices=[*WORLDS, "all"], default="all")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--crashes", type=int, help="operations of up to so many steps, killed")
    parser.add_argument("--verbose", action="store_true", help="print the whole history")
    return parser.parse_args(arguments)


def _run_many(worlds: Sequence[str], seeds: Sequence[int], jobs: int) -> int:
    work = [(name, seed) for seed in seeds for name in worlds]
    clock = SystemClock()
    began = clock.monotonic()
    done, simulated_s = 0, 0.0
    failed: list[Result] = []
    for result in run_all(work, jobs):
        done += 1
        simulated_s += result.simulated_s
        if result.broken:
            failed.append(result)
            _say(f"\n{result.world} seed {result.seed}: {result.broken}")
        if sys.stdout.isatty():
            _say(f"\r{done}/{len(work)} worlds, {len(failed)} failed ", end="")
    took = max(clock.monotonic() - began, 1e-9)
    _say(
        f"\n{done} worlds in {took:.1f} s: {done / took:.1f} seeds/s, "
        f"{simulated_s / 3600:.1f} simulated hours ({simulated_s / took:,.0f} times real time)"
    )
    if not failed:
        return 0
    _say(f"{len(failed)} broke a promise. The first:")
    return _tell_one(failed[0].world, failed[0].seed, verbose=False)


def _crash_all(most_steps: int) -> int:
    """Kill the control plane at every write of every small operation."""
    told = 0
    for done, pattern in enumerate(patterns(most_steps), 1):
        for difference in differences(pattern):
            told += 1
            _say(difference)
        if sys.stdout.isatty():
            _say(f"\r{done} operations, {told} differences ", end="")
    _say(f"{done} operations, {told} differences")
    return min(told, 1)


def _tell_one(name: str, seed: int, verbose: bool) -> int:
    """Run one world and tell of it: all of it, or the part that matters."""
    outcome = WORLDS[name](seed).run()
    if verbose:
        _print_lines(outcome.history.lines)
    if outcome.broken is None:
        _say(f"{name} seed {seed}: every promise was kept; history {outcome.digest}")
        return 0
    if not verbose:
        _tell_shrunk(name, outcome)
    _say(f"\n{name} seed {seed} broke {outcome.broken}; history {outcome.digest}")
    command = f"python -m support.simulation --world {name} --seed {seed} --verbose"
    _say(f"reproduce with: {command}")
    return 1


def _tell_shrunk(name: str, outcome: Outcome) -> None:
    assert outcome.broken is not None
    world = WORLDS[name]
    shrinker = Shrinker(world, outcome.seed, outcome.broken.promise)
    steps = shrinker.shrink(world(outcome.seed).script)
    smallest = shrinker.best or outcome
    assert smallest.broken is not None
    weather = "without faults on the wires" if shrinker.rates is not None else "with its faults"
    _say(f"\nSmallest script that was found ({len(steps)} steps, {weather}):")
    for step in steps:
        _say(f"  {step.at:8.1f} s  {step.act}")
    _say("What happened then, as far as it concerns the same names:")
    _print_lines(smallest.history.about(smallest.broken.about))


def _print_lines(lines: Iterable[object]) -> None:
    for line in lines:
        _say(f"  {line}")


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
