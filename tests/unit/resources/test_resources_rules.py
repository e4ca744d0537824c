"""Every rule of every noun at its boundary: the door and the OpenAPI document draw the same line.

The cases are made of the rules themselves, so a new rule is tried when it is written; one of a new
sort has to say here where its boundary is. A real API server tries the same cases in `tests/e2e`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from msgspec import Struct
from msgspec import inspect as shape

from interlock.api.openapi import version_3
from interlock.errors import InvalidError
from interlock.resources.adopted import AdoptedObject
from interlock.resources.calendar import CalendarDay, CalendarSpec
from interlock.resources.codec import to_builtins
from interlock.resources.controlled_job import (
    ControlledJobSpec,
    EventSpec,
    EventTime,
    Override,
    WindowSpec,
)
from interlock.resources.describe.shapes import fields_of, plain
from interlock.resources.door.validation import read_resource
from interlock.resources.job import JobSpec, LockRequest, Parallelism, SlotsRequest
from interlock.resources.job_config import JobConfigSpec
from interlock.resources.kinds import KINDS
from interlock.resources.lock import LockSpec
from interlock.resources.metadata import GROUP
from interlock.resources.namespace_selector import SelectorRequirement
from interlock.resources.options import OptionSpec
from interlock.resources.process import (
    EnvFile,
    ExecProbe,
    FileProbe,
    HttpProbe,
    ProcessSpec,
    ReadinessProbe,
    TcpProbe,
)
from interlock.resources.queue import QueueSpec, QuotaSpec
from interlock.resources.rules import (
    After,
    AtLeast,
    AtLeastOne,
    DnsLabel,
    Entries,
    ExactlyOne,
    FirstGiven,
    Given,
    Items,
    Limit,
    Longest,
    Matches,
    MoreThanNothing,
    Names,
    NounRule,
    OneLine,
    OnlyWith,
    Quantity,
    Reads,
    Rule,
    Rules,
    Unique,
    Word,
    noun_rules_of,
    rules_of,
)
from interlock.resources.schedule import JobTemplate, ScheduleSpec
from interlock.resources.scheduling import SchedulingSpec, SlotBased, SlottedJob
from interlock.resources.steps import PythonSpec, Step, StepWork, Target
from interlock.resources.test_bed import TestBedSlotsSpec, TestBedSpec

Body = dict[str, Any]

SOON, LATE = "2026-01-05T12:00:00Z", "2026-01-05T12:00:01Z"
JOB: Body = {"noop": {}}
POD: Body = {"spec": {"containers": [{"name": "a", "image": "b"}]}}
ADOPTED: Body = {"kind": "Pod", "name": "a", "uid": "u"}
STEP: Body = {"name": "a", "run": {"process": {"command": ["true"]}}}
#: A good noun of each type that has required fields; those of the others are good when empty.
GOOD: dict[type[Struct], Body] = {
    JobSpec: JOB,
    JobTemplate: {"spec": JOB},
    JobConfigSpec: {"template": {"spec": JOB}},
    ControlledJobSpec: {"jobTemplate": {"spec": JOB}},
    CalendarSpec: {"days": [{"day": "12-25"}]},
    CalendarDay: {"day": "12-25"},
    LockSpec: {"key": "db"},
    QueueSpec: {"resources": {"tasks": 1}},
    QuotaSpec: {"queue": "q"},
    TestBedSpec: {"slotsPerNode": 1},
    TestBedSlotsSpec: {"testBed": "bed"},
    SchedulingSpec: {"testBed": "bed", "queueBased": ["j"]},
    SlotBased: {"jobs": [{"name": "j", "positions": [0]}]},
    SlottedJob: {"name": "j", "positions": [0]},
    AdoptedObject: ADOPTED,
    SelectorRequirement: {"key": "a", "operator": "In", "values": ["a"]},
    LockRequest: {"key": "db"},
    ProcessSpec: {"command": ["true"]},
    EnvFile: {"file": "a"},
    ReadinessProbe: {"file": {"path": "a"}},
    ExecProbe: {"command": ["true"]},
    TcpProbe: {"port": 80},
    HttpProbe: {"port": 80},
    FileProbe: {"path": "a"},
    Step: STEP,
    StepWork: STEP["run"],
    PythonSpec: {"function": "f"},
    Target: {"path": "a"},
    Parallelism: {"count": 1},
    ScheduleSpec: {"cron": "0 2 * * *"},
    OptionSpec: {"name": "o"},
    EventSpec: {"action": "stop", "cron": "0 2 * * *"},
    EventTime: {"timeOfDay": "12:00"},
    WindowSpec: {"from": "09:00", "to": "17:00"},
    Override: {"action": "Hold", "from": SOON, "until": LATE},
}
#: What has to stand beside a field for it to mean anything.
BESIDE: dict[tuple[type[Struct], str], Body] = {
    (JobSpec, "forceDeleteAfter"): {"pod": POD},
    (JobSpec, "resources"): {"queue": "q"},
    (JobSpec, "minParallelism"): {"queue": "q"},
    (JobSpec, "waitForPodsReady"): {"queue": "q"},
    (JobSpec, "slots"): {"process": {"command": ["true"]}},
    (SlotsRequest, "ids"): {"testBed": "bed"},
    (QueueSpec, "borrowingLimit"): {"cohort": "c"},
    (QueueSpec, "lendingLimit"): {"cohort": "c"},
    (QueueSpec, "fairSharing"): {"cohort": "c"},
    (Step, "undoRetries"): {"undo": STEP["run"]},
    (OptionSpec, "values"): {"type": "Select"},
    (OptionSpec, "delimiter"): {"type": "Multi", "values": ["a"]},
    (OptionSpec, "format"): {"type": "Date"},
    (OptionSpec, "trueValue"): {"type": "Bool", "format": "Custom"},
    (OptionSpec, "falseValue"): {"type": "Bool", "format": "Custom"},
}
#: A value for each field that is one of several.
VALUES: dict[tuple[type[Struct], str], Any] = {
    (JobSpec, "process"): {"command": ["true"]},
    (JobSpec, "pod"): POD,
    (JobSpec, "batchJob"): {
        "spec": {"template": {"spec": {"restartPolicy": "Never", **POD["spec"]}}}
    },
    (JobSpec, "noop"): {},
    (JobSpec, "adopted"): ADOPTED,
    (JobSpec, "steps"): [STEP],
    (JobSpec, "python"): {"function": "f"},
    (StepWork, "process"): {"command": ["true"]},
    (StepWork, "pod"): POD,
    (StepWork, "python"): {"function": "f"},
    (Step, "undo"): STEP["run"],
    (Step, "undoRetries"): {"limit": 1},
    (JobSpec, "forceDeleteAfter"): "1m",
    (ReadinessProbe, "exec"): {"command": ["true"]},
    (ReadinessProbe, "tcpSocket"): {"port": 80},
    (ReadinessProbe, "httpGet"): {"port": 80},
    (ReadinessProbe, "file"): {"path": "a"},
    (JobSpec, "queue"): "q",
    (JobSpec, "resources"): {"cpu": "500m"},
    (JobSpec, "minParallelism"): 1,
    (JobSpec, "waitForPodsReady"): {"enable": True},
    (JobSpec, "slots"): {"testBed": "bed"},
    (SlotsRequest, "testBed"): "bed",
    (SlotsRequest, "ids"): ["node-0/1"],
    (SchedulingSpec, "queueBased"): ["j"],
    (SchedulingSpec, "slotBased"): {"jobs": [{"name": "j", "positions": [0]}]},
    (SlottedJob, "slotIds"): ["node-0/1"],
    (SlottedJob, "positions"): [0],
    (QuotaSpec, "queue"): "q",
    (QuotaSpec, "cohort"): "c",
    (QueueSpec, "cohort"): "c",
    (QueueSpec, "borrowingLimit"): {"cpu": "500m"},
    (QueueSpec, "lendingLimit"): {"cpu": "500m"},
    (QueueSpec, "fairSharing"): {"weight": 2},
    (Parallelism, "count"): 2,
    (Parallelism, "keys"): ["a"],
    (Parallelism, "matrix"): {"a": ["b"]},
    (EventSpec, "schedule"): {"timeOfDay": "12:00"},
    (EventSpec, "cron"): "0 2 * * *",
    (CalendarSpec, "days"): [{"day": "12-25"}],
    (CalendarSpec, "icalendar"): "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225"
    "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
}
#: Texts on both sides of each pattern, by a good one that tells which.
TEXTS: dict[str, tuple[list[str], list[str]]] = {
    "key": (["a/b:c.d_e-F9", "x" * 253], ["", "a b", "x" * 254, "ä"]),
    "user": (["www-data", "0", "9" * 10, "a$"], ["", "9" * 11, "a b", "x" * 257]),
    "group": (["www-data", "33"], ["", "a:b"]),
    "name": (["a", "A_b.c-1", "x" * 63], ["", "a b", "x" * 64]),
    "path": (
        ["a/b:c.d_e-F9", "..a/b..", "x" * 200],
        ["", "/a", "a/", "a//b", "a b", "a/../b", ".", "x" * 201],
    ),
    "slotIds": (["a/0", "a-b.c/999"], ["", "a", "a/01", "A/1", "a/1000"]),
    "ids": (["a/0", "a-b.c/999", "0/1"], ["", "a", "a/01", "A/1", "a/1000", "a/-1", "-a/1"]),
    "nodeLabel": (["a", "a.b/c_D", "a/" + "x" * 63], ["", "a b", "/a", "x" * 64, "A/a"]),
    "redact": (["a", "db.key", "x" * 253], ["", "a b", "x" * 254]),
    "host": (["localhost", "10.0.0.1", "::1", "x" * 253], ["a b", "x" * 254]),
    "HttpProbe.path": (["/", "/a?b=c%20d", "/" + "x" * 2000], ["", "a", "/a b", "/" + "x" * 2001]),
    "function": (["f", "_a.b:C-1"], ["", "1a", "a b", "x" * 201]),
    "uid": (["u-1", "x" * 64], ["", "a b", "x" * 65]),
    "AdoptedObject.name": (["a", "a.b-c", "x" * 63], ["", "A", "a..b", "x" * 254]),
    "SelectorRequirement.key": (["a", "A_b.c-1", "a.b/c"], ["", "a b", "/a", "x" * 64]),
    "values": (["", "a", "A_b.c-1", "x" * 63], ["a b", "-", "x" * 64]),
    "matchLabels": (["", "a", "A_b.c-1", "x" * 63], ["a b", "-", "x" * 64]),
}
#: Names in maps on both sides of each pattern.
NAMES: dict[str, tuple[list[str], list[str]]] = {
    "env": (["A_b.c-1", "-"], ["", "1A", "A=B"]),
    "args": (["a", "1", "x" * 253], ["", "a b", "x" * 254]),
    "matrix": (["a", "b-_1", "x" * 63], ["", "A", "x" * 64]),
    "borrowingLimit": (["a"], ["a "]),
    "lendingLimit": (["a"], ["a "]),
    "resourcesPerSlot": (["a"], ["a "]),
    "requests": (["a", "nvidia.com/gpu"], ["", "a ", "/a", "a."]),
    "matchLabels": (["a", "a.b/C_d"], ["", "a b", "/a"]),
    "resources": (["a", "nvidia.com/gpu", "A_b", "x" * 100], ["", "a ", "/a", "a.", "x" * 101]),
}
#: What a reader of ours reads, what a schema refuses too, and what only the reader refuses.
READ: dict[str, tuple[list[str], list[str], list[str]]] = {
    "timezone": (["UTC", "Europe/London"], [], ["Europe/Londn"]),
    "name": (["UTC", "Europe/London"], [], ["Europe/Londn"]),
    "timeOfDay": (["00:00", "23:59:59"], ["24:00", "9:00", "12:00:60"], []),
    "from": (["00:00", "23:59:59"], ["24:00", "9:00", "12:00:60"], []),
    "to": (["00:00", "24:00"], ["24:01", "9:00"], []),
    "daysOfWeek": (["*", "MON-FRI"], ["", "MON FRI"], ["MON-FRY"]),
    "days": (["*", "MON-FRI"], ["", "MON FRI"], ["MON-FRY"]),
    "day": (["12-25", "easter+1"], ["", "x" * 201], ["FOO"]),
}


class Case(NamedTuple):
    """A body on one side of the boundary of a rule."""

    rule: str
    path: str
    body: Body
    is_good: bool
    #: Whether a schema, and whether a definition in a cluster, can tell a bad one.
    in_schema: bool = True
    in_cluster: bool = True

    def __str__(self) -> str:
        side = "good" if self.is_good else "bad"
        return f"{self.body['kind']} {self.path} {self.rule} {side} {self.body['spec']}"[:90]


class Side(NamedTuple):
    """A value of a field, or some fields of a noun, on one side of a boundary."""

    value: Any
    is_good: bool
    in_schema: bool = True
    in_cluster: bool = True


class Place(NamedTuple):
    """A noun inside a kind: how a whole body is made of it."""

    kind: str
    path: str
    cls: type[Struct]
    #: The nouns around it, from the outside: each with the field that leads on.
    around: tuple[tuple[type[Struct], str], ...] = ()

    def body(self, noun: Body) -> Body:
        made: Any = noun
        for cls, name in reversed(self.around):
            field = fields_of(cls)[name]
            if isinstance(plain(field.type)[0], shape.VarTupleType):
                made = [made]
            made = with_field(cls, name, made)
        kind = KINDS[self.kind]
        head = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}}
        return {**head, "spec": made}


def good(cls: type[Struct]) -> Body:
    return dict(GOOD.get(cls, {}))


def with_field(cls: type[Struct], name: str, value: Any) -> Body:
    """A good noun with one field set: what it rules out is left out, what it needs is there."""
    made = good(cls) | BESIDE.get((cls, name), {})
    for rule in noun_rules_of(cls):
        chosen = made.keys() & set(rule.written(cls)) if isinstance(rule, ExactlyOne) else set()
        ours = {name} if name in rule.written(cls) else BESIDE.get((cls, name), {}).keys()
        for other in chosen - ours if ours & set(rule.written(cls)) else ():
            del made[other]
    return made | {name: value}


def places() -> Iterator[Place]:
    """Every noun in the spec of every kind of ours."""
    for kind in KINDS.values():
        if kind.group == GROUP:
            spec = plain(fields_of(kind.type)["spec"].type)[0]
            assert isinstance(spec, shape.StructType)
            yield from nouns_below(Place(kind.name, "spec", spec.cls))


def nouns_below(place: Place) -> Iterator[Place]:
    yield place
    for name, field in fields_of(place.cls).items():
        inner = plain(field.type)[0]
        many = isinstance(inner, shape.VarTupleType)
        inner = plain(inner.item_type)[0] if isinstance(inner, shape.VarTupleType) else inner
        if isinstance(inner, shape.StructType):
            path = f"{place.path}.{name}" + ("[0]" if many else "")
            around = (*place.around, (place.cls, name))
            yield from nouns_below(Place(place.kind, path, inner.cls, around))


def cases() -> Iterator[Case]:
    """Every rule of every noun, at each place where the noun is, on both sides."""
    for place in places():
        for together in noun_rules_of(place.cls):
            for side in sides_of_nouns(together, place.cls):
                yield Case(type(together).__name__, place.path, place.body(side.value), *side[1:])
        for name, field in fields_of(place.cls).items():
            for rule, side in sides_of(rules_of(place.cls)[field.name], field.type, place, name):
                body = place.body(with_field(place.cls, name, side.value))
                yield Case(type(rule).__name__, f"{place.path}.{name}", body, *side[1:])


def sides_of(
    rules: Rules, kind: shape.Type, place: Place, name: str
) -> Iterator[tuple[Rule, Side]]:
    """Values on both sides of the rules of a field, and of those of its items."""
    kind = plain(kind)[0]
    for rule in rules.own:
        for side in boundary(rule, rules, kind, (place.cls, name)):
            yield rule, side
    if rules.items is None:
        return
    inner: Any = kind.value_type if isinstance(kind, shape.DictType) else kind.item_type  # type: ignore[attr-defined]
    for rule, side in sides_of(rules.items, inner, place, name):
        key = "option.a" if name == "substitutions" else "a"
        yield rule, side._replace(value={key: side.value} if rules.is_map else [side.value])


def boundary(
    rule: Rule, rules: Rules, kind: shape.Type, field: tuple[type[Struct], str]
) -> Iterator[Side]:
    """Values on both sides of one rule, which keep to all other rules of the field."""
    name = field[1]
    match rule:
        case Limit(low=low, high=high):
            yield from (Side(low, True), Side(high, True), Side(low - 1, False))
            yield Side(high + 1, False)
        case Entries(low=low, high=high):
            inside = with_items(kind)
            yield from (Side({"a": inside}, True), Side({}, not low))
            for count in () if high is None else (high, high + 1):
                yield Side({f"x{n}": inside for n in range(count)}, count == high)
        case Items(low=low, high=high):
            yield from () if high is None else (Side(many(name, kind, high), True),)
            yield from () if high is None else (Side(many(name, kind, high + 1), False),)
            yield from (Side(many(name, kind, low - 1), False),) if low else ()
        case Unique(by=by):
            yield Side(many(name, kind, 2), True)
            yield Side(many(name, kind, 1) * 2, False, in_schema=not by)
        case FirstGiven():
            yield from (Side(["a", ""], True), Side(["", "a"], False, in_schema=False))
        case Given():
            yield from (Side("a", True), Side("", False))
        case Longest(most=most):
            others = any(isinstance(one, Reads) for one in rules.own)
            yield from () if others else (Side(text(name, most), True),)
            yield Side(text(name, most + 1), False)
        case DnsLabel(longest=longest):
            yield from (Side("a-1", True), Side("x" * longest, True))
            yield from (Side(bad, False) for bad in ("", "A", "-a", "a.b", "x" * (longest + 1)))
        case Matches():
            good, bad = TEXTS.get(f"{field[0].__name__}.{name}") or TEXTS[name]
            yield from (Side(one, True) for one in good)
            yield from (Side(one, False) for one in bad)
        case Word():
            yield from (Side("a\n", True), Side("a\0", False), Side("x" * (1 << 17), False))
        case OneLine():
            yield from (Side("x" * 1000, True), Side("Größe 数", True))
            yield from (Side("x" * 1001, False), Side("a\nb", False), Side("\x1b[31m", False))
        case Names():
            inside = with_items(kind)
            yield from (Side({one: inside}, True) for one in NAMES[name][0])
            yield from (Side({one: inside}, False, in_schema=False) for one in NAMES[name][1])
        case AtLeast(least=least):
            ms = round(least.total_seconds() * 1000)
            yield from (Side(f"{ms}ms", True), Side("0s", False))
            yield Side(f"{ms - 1}ms", False, in_schema=False)
        case MoreThanNothing():
            yield from (Side("1ms", True), Side("0", False), Side("0h0.0s", False))
        case Quantity():
            yield from (Side("1", True), Side("512Mi", True), Side(".5Gi", True))
            yield from (Side("512MiB", False), Side("-1", False), Side("", False))
            yield from (Side("0", False, in_schema=False), Side("8Ei", False, in_schema=False))
        case Reads():
            yield from (Side(one, True) for one in READ[name][0])
            yield from (Side(one, False) for one in READ[name][1])
            yield from (Side(one, False, False, False) for one in READ[name][2])
        case _:
            raise NotImplementedError(f"where is the boundary of {type(rule).__name__}?")


def many(name: str, kind: shape.Type, count: int) -> list[Any]:
    """So many items of a list that are good, and all different."""
    assert isinstance(kind, shape.VarTupleType)
    item = plain(kind.item_type)[0]
    if isinstance(item, shape.IntType):
        return list(range(count))
    if not isinstance(item, shape.StructType):
        return [f"x/{n}" if name in ("ids", "slotIds") else f"x{n}" for n in range(count)]
    key = {LockRequest: "key", OptionSpec: "name", Step: "name", SlottedJob: "name"}.get(
        item.cls, ""
    )
    return [good(item.cls) | ({key: f"x{n}"} if key else {}) for n in range(count)]


def with_items(kind: shape.Type) -> Any:
    assert isinstance(kind, shape.DictType)
    if isinstance(kind.value_type, shape.CustomType):
        return "1"
    return ["x"] if isinstance(kind.value_type, shape.VarTupleType) else "x"


def text(name: str, length: int) -> str:
    """A text of a length; in that of a date's format, words stand in brackets."""
    return f"[{'x' * (length - 2)}]" if name == "format" else "x" * length


def sides_of_nouns(rule: NounRule, cls: type[Struct]) -> Iterator[Side]:
    """Nouns on both sides of a rule between fields."""
    names = rule.written(cls)
    rest = {name: value for name, value in good(cls).items() if name not in names}
    match rule:
        case ExactlyOne():
            given = [{name: VALUES[cls, name]} for name in names]
            yield from (Side(rest | one, True) for one in given)
            nulls = [name for name in names[1:] if plain(fields_of(cls)[name].type)[1]]
            yield Side(rest | dict.fromkeys(nulls) | given[0], True)  # Null is not given.
            yield from (Side(rest | given[0] | other, False) for other in given[1:])
            yield Side(rest, False)
        case AtLeastOne():
            yield from (Side(rest | {name: VALUES[cls, name]}, True) for name in names)
            yield Side(rest, False)
        case OnlyWith():
            field, *others = names
            lone = good(cls) | {field: VALUES[cls, field]}
            yield from (Side(good(cls) | {field: None}, True), Side(lone, False))
            for other in others:
                yield Side(
                    with_field(cls, other, VALUES[cls, other]) | {field: VALUES[cls, field]}, True
                )
        case After(or_at=or_at):
            last, first = names
            yield Side(good(cls) | {first: SOON, last: LATE}, True)
            yield Side(good(cls) | {first: SOON, last: SOON}, or_at, in_schema=False)
            yield Side(good(cls) | {first: LATE, last: SOON}, False, in_schema=False)
        case _:
            raise NotImplementedError(f"where is the boundary of {type(rule).__name__}?")


def is_seen_by_a_definition(path: str) -> bool:
    """A definition in a cluster knows nothing of a step but its name; the webhook does."""
    return ".steps[0]" not in path or path.endswith(".steps[0].name")


#: The moments of a Job are refused in a template altogether.
CASES = [
    case._replace(in_cluster=case.in_cluster and is_seen_by_a_definition(case.path))
    for case in cases()
    if not (case.rule == "After" and case.path.endswith("emplate.spec"))
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_door_draws_the_line_where_the_rule_does(case: Case) -> None:
    try:
        read_resource(json.dumps(case.body).encode())
        problems = []
    except InvalidError as error:
        problems = [problem.path for problem in error.problems]

    assert (not problems) is case.is_good, problems
    assert case.is_good or any(path.startswith(case.path) for path in problems), problems
    # What is around may be told of too: an empty text is none of "exactly one of these".
    assert all(p.startswith(case.path) or case.path.startswith(p) for p in problems), problems


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_document_draws_it_there_too(case: Case) -> None:
    document = version_3(f"apis/{GROUP}/v1alpha1")
    schema = document["components"]["schemas"][f"dev.interlock.v1alpha1.{case.body['kind']}"]

    assert is_valid(schema, case.body, document) is (case.is_good or not case.in_schema)


def test_every_rule_is_tried() -> None:
    def rules_in(rules: Rules) -> set[str]:
        inside = rules_in(rules.items) if rules.items is not None else set()
        return {type(rule).__name__ for rule in rules.own} | inside

    wanted = {
        name
        for place in places()
        for rules in rules_of(place.cls).values()
        for name in rules_in(rules)
    }
    wanted |= {type(rule).__name__ for place in places() for rule in noun_rules_of(place.cls)}

    for side in (True, False):
        assert {case.rule for case in CASES if case.is_good is side} == wanted


def test_a_default_keeps_to_the_rules_of_its_field() -> None:
    """The check does not look at a field that has its default."""
    for place in places():
        for field in shape.type_info(place.cls).fields:  # type: ignore[attr-defined]
            if field.required or field.default is None:
                continue
            default = field.default if field.default_factory is not dict else {}
            if default in ("", ()) or not isinstance(default, Struct):
                for rule in rules_of(place.cls)[field.name].own:
                    assert rule.holds(default), f"{place.path}.{field.encode_name}"
            else:
                assert to_builtins(default) == {}


def is_valid(schema: Any, value: Any, document: Any) -> bool:
    """Whether a value keeps to a schema of OpenAPI 3.0, as far as our documents use it."""
    if "$ref" in schema:
        named = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        # A reference takes no siblings, so it cannot say that null means "not given".
        return value is None or is_valid(named, value, document)
    if value is None and schema.get("nullable"):
        return True

    def keeps(part: Any, one: Any = value) -> bool:
        return is_valid(part, one, document)

    return (
        ("type" not in schema or isinstance(value, JSON_TYPES[schema["type"]]))
        and ("enum" not in schema or value in schema["enum"])
        and all(map(keeps, schema.get("allOf", ())))
        and ("anyOf" not in schema or any(map(keeps, schema["anyOf"])))
        and ("oneOf" not in schema or sum(map(keeps, schema["oneOf"])) == 1)
        and ("not" not in schema or not keeps(schema["not"]))
        and has_size(schema, value)
        and all(
            keeps(part, value[name])
            for name, part in schema.get("properties", {}).items()
            if isinstance(value, dict) and name in value
        )
        and (not isinstance(value, dict) or value.keys() >= set(schema.get("required", ())))
        and all(
            keeps(schema["additionalProperties"], one)
            for one in (value.values() if "additionalProperties" in schema else ())
        )
        and all(keeps(schema["items"], one) for one in (value if "items" in schema else ()))
    )


JSON_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def has_size(schema: Any, value: Any) -> bool:
    """Whether a value keeps to the limits of a schema, each of which is for one type."""
    if isinstance(value, str):
        length = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30)
        return length and re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, list):
        few = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 30)
        return few and not (schema.get("uniqueItems") and len(set(value)) < len(value))
    if isinstance(value, dict):
        most = schema.get("maxProperties", 1 << 30)
        return bool(schema.get("minProperties", 0) <= len(value) <= most)
    if isinstance(value, (int, float)):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def test_a_job_is_held_to_the_rules_of_what_it_has_alone() -> None:
    """Those of everything that it may have would take longer than all else that is due at once."""
    script = (
        "from interlock.resources.door.checking import problems_of_spec;"
        "from interlock.resources.job import JobSpec;"
        "from interlock.resources.process import NoopSpec, ProcessSpec;"
        "from interlock.resources.rules import rules_of;"
        "assert problems_of_spec(JobSpec(noop=NoopSpec())) == ();"
        "print(rules_of.cache_info().currsize);"
        "bad = ProcessSpec(command=());"
        "print(problems_of_spec(JobSpec(process=bad))[0].path, rules_of.cache_info().currsize)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )

    of_noop, of_process = done.stdout.splitlines()
    assert int(of_noop) == 2
    path, number = of_process.split()
    assert path == "spec.process.command"
    assert int(number) > 2
