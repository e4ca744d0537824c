"""Whatever comes to the door, it is taken or refused; it never breaks the door."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.errors import BadRequestError, InvalidError
from interlock.execution.orders import order_of
from interlock.findings import MAX_TOLD
from interlock.resources.codec import encode, from_builtins
from interlock.resources.door.manifests import ManifestError, read_manifests
from interlock.resources.door.reading import Reader
from interlock.resources.door.validation import FieldValidation, read_resource
from interlock.resources.job import Job
from interlock.resources.kinds import KINDS

# Examples are drawn the same way on every run, and may take any time on a busy machine.
STEADY = settings(
    deadline=None, derandomize=True, max_examples=100, suppress_health_check=list(HealthCheck)
)

GOOD: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "Job",
    "metadata": {
        "name": "a",
        "labels": {"app": "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "n", "uid": "u"}],
    },
    "spec": {
        "process": {
            "command": ["a", "${task.index}"],
            "env": {"A": "b"},
            "envFrom": [{"file": "f", "optional": True}],
            "limits": {"memory": "1Gi", "nice": 3},
        },
        "parallelism": {"matrix": {"a": ["x", "y"]}},
        "retries": {"limit": 3, "delay": "10s", "backoff": "Linear", "jitter": 0.5},
        "killAt": "2026-01-05T12:00:00Z",
        "locks": [{"key": "db", "limit": 2, "whenTaken": "Replace"}],
        "args": {"a": "b"},
    },
    "status": {
        "execution": {"succeeded": "0-3", "active": []},
        "conditions": [
            {
                "type": "Complete",
                "status": "True",
                "reason": "r",
                "lastTransitionTime": "2026-01-05T12:00:00Z",
            }
        ],
    },
}

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([1 << 63, 1 << 64, -(1 << 63) - 1, 10**40]),
    st.floats(),
    st.text(max_size=8),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=3),
    st.sampled_from(["5s", "Linear", "${job.x}", "${", "\0", "0-", "2026-01-05T12:00:00", "1e999"]),
)
NAMES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["spec", "process", "proces", "command", "kind", "metadata", "name", "status"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


def places(data: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside."""
    found = [here]
    if isinstance(data, dict):
        for name, value in data.items():
            found += places(value, (*here, name))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            found += places(value, (*here, at))
    return found


def replaced(data: Any, way: tuple[Any, ...], value: Any) -> Any:
    if not way:
        return value
    step, rest = way[0], way[1:]
    if not isinstance(data, list):
        known = data if isinstance(data, dict) else {}
        return known | {step: replaced(known.get(step), rest, value)}
    return [replaced(one, rest, value) if at == step else one for at, one in enumerate(data)]


def at_way(data: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        data = data[step]
    return data


PLACES = places(GOOD)


def nearly(good: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A good body with something else in one place, and perhaps a field that is too much."""
    ways = places(good)
    objects = [way for way in ways if isinstance(at_way(good, way), dict)]
    return st.builds(
        lambda change, way, name, value: replaced(replaced(good, (*way, name), value), *change),
        st.tuples(st.sampled_from(ways[1:]), JSON),
        st.sampled_from(objects),
        NAMES,
        JSON,
    ) | st.builds(replaced, st.just(good), st.sampled_from(ways[1:]), JSON)


CONTAINER = {
    "name": "main",
    "image": "a",
    "args": ["${task.index}"],
    "env": [{"name": "A", "value": "b"}],
}
PODS = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER | {"name": "first"}],
    "restartPolicy": "Never",
    "affinity": {"a": [1, 0.5, None, {"b": True}]},
}
LABELS = {"labels": {"a": "${task.index}"}, "annotations": {"b": "c"}}
POD_JOB = {**GOOD, "spec": {"pod": {"metadata": LABELS, "spec": PODS}, "forceDeleteAfter": "5m"}}
BATCH_JOB = {
    **GOOD,
    "spec": {
        "batchJob": {
            "metadata": LABELS,
            "spec": {"template": {"metadata": LABELS, "spec": PODS}, "completions": 3},
        }
    },
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": GOOD["spec"] | {"killAt": None}}
CONFIG: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "JobConfig",
    "metadata": {"name": "a"},
    "spec": {
        "template": TEMPLATE,
        "schedules": [
            {"cron": "H 2 * * MON-FRI", "timezone": "Europe/London", "exclude": ["holidays"]},
            {"cron": ["@daily", "0 0 L * *"], "notBefore": "2026-01-05T12:00:00+01:00"},
        ],
        "concurrency": {"policy": "Forbid", "maxConcurrency": 2, "maxQueued": 3},
        "catchUp": {"policy": "OnlyNewest", "atMost": 3, "notOlderThan": "6h"},
        "options": [
            {"name": "a", "type": "Bool", "default": True, "format": "YesNo"},
            {"name": "b", "type": "String", "default": "x", "trimSpaces": True},
            {"name": "c", "type": "Select", "values": ["x", "y"], "default": "y"},
            {"name": "d", "type": "Multi", "values": ["x"], "default": ["x"], "delimiter": ";"},
            {"name": "e", "type": "Date", "format": "YYYY-MM-DD"},
        ],
        "history": {"succeeded": 3},
    },
    "status": {
        "state": "Executing",
        "books": {
            "scheduleHash": "x",
            "expected": [{"name": "a", "uid": "u", "scheduledAt": "2026-01-05T12:00:00Z"}],
        },
        "skips": [{"at": "2026-01-05T12:00:00Z", "reason": "Calendar"}],
    },
}
CONTROLLED: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "ControlledJob",
    "metadata": {"name": "a"},
    "spec": {
        "jobTemplate": TEMPLATE,
        "timezone": {"name": "America/New_York", "offset": 60},
        "events": [
            {"action": "start", "schedule": {"timeOfDay": "09:00", "daysOfWeek": "FRI-MON"}},
            {"action": "stop", "cron": "0 17 * * *", "only": ["days"]},
        ],
        "windows": [{"from": "09:00", "to": "17:30", "days": "MON-FRI"}],
        "startBy": "1h",
        "overrides": [
            {
                "action": "Extend",
                "from": "2026-01-05T12:00:00Z",
                "until": "2026-01-05T14:00:00+01:00",
                "by": "ops",
            }
        ],
    },
    "status": {
        "window": {"start": "2026-01-05T12:00:00Z", "outcome": "Finished"},
        "isRunning": True,
    },
}
CALENDAR: dict[str, Any] = {
    "apiVersion": "interlock.dev/v1alpha1",
    "kind": "Calendar",
    "metadata": {"name": "a"},
    "spec": {
        "days": [{"day": "12-25", "name": "Christmas"}, {"day": "easter+1"}],
        "icalendar": (
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20260105\nEND:VEVENT\n"
            "END:VCALENDAR\n"
        ),
    },
}
WHOLE = {
    "process": GOOD,
    "pod": POD_JOB,
    "batchJob": BATCH_JOB,
    "config": CONFIG,
    "controlled": CONTROLLED,
    "calendar": CALENDAR,
}
NEARLY_GOOD = st.one_of(nearly(GOOD), nearly(POD_JOB), nearly(BATCH_JOB))
NEARLY_A_SCHEDULE = st.one_of(nearly(CONFIG), nearly(CONTROLLED), nearly(CALENDAR))


def read(data: Any, validation: FieldValidation = FieldValidation.STRICT) -> Any:
    """What the door gives; None when it refuses."""
    try:
        return read_resource(data, field_validation=validation)[0]
    except BadRequestError:
        return None
    except InvalidError as refusal:
        assert_told_well(refusal)
        return None


def assert_told_well(refusal: InvalidError) -> None:
    assert 0 < len(refusal.problems) <= 3 * (MAX_TOLD + 1)
    for problem in refusal.problems:
        assert problem.message
        assert len(str(problem.found)) <= 60
        # What is told can be sent on: it is JSON.
        assert msgspec.json.encode(problem)


def assert_stored_as_read(resource: Any) -> None:
    """What was taken can be written, and reads the same again."""
    assert read(encode(resource)) == resource


@STEADY
@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    read(data)


@STEADY
@given(JSON, st.sampled_from(FieldValidation))
def test_any_data(data: Any, validation: FieldValidation) -> None:
    read(json.dumps(data).encode(), validation)
    if isinstance(data, dict):
        read(data, validation)


@STEADY
@given(NEARLY_GOOD, st.sampled_from(FieldValidation))
def test_nearly_good_objects(data: Any, validation: FieldValidation) -> None:
    for given_as in (data, json.dumps(data).encode()):
        resource = read(given_as, validation)
        if resource is not None:
            assert_stored_as_read(resource)


@settings(STEADY, max_examples=300)
@given(NEARLY_A_SCHEDULE, st.sampled_from(FieldValidation))
def test_nearly_good_schedules(data: Any, validation: FieldValidation) -> None:
    for given_as in (data, json.dumps(data).encode()):
        resource = read(given_as, validation)
        if resource is not None:
            assert_stored_as_read(resource)


#: Texts of the alphabets that times, days, lines and formats are written in.
TIMES = st.one_of(
    st.text("0123456789:*/,-?LWH#()@ MONFRIdaily.", max_size=24),
    st.text("0123456789-. eastr+SATUNof1slTHY[]", max_size=24),
    st.sampled_from(["H H H H H", "0 0 29 2 *", "24:00", "FRI-MON", "UTC+23:59", "easter-200"]),
)
TEXTS = [
    (good, way)
    for good in (CONFIG, CONTROLLED, CALENDAR)
    for way in places(good)
    if way[:1] == ("spec",) and isinstance(at_way(good, way), str)
]


@settings(STEADY, max_examples=300)
@given(st.sampled_from(TEXTS), TIMES)
def test_whatever_is_written_as_a_time(place: tuple[dict[str, Any], Any], text: str) -> None:
    """A text that says when is read, or refused where it stands, and nothing else happens."""
    resource = read(replaced(place[0], place[1], text))
    if resource is not None:
        assert_stored_as_read(resource)


@pytest.mark.parametrize("data", WHOLE.values(), ids=WHOLE)
def test_the_good_ones_are_good(data: dict[str, Any]) -> None:
    assert_stored_as_read(read_resource(data)[0])


@STEADY
@given(nearly(POD_JOB) | nearly(BATCH_JOB))
def test_what_is_taken_can_be_ordered(data: Any) -> None:
    """Whatever is inside a pod, a task of it can be made, and can be sent on."""
    job = read(data)
    if isinstance(job, Job) and (job.spec.pod or job.spec.batch_job):
        order = order_of(job, 0, 0)
        assert msgspec.json.decode(encode(order.work))


@STEADY
@given(NEARLY_GOOD | NEARLY_A_SCHEDULE)
def test_the_slow_reading_agrees_with_the_decoder(data: dict[str, Any]) -> None:
    """What the decoder takes has no problems, and what has no problems the decoder takes."""
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return
    cls = KINDS[kind].type
    reader = Reader(kind)
    made = reader.read(data)
    problems = [problem for problem in reader.problems.problems if "64 bits" not in problem.message]
    if not len(reader.problems):
        from_builtins(made, cls)
    if (problems or len(reader.extras)) and not has_no_json(data):
        with pytest.raises((msgspec.MsgspecError, UnicodeError)):
            encode(from_builtins(data, cls))


def has_no_json(data: Any) -> bool:
    """Whether some number in it is one that JSON cannot write."""
    return "nan" in str(data) or "inf" in str(data)


@STEADY
@given(st.lists(st.tuples(st.sampled_from(PLACES[1:]), st.none()), max_size=4))
def test_null_is_the_same_as_nothing(nulls: list[tuple[tuple[Any, ...], None]]) -> None:
    """Nulls never make a good object unreadable, unless in a list or where something is needed."""
    with_nulls: Any = GOOD
    for way, _ in nulls:
        if len(way) > 1 and isinstance(way[-1], str):
            try:
                with_nulls = replaced(with_nulls, way, None)
            except (AttributeError, TypeError):
                continue
    read(with_nulls)


@STEADY
@given(st.one_of(st.text(max_size=60), st.text("{}[]:,-&*<?|>!%@`\"'# \n\tab1~.", max_size=60)))
def test_any_file(text: str) -> None:
    try:
        documents = read_manifests(text)
    except ManifestError:
        return
    for document in documents:
        read(document.data)


@STEADY
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.one_of(
                st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.text(max_size=9)
            ),
            lambda inner: st.one_of(
                st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_json_files_read_as_json(data: dict[str, Any]) -> None:
    (document,) = read_manifests(json.dumps(data))
    extra = (
        {"apiVersion": document.data["apiVersion"]}
        if "apiVersion" not in data and isinstance(data.get("kind"), str)
        else {}
    )

    assert document.data == data | extra


@pytest.mark.parametrize("kind", list(KINDS))
def test_nothing_but_a_kind_is_refused_or_read(kind: str) -> None:
    read({"kind": kind})
