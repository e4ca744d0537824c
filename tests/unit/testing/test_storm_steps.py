"""The checker of storms over workers bites: each promise, broken once, is found, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.testing.clients import Object
from support.storm.steps_checker import Told, check_steps, parse


class Story:
    """What steps wrote, and what is on record of them."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._ended: dict[str, list[Object]] = {}
        self._at = 0.0

    def begin(self, job: str, step: int = 0, number: int = 0, **more: Any) -> Story:
        """An attempt begins."""
        self._write("B", job, step, number, **{"given": "", **more})
        return self

    def end(self, job: str, step: int = 0, number: int = 0, **more: Any) -> Story:
        """An attempt comes to its end."""
        made = f"{job} {step} {number}"
        self._write("E", job, step, number, **{"made": made, "failed": False, **more})
        return self

    def record(
        self, job: str, step: int = 0, number: int = 0, end: str = "Succeeded", **more: Any
    ) -> Story:
        """An attempt is on record."""
        made = json.dumps(more.get("made", f"{job} {step} {number}"))
        index = 2 * step + more.get("undoing", False)
        told = {"index": index, "attempt": number, "result": end, "returned": {"json": made}}
        self._ended.setdefault(job, []).append(told)
        return self

    def whole(self, job: str, step: int = 0, number: int = 0, **more: Any) -> Story:
        """An attempt from its beginning to its record."""
        end = "Failed" if more.get("failed") else "Succeeded"
        undoing = more.get("undoing", False)
        self.begin(job, step, number, **more)
        self.end(job, step, number, **more)
        return self.record(job, step, number, end, undoing=undoing)

    def found(self, *, gone: str = "", **phases: str) -> list[str]:
        """The checks that found something."""
        jobs = [_job(name, self._ended[name], phases) for name in self._ended if name != gone]
        scripts = dict.fromkeys(self._ended, "Succeeded") | phases
        lines = parse("".join(self._lines))
        return [check.name for check in check_steps(Told(lines, jobs, scripts)) if check.faults]

    def _write(self, kind: str, job: str, step: int, number: int, **more: Any) -> None:
        self._at += 1
        fence = {"a": 1, "b": 2}[job]
        told = {"job": job, "step": step, "attempt": number, "undoing": False, "pid": 7}
        told |= {"kind": kind, "target": "shop", "fence": fence, "at": self._at, **more}
        self._lines.append(json.dumps(told) + "\n")


def _job(name: str, ended: list[Object], phases: dict[str, str]) -> Object:
    done: dict[int, str] = {}
    for one in ended:
        if one["result"] == "Succeeded" and one["index"] % 2 == 0:
            done[one["index"]] = json.loads(one["returned"]["json"])
    result = json.dumps([done[index] for index in sorted(done)])
    execution = {"ended": ended, "operation": {"result": result}}
    phase = phases.get(name, "Succeeded")
    return {"metadata": {"name": name}, "status": {"phase": phase, "execution": execution}}


def cut_off() -> Story:
    """The first attempt is cut off in its midst, and its worker comes back with it late."""
    story = Story().begin("a").record("a", 0, 0, "Interrupted")
    return story.whole("a", 0, 1).whole("a", 1, given="a 0 1")


def rolled_back() -> Story:
    """Two steps, of which the second fails; both are undone."""
    story = Story().whole("a").whole("a", 1, given="a 0 0", failed=True)
    return story.whole("a", 1, undoing=True).whole("a", undoing=True)


@pytest.mark.parametrize(
    ("story", "phases"),
    [
        pytest.param(Story().whole("a").whole("b"), {}, id="one after the other"),
        pytest.param(cut_off().end("a"), {}, id="one that was cut off ends late"),
        pytest.param(
            Story().record("a", 0, 0, "Interrupted").whole("a", 0, 1).begin("a"),
            {},
            id="one that was cut off begins late",
        ),
        pytest.param(rolled_back(), {"a": "Failed"}, id="undone in reverse"),
        pytest.param(
            Story()
            .whole("a", failed=True)
            .whole("a", undoing=True)
            .record("a", 0, 1, "Interrupted")
            .whole("a", 0, 1, undoing=True)
            .whole("a", 0, 2),
            {},
            id="undone before each retry",
        ),
    ],
)
def test_what_is_as_promised_is_not_found(story: Story, phases: dict[str, str]) -> None:
    assert story.found(**phases) == []


def test_what_is_lost_is_found() -> None:
    assert Story().whole("a").found(gone="a") == ["operations lost"]


def test_an_end_that_is_not_in_the_script_is_found() -> None:
    job = {"metadata": {"name": "a"}, "status": {"phase": "Killed"}}
    checks = check_steps(Told([], [job], {"a": "Failed"}))
    assert [check.name for check in checks if check.faults] == ["ends against the script"]


@pytest.mark.parametrize(
    ("story", "found"),
    [
        pytest.param(
            Story().begin("a").whole("a"), ["attempts begun twice"], id="handed out twice"
        ),
        pytest.param(
            Story().whole("a").begin("a", 0, 1), ["attempts off the record"], id="off the record"
        ),
        pytest.param(
            Story().begin("a").record("a"),
            ["results that do not count", "steps repeated"],
            id="of one without end",
        ),
        pytest.param(
            Story().begin("a").end("a").record("a", made="a 0 1"),
            ["results that do not count", "steps repeated"],
            id="of another attempt",
        ),
        pytest.param(
            Story().begin("a").end("a", failed=True).record("a"),
            ["results that do not count"],
            id="done on record, and failed",
        ),
        pytest.param(Story().whole("a").whole("a", 0, 1), ["steps repeated"], id="done again"),
        pytest.param(
            Story().whole("a").whole("a", 1, given="another"), ["steps repeated"], id="given"
        ),
        pytest.param(
            Story().begin("a").begin("b").end("a").end("b").record("a").record("b"),
            ["overlaps under a target"],
            id="two operations at once",
        ),
        pytest.param(
            Story().whole("b").whole("a"), ["fences that do not rise"], id="a lower token"
        ),
        pytest.param(
            Story().whole("a").whole("b", fence=1), ["fences that do not rise"], id="one token"
        ),
    ],
)
def test_a_broken_promise_is_found(story: Story, found: list[str]) -> None:
    assert story.found() == found


@pytest.mark.parametrize("undone", [(0, 1), (1,), ()])
def test_what_is_not_undone_in_reverse_is_found(undone: tuple[int, ...]) -> None:
    story = Story().whole("a").whole("a", 1, given="a 0 0", failed=True)
    for step in undone:
        story.whole("a", step, undoing=True)
    assert story.found(a="Failed") == ["undone out of order"]
