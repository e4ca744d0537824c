"""An imported CronJob that forbids two runs at once starts them when Kubernetes does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from import_clocks import by_the_wall, imported, utc

from interlock.forecast.rehearsal.player import play
from interlock.forecast.rehearsal.reading import read_scenario
from interlock.importing.cronjob import import_cronjobs
from interlock.modes.cli.rehearsal.command_line import CommandHands

START, END = utc("2026-05-04 00:30"), utc("2026-05-05 00:30")
LINES = ["0 * * * *", "*/20 * * * *", "0,10,45 * * * *", "15 2-9/3 * * *", "0,10,45 1-3 * * *"]


def cronjob(line: str, deadline: int | None) -> str:
    spec: dict[str, Any] = {
        "schedule": line,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {
            "spec": {
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "c", "image": "i"}],
                    }
                }
            }
        },
    }
    if deadline is not None:
        spec["startingDeadlineSeconds"] = deadline
    made = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "work"}, "spec": spec}
    return yaml.safe_dump(made)


def by_kubernetes(line: str, lasts: timedelta, deadline: int | None) -> list[datetime]:
    """The controller: at a due time and at the end of a Job it starts the newest that was missed.

    Nothing is started while a Job runs, nor when the deadline of the newest is over.
    """
    dues = by_the_wall(line, "UTC", START, END)
    looks, started = list(dues), []
    newest_run, ends = START, START
    while looks and (now := min(looks)) < END:
        looks.remove(now)
        missed = [due for due in dues if newest_run < due <= now]
        if not missed or now < ends:
            continue
        if deadline is not None and now - missed[-1] > timedelta(seconds=deadline):
            continue
        newest_run, ends = missed[-1], now + lasts
        started.append(now)
        looks.append(ends)
    return started


def by_interlock(source: str, lasts: timedelta) -> tuple[dict[str, Any], list[datetime]]:
    (made,), _ = imported(import_cronjobs, source)
    config = {
        **made,
        "spec": {**made["spec"], "template": {"spec": {"process": {"command": ["work"]}}}},
    }
    script = read_scenario(
        {
            "title": "runs that take long",
            "start": f"{START:%Y-%m-%d %H:%M}",
            "end": f"{END:%Y-%m-%d %H:%M}",
            "settings": {"timezone": "UTC"},
            "objects": [config],
            "work": [{"match": {"name": "*"}, "lasts": f"{int(lasts.total_seconds())}s"}],
        },
        lambda _: (_ for _ in ()).throw(AssertionError("no file is named")),
    )
    played = play(script, lambda front: CommandHands(front, "default"))
    lines = [line for line in played.lines if line.kind == "Job" and line.event == "Started"]
    return made["spec"]["concurrency"], [line.at for line in lines]


@settings(max_examples=25, deadline=None)
@given(line=st.sampled_from(LINES), minutes=st.integers(1, 400), seconds=st.integers(0, 59))
@example(line="0 * * * *", minutes=60, seconds=0)
@example(line="*/20 * * * *", minutes=20, seconds=0)
@example(line="*/20 * * * *", minutes=40, seconds=0)
@example(line="0,10,45 * * * *", minutes=10, seconds=0)
@example(line="0,10,45 1-3 * * *", minutes=180, seconds=0)
def test_without_a_deadline_every_start_is_at_the_same_moment(
    line: str, minutes: int, seconds: int
) -> None:
    lasts = timedelta(minutes=minutes, seconds=seconds)
    concurrency, started = by_interlock(cronjob(line, None), lasts)
    assert concurrency == {"policy": "Enqueue", "maxQueued": 1}
    assert started == by_kubernetes(line, lasts, None)


@settings(max_examples=15, deadline=None)
@given(line=st.sampled_from(LINES[:3]), minutes=st.integers(1, 400), deadline=st.integers(1, 9000))
def test_with_a_deadline_nothing_starts_that_kubernetes_does_not_start(
    line: str, minutes: int, deadline: int
) -> None:
    lasts = timedelta(minutes=minutes, seconds=7)
    concurrency, started = by_interlock(cronjob(line, deadline), lasts)
    expected = by_kubernetes(line, lasts, deadline)
    if concurrency["policy"] == "Enqueue":
        assert started == expected
    else:
        # What Kubernetes starts late is left out; nothing starts at a moment that is not due.
        assert set(started) <= set(by_the_wall(line, "UTC", START, END))


@pytest.mark.parametrize(("deadline", "is_told"), [(None, False), (3600, False), (3599, True)])
def test_only_a_deadline_that_is_too_short_is_told(deadline: int | None, is_told: bool) -> None:
    _, draft = imported(import_cronjobs, cronjob("0 * * * *", deadline))
    assert [note.what for note in draft.notes] == (["Forbid is stricter"] if is_told else [])
