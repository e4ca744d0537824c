"""Kubernetes CronJobs become JobConfigs that run the same batch Jobs at the same times."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
import yaml
from import_clocks import CHANGES, by_the_wall, due_times, imported

from interlock.importing.cronjob import import_cronjobs
from interlock.importing.drafts import BadSourceError

#: The example of the Kubernetes documentation.
HELLO = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: hello
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: hello
            image: busybox:1.28
            imagePullPolicy: IfNotPresent
            command:
            - /bin/sh
            - -c
            - date; echo Hello from the Kubernetes cluster
          restartPolicy: OnFailure
"""


def cronjob(metadata: dict[str, Any] | None = None, **spec: Any) -> str:
    made: dict[str, Any] = yaml.safe_load(HELLO)
    made["metadata"] |= metadata or {}
    made["spec"] |= {"timeZone": "Etc/UTC", **spec}
    made["spec"] = {name: value for name, value in made["spec"].items() if value is not None}
    return yaml.safe_dump(made, sort_keys=False)


def with_job(**fields: Any) -> str:
    """A CronJob whose jobTemplate has further fields, some of them in the pod."""
    made: dict[str, Any] = yaml.safe_load(cronjob())
    pod = fields.pop("pod", {})
    template = made["spec"]["jobTemplate"]
    template["metadata"] = fields.pop("metadata", {})
    template["spec"] |= fields
    template["spec"]["template"]["spec"] |= pod
    return yaml.safe_dump(made, sort_keys=False)


def one(source: str, **wishes: Any) -> dict[str, Any]:
    objects, _ = imported(import_cronjobs, source, **wishes)
    (made,) = objects
    return made


def job_of(source: str) -> dict[str, Any]:
    found: dict[str, Any] = one(source)["spec"]["template"]["spec"]
    return found


def told(source: str, **wishes: Any) -> list[str]:
    _, draft = imported(import_cronjobs, source, **wishes)
    return [f"{note.where}: {note.what}" for note in draft.notes]


@pytest.mark.parametrize(
    "line",
    [
        "30 2 * * *",
        "30 1 * * *",
        "0 0 * * *",
        "*/20 2 * * *",
        "0 */2 * * *",
        "0,30 1-3 * * *",
        "0 0 */2 * 1",
        "15 1 * * 0",
    ],
)
@pytest.mark.parametrize(("zone", "start", "end"), CHANGES)
def test_it_is_due_whenever_the_clock_shows_it_and_only_then(
    line: str, zone: str, start: datetime, end: datetime
) -> None:
    made = one(cronjob(schedule=line, timeZone=zone))
    assert due_times(made, start, end) == by_the_wall(line, zone, start, end)


def test_the_example_of_the_documentation_is_kept_whole() -> None:
    made = one(HELLO)
    spec = made["spec"]
    assert spec["schedules"] == [
        {"cron": "* * * * *", "timezone": "UTC", "onGap": "Skip", "onRepeat": "Both"}
    ]
    assert spec["concurrency"] == {"policy": "Allow"}
    assert spec["catchUp"] == {"policy": "OnlyNewest", "notOlderThan": "365d"}
    assert spec["history"] == {"succeeded": 3, "failed": 1}
    # A batch Job waits for its pods for ever; a Job of ours gives up unless it is told not to.
    assert spec["template"]["spec"]["pendingTimeout"] == "0s"
    given = yaml.safe_load(HELLO)["spec"]["jobTemplate"]["spec"]
    assert spec["template"]["spec"]["batchJob"]["spec"] == given


@pytest.mark.parametrize(
    ("fields", "part", "expected"),
    [
        pytest.param({"concurrencyPolicy": "Replace"}, "concurrency", {"policy": "Replace"},
                     id="a policy"),
        pytest.param({"concurrencyPolicy": "Forbid"}, "concurrency",
                     {"policy": "Enqueue", "maxQueued": 1}, id="Forbid"),
        pytest.param({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 60}, "concurrency",
                     {"policy": "Enqueue", "maxQueued": 1}, id="Forbid with time enough"),
        pytest.param({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 59}, "concurrency",
                     {"policy": "Forbid"}, id="Forbid with too little time"),
        pytest.param({"suspend": True}, "suspend", True, id="suspended"),
        pytest.param({"suspend": False}, "suspend", None, id="not suspended"),
        pytest.param({"startingDeadlineSeconds": 200}, "catchUp",
                     {"policy": "OnlyNewest", "notOlderThan": "200s"}, id="a deadline"),
        pytest.param({"startingDeadlineSeconds": 60}, "catchUp",
                     {"policy": "OnlyNewest", "notOlderThan": "60s"}, id="a minute"),
        pytest.param({"startingDeadlineSeconds": 59}, "catchUp",
                     {"policy": "OnlyNewest", "notOlderThan": "59s", "missedAfter": "59s"},
                     id="a deadline that is shorter than being on time"),
        pytest.param({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 7}, "history",
                     {"succeeded": 0, "failed": 7}, id="limits"),
        pytest.param({"schedule": "CRON_TZ=Asia/Tokyo 0 4 * * *", "timeZone": None}, "schedules",
                     [{"cron": "0 4 * * *", "timezone": "Asia/Tokyo", "onGap": "Skip",
                       "onRepeat": "Both"}], id="a zone in the line"),
        pytest.param({"schedule": "@daily"}, "schedules",
                     [{"cron": "@daily", "timezone": "Etc/UTC", "onGap": "Skip",
                       "onRepeat": "Both"}], id="a nickname"),
        pytest.param({"schedule": "*/90 0 ? * *"}, "schedules",
                     [{"cron": "0 0 ? * *", "timezone": "Etc/UTC", "onGap": "Skip",
                       "onRepeat": "Both"}], id="a step beyond the end"),
        pytest.param({"schedule": "@every 2h"}, "schedules",
                     [{"cron": "0 */2 * * *", "timezone": "Etc/UTC", "onGap": "Skip",
                       "onRepeat": "Both"}], id="every two hours"),
    ],
)  # fmt: skip
def test_each_field_has_its_place(fields: dict[str, Any], part: str, expected: object) -> None:
    assert one(cronjob(**fields))["spec"].get(part) == expected


def test_what_we_decide_about_a_batch_job_moves_to_the_job() -> None:
    source = with_job(
        ttlSecondsAfterFinished=100,
        suspend=True,
        pod={"terminationGracePeriodSeconds": 90, "nodeName": "n1"},
    )
    job = job_of(source)
    assert (job["ttlAfterFinished"], job["suspend"], job["gracePeriod"]) == ("100s", True, "90s")
    spec = job["batchJob"]["spec"]
    assert not {"ttlSecondsAfterFinished", "suspend"} & set(spec)
    pod = spec["template"]["spec"]
    assert "terminationGracePeriodSeconds" not in pod
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "n1"}


def test_labels_are_on_jobs_and_batch_jobs() -> None:
    source = with_job(metadata={"labels": {"app": "x"}, "annotations": {"why": "${job.name}"}})
    template = one(source)["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "x"}
    assert template["spec"]["batchJob"]["metadata"] == {
        "labels": {"app": "x"},
        "annotations": {"why": "$${job.name}"},
    }


def test_a_text_that_looks_like_a_variable_of_ours_stays_the_text() -> None:
    made: dict[str, Any] = yaml.safe_load(cronjob())
    container = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["echo", "${task.index}", "${HOME}", "$(POD)", "a $${b}"]
    spec = job_of(yaml.safe_dump(made))["batchJob"]["spec"]
    words = spec["template"]["spec"]["containers"][0]["command"]
    assert words == ["echo", "$${task.index}", "${HOME}", "$(POD)", "a $$${b}"]


def test_what_a_server_wrote_is_dropped_in_silence() -> None:
    metadata = {
        "uid": "x",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "me"},
    }
    assert told(cronjob(metadata)) == []
    assert one(cronjob(metadata))["metadata"] == {"name": "hello", "annotations": {"keep": "me"}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(HELLO, "spec.timeZone: 1 CronJob names no zone", id="no zone"),
        pytest.param(cronjob(concurrencyPolicy="Forbid", startingDeadlineSeconds=30),
                     "spec.concurrencyPolicy: Forbid is stricter", id="Forbid with a deadline"),
        pytest.param(cronjob(schedule="@every 90m"), "CronJob hello: is not imported",
                     id="an interval that divides no day"),
        pytest.param(cronjob(schedule="@every 5m"),
                     'spec.schedule: "@every 5m" is due at other minutes', id="every five minutes"),
        pytest.param(cronjob(schedule="TZ=UTC 0 0 * * *"), "CronJob hello: is not imported",
                     id="two zones"),
        pytest.param(cronjob(schedule="0 0 30 2 *"), 'spec.schedule: "0 0 30 2 *" is never due',
                     id="a day that never comes"),
        pytest.param(cronjob(startingDeadlineSeconds=0),
                     "spec.startingDeadlineSeconds: 0 is not carried over", id="no time at all"),
        pytest.param(cronjob({"name": "a.b"}), "metadata.name: is another one", id="a dotted name"),
        pytest.param(cronjob({"ownerReferences": [{"kind": "X"}]}),
                     "metadata.ownerReferences: is not carried over", id="an owner"),
        pytest.param(with_job(managedBy="x/y"),
                     "spec.jobTemplate.spec.managedBy: is not carried over", id="managedBy"),
        pytest.param(cronjob(newField=3), "spec.newField: is not carried over", id="unknown field"),
        pytest.param(with_job(pod={"restartPolicy": "Always"}), "CronJob hello: is not imported",
                     id="refused at our door"),
        pytest.param(cronjob() + "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
                     "Service s: is not imported", id="something else in the file"),
    ],
)  # fmt: skip
def test_what_does_not_carry_over_is_told(source: str, expected: str) -> None:
    assert expected in told(source)


def test_what_carries_over_wholly_is_not_told() -> None:
    assert told(cronjob()) == []
    assert told(HELLO, timezone="UTC") == []
    assert told(cronjob(concurrencyPolicy="Forbid")) == []


def test_lists_and_json_are_read_too() -> None:
    first, second = (yaml.safe_load(cronjob({"name": name})) for name in ("a", "b"))
    listed = {"apiVersion": "v1", "kind": "List", "items": [first, second]}
    for item in (bare := [dict(first), dict(second)]):
        del item["apiVersion"], item["kind"]
    typed = {"apiVersion": "batch/v1", "kind": "CronJobList", "items": bare}
    both = cronjob({"name": "a"}) + "---\n" + cronjob({"name": "b"})
    for source in (json.dumps(listed), json.dumps(typed), yaml.safe_dump(typed), both):
        objects, draft = imported(import_cronjobs, source)
        assert [made["metadata"]["name"] for made in objects] == ["a", "b"]
        assert draft.notes == []


def test_names_and_namespaces_can_be_chosen() -> None:
    made = one(cronjob({"namespace": "old"}), prefix="k8s", namespace="new")
    assert made["metadata"] == {"name": "k8s-hello", "namespace": "new"}
    assert one(cronjob({"namespace": "old"}))["metadata"]["namespace"] == "old"


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        pytest.param("a: [", 2, "not YAML", id="no YAML"),
        pytest.param("kind: Service\napiVersion: v1\n", 1, "expected a CronJob", id="no CronJob"),
        pytest.param("", 1, "found nothing", id="nothing"),
        pytest.param(cronjob(schedule=None), 5, "spec.schedule is required", id="no schedule"),
        pytest.param(cronjob(suspend="yes please"), 21, "expected true or false", id="wrong type"),
        pytest.param(cronjob(jobTemplate=None), 0, "jobTemplate.spec is required", id="no Job"),
        pytest.param(cronjob(startingDeadlineSeconds=-1), 21, "from 0 up", id="a negative number"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused_with_the_line(
    source: str, line: int, words: str
) -> None:
    with pytest.raises(BadSourceError) as caught:
        imported(import_cronjobs, source)
    flaw = caught.value.flaws[0]
    assert words in flaw.message
    assert flaw.line == line or not line


def test_no_name_that_kubernetes_takes_is_another_one_here() -> None:
    name = "nightly-copy-of-the-database-of-the-shop-to-the-next"
    assert len(name) == 52
    assert one(cronjob({"name": name}))["metadata"]["name"] == name
    assert told(cronjob({"name": name})) == []
