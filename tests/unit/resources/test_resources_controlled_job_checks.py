"""What the door says about ControlledJobs, one row for each side of every limit."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.errors import InvalidError
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.door.validation import read_resource

Spec = dict[str, Any]
OVERRIDE = {"action": "Hold", "from": "2026-01-05T12:00:00Z", "until": "2026-01-05T13:00:00Z"}


def a_body(spec: Spec, **metadata: Any) -> Spec:
    """A good ControlledJob but for what is given."""
    template = {"spec": {"process": {"command": ["true"]}}}
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "ControlledJob",
        "metadata": {"name": "a"} | metadata,
        "spec": {"jobTemplate": template} | spec,
    }


def job(**spec: Any) -> Spec:
    return {"jobTemplate": {"spec": {"process": {"command": ["true"]}} | spec}}


def window(**more: Any) -> Spec:
    return {"windows": [{"from": "09:00", "to": "17:30"} | more]}


def at(time: str, action: str = "stop", days: str = "*") -> Spec:
    return {"action": action, "schedule": {"timeOfDay": time, "daysOfWeek": days}}


def event(**more: Any) -> Spec:
    return {"events": [{"action": "stop"} | more]}


def override(**more: Any) -> Spec:
    return {"overrides": [OVERRIDE | more]}


def refusal_of(body: Spec) -> list[tuple[str, str]]:
    """Where something is wrong, and what is said; nothing when the object is taken."""
    try:
        read_resource(json.dumps(body).encode())
    except InvalidError as error:
        return [(problem.path, problem.message) for problem in error.problems]
    return []


def briefly(value: object) -> str:
    return str(value)[:60]


GOOD: list[Spec] = [
    {},
    {"events": [], "windows": []},
    window(),
    window(days="MON-FRI"),
    window(days="FRI-MON"),
    window(days="SUN,WED,sat"),
    window(**{"from": "22:00:30", "to": "06:00:15"}),
    window(**{"from": "00:00", "to": "24:00"}),
    window(**{"from": "09:00", "to": "09:00"}),
    window(exclude=["holidays"], only=["trading"]),
    {"windows": [{"from": "09:00", "to": "17:30"}] * 100},
    {"events": [at("09:00", "start", "MON-FRI"), at("17:30", "stop", "MON-FRI")]},
    {"events": [at("03:00", "start"), at("03:00", "stop")]},
    {"events": [at("17:30", "stop")]},
    {"events": [at("09:00", "start")], **window()},
    event(cron="0 17 * * MON-FRI"),
    event(cron="H 17 * * *", exclude=["x"], only=["y"]),
    event(cron="0 0 17 * * *", format="SecondsFirst"),
    {"events": [at("00:00")] * 100},
    {"timezone": {"name": "Europe/London"}},
    {"timezone": {"name": "America/New_York", "offset": 86_400}},
    {"timezone": {"name": "UTC", "offset": -86_400}},
    {"startBy": "1h", "drainLimit": "1ms"},
    {"restartStrategy": {"specChangePolicy": "Recreate"}, "suspend": True},
    {"onGap": "Skip", "onRepeat": "Both"},
    {"onGap": "Skip", "onRepeat": "Both", "events": [at("17:30", "stop")], **window()},
    {"onGap": "RunAfter", "onRepeat": "First", **window()},
    override(),
    override(action="Skip", by="ops", reason="holiday party"),
    {"overrides": [OVERRIDE] * 100},
    {"history": {"succeeded": 0, "failed": 10_000}},
    job(gracePeriod="30s", locks=[{"key": "db"}]),
    {
        "jobTemplate": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"a/b": "c d"}},
            "spec": {"noop": {}},
        }
    },
]

#: What a definition in a cluster refuses too.
BAD: list[tuple[str, str, Spec]] = [
    ("spec.jobTemplate", "is required", {"jobTemplate": None}),
    ("spec.jobTemplate.spec", "expected exactly one of", {"jobTemplate": {"spec": {}}}),
    ("spec.jobTemplate.spec.killAt", "give a timeout", job(killAt="2026-01-05T12:00:00Z")),
    ("spec.jobTemplate.spec.locks[0].key", "locks with controlledjob/ are Interlock's own", job(
        locks=[{"key": "controlledjob/a"}])),
    ('spec.jobTemplate.metadata.annotations["interlock.dev/suspend-reason"]',
     "are Interlock's own",
     {"jobTemplate": {"metadata": {"annotations": {"interlock.dev/suspend-reason": "user-stop"}},
                      "spec": {"noop": {}}}}),
    ("spec.timezone.offset", "expected -86400 to 86400", {"timezone": {"offset": 86_401}}),
    ("spec.timezone.offset", "expected -86400 to 86400", {"timezone": {"offset": -86_401}}),
    ("spec.timezone.name", "expected at most 64 characters", {"timezone": {"name": "x" * 65}}),
    ("spec.windows", "expected at most 100 windows", {
        "windows": [{"from": "09:00", "to": "17:30"}] * 101}),
    ("spec.windows[0].from", "is required", {"windows": [{"to": "17:30"}]}),
    ("spec.windows[0].to", "is required", {"windows": [{"from": "17:30"}]}),
    ("spec.windows[0].from", 'did you mean "09:00"?', window(**{"from": "9:00"})),
    ("spec.windows[0].from", "expected a time from 00:00 to 23:59:59", window(**{"from": "24:00"})),
    ("spec.windows[0].from", "expected a time from 00:00 to 23:59:59", window(**{"from": "09:60"})),
    ("spec.windows[0].to", "expected a time from 00:00 to 24:00", window(to="24:01")),
    ("spec.windows[0].to", "expected a time from 00:00 to 24:00", window(to="")),
    ("spec.windows[0].days", "expected", window(days="")),
    ("spec.windows[0].days", "expected", window(days="MON FRI")),
    ("spec.windows[0].exclude[0]", 'did you mean "x"?', window(exclude=["X"])),
    ("spec.events", "expected at most 100 events", {"events": [at("00:00")] * 101}),
    ("spec.events", "a start without a stop would run for ever", {
        "events": [at("09:00", "start")]}),
    ("spec.events", "add an event with action: stop", event(action="start", cron="0 9 * * *")),
    ("spec.events[0].action", "expected one of start, stop", event(
        action="restart", cron="0 9 * * *")),
    ("spec.events[0].action", 'did you mean "stop"?', event(action="Stop", cron="0 9 * * *")),
    ("spec.events[0]", "expected exactly one of schedule and cron, found none", event()),
    ("spec.events[0]", "expected exactly one of schedule and cron, found none", event(cron="")),
    ("spec.events[0]", "found schedule and cron", {
        "events": [at("09:00") | {"cron": "0 9 * * *"}]}),
    ("spec.events[0].schedule.timeOfDay", "expected a time from 00:00 to 23:59:59", {
        "events": [at("25:99")]}),
    ("spec.events[0].schedule.timeOfDay", "is required", event(schedule={})),
    ("spec.events[0].cron", "expected at most 500 characters", event(cron="x" * 501)),
    ("spec.events[0].only[0]", "expected lower-case letters", event(
        cron="0 9 * * *", only=["a b"])),
    ("spec.startBy", "expected more than 0s", {"startBy": "0s"}),
    ("spec.drainLimit", "expected more than 0s", {"drainLimit": "0s"}),
    ("spec.restartStrategy.specChangePolicy", 'did you mean "Recreate"?', {
        "restartStrategy": {"specChangePolicy": "recreate"}}),
    ("spec.overrides", "expected at most 100 overrides", {"overrides": [OVERRIDE] * 101}),
    ("spec.overrides[0].until", "expected a moment after from", override(
        until="2026-01-05T12:00:00Z")),
    ("spec.overrides[0].until", "expected a moment after from", override(
        until="2026-01-05T13:00:00+01:00")),
    ("spec.overrides[0].until", "is required", override(until=None)),
    ("spec.overrides[0].from", "is required", override(**{"from": None})),
    ("spec.overrides[0].action", 'did you mean "Skip"?', override(action="skip")),
    ("spec.overrides[0].reason", "expected one line without control characters", override(
        reason="a\x1b[0m")),
    ("spec.overrides[0].by", "expected at most 1000 characters", override(by="x" * 1001)),
    ("spec.history.failed", "expected 0 to 10000", {"history": {"failed": -1}}),
]  # fmt: skip

#: What only our own door refuses, because no definition can say it.
BEYOND: list[tuple[str, str, Spec]] = [
    ("spec.onGap", "is for events, and there are only windows, which open right after a gap", {
        "onGap": "Skip", **window()}),
    ("spec.onRepeat", "is for events, and there are only windows, which open the first time", {
        "onRepeat": "Both", **window()}),
    ("spec.timezone.name", 'did you mean "Europe/London"?', {
        "timezone": {"name": "Europe/london"}}),
    ("spec.timezone.name", "machines differ", {"timezone": {"name": "Local"}}),
    ("spec.windows[0].days", 'did you mean "MON-FRI"?', window(days="MON-FRY")),
    ("spec.windows[0].days", "expected", window(days="MON,")),
    ("spec.events[0].schedule.daysOfWeek", "expected", {"events": [at("09:00", days="FOO")]}),
    ("spec.events", "expected at most 10000 characters of cron lines in all", {
        "events": [{"action": "stop", "cron": ",".join(["1"] * 240) + " * * * *"}] * 21}),
    ("spec.events[0].cron", "found 2 fields", event(cron="0 9")),
    ("spec.events[0].cron", "this line would never be due", event(cron="0 9 31 APR *")),
    ("spec.events[0].cron", "six fields need a format", event(cron="0 0 9 * * *")),
    ("spec.overrides[0].from", "expected a moment after the year 1", override(
        **{"from": "0001-01-01T00:00:00+14:00"})),
    ("spec.jobTemplate.spec.process.command[1]", "unknown variable ${option.x}", {
        "jobTemplate": {"spec": {"process": {"command": ["a", "${option.x}"]}}}}),
    ("spec.jobTemplate.spec.process.command[1]", "unknown variable ${jobconfig.name}", {
        "jobTemplate": {"spec": {"process": {"command": ["a", "${jobconfig.name}"]}}}}),
]  # fmt: skip


@pytest.mark.parametrize("spec", GOOD, ids=briefly)
def test_good_ones_are_taken_and_read_back(spec: Spec) -> None:
    controlled, warnings = read_resource(json.dumps(a_body(spec)).encode())

    assert isinstance(controlled, ControlledJob)
    assert warnings == ()


@pytest.mark.parametrize(("path", "told", "spec"), [*BAD, *BEYOND], ids=briefly)
def test_bad_ones_are_refused_with_the_place_and_the_reason(
    path: str, told: str, spec: Spec
) -> None:
    found = refusal_of(a_body(spec))

    assert path in [place for place, _ in found]
    assert any(place == path and told in message for place, message in found), found


@pytest.mark.parametrize(("length", "is_good"), [(36, True), (37, False)])
def test_a_name_leaves_room_for_the_start_and_the_number(length: int, is_good: bool) -> None:
    found = refusal_of(a_body({}, name="x" * length))

    assert found == ([] if is_good else [("metadata.name", MAX_NAME)])


MAX_NAME = "expected at most 36 characters, found 37"


def test_moments_are_in_utc_past_the_door() -> None:
    until = "2026-01-05T14:00:00+01:00"
    controlled, _ = read_resource(a_body(override(until=until)))

    assert isinstance(controlled, ControlledJob)
    (made,) = controlled.spec.overrides
    assert made.until == datetime(2026, 1, 5, 13, tzinfo=UTC)
    assert made.until.tzinfo is UTC


def test_every_problem_is_told_at_once() -> None:
    body = a_body(
        {
            "timezone": {"name": "Europe/Londn"},
            "windows": [{"from": "9:00", "to": "25:00", "days": "MON-FRY"}],
            **job(timeout="0s"),
        }
    )

    assert [path for path, _ in refusal_of(body)] == [
        "spec.jobTemplate.spec.timeout",
        "spec.timezone.name",
        "spec.windows[0].from",
        "spec.windows[0].to",
        "spec.windows[0].days",
    ]
