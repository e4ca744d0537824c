"""The judge of histories: a good one passes, and every sort of broken promise is found."""

from __future__ import annotations

from typing import Any

import pytest

from support.kube.verdict import Seen, Verdict

LOCK = [{"key": "db"}]


class History:
    """A history put together line by line."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []

    def _add(self, kind: str, thing: dict[str, Any], gone: bool = False) -> History:
        self.seen.append(Seen(len(self.seen) + 1, kind, gone, thing))
        return self

    def job(self, name: str, result: str = "", sequence: int = 0) -> History:
        status = {"admission": {"sequence": sequence}, "execution": {"result": result}}
        metadata = {"name": name, "uid": f"uid-{name}"}
        return self._add("Job", {"metadata": metadata, "spec": {"locks": LOCK}, "status": status})

    def gone(self, name: str) -> History:
        metadata = {"name": name, "uid": f"uid-{name}"}
        return self._add("Job", {"metadata": metadata, "spec": {"locks": LOCK}}, gone=True)

    def lock(self, last: int, **tokens: int) -> History:
        holders = [{"job": job, "uid": f"uid-{job}", "token": n} for job, n in tokens.items()]
        status = {"holders": holders, "lastToken": last}
        return self._add("Lock", {"spec": {"key": "db"}, "status": status})

    def pod(self, job: str, phase: str = "Running", uid: str = "1", node: str = "n") -> History:
        labels = {"job-uid": f"uid-{job}", "task": "0", "attempt": "1"}
        metadata = {
            "name": f"{job}-0-1",
            "uid": f"{job}-{uid}",
            "labels": {f"interlock.dev/{name}": value for name, value in labels.items()},
        }
        spec = {"nodeName": node} if node else {}
        return self._add("Pod", {"metadata": metadata, "spec": spec, "status": {"phase": phase}})

    def a_whole_run(self, name: str, token: int) -> History:
        self.job(name, sequence=token).lock(token, **{name: token})
        self.pod(name, "Pending", node="").pod(name).pod(name, "Succeeded")
        return self.job(name, "Succeeded", sequence=token).lock(token)


def test_a_run_in_which_all_is_well() -> None:
    history = History().a_whole_run("a", 1).a_whole_run("b", 2).gone("a")

    verdict = Verdict().take(history.seen)

    assert verdict.faults == []
    assert verdict.unfinished == []
    assert verdict.results == {"a": "Succeeded", "b": "Succeeded"}
    assert verdict.begun == {"a": 1, "b": 1}
    assert list(verdict.out_of_order()) == []


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        pytest.param(
            History().job("a").job("b").pod("a").pod("b"),
            "a-0-1, b-0-1 run at once under lock db",
            id="two run under one lock",
        ),
        pytest.param(
            History().job("a").job("b").pod("a").job("a", "Killed"),
            "Job a ended while a-0-1 runs",
            id="ended while a pod runs",
        ),
        pytest.param(
            History().job("a").pod("a").gone("a"),
            "Job a is gone while a-0-1 runs",
            id="gone while a pod runs",
        ),
        pytest.param(
            History().job("a").pod("a").pod("a", "Failed").pod("a", uid="2"),
            "a-0-1 was started twice",
            id="an attempt with two pods",
        ),
        pytest.param(
            History().job("a", "Killed").pod("a"),
            "a-0-1 was started after its Job had ended",
            id="started after the end",
        ),
        pytest.param(
            History().job("a", "Killed").job("a", "Failed"),
            "Job a ended as Killed, and then as Failed",
            id="two ends",
        ),
        pytest.param(
            History().job("a").job("b").lock(2, a=1, b=2),
            "lock db is held by a, b, and its limit is 1",
            id="a record with too many holders",
        ),
        pytest.param(
            History().job("a").lock(5, a=5).lock(4),
            "the token of lock db fell from 5 to 4",
            id="a token that falls",
        ),
        pytest.param(
            History().job("a").job("b").lock(5, a=5).lock(5, b=5),
            "token 5 of lock db was given to two Jobs",
            id="a token given twice",
        ),
    ],
)
def test_what_is_broken_is_found(history: History, fault: str) -> None:
    faults = Verdict().take(history.seen).faults

    assert [found.partition(": ")[2] for found in faults] == [fault]


def test_a_job_without_an_end_is_unfinished() -> None:
    assert Verdict().take(History().job("a").seen).unfinished == ["a"]


def test_a_grant_before_its_turn_is_found() -> None:
    history = History().job("late", sequence=2).job("early", sequence=1)
    history.lock(1, late=1).lock(2, early=2)

    found = Verdict().take(history.seen).out_of_order()

    assert list(found) == ["lock db: early was granted after late"]
