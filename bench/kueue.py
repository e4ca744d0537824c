"""Kueue's own scenarios on the embedded server: how long they take, and who waits for how long.

Time is real, the store is durable, and Jobs come over HTTP as its generator has them come; only
the tasks are played, as they are there. Beside our figures stand those of its CI, which come from
another machine: a server with a limit of 50 requests a second that calls an API server. A judge
works out from the stored history whether more was ever granted than there was.

    python -m bench kueue [--scenario baseline|large] [--alone] [--quick]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.kube_load import memory_mib, processor_s
from bench.kueue_history import History, JobChange, Verdict, judge
from bench.kueue_scenarios import SCENARIOS, Scenario, alone, quick
from bench.kueue_server import HISTORY
from bench.load import Client, client_of, creation, request
from bench.table import show
from interlock.testing.serving import Server

#: So many requests to create are under way at a time.
CONNECTIONS = 48
QUEUES = "/apis/interlock.dev/v1alpha1/queues"
_SERVER = (sys.executable, "-m", "bench.kueue_server")
_ROOT = Path(__file__).resolve().parent.parent


class Figures(NamedTuple):
    """What a run came to."""

    total_s: float
    #: The part of the whole quota that was held, from the first Job to the last.
    use: float
    #: From creation to the first admission, in the mean of each class.
    admission_s: dict[str, float]
    admissions: int
    #: How long after it was due a Job was created, in the mean.
    late_s: float
    verdict: Verdict
    server_s: float
    peak_mib: float
    load: float


def run(scenario: Scenario, place: Path) -> Figures:
    """Have all Jobs of a scenario come, and wait for the last of them."""
    arrivals = scenario.arrivals()
    due = [moment for moment, _, _ in arrivals]
    requests = [creation(spec, name) for _, name, spec in arrivals]
    env = {"PYTHONPATH": f"{_ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with Server(place, program=_SERVER, env=env, cwd=_ROOT) as server:
        with client_of(server, CONNECTIONS) as client:
            _create_queues(client, scenario)
            before = processor_s(server.process.pid)
            late_s = client.create_when_due(due, requests)
            server_s = processor_s(server.process.pid) - before
            peak_mib = memory_mib(server.process.pid, "VmHWM")
            load = os.getloadavg()[0]
        server.stop()
        history = msgspec.json.decode((place / HISTORY).read_bytes(), type=History)
    verdict = judge(scenario, history)
    total_s, use, admission_s, admissions = _measure(scenario, history.jobs)
    return Figures(total_s, use, admission_s, admissions, late_s, verdict, server_s, peak_mib, load)


def _create_queues(client: Client, scenario: Scenario) -> None:
    for name in scenario.queue_names():
        body = {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": scenario.queue_spec(name),
        }
        client.create(request("POST", QUEUES, msgspec.json.encode(body)))


def _measure(
    scenario: Scenario, jobs: Sequence[JobChange]
) -> tuple[float, float, dict[str, float], int]:
    """How long all took, the use of the quota, and how long each class waited."""
    waited: defaultdict[str, list[float]] = defaultdict(list)
    admitted: dict[tuple[str, int], float] = {}
    held = 0.0
    ends, begins = 0.0, float("inf")
    for one in jobs:
        begins = min(begins, one.created_s)
        kind = scenario.class_of(one.name)
        if one.admitted_s is not None and (one.uid, one.epoch) not in admitted:
            if not any((one.uid, epoch) in admitted for epoch in range(one.epoch)):
                waited[kind.name].append(one.admitted_s - one.created_s)
            admitted[one.uid, one.epoch] = one.admitted_s
        if one.ended_s is not None:
            ends = max(ends, one.ended_s)
            held += kind.cpu * (one.ended_s - admitted[one.uid, one.epoch])
    total_s = ends - begins
    whole = total_s * scenario.nominal * scenario.cohorts * scenario.queues
    means = {name: statistics.mean(each) for name, each in waited.items()}
    assert sum(map(len, waited.values())) == scenario.jobs, "not every Job was let in"
    return total_s, held / whole, means, len(admitted)


def tell(scenario: Scenario, is_whole: bool, found: Figures) -> None:
    """Print what came of a scenario."""
    there = scenario.published
    rows: list[tuple[str, str, str, str]] = []

    def row(name: str, ours: float, theirs: float | None, digits: int, ratio: float | None) -> None:
        beside = f"{theirs:,.{digits}f}" if theirs is not None and is_whole else "-"
        times = f"{ratio:.1f}x" if ratio is not None and is_whole else ""
        rows.append((name, f"{ours:,.{digits}f}", beside, times))

    total = found.total_s
    row("seconds in all", total, there.total_s, 1, there.total_s / total)
    least = max(scenario.least_s, scenario.arrives_s)
    rows.append(("  at best, by quota and arrivals", f"{least:.1f}", "", ""))
    rate, published = scenario.jobs / total, scenario.jobs / there.total_s
    row("Jobs admitted per second", rate, published, 1, rate / published)
    for name, mean in found.admission_s.items():
        told = there.admission_s[name]
        row(f"seconds to admission, {name}", mean, told, 2, told / mean)
    row("quota used, %", 100 * found.use, 100 * there.use, 1, None)
    title = (
        f"{scenario.name}: {scenario.cohorts} x {scenario.queues} queues, {scenario.jobs:,} Jobs"
    )
    if not scenario.shares:
        title += ", each queue alone"
    show(title, ("", "here", "Kueue's CI", "times"), rows)
    again = found.admissions - scenario.jobs
    print(
        f"  {again:,} admissions more after preemption; created {found.late_s:.2f} s after due in "
        f"the mean;\n  server: {found.server_s:.1f} s of processor time, all its threads, "
        f"{found.server_s / scenario.jobs * 1e6:.0f} us a Job; {found.peak_mib:.0f} MiB at most;\n"
        f"  load {found.load:.1f} on {os.cpu_count()} processors, of which the server had "
        f"{found.server_s / total:.0%} of one"
    )
    _tell_verdict(scenario, found.verdict)


def _tell_verdict(scenario: Scenario, verdict: Verdict) -> None:
    some = next(iter(scenario.queue_names()))
    print(
        f"  the judge: {verdict.grants:,} grants in the history, {len(verdict.faults)} faults;"
        f"\n  held at most {verdict.most_of_queue:g} of {scenario.most_of(some)} in a "
        f"queue and {verdict.most_of_cohort:g} of {scenario.most_of_cohort()} in a cohort, at work "
        f"at most {verdict.most_ran_of_queue:g} and {verdict.most_ran_of_cohort:g}"
    )
    for fault in verdict.faults[:5]:
        print(f"    {fault}")


def main(argv: Sequence[str] = ()) -> None:
    """Run the scenarios, or one of them."""
    parser = argparse.ArgumentParser(prog="bench kueue", description=__doc__)
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--alone", action="store_true", help="queues that share nothing")
    parser.add_argument("--quick", action="store_true", help="smaller numbers")
    given = parser.parse_args(argv)
    for name, whole in SCENARIOS.items():
        if given.scenario not in (None, name):
            continue
        scenario = alone(whole) if given.alone else whole
        scenario = quick(scenario) if given.quick else scenario
        with tempfile.TemporaryDirectory() as place:
            begun = time.perf_counter()
            tell(scenario, not given.quick, run(scenario, Path(place) / "data"))
            print(f"  measured and judged in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
