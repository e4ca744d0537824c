"""`simulate`, `next` and `plan`: what they print, and the codes they end with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from interlock.forecast.rehearsal.front import Front
from interlock.forecast.rehearsal.simulated_loop import run_now
from interlock.forecast.rehearsal.world import World
from interlock.modes.cli.main import main
from interlock.modes.cli.rehearsal.command_line import CommandHands
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.manifests import read_manifests
from interlock.resources.metadata import Key
from interlock.timing.ticks import OnGap

#: The day before Thanksgiving, two in the afternoon in New York.
NOW = datetime(2026, 11, 25, 19, 0, tzinfo=UTC)
DEFINITIONS = """\
kind: Calendar
metadata: {name: nyse-holidays}
spec: {days: [{day: "4th THU of NOV", name: Thanksgiving Day}]}
---
kind: JobConfig
metadata: {name: nightly-report}
spec:
  schedules: [{cron: "41 2 * * MON-FRI", timezone: Europe/London}]
  template: {spec: {process: {command: [./report]}}}
---
kind: ControlledJob
metadata: {name: pricing-engine}
spec:
  timezone: {name: America/New_York}
  windows: [{from: "09:00", to: "17:30", days: MON-FRI, exclude: [nyse-holidays]}]
  jobTemplate: {spec: {process: {command: [./engine]}}}
"""
SCENARIO = """\
start: 2026-01-05T10:00:00Z
end: +1h
objects:
  - {kind: Job, metadata: {name: work}, spec: {process: {command: [work]}}}
expect:
  - {at: +1s, object: job/work, path: .status.phase, value: Succeeded}
"""


class Desk:
    """A server at two in the afternoon, and somebody who types."""

    def __init__(self, place: Path) -> None:
        self.file = place / "pricing.yaml"
        self.file.write_text(DEFINITIONS)
        self.world = World(NOW)
        self.world.begin()
        self.world.play_until(NOW)
        self._hands = CommandHands(Front(self.world), "default")
        self._hands.apply([one.data for one in read_manifests(DEFINITIONS)])
        self.wait(hours=2)

    def wait(self, **time: float) -> None:
        self.world.play_until(self.world.now() + timedelta(**time))

    def type(self, *words: str, code: int = 0) -> str:
        ended, told = self._hands.run(words)
        assert ended == code, told
        return told

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.type(*words, "-o", "json", code=code))

    def write(self, old: str, new: str) -> None:
        assert old in DEFINITIONS
        self.file.write_text(DEFINITIONS.replace(old, new))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.world.close()


# next


def test_next_tells_times_in_each_schedules_own_zone(desk: Desk) -> None:
    assert desk.type("next", "--to", "friday").splitlines() == [
        "Wed 25  17:30 EST  stop   controlledjob/pricing-engine  the window closes",
        "Thu 26  02:41 GMT  run    jobconfig/nightly-report",
        "Thu 26  09:00 EST  skip   controlledjob/pricing-engine  calendar nyse-holidays: Thanksgiving Day",  # noqa: E501
        "Fri 27  02:41 GMT  run    jobconfig/nightly-report",
        "Fri 27  09:00 EST  start  controlledjob/pricing-engine  until 17:30",
    ]


def test_next_for_programs_is_a_list_with_every_stop(desk: Desk) -> None:
    found = desk.json("next", "ctj/pricing-engine", "--to", "2026-11-27T23:00:00Z")

    assert [(each["at"], each["action"]) for each in found] == [
        ("2026-11-25T22:30:00Z", "stop"),
        ("2026-11-26T14:00:00Z", "skip"),
        ("2026-11-27T14:00:00Z", "start"),
        ("2026-11-27T22:30:00Z", "stop"),
    ]
    assert found[1] == {
        "at": "2026-11-26T14:00:00Z",
        "kind": "ControlledJob",
        "namespace": "default",
        "name": "pricing-engine",
        "action": "skip",
        "reason": "calendar nyse-holidays: Thanksgiving Day",
    }


def test_next_tells_exceptions(desk: Desk) -> None:
    desk.type("extend", "pricing-engine", "--until", "19:00")
    desk.type("skip", "pricing-engine", "2026-11-27", "--reason", "quiet")
    desk.type("hold", "pricing-engine", "--until", "2026-12-01 12:00")

    held = "on hold until 2026-12-01T17:00:00Z by scenario"
    found = desk.json("next", "ctj/pricing-engine", "--to", "2026-12-01")
    assert [(each["at"][:16], each["action"], each["reason"]) for each in found] == [
        ("2026-11-26T14:00", "skip", "calendar nyse-holidays: Thanksgiving Day"),
        ("2026-11-27T14:00", "skip", "skipped by scenario: quiet"),
        ("2026-11-30T14:00", "skip", held),
        ("2026-12-01T14:00", "skip", held),
        ("2026-12-01T17:00", "start", "until 17:30"),
        ("2026-12-01T22:30", "stop", "the window closes"),
    ]


def test_what_clocks_swallow_is_told_by_next_why_and_timeline(desk: Desk) -> None:
    events = """\
  onGap: Skip
  events:
    - {action: start, cron: "30 2 * * *"}
    - {action: stop, cron: "0 9 * * *"}
"""
    hours = '  windows: [{from: "09:00", to: "17:30", days: MON-FRI, exclude: [nyse-holidays]}]\n'
    desk.write(hours, events)
    desk.type("apply", "-f", str(desk.file))
    when = ("--from", "2027-03-14", "--to", "2027-03-14")

    why = "clocks skip 02:30, and onGap is Skip"
    assert desk.type("next", "ctj/pricing-engine", *when).splitlines() == [
        f"Sun 14 Mar 2027  03:00 EDT  skip  controlledjob/pricing-engine  {why}"
    ]
    assert why in desk.type("timeline", "ctj/pricing-engine", *when)
    desk.world.play_until(datetime(2027, 3, 14, 8, tzinfo=UTC))
    assert f"Skipped: the start of today 03:00 EDT: {why}" in desk.type("why", "ctj/pricing-engine")


@pytest.mark.parametrize(
    ("more", "day", "why"),
    [
        pytest.param("", "2027-03-14", "clocks skip 02:30, and onGap is Skip", id="clocks"),
        pytest.param(", exclude: [nyse-holidays]", "2027-11-25",
                     "calendar nyse-holidays: Thanksgiving Day", id="a calendar"),
    ],
)  # fmt: skip
def test_a_stop_that_does_not_happen_is_not_foretold_as_one(
    desk: Desk, more: str, day: str, why: str
) -> None:
    events = f"""\
  onGap: Skip
  events:
    - {{action: start, cron: "0 22 * * *"}}
    - {{action: stop, cron: "30 2 * * *"{more}}}
"""
    hours = '  windows: [{from: "09:00", to: "17:30", days: MON-FRI, exclude: [nyse-holidays]}]\n'
    desk.write(hours, events)
    desk.type("apply", "-f", str(desk.file))

    found = desk.json("next", "ctj/pricing-engine", "--from", day, "--to", day)
    assert [(each["action"], each["reason"]) for each in found] == [
        ("skip", f"it does not stop: {why}")
    ]
    shown = desk.type("timeline", "ctj/pricing-engine", "--from", day, "--to", day)
    assert f"it does not stop: {why}" in shown


def test_next_tells_what_is_suspended_once(desk: Desk) -> None:
    desk.type("suspend", "ctj/pricing-engine")

    told = desk.type("next", "ctj/pricing-engine", "--to", "2026-12-20").splitlines()
    assert told == [
        "Thu 26  09:00 EST  skip  controlledjob/pricing-engine"
        "  suspended: nothing starts until it is resumed"
    ]
    assert len(desk.json("next", "ctj/pricing-engine", "--to", "2026-12-20")) > 10


def test_next_stops_nothing_that_a_missing_calendar_keeps_from_starting(desk: Desk) -> None:
    desk.type("delete", "calendar", "nyse-holidays", "--no-wait")
    desk.wait(minutes=1)

    found = desk.json("next", "ctj/pricing-engine", "--to", "2026-11-28")
    assert [(each["at"][:16], each["action"]) for each in found] == [
        ("2026-11-25T22:30", "stop"),
        ("2026-11-26T14:00", "skip"),
        ("2026-11-27T14:00", "skip"),
    ]


def test_an_extension_into_the_next_window_tells_when_that_ends(desk: Desk) -> None:
    told = desk.type("extend", "pricing-engine", "--until", "2026-11-27 11:00")

    assert told.splitlines()[0].endswith(
        "ends Fri 27 Nov 17:30 EST instead of 17:30: it goes on into the next window;"
        " the exception goes by itself Fri 27 Nov 11:00 EST"
    )
    late = desk.type("extend", "pricing-engine", "--until", "17:00", code=2)
    assert '"2026-11-25 18:30"' in late


def test_a_skip_tells_of_a_job_by_hand_that_runs_through_it_and_how_to_stop_that(
    desk: Desk,
) -> None:
    desk.wait(hours=40)  # Friday morning, eight o'clock in New York; Thursday was a holiday.
    desk.type("start", "pricing-engine")
    desk.wait(minutes=1)

    assert desk.type("skip", "pricing-engine", "today").splitlines()[:2] == [
        "controlledjob/pricing-engine  Fri 27  does not start at 09:00 EST",
        "  job/pricing-engine-1795784400-1 runs, and goes on until today 17:30 EST;"
        " stop it with: interlock stop controlledjob/pricing-engine",
    ]
    desk.type("stop", "controlledjob/pricing-engine")
    desk.wait(hours=3)
    assert "is not running: this window is left out" in desk.type("why", "ctj/pricing-engine")


def test_a_skip_of_a_later_day_says_nothing_of_a_job_that_has_stopped_by_then(desk: Desk) -> None:
    assert "runs, and goes on" not in desk.type("skip", "pricing-engine", "friday")


def test_a_hold_until_the_weekday_of_today_is_until_the_next_one(desk: Desk) -> None:
    assert "Wed 2 Dec 00:00 EST" in desk.type("hold", "pricing-engine", "--until", "wednesday")


def test_history_tells_what_was_decided_and_not_that_numbers_moved_on(desk: Desk) -> None:
    desk.wait(hours=48)

    def history(of: str) -> list[str]:
        return [line.split("  ", 2)[2] for line in desk.type("history", of).splitlines()]

    assert history("ctj/pricing-engine") == [
        "lets job/pricing-engine-1795788000-1 start",
        "makes job/pricing-engine-1795788000-1: its window is open",
        "job/pricing-engine-1795615200-0 is stopped: its window closed;"
        " the window of 2026-11-25T14:00:00Z is over: its Job was stopped",
        "lets job/pricing-engine-1795615200-0 start",
        "makes job/pricing-engine-1795615200-0: its window is open",
    ]
    assert history("jc/nightly-report") == [
        "lets run what is due at 2026-11-27T02:41:00Z",
        "makes the Job for what is due at 2026-11-27T02:41:00Z",
        "lets run what is due at 2026-11-26T02:41:00Z",
        "makes the Job for what is due at 2026-11-26T02:41:00Z",
    ]


def test_what_people_did_to_one_is_told_with_who(desk: Desk) -> None:
    desk.type("stop", "ctj/pricing-engine")
    desk.wait(minutes=1)
    desk.type("start", "pricing-engine")
    desk.wait(minutes=1)

    told = desk.json("why", "ctj/pricing-engine")["details"]
    assert [text for label, text in told if label == "did"][:2] == [
        "today 16:01 EST JobStarted job/pricing-engine-1795615200-1: started by scenario",
        "today 16:00 EST JobStopped job/pricing-engine-1795615200-0: stopped by scenario",
    ]


def test_next_says_why_nothing_is_to_come_of_what_was_asked_for(desk: Desk) -> None:
    desk.type("suspend", "jobconfig/nightly-report")

    assert desk.type("next", "jobconfig", "nightly-report") == (
        "nothing is to come of jobconfig/nightly-report: it is suspended\n"
    )
    assert desk.json("next", "jobconfig", "nightly-report") == []


def test_what_next_foretells_is_what_happens(desk: Desk) -> None:
    """The list of a week, and then the week itself."""
    end = "2026-12-02T21:00:00Z"
    foretold = desk.json("next", "--to", end, "--from", "2026-11-25T21:00:01Z")
    since = len(desk.world.lines)
    desk.wait(days=7)

    happened = desk.world.lines[since:]
    for kind, action, event in (
        ("JobConfig", "run", "Created"),
        ("ControlledJob", "start", "Created"),
        ("ControlledJob", "stop", "Stopping"),
        ("ControlledJob", "skip", "Skipped"),
    ):
        name = {"JobConfig": "nightly", "ControlledJob": "pricing"}[kind]
        told = [each["at"] for each in foretold if (each["kind"], each["action"]) == (kind, action)]
        seen = [
            line.data()["at"]
            for line in happened
            if line.event == event and line.name.startswith(name)
        ]
        assert told == seen
        assert told


def test_next_needs_no_server_for_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "definitions.yaml"
    file.write_text(DEFINITIONS)
    words = ["next", "jc/nightly-report", "-f", str(file)]

    code = main([*words, "--from", "2030-01-04", "--limit", "3", "-o", "json"])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [each["at"] for each in found] == [
        "2030-01-04T02:41:00Z",
        "2030-01-07T02:41:00Z",
        "2030-01-08T02:41:00Z",
    ]
    assert {each["reason"] for each in found} == {"cron 41 2 * * MON-FRI"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(["next", "locks"], "nothing is due for locks", id="a kind without due times"),
        pytest.param(["next", "--to", "some day"], "is no moment", id="no moment"),
        pytest.param(["next", "--to", "2020-01-01"], "is not after --from", id="backwards"),
        pytest.param(["next", "--limit", "0"], "whole number from 1 up", id="no limit"),
    ],
)
def test_next_refuses_what_makes_no_sense(desk: Desk, words: list[str], told: str) -> None:
    assert told in desk.type(*words, code=2)


def test_next_of_what_is_not_there_says_so(desk: Desk) -> None:
    assert "did you mean `pricing-engine`?" in desk.type("next", "ctj/pricing-engin", code=4)


def test_one_that_older_rules_took_can_still_be_suspended_and_not_made_worse(desk: Desk) -> None:
    """It has windows alone, and an onGap, which has no effect on them."""
    key = Key("ControlledJob", "default", "pricing-engine")
    stored = run_now(desk.world.store.get(key))
    assert isinstance(stored, ControlledJob)
    spec = replace(stored.spec, on_gap=OnGap.SKIP)
    run_now(desk.world.store.update(replace(stored, spec=spec)))

    assert "suspended" in desk.type("suspend", "ctj/pricing-engine")
    desk.type("skip", "pricing-engine", "friday")
    desk.write("  windows", "  onGap: Skip\n  onRepeat: Both\n  windows")
    told = desk.type("apply", "-f", str(desk.file), code=2)
    assert "onRepeat" in told
    assert "there are only windows, which open the first time" in told


# plan


def test_plan_tells_fields_what_happens_now_and_the_days(desk: Desk) -> None:
    desk.write('to: "17:30"', 'to: "15:00"')

    assert desk.type("plan", "-f", str(desk.file), code=1).splitlines() == [
        "calendar/nyse-holidays   unchanged",
        "jobconfig/nightly-report   unchanged",
        'controlledjob/pricing-engine   windows[0].to  "17:30" -> "15:00"',
        "  now               pricing-engine-1795615200-0 would be stopped (its window closed today 15:00 EST)",  # noqa: E501
        "  today             ends now instead of 17:30",
        "  Thu 26            unchanged",
        "  Fri 27            ends 15:00 instead of 17:30",
        "  Sat 28 - Sun 29   unchanged",
        "  Mon 30            ends 15:00 instead of 17:30",
        "  Tue 1             ends 15:00 instead of 17:30",
        f"Nothing was changed. Apply it with: interlock apply -f {desk.file}",
    ]


@pytest.mark.parametrize(
    ("hours", "old", "new", "today"),
    [
        pytest.param(2, '"17:30"', '"16:00"', "unchanged", id="an end after it has ended"),
        pytest.param(2, '"09:00"', '"08:00"', "unchanged", id="a start after it has started"),
        pytest.param(0, '"09:00"', '"08:00"', "unchanged", id="a start of what is open"),
        pytest.param(0, '"17:30"', '"17:00"', "ends 17:00 instead of 17:30", id="an end to come"),
        pytest.param(0, '"17:30"', '"10:00"', "ends now instead of 17:30", id="an end that was"),
        pytest.param(0, '"09:00"', '"17:00"', "starts 17:00; ends now and 17:30 instead of 17:30",
                     id="a start to come"),
        pytest.param(2, '"17:30"', '"19:00"', "ends 19:00", id="open once more"),
    ],
)  # fmt: skip
def test_plan_speaks_of_today_only_as_far_as_it_is_to_come(
    desk: Desk, hours: int, old: str, new: str, today: str
) -> None:
    desk.wait(hours=hours)
    desk.write(old, new)

    (item,) = (
        one
        for one in desk.json("plan", "-f", str(desk.file), code=1)["items"]
        if one["resource"] == "controlledjob/pricing-engine"
    )
    now = desk.world.now().isoformat().replace("+00:00", "Z")
    assert item["days"][0]["told"] == today
    found = (*item["days"][0]["before"], *item["days"][0]["after"])
    assert all(each["at"] >= now[:19] for each in found)


def test_plan_tells_of_a_start_that_is_gone_though_it_was_left_out(desk: Desk) -> None:
    desk.write("days: MON-FRI", "days: MON-WED")

    told = desk.type("plan", "-f", str(desk.file), code=1)
    assert "has no start at 09:00 EST any more, which was left out" in told


def test_plan_tells_no_exception_that_is_over(desk: Desk) -> None:
    desk.type("hold", "pricing-engine", "--for", "10m")
    desk.wait(hours=1)
    desk.write('to: "17:30"', 'to: "17:00"')

    told = desk.type("plan", "-f", str(desk.file), code=1)
    assert "ends 17:00 instead of 17:30" in told
    assert "override" not in told


def test_plan_changes_nothing(desk: Desk) -> None:
    desk.write('to: "17:30"', 'to: "15:00"')
    before = desk.world.store.version

    desk.type("plan", "-f", str(desk.file), code=1)

    assert desk.world.store.version == before


def test_plan_of_what_is_stored_already_is_empty(desk: Desk) -> None:
    assert "Nothing would change." in desk.type("plan", "-f", str(desk.file))


@pytest.mark.parametrize(
    ("old", "new", "word", "told"),
    [
        pytest.param(
            '"41 2 * * MON-FRI"', '"0 3,4 * * MON-FRI"', "jobconfig/nightly-report",
            "runs 03:00, 04:00 GMT instead of 02:41 GMT", id="other times",
        ),
        pytest.param(
            "exclude: [nyse-holidays]", "exclude: []", "controlledjob/pricing-engine",
            "starts 09:00; ends 17:30", id="a holiday that is none any more",
        ),
        pytest.param(
            "4th THU of NOV", "4th FRI of NOV", "controlledjob/pricing-engine",
            "starts 09:00; ends 17:30", id="a calendar that others name",
        ),
        pytest.param(
            '"09:00"', '"08:00"', "controlledjob/pricing-engine",
            "starts 08:00 instead of 09:00", id="an earlier start",
        ),
    ],
)  # fmt: skip
def test_plan_tells_the_days_that_change(
    desk: Desk, old: str, new: str, word: str, told: str
) -> None:
    desk.write(old, new)

    (item,) = (
        one
        for one in desk.json("plan", "-f", str(desk.file), code=1)["items"]
        if one["resource"] == word
    )
    assert told in [day["told"] for day in item["days"]]


def test_plan_of_a_template_change_tells_which_jobs_it_replaces(desk: Desk) -> None:
    desk.write("[./engine]", "[./engine, --v2]")
    desk.file.write_text(
        desk.file.read_text().replace(
            "  jobTemplate", "  restartStrategy: {specChangePolicy: Recreate}\n  jobTemplate"
        )
    )

    (item,) = (
        one
        for one in desk.json("plan", "-f", str(desk.file), code=1)["items"]
        if one["resource"] == "controlledjob/pricing-engine"
    )
    actions = {each["job"]: each["action"] for each in item["now"]}
    assert actions["pricing-engine-1795615200-0"] == "stopped"
    assert actions["pricing-engine-1795615200-1"] in ("started", "held back")


def test_plan_of_something_new_tells_what_it_starts_now(desk: Desk) -> None:
    desk.file.write_text(DEFINITIONS.replace("pricing-engine", "second-engine"))

    told = desk.type("plan", "-f", str(desk.file), code=1)
    assert "controlledjob/second-engine   new" in told
    assert "second-engine-1795615200-0 would be started" in told


def test_plan_tells_exceptions_that_stay(desk: Desk) -> None:
    desk.type("extend", "pricing-engine", "--until", "19:00")
    desk.write('to: "17:30"', 'to: "16:30"')

    told = desk.type("plan", "-f", str(desk.file), code=1)
    assert 'unchanged (override "until 19:00", set by scenario, expires Wed 19:00)' in told
    assert "would be stopped" not in told


def test_plan_refuses_what_apply_would_refuse(desk: Desk) -> None:
    desk.write("[./report]", "no-list")

    assert "nightly-report was refused" in desk.type("plan", "-f", str(desk.file), code=2)


# simulate


def test_simulate_prints_the_history_and_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)

    assert main(["simulate", str(tmp_path / "s.yaml")]) == 0
    printed = capsys.readouterr()
    assert [line.split()[0:6:5] for line in printed.out.splitlines()[1:]] == [
        ["Mon", "Created"],
        ["Mon", "Started"],
        ["Mon", "Finished"],
    ]
    assert printed.err == "1 expectation is met\n"


def test_simulate_for_programs_prints_a_line_for_each_thing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)

    assert main(["simulate", str(tmp_path / "s.yaml"), "-o", "jsonl"]) == 0
    first, *rest = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "at": "2026-01-05T10:00:00Z",
        "kind": "Job",
        "namespace": "default",
        "name": "work",
        "event": "Created",
        "reason": "",
        "detail": "",
    }
    assert [line["event"] for line in rest] == ["Started", "Finished"]


def test_simulate_ends_with_1_and_tells_what_is_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO.replace("Succeeded", "Failed"))

    assert main(["simulate", str(tmp_path / "s.yaml"), "-o", "json"]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert (difference["path"], difference["expected"], difference["found"]) == (
        "expect[0]",
        "Failed",
        "Succeeded",
    )


def test_simulate_refuses_a_bad_scenario_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = SCENARIO.replace("end: +1h", "end: soon").replace("expect:", "expects:")
    (tmp_path / "s.yaml").write_text(bad)

    assert main(["simulate", str(tmp_path / "s.yaml")]) == 2
    told = capsys.readouterr().err
    assert "this scenario cannot be played" in told
    assert "line 5   expects" in told
    assert "did you mean expect?" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("[", "not YAML", id="no YAML"),
        pytest.param("", "holds 0 documents", id="empty"),
        pytest.param("a: 1\n---\nb: 2\n", "holds 2 documents", id="two documents"),
    ],
)
def test_simulate_refuses_a_file_that_is_no_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    (tmp_path / "s.yaml").write_text(text)

    assert main(["simulate", str(tmp_path / "s.yaml")]) == 2
    assert told in capsys.readouterr().err


def test_verbs_that_wait_for_time_are_refused_in_a_scenario(desk: Desk) -> None:
    told = desk.type("wait", "pricing-engine-1795615200-0", code=2)

    assert "time stands still" in told


def test_verbs_about_other_places_are_refused_in_a_scenario(desk: Desk) -> None:
    assert "has no place in a scenario" in desk.type("up", code=2)
