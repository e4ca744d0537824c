"""ControlledJobs of the reference operator become ours, with its starts and stops."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml
from import_clocks import CHANGES, by_the_wall, imported

from interlock.importing.controlledjob import import_controlled_jobs
from interlock.importing.drafts import BadSourceError
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.validation import read_resource
from interlock.schedules.controlled.plan import timetable_of
from interlock.timing.plans import Action

#: As in the samples of the operator.
SIMPLE = """\
apiVersion: batch.gresearch.co.uk/v1
kind: ControlledJob
metadata:
  name: controlledjob-sample-simple
spec:
  timezone:
    name: "GMT"
  events:
    - action: "start"
      schedule:
        timeOfDay: "09:00"
        daysOfWeek: "MON-FRI"
    - action: "stop"
      schedule:
        timeOfDay: "17:00"
        daysOfWeek: "MON-FRI"
  restartStrategy:
    specChangePolicy: Recreate
  jobTemplate:
    spec:
      template:
        metadata:
          labels:
            foo: "bar"
        spec:
          securityContext:
            fsGroup: 1000
            runAsUser: 1000
          containers:
          - name: hello
            image: busybox
            args:
            - /bin/sh
            - -c
            - |
              while true
              do
                date
                sleep 5
              done
          restartPolicy: OnFailure
"""


def source_with(annotations: dict[str, str] | None = None, **spec: Any) -> str:
    made: dict[str, Any] = yaml.safe_load(SIMPLE)
    if annotations:
        made["metadata"]["annotations"] = annotations
    made["spec"] |= spec
    return yaml.safe_dump(made, sort_keys=False)


def event(action: str, time: str = "09:00", days: str = "MON-FRI", **more: str) -> dict[str, Any]:
    return {"action": action, "schedule": {"timeOfDay": time, "daysOfWeek": days}, **more}


def one(source: str, **wishes: Any) -> dict[str, Any]:
    (made,) = imported(import_controlled_jobs, source, **wishes)[0]
    return made


def told(source: str, **wishes: Any) -> list[str]:
    _, draft = imported(import_controlled_jobs, source, **wishes)
    return [f"{note.where}: {note.what}" for note in draft.notes]


def turns_of(source: str, start: datetime, end: datetime) -> dict[Action, list[datetime]]:
    controlled, _ = read_resource(one(source))
    assert isinstance(controlled, ControlledJob)
    found: dict[Action, list[datetime]] = {action: [] for action in Action}
    for turn in timetable_of(controlled, {}).upcoming(start - timedelta(seconds=1)):
        if turn.at >= end:
            break
        if turn.skipped is None:
            found[turn.action].append(turn.at)
    return found


def test_the_sample_of_the_operator_is_kept_whole() -> None:
    made = one(SIMPLE)
    assert made["metadata"] == {"name": "controlledjob-sample-simple"}
    spec = made["spec"]
    assert spec["timezone"] == {"name": "GMT"}
    given = yaml.safe_load(SIMPLE)["spec"]
    assert spec["events"] == given["events"]
    assert (spec["onGap"], spec["onRepeat"]) == ("Skip", "Both")
    assert spec["restartStrategy"] == {"specChangePolicy": "Recreate"}
    assert spec["jobTemplate"]["spec"]["batchJob"]["spec"] == given["jobTemplate"]["spec"]
    assert told(SIMPLE) == []


@pytest.mark.parametrize(("start_at", "stop_at"), [("01:30", "09:00"), ("22:00", "02:30")])
@pytest.mark.parametrize(("zone", "start", "end"), CHANGES)
def test_what_is_skipped_does_not_happen_and_what_comes_twice_happens_twice(
    start_at: str, stop_at: str, zone: str, start: datetime, end: datetime
) -> None:
    source = source_with(
        timezone={"name": zone}, events=[event("start", start_at, "*"), event("stop", stop_at, "*")]
    )
    lines = {time: f"{int(time[3:])} {int(time[:2])} * * *" for time in (start_at, stop_at)}
    found = turns_of(source, start, end)
    assert found[Action.STOP] == by_the_wall(lines[stop_at], zone, start, end)
    # A start within a period that is open begins nothing.
    assert set(found[Action.START]) <= set(by_the_wall(lines[start_at], zone, start, end))


@pytest.mark.parametrize(
    ("fields", "part", "expected"),
    [
        pytest.param({"startingDeadlineSeconds": 30}, "startBy", "30s", id="a deadline"),
        pytest.param({"startingDeadlineSeconds": 0}, "startBy", None, id="no deadline"),
        pytest.param({"suspend": True}, "suspend", True, id="suspended"),
        pytest.param({"timezone": {"name": "Europe/London", "offset": -120}}, "timezone",
                     {"name": "Europe/London", "offset": -120}, id="an offset"),
        pytest.param({"timezone": {"name": ""}}, "timezone", {"name": "UTC"}, id="no zone is UTC"),
        pytest.param({"restartStrategy": {"specChangePolicy": "recreate"}}, "restartStrategy",
                     {"specChangePolicy": "Recreate"}, id="in any case"),
        pytest.param({"restartStrategy": {}}, "restartStrategy", None, id="Ignore is the default"),
        pytest.param({"events": [event("stop", cronSchedule="*/5 9 * * 1-5")]}, "events",
                     [{"action": "stop", "cron": "*/5 9 * * 1-5"}], id="cron wins"),
        pytest.param({"events": []}, "events", None, id="started by hand alone"),
    ],
)  # fmt: skip
def test_each_field_has_its_place(fields: dict[str, Any], part: str, expected: object) -> None:
    assert one(source_with(**fields))["spec"].get(part) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(source_with(events=[event("restart")]),
                     'spec.events[0].action: "restart" is not known', id="restart"),
        pytest.param(source_with(events=[event("Stop")]),
                     'spec.events[0].action: "Stop" is not known', id="a typo"),
        pytest.param(source_with(events=[event("start", days="SAT-SUN")]),
                     'spec.events[0].schedule.daysOfWeek: "SAT-SUN" comes to life', id="wraps"),
        pytest.param(source_with(events=[event("stop", cronSchedule="@every 1h")]),
                     'spec.events[0].cronSchedule: "@every 1h" is not carried over', id="@every"),
        pytest.param(source_with(events=[event("stop", cronSchedule="TZ=Asia/Tokyo 0 9 * * *")]),
                     'spec.events[0].cronSchedule: "Asia/Tokyo" is not carried over', id="a zone"),
        pytest.param(source_with(timezone={"name": "America/New_York"},
                                 events=[event("start", "02:30", "*")]),
                     "spec.events: the start of 2026-03-08 02:30 does not happen", id="a gap"),
        pytest.param(source_with(timezone={"name": "Local"}),
                     'spec.timezone.name: "Local" is not carried over', id="Local"),
        pytest.param(source_with(restartStrategy={"specChangePolicy": "Sometimes"}),
                     'spec.restartStrategy.specChangePolicy: "Sometimes" is not known',
                     id="an unknown policy"),
        pytest.param(source_with({"batch.gresearch.co.uk/apply-mutations": "True"}),
                     'metadata.annotations["batch.gresearch.co.uk/apply-mutations"]:'
                     " is not carried over", id="mutators"),
        pytest.param(source_with(events=[event("start", "25:99")]),
                     "ControlledJob controlledjob-sample-simple: is not imported", id="no time"),
        pytest.param(source_with(events=[event("start", days="FOO")]),
                     "ControlledJob controlledjob-sample-simple: is not imported", id="no day"),
    ],
)  # fmt: skip
def test_what_does_not_carry_over_is_told(source: str, expected: str) -> None:
    assert expected in told(source)


def test_an_unknown_action_ends_a_run_as_it_did() -> None:
    made = one(source_with(events=[event("start"), event("restart", "12:00")]))
    assert [each["action"] for each in made["spec"]["events"]] == ["start", "stop"]


def test_words_about_one_job_do_not_count_for_all() -> None:
    template = yaml.safe_load(SIMPLE)["spec"]["jobTemplate"]
    template["metadata"] = {
        "annotations": {"batch.gresearch.co.uk/is-manually-scheduled": "true", "keep": "me"}
    }
    made = one(source_with(jobTemplate=template))
    assert made["spec"]["jobTemplate"]["metadata"] == {"annotations": {"keep": "me"}}


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        pytest.param(source_with(events=[{"action": "start"}]), 7, "schedule is required",
                     id="neither form"),
        pytest.param(source_with(events=["start"]), 7, "expected an object", id="no object"),
        pytest.param(source_with(events="now"), 8, "expected a list", id="no list"),
        pytest.param(SIMPLE.replace("gresearch.co.uk/v1", "gresearch.co.uk/v9"), 1,
                     "expected a ControlledJob", id="another version"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused_with_the_line(
    source: str, line: int, words: str
) -> None:
    with pytest.raises(BadSourceError) as caught:
        imported(import_controlled_jobs, source)
    flaw = caught.value.flaws[0]
    assert words in flaw.message
    assert abs(flaw.line - line) <= 2
