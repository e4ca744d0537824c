"""Furiko's JobConfigs become ours, with their times, options, tasks and variables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
import yaml
from import_clocks import CHANGES, by_the_wall, due_times, imported, utc

from interlock.importing.drafts import BadSourceError
from interlock.importing.furiko import import_furiko

#: After the example of Furiko that explains most of the fields.
FULL = """\
apiVersion: execution.furiko.io/v1alpha1
kind: JobConfig
metadata:
  name: full-configuration
spec:
  concurrency:
    policy: Forbid
    maxConcurrency: 1
  schedule:
    cron:
      expression: "0 */15 * * * * *"
      timezone: "Asia/Singapore"
    constraints:
      notBefore: "2022-01-01T00:00:00+08:00"
      notAfter: "2027-01-01T00:00:00+08:00"
    disabled: false
  option:
    options:
      - type: String
        name: username
        label: Username
        string:
          default: Example User
          trimSpaces: true
  template:
    metadata:
      annotations:
        annotations.furiko.io/job-group: "cool-jobs"
    spec:
      maxAttempts: 3
      retryDelaySeconds: 10
      taskPendingTimeoutSeconds: 1800
      taskTemplate:
        pod:
          spec:
            containers:
              - name: job-container
                args:
                  - echo
                  - "Hello world, ${option.username}!"
                env:
                  - name: JOBCONFIG_NAME
                    value: "${jobconfig.name}"
                  - name: JOB_NAME
                    value: "${job.name}"
                image: "alpine"
                resources:
                  limits:
                    cpu: 100m
                    memory: 64Mi
"""


def config(metadata: dict[str, Any] | None = None, **spec: Any) -> str:
    made: dict[str, Any] = yaml.safe_load(FULL)
    made["metadata"] |= metadata or {}
    made["spec"] |= spec
    made["spec"] = {name: value for name, value in made["spec"].items() if value is not None}
    return yaml.safe_dump(made, sort_keys=False)


def scheduled(*lines: str, zone: str = "UTC", **more: Any) -> str:
    cron: dict[str, Any] = {"timezone": zone}
    cron |= {"expression": lines[0]} if len(lines) == 1 else {"expressions": list(lines)}
    return config(schedule={"cron": cron, **more})


def with_option(**option: Any) -> str:
    return config(option={"options": [{"name": "username", **option}]})


def with_job(container: dict[str, Any] | None = None, **fields: Any) -> str:
    made: dict[str, Any] = yaml.safe_load(FULL)
    spec = made["spec"]["template"]["spec"] | fields
    spec["taskTemplate"]["pod"]["spec"]["containers"][0] |= container or {}
    return config(template={"spec": spec})


def one(source: str, **wishes: Any) -> dict[str, Any]:
    objects, draft = imported(import_furiko, source, **wishes)
    assert objects, draft.notes
    return objects[0]


def job_of(source: str) -> dict[str, Any]:
    found: dict[str, Any] = one(source)["spec"]["template"]["spec"]
    return found


def told(source: str, **wishes: Any) -> list[str]:
    _, draft = imported(import_furiko, source, **wishes)
    return [note.what for note in draft.notes]


@pytest.mark.parametrize(
    "line", ["30 2 * * *", "30 1 * * *", "0 0 * * *", "*/20 2 * * *", "0 */2 * * *", "0 0 13 * 5"]
)
@pytest.mark.parametrize(("zone", "start", "end"), CHANGES)
def test_it_is_due_whenever_the_clock_shows_it_and_only_then(
    line: str, zone: str, start: datetime, end: datetime
) -> None:
    made = one(scheduled(line, zone=zone))
    assert due_times(made, start, end) == by_the_wall(line, zone, start, end)


@pytest.mark.parametrize(
    ("name", "minute", "hour"),
    [("default/report", 15, 20), ("default/backup", 59, 5), ("prod/report", 2, 4)],
)  # fmt: skip
def test_an_h_falls_where_it_fell(name: str, minute: int, hour: int) -> None:
    namespace, _, plain = name.partition("/")
    made: dict[str, Any] = yaml.safe_load(scheduled("H H * * *"))
    made["metadata"] = {"name": plain, "namespace": namespace}
    start = utc("2026-01-01")
    (found,) = due_times(one(yaml.safe_dump(made)), start, utc("2026-01-02"))
    assert (found.hour, found.minute) == (hour, minute)


def test_an_h_with_a_step_of_days_begins_where_it_began() -> None:
    made: dict[str, Any] = yaml.safe_load(scheduled("0 0 H/4 * *"))
    lines = set()
    for name in "abcdefgh":
        made["metadata"] = {"name": name, "namespace": "default"}
        (line,) = {one(yaml.safe_dump(made))["spec"]["schedules"][0]["cron"]}
        lines.add(line.split()[2])
    # Furiko counts from 0: a day 0 never came, and every other one is kept as it was.
    assert lines <= {"H/4", "1/4", "2/4", "3/4"}
    assert len(lines) > 1


def test_the_example_is_kept_whole() -> None:
    made = one(FULL)
    spec = made["spec"]
    assert spec["schedules"] == [
        {
            "cron": "0 */15 * * * * *",
            "timezone": "Asia/Singapore",
            "onGap": "Skip",
            "onRepeat": "Both",
            "notBefore": "2022-01-01T00:00:00+08:00",
            "notAfter": "2027-01-01T00:00:00+08:00",
        }
    ]
    assert spec["concurrency"] == {"policy": "Forbid", "maxConcurrency": 1}
    assert spec["options"] == [
        {
            "name": "username",
            "type": "String",
            "description": "Username",
            "default": "Example User",
            "trimSpaces": True,
        }
    ]
    job = spec["template"]["spec"]
    assert job["retries"] == {"limit": 2, "delay": "10s"}
    assert job["pendingTimeout"] == "1800s"
    assert (job["forceDeleteAfter"], job["ttlAfterFinished"]) == ("15m", "1h")
    given = yaml.safe_load(FULL)["spec"]["template"]
    assert job["pod"] == given["spec"]["taskTemplate"]["pod"]
    assert spec["template"]["metadata"] == given["metadata"]
    assert told(FULL) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(scheduled("0 2 1 1 * 2027"), {"cron": "0 2 1 1 * 2027", "format": "YearLast"},
                     id="six fields end with a year"),
        pytest.param(scheduled("0/30 10-19 * * *", "0 0/2 * * *"),
                     {"cron": ["0/30 10-19 * * *", "0 0/2 * * *"]}, id="several lines"),
        pytest.param(scheduled("0 0 ** * ??"), {"cron": "0 0 * * *"}, id="doubled wildcards"),
        pytest.param(scheduled("@daily"), {"cron": "@daily"}, id="a nickname"),
        pytest.param(scheduled("0 0 * * *", zone="UTC+08:00"),
                     {"cron": "0 0 * * *", "timezone": "UTC+08:00"}, id="an offset"),
        pytest.param(scheduled("0 0 * * *", zone="Local"), {"cron": "0 0 * * *"}, id="Local"),
        pytest.param(scheduled("0 0 * * *", disabled=True),
                     {"cron": "0 0 * * *", "disabled": True}, id="disabled"),
    ],
)  # fmt: skip
def test_the_times_are_kept(source: str, expected: dict[str, Any]) -> None:
    rule = {"timezone": "UTC", "onGap": "Skip", "onRepeat": "Both"}
    assert one(source)["spec"]["schedules"] == [rule | expected]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        pytest.param({"type": "Bool", "bool": {"default": True, "format": "YesNo"}},
                     {"type": "Bool", "default": True, "format": "YesNo"}, id="bool"),
        pytest.param({"type": "Bool"}, {"type": "Bool", "default": False, "format": "TrueFalse"},
                     id="a bare bool"),
        pytest.param({"type": "Bool", "bool": {"format": "Custom", "trueVal": "y"}},
                     {"type": "Bool", "default": False, "format": "Custom", "trueValue": "y"},
                     id="a bool with words of its own"),
        pytest.param({"type": "String", "required": True}, {"type": "String", "required": True},
                     id="string"),
        pytest.param({"type": "Select", "select": {"values": ["a", "b"], "allowCustom": True}},
                     {"type": "Select", "values": ["a", "b"], "allowCustom": True}, id="select"),
        pytest.param({"type": "Multi", "multi": {"values": ["a", "b"], "default": ["a"],
                                                 "delimiter": ";"}},
                     {"type": "Multi", "values": ["a", "b"], "default": ["a"], "delimiter": ";"},
                     id="multi"),
        pytest.param({"type": "Multi", "multi": {"values": ["a"]}},
                     {"type": "Multi", "values": ["a"], "delimiter": ""}, id="nothing in between"),
        pytest.param({"type": "Date", "date": {"format": "D MMM YYYY"}},
                     {"type": "Date", "format": "D MMM YYYY"}, id="date"),
    ],
)  # fmt: skip
def test_options_of_every_type_are_kept(option: dict[str, Any], expected: dict[str, Any]) -> None:
    assert one(with_option(**option))["spec"]["options"] == [{"name": "username", **expected}]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"parallelism": {"withCount": 3}}, {"parallelism": {"count": 3}}, id="count"),
        pytest.param({"parallelism": {"withKeys": ["a", "b"],
                                      "completionStrategy": "AnySuccessful"}},
                     {"parallelism": {"keys": ["a", "b"]}, "completion": "AnySuccessful"},
                     id="keys"),
        pytest.param({"parallelism": {"withMatrix": {"os": ["a", "b"], "arch": ["x"]}}},
                     {"parallelism": {"matrix": {"os": ["a", "b"], "arch": ["x"]}}}, id="matrix"),
        pytest.param({"taskPendingTimeoutSeconds": 0}, {"pendingTimeout": "0s"}, id="no limit"),
        pytest.param({"forbidTaskForceDeletion": True}, {"forceDeleteAfter": None}, id="no force"),
        pytest.param({"ttlSecondsAfterFinished": 5}, {"ttlAfterFinished": "5s"}, id="kept shortly"),
    ],
)  # fmt: skip
def test_tasks_are_kept(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    job = job_of(with_job(**fields))
    assert {name: job.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("${job.name}-${task.retry_index}", "${job.name}-${task.retry_index}",
                     id="the same names"),
        pytest.param("${task.index_key}", "${task.index_key}", id="the key"),
        pytest.param("${task.index_matrix.os}", "", id="of no matrix"),
        pytest.param("a${option.unknown}b", "ab", id="an unknown one is taken out"),
        pytest.param("${job.type}", "Scheduled", id="the type"),
        pytest.param("${HOME} ${args.x}", "${HOME} $${args.x}", id="what is not Furiko's"),
        pytest.param("$${job.uid}", "${job.uid}", id="a $ before a value"),
    ],
)  # fmt: skip
def test_variables_have_the_values_they_had(text: str, expected: str) -> None:
    source = with_job({"args": [text], "env": [{"name": "A", "value": text}], "image": f"i:{text}"},
                      parallelism={"withKeys": ["a", "b"]})  # fmt: skip
    (container,) = job_of(source)["pod"]["spec"]["containers"]
    assert container["args"] == [expected]
    assert container["env"][0]["value"] == expected
    assert container["image"] == f"i:{expected}"


def test_nothing_is_put_in_where_furiko_puts_nothing_in() -> None:
    (container,) = job_of(with_job({"workingDir": "/${job.name}"}))["pod"]["spec"]["containers"]
    assert container["workingDir"] == "/$${job.name}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(config(schedule={"cron": {"expression": "0 0 * * *"}}),
                     "there are lines without a zone", id="no zone"),
        pytest.param(scheduled("0 0 0 1 1 * 2027 8"), '"8" is not carried over', id="eight fields"),
        pytest.param(with_job({"args": ["${job.type}"]}), "${job.type} is not carried over",
                     id="the type of a Job"),
        pytest.param(with_job({"args": ["${option.no}"]}), '"${option.no}" is taken out',
                     id="an unknown variable"),
        pytest.param(scheduled("H(20-19) * * * *"), "is not imported", id="a range that falls"),
        pytest.param(config(concurrency={"policy": "Sometimes"}), '"Sometimes" is not known',
                     id="an unknown policy"),
        pytest.param(config() + "---\napiVersion: execution.furiko.io/v1alpha1\nkind: Job\n",
                     "is not imported", id="a Job"),
    ],
)  # fmt: skip
def test_what_does_not_carry_over_is_told(source: str, expected: str) -> None:
    assert expected in told(source)


def test_an_h_that_falls_elsewhere_is_told() -> None:
    source = scheduled("H * * * *")
    assert "H falls on other times" not in told(source)
    assert "H falls on other times" in told(source, prefix="old")
    moved = config({"namespace": "a"}, schedule=yaml.safe_load(source)["spec"]["schedule"])
    assert "H falls on other times" in told(moved, namespace="b")
    assert "H falls on other times" not in told(scheduled("0 0 * MAR THU"), prefix="old")


def test_the_template_of_older_versions_is_read_too() -> None:
    made: dict[str, Any] = yaml.safe_load(FULL)
    spec = made["spec"]["template"]["spec"]
    spec["task"] = {"template": spec.pop("taskTemplate")["pod"]}
    job = job_of(yaml.safe_dump(made))
    assert job["pod"]["spec"]["containers"][0]["name"] == "job-container"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param(config(concurrency=None), "spec.concurrency.policy is required", id="policy"),
        pytest.param(config(schedule={"disabled": True}), "cron is required", id="no cron"),
        pytest.param(config(template={"spec": {"maxAttempts": 1}}), "taskTemplate is required",
                     id="no task"),
        pytest.param(with_option(type="Select", select={"values": "a"}), "expected a list",
                     id="no list"),
        pytest.param("kind: JobConfig\n", "expected a JobConfig", id="one of ours"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused(source: str, words: str) -> None:
    with pytest.raises(BadSourceError) as caught:
        imported(import_furiko, source)
    assert words in caught.value.flaws[0].message
    assert caught.value.flaws[0].line >= 1
