"""What the door says about JobConfigs, one row for each side of every limit."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.errors import InvalidError
from interlock.resources.door.validation import read_resource
from interlock.resources.job_config import JobConfig
from interlock.resources.values.cron_lines import CronLines

Spec = dict[str, Any]
LINE = "0 2 * * *"


def a_body(spec: Spec, **metadata: Any) -> Spec:
    """A good config but for what is given."""
    template = {"spec": {"process": {"command": ["true"]}}}
    return {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "JobConfig",
        "metadata": {"name": "a"} | metadata,
        "spec": {"template": template} | spec,
    }


def job(**spec: Any) -> Spec:
    return {"template": {"spec": {"process": {"command": ["true"]}} | spec}}


def command(*words: str, **more: Any) -> Spec:
    return job(process={"command": ["echo", *words]}) | more


def schedule(**more: Any) -> Spec:
    return {"schedules": [{"cron": LINE} | more]}


def option(**more: Any) -> Spec:
    return {"options": [{"name": "o"} | more]}


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
    {"schedules": []},
    schedule(),
    schedule(cron=[LINE]),
    schedule(cron=[LINE, "@daily", "H H(9-17)/2 * * MON-FRI", "0 0 L * *"]),
    schedule(cron="H H H H H"),
    schedule(cron="0 0 2 * * * 2030"),
    schedule(cron="0 0 2 * * *", format="SecondsFirst"),
    schedule(cron="0 2 * * * 2030", format="YearLast"),
    schedule(timezone="Europe/London"),
    schedule(timezone="UTC+05:30"),
    schedule(notBefore="2026-01-05T12:00:00Z", notAfter="2026-01-05T13:00:00+01:00"),
    schedule(disabled=True, onGap="Skip", onRepeat="Both"),
    schedule(exclude=["uk-holidays"], only=["trading-days", "x"]),
    {"schedules": [{"cron": LINE}] * 100},
    {"schedules": [{"cron": [LINE] * 100}] * 2},
    {"concurrency": {"policy": "Forbid", "maxConcurrency": 1_000_000, "maxQueued": 100_000}},
    {"concurrency": {"policy": "Allow"}},
    {"concurrency": {"policy": "Allow", "maxConcurrency": 1}},
    {"concurrency": {"policy": "Replace", "maxQueued": 0}},
    {"catchUp": {"policy": "OnlyNewest", "atMost": 0, "notOlderThan": "6h"}},
    {"catchUp": {"policy": "SkipAll", "atMost": 1000, "notOlderThan": "1ms"}},
    {"catchUp": {"policy": "SkipAll", "missedAfter": "1s"}},
    {"catchUp": {"missedAfter": "365d"}},
    {"history": {"succeeded": 0, "failed": 10_000}},
    {"suspend": True},
    option(),
    option(type="Bool", default=True),
    option(type="Bool", format="Custom", trueValue="--force"),
    option(type="Bool", format="OneZero", default=False),
    option(type="String", default=" x ", trimSpaces=True, required=True),
    option(type="Select", values=["a", "b"], default="b", allowCustom=True),
    option(type="Multi", values=["a", "b"], default=["b", "a"], delimiter=""),
    option(type="Multi", values=["a"], required=True),
    option(type="Date", format="YYYY-MM-DDTHH:mm:ss.SSSZ"),
    option(type="Date", format="[day] DDDD [of] YYYY", required=True),
    {"options": [{"name": f"o{n}"} for n in range(100)]},
    option(type="Select", values=[str(n) for n in range(1000)]),
    command("${option.o}", options=[{"name": "o"}]),
    command("${jobconfig.name} ${jobconfig.namespace} ${jobconfig.uid} ${jobconfig.scheduled_at}"),
    command("${job.name} ${task.index} ${HOME} $${option.x}"),
    job(locks=[{"key": "db"}, {"key": "jobconfigs/x"}], timeout="1h"),
    {
        "template": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"a/b": "${c}"}},
            "spec": {"noop": {}},
        }
    },
]

EVERY_MINUTE = "*/1 * * * * *"
#: What a definition in a cluster refuses too.
BAD: list[tuple[str, str, Spec]] = [
    ("spec.template", "is required", {"template": None}),
    ("spec.template.spec", "is required", {"template": {}}),
    ("spec.template.spec", "expected exactly one of", {"template": {"spec": {}}}),
    ("spec.template.spec", "found process and noop", job(noop={})),
    ("spec.template.spec.process.command", "expected the program to run", {
        "template": {"spec": {"process": {"command": []}}}}),
    ("spec.template.spec.timeout", "expected more than 0s", job(timeout="0s")),
    ("spec.template.spec.retries.limit", "expected 0 to 1000", job(retries={"limit": -1})),
    ("spec.template.spec.killAt", "give a timeout", job(killAt="2026-01-05T12:00:00Z")),
    ("spec.template.spec.startAfter", "the schedule says when", job(
        startAfter="2026-01-05T12:00:00Z")),
    ("spec.template.spec.startBy", "too late", job(startBy="2026-01-05T12:00:00Z")),
    ("spec.template.spec.locks[1].key", "locks with jobconfig/ are Interlock's own", job(
        locks=[{"key": "db"}, {"key": "jobconfig/a"}])),
    ("spec.template.spec.locks[0].key", "locks with controlledjob/ are", job(
        locks=[{"key": "controlledjob/a"}])),
    ("spec.template.spec.locks[0].maxWaiting", "expected 0 to 1000000", job(
        locks=[{"key": "a", "maxWaiting": -1}])),
    ('spec.template.metadata.labels["interlock.dev/job-config"]', "are Interlock's own", {
        "template": {"metadata": {"labels": {"interlock.dev/job-config": "x"}},
                     "spec": {"noop": {}}}}),
    ('spec.template.metadata.annotations["interlock.dev/is-manually-scheduled"]',
     "are Interlock's own",
     {"template": {"metadata": {"annotations": {"interlock.dev/is-manually-scheduled": "true"}},
                   "spec": {"noop": {}}}}),
    ("spec.template.metadata.labels.app", "expected letters, digits", {
        "template": {"metadata": {"labels": {"app": "a b"}}, "spec": {"noop": {}}}}),
    ("spec.template.metadata.labels.app", "expected letters, digits", {
        "template": {"metadata": {"labels": {"app": "${option.o}"}}, "spec": {"noop": {}}}}),
    ("spec.schedules", "expected at most 100 schedules", {"schedules": [{"cron": LINE}] * 101}),
    ("spec.schedules[0].cron", "is required", {"schedules": [{}]}),
    ("spec.schedules[0].onGap", 'did you mean "Skip"?', schedule(onGap="skip")),
    ("spec.schedules[0].timezone", "expected at most 64 characters", schedule(timezone="x" * 65)),
    ("spec.schedules[0].notAfter", "expected a moment that is not before notBefore", schedule(
        notBefore="2026-01-05T12:00:01Z", notAfter="2026-01-05T12:00:00Z")),
    ("spec.schedules[0].exclude[1]", 'did you mean "uk-holidays"?', schedule(
        exclude=["x", "UK Holidays"])),
    ("spec.schedules[0].only[0]", "expected lower-case letters", schedule(only=[""])),
    ("spec.schedules[0].only[1]", "is there twice", schedule(only=["a", "a"])),
    ("spec.schedules[0].exclude", "expected at most 20 calendars", schedule(
        exclude=[f"c{n}" for n in range(21)])),
    ("spec.concurrency.maxConcurrency", "expected 1 to 1000000", {
        "concurrency": {"maxConcurrency": 0}}),
    ("spec.concurrency.maxConcurrency", "expected 1 to 1000000", {
        "concurrency": {"maxConcurrency": 1_000_001}}),
    ("spec.concurrency.maxConcurrency", "has no meaning with the policy Allow", {
        "concurrency": {"policy": "Allow", "maxConcurrency": 2}}),
    ("spec.concurrency.maxQueued", "expected 0 to 100000", {"concurrency": {"maxQueued": -1}}),
    ("spec.concurrency.maxQueued", "expected 0 to 100000", {"concurrency": {"maxQueued": 100_001}}),
    ("spec.concurrency.policy", 'did you mean "Forbid"?', {"concurrency": {"policy": "Forbd"}}),
    ("spec.catchUp.atMost", "expected 0 to 1000", {"catchUp": {"atMost": -1}}),
    ("spec.catchUp.atMost", "expected 0 to 1000", {"catchUp": {"atMost": 1001}}),
    ("spec.catchUp.notOlderThan", "expected more than 0s", {"catchUp": {"notOlderThan": "0s"}}),
    ("spec.catchUp.missedAfter", "expected at least 1s", {"catchUp": {"missedAfter": "999ms"}}),
    ("spec.catchUp.missedAfter", "expected at least 1s", {"catchUp": {"missedAfter": "0s"}}),
    ("spec.history.succeeded", "expected 0 to 10000", {"history": {"succeeded": -1}}),
    ("spec.history.failed", "expected 0 to 10000", {"history": {"failed": 10_001}}),
    ("spec.options", "expected at most 100 options", {
        "options": [{"name": f"o{n}"} for n in range(101)]}),
    ("spec.options[0].name", "expected 1 to 63 letters", {"options": [{"name": "a b"}]}),
    ("spec.options[0].name", "expected 1 to 63 letters", {"options": [{"name": ""}]}),
    ("spec.options[0].name", "expected 1 to 63 letters", {"options": [{"name": "x" * 64}]}),
    ("spec.options[1].name", "is there twice", {"options": [{"name": "a"}, {"name": "a"}]}),
    ("spec.options[0].type", 'did you mean "Select"?', option(type="select")),
    ("spec.options[0].required", "a Bool that is not given has its default", option(
        type="Bool", required=True)),
    ("spec.options[0].values", "expected at least one value to choose", option(type="Select")),
    ("spec.options[0].values", "expected at least one value to choose", option(
        type="Multi", values=[])),
    ("spec.options[0].values", "expected at most 1000 values", option(
        type="Multi", values=[str(n) for n in range(1001)])),
    ("spec.options[0].values", "is for Select and Multi, and this is a String", option(
        values=["a"])),
    ("spec.options[0].values[1]", "expected text that is not empty", option(
        type="Select", values=["a", ""])),
    ("spec.options[0].values[1]", "is there twice", option(type="Select", values=["a", "a"])),
]  # fmt: skip

#: What only our own door refuses, because no definition can say it.
BEYOND: list[tuple[str, str, Spec]] = [
    ("spec.schedules[0].cron", "expected a cron line, or a list of them", schedule(cron=5)),
    ("spec.schedules[0].cron", "expected a cron line, or a list of them", schedule(cron={})),
    ("spec.schedules[0].cron[1]", "expected text, found a whole number", schedule(cron=[LINE, 5])),
    ("spec.schedules[0].cron", "expected at least one cron line", schedule(cron=[])),
    ("spec.schedules[0].cron", "expected at most 100 cron lines", schedule(cron=[LINE] * 101)),
    ("spec.schedules", "expected at most 200 cron lines in all", {
        "schedules": [{"cron": [LINE] * 100}] * 2 + [{"cron": LINE}]}),
    ("spec.schedules", "expected at most 10000 characters of cron lines in all", schedule(
        cron=[",".join(["1"] * 240) + " * * * *"] * 21)),
    ("spec.schedules[0].cron", "expected five fields", schedule(cron="")),
    ("spec.schedules[0].cron", "found 4 fields, expected 5 fields", schedule(cron="0 2 * *")),
    ("spec.schedules[0].cron", "six fields need a format", schedule(cron=EVERY_MINUTE)),
    ("spec.schedules[0].cron[1]", '"60": ', schedule(cron=[LINE, "60 * * * *"])),
    ("spec.schedules[0].cron", 'did you mean "MON-FRI"?', schedule(cron="0 2 * * MON-FRY")),
    ("spec.schedules[0].cron", 'did you mean "@daily"?', schedule(cron="@dayly")),
    ("spec.schedules[0].cron", "this line would never be due", schedule(cron="0 0 30 FEB *")),
    ("spec.schedules[0].cron", "name the zone beside the line", schedule(
        cron="TZ=Europe/London 0 2 * * *")),
    ("spec.schedules[0].cron", "expected at most 500 characters", schedule(cron="x" * 501)),
    ("spec.schedules[0].timezone", 'did you mean "Europe/London"?', schedule(
        timezone="Europe/Londn")),
    ("spec.schedules[0].timezone", "machines differ in their own zone", schedule(
        timezone="Local")),
    ("spec.schedules[0].timezone", "expected at most 23:59", schedule(timezone="UTC+24")),
    ("spec.schedules[0].notBefore", "expected a moment after the year 1", schedule(
        notBefore="0001-01-01T00:00:00+14:00")),
    ("spec.template.spec.process.command[1]",
     'unknown variable ${option.regoin}; did you mean "option.region"?',
     command("${option.regoin}", options=[{"name": "region"}])),
    ("spec.template.spec.process.command[1]", 'did you mean "jobconfig.name"?', command(
        "${jobconfig.nmae}")),
    ("spec.options[0].default", "expected true or false, found text", option(
        type="Bool", default="true")),
    ("spec.options[0].default", "expected text, found true or false", option(default=True)),
    ("spec.options[0].default", "expected text, found a list", option(
        type="Select", values=["a"], default=["a"])),
    ("spec.options[0].default", "expected a list of texts, found text", option(
        type="Multi", values=["a"], default="a")),
    ("spec.options[0].default", "expected true or false or text or a list, found a whole", option(
        default=5)),
    ("spec.options[0].default[0]", "expected text, found a whole number", option(
        type="Multi", values=["a"], default=[5])),
    ("spec.options[0].default", 'expected one of values; did you mean "emea"?', option(
        type="Select", values=["emea", "apac"], default="emae", allowCustom=True)),
    ("spec.options[0].default[1]", "expected one of values", option(
        type="Multi", values=["a"], default=["a", "x"])),
    ("spec.options[0].default", "a Date has no default", option(
        type="Date", default="2026-01-05T12:00:00Z")),
    ("spec.options[0].format", 'did you mean "TrueFalse"?', option(
        type="Bool", format="TrueFals")),
    ("spec.options[0].format", 'did you mean "YYYY"?', option(
        type="Date", format="yyyy-MM-DD")),
    ("spec.options[0].format", "is for Bool and Date, and this is a String", option(format="x")),
    ("spec.options[0].trueValue", "is for the format Custom alone", option(
        type="Bool", trueValue="x")),
    ("spec.options[0].falseValue", "is for Bool, and this is a Date", option(
        type="Date", falseValue="x")),
    ("spec.options[0].trimSpaces", "is for String, and this is a Bool", option(
        type="Bool", trimSpaces=True)),
    ("spec.options[0].delimiter", "is for Multi, and this is a Select", option(
        type="Select", values=["a"], delimiter=";")),
    ("spec.options[0].allowCustom", "is for Select and Multi, and this is a String", option(
        allowCustom=True)),
]  # fmt: skip


@pytest.mark.parametrize("spec", GOOD, ids=briefly)
def test_good_configs_are_taken_and_read_back(spec: Spec) -> None:
    config, warnings = read_resource(json.dumps(a_body(spec)).encode())

    assert isinstance(config, JobConfig)
    assert warnings == ()
    assert refusal_of(a_body(spec)) == []


@pytest.mark.parametrize(("path", "told", "spec"), [*BAD, *BEYOND], ids=briefly)
def test_bad_configs_are_refused_with_the_place_and_the_reason(
    path: str, told: str, spec: Spec
) -> None:
    found = refusal_of(a_body(spec))

    assert path in [place for place, _ in found]
    assert any(place == path and told in message for place, message in found), found


@pytest.mark.parametrize(("length", "is_good"), [(52, True), (53, False)])
def test_a_name_may_be_as_long_as_that_of_a_cronjob(length: int, is_good: bool) -> None:
    found = refusal_of(a_body({}, name="x" * length))

    assert found == ([] if is_good else [("metadata.name", MAX_NAME)])


MAX_NAME = "expected at most 52 characters, found 53"


def test_moments_are_in_utc_past_the_door() -> None:
    given = schedule(notBefore="2026-01-05T12:00:00+01:00", notAfter="2026-06-05T12:00:00-05:00")
    config, _ = read_resource(a_body(given))

    assert isinstance(config, JobConfig)
    (made,) = config.spec.schedules
    assert made.not_before == datetime(2026, 1, 5, 11, tzinfo=UTC)
    assert made.not_before.tzinfo is UTC
    assert made.not_after is not None
    assert made.not_after.tzinfo is UTC


def test_a_misspelled_field_of_the_template_is_found() -> None:
    body = a_body({"template": {"spec": {"proces": {"command": ["a"]}}}})

    found = refusal_of(body)

    assert found[0] == (
        "spec.template.spec.proces",
        "unknown field; did you mean spec.template.spec.process?",
    )


@pytest.mark.parametrize(
    ("name", "path"),
    [("timeout", "spec.template.spec.timeout"), ("containers", "spec.template.spec.pod.spec")],
)
def test_a_field_in_the_wrong_place_is_told_where_it_belongs(name: str, path: str) -> None:
    ((_, message), *_) = refusal_of(a_body({name: "1m"}))

    assert f"did you mean {path}" in message


def test_cron_lines_are_written_as_they_were() -> None:
    one, _ = read_resource(a_body(schedule(cron=LINE)))
    listed, _ = read_resource(a_body(schedule(cron=[LINE])))

    assert isinstance(one, JobConfig)
    assert isinstance(listed, JobConfig)
    assert one.spec.schedules[0].cron == CronLines(LINE)
    assert listed.spec.schedules[0].cron == CronLines(LINE, is_list=True)
    assert one != listed
