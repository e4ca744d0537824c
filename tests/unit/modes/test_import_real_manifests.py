"""Manifests as they lie in repositories: a bad one costs no other, and is called what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from import_clocks import imported

from interlock.importing.controlledjob import import_controlled_jobs
from interlock.importing.cronjob import import_cronjobs
from interlock.importing.drafts import BadSourceError
from interlock.importing.furiko import import_furiko
from interlock.modes.cli.main import main

CRONJOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: NAME}
spec:
  timeZone: Etc/UTC
  schedule: "0 4 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: i}]
"""
GOOD = CRONJOB.replace("NAME", "good")
HELM = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "shop.fullname" . }}
  labels: {{- include "shop.labels" . | nindent 4 }}
spec:
  schedule: {{ .Values.schedule | quote }}
"""
HELM_IN_QUOTES = GOOD.replace('"0 4 * * *"', '"{{ .Values.schedule }}"')
PATCH = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 5 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          containers: [{name: c, env: [{name: A, value: b}]}]
"""
TEMPLATE = """\
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: t}
objects:
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: "${NAME}"}
"""
FURIKO = """\
apiVersion: execution.furiko.io/v1alpha1
kind: JobConfig
metadata: {name: NAME}
spec:
  concurrency: {policy: Forbid}
  schedule: {cron: {expression: "0 4 * * *", timezone: UTC}}
  template:
    spec:
      taskTemplate:
        pod:
          spec:
            containers: [{name: c, image: i}]
"""
CONTROLLED = """\
apiVersion: batch.gresearch.co.uk/v1
kind: ControlledJob
metadata: {name: NAME}
spec:
  timezone: {name: UTC}
  events:
  - {action: start, cronSchedule: "0 4 * * *"}
  - {action: stop, cronSchedule: "0 9 * * *"}
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: i}]
"""


def told(source: str, take: Any = import_cronjobs, **wishes: Any) -> list[str]:
    _, draft = imported(take, source, **wishes)
    return [f"{note.where}: {note.what}: {note.why}; {note.instead}" for note in draft.notes]


def refusal(source: str, take: Any = import_cronjobs) -> str:
    with pytest.raises(BadSourceError) as caught:
        imported(take, source)
    return caught.value.flaws[0].message


def without(text: str, line: str) -> str:
    assert line in text
    return text.replace(line, "")


@pytest.mark.parametrize(
    ("take", "text", "bad", "words"),
    [
        (import_cronjobs, CRONJOB, without(CRONJOB, '  schedule: "0 4 * * *"\n'),
         "spec.schedule is required"),
        (import_cronjobs, CRONJOB, CRONJOB + "  suspend: maybe\n", "expected true or false"),
        (import_cronjobs, CRONJOB, CRONJOB.replace("NAME", "[]"), "metadata.name: expected text"),
        (import_furiko, FURIKO, without(FURIKO, "  concurrency: {policy: Forbid}\n"),
         "policy is required"),
        (import_controlled_jobs, CONTROLLED, CONTROLLED.replace("action: start, ", ""),
         "action is required"),
    ],
)  # fmt: skip
def test_a_bad_definition_costs_no_other(take: Any, text: str, bad: str, words: str) -> None:
    source = "---\n".join(
        (text.replace("NAME", "a"), bad.replace("NAME", "b"), text.replace("NAME", "c"))
    )
    objects, draft = imported(take, source)
    assert [made["metadata"]["name"] for made in objects] == ["a", "c"]
    assert draft.left_out == 1
    (note,) = draft.notes
    assert words in note.why
    assert note.line > text.count("\n")
    assert words in refusal(bad, take)


def test_a_bad_item_of_a_list_costs_no_other() -> None:
    one = yaml.safe_load(GOOD)
    bad: dict[str, Any] = {"metadata": {"name": "bad"}, "spec": {}}
    for listed in (
        {"apiVersion": "batch/v1", "kind": "CronJobList", "items": [bad, 3, one]},
        {"apiVersion": "v1", "kind": "List", "items": [{**one, **bad}, one]},
    ):
        objects, draft = imported(import_cronjobs, yaml.safe_dump(listed))
        assert [made["metadata"]["name"] for made in objects] == ["good"]
        assert draft.left_out == len(listed["items"]) - 1


def test_the_exit_code_tells_of_a_bad_definition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(f"{GOOD}---\n{PATCH}")
    assert main(["import", "cronjob", str(file)]) == 1
    printed = capsys.readouterr()
    assert "name: good" in printed.out
    assert "CronJob nightly: is not imported" in printed.err
    file.write_text(PATCH)
    assert main(["import", "cronjob", str(file)]) == 2


#: Files that are YAML and those that are not; the first may stand beside manifests.
UNRENDERED = [
    pytest.param(HELM_IN_QUOTES, "helm template", id="a Helm template that is YAML"),
    pytest.param(PATCH, "kubectl kustomize", id="a patch with no image"),
    pytest.param(without(GOOD, '  schedule: "0 4 * * *"\n'), "kubectl kustomize",
                 id="a patch with no schedule"),
    pytest.param("kind: Kustomization\nresources: [a.yaml]\n", "kubectl kustomize",
                 id="a kustomization"),
    pytest.param(TEMPLATE, "oc process", id="an OpenShift template"),
    pytest.param(GOOD.replace("batch/v1", "batch/v2alpha1"), "batch/v2alpha1", id="a version"),
    pytest.param(without(GOOD, "apiVersion: batch/v1\n"), "CronJob without apiVersion",
                 id="no version"),
]  # fmt: skip
UNREADABLE = [
    pytest.param(HELM, "helm template", id="a Helm template"),
    pytest.param("{{- if .Values.enabled }}\n" + GOOD + "{{- end }}\n", "helm template",
                 id="a Helm template that begins like JSON"),
    pytest.param("- op: replace\n  path: /spec/schedule\n  value: 1\n", "kubectl kustomize",
                 id="a JSON patch"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "words"), [*UNRENDERED, *UNREADABLE])
def test_what_is_no_manifest_yet_is_called_what_it_is(source: str, words: str) -> None:
    assert words in refusal(source)


@pytest.mark.parametrize(("source", "words"), UNRENDERED)
def test_what_is_no_manifest_yet_costs_no_other(source: str, words: str) -> None:
    objects, draft = imported(import_cronjobs, f"{GOOD}---\n{source}")
    assert [made["metadata"]["name"] for made in objects] == ["good"]
    assert words in "; ".join(note.why for note in draft.notes)


def test_braces_of_other_programs_are_no_helm_template() -> None:
    source = GOOD.replace("image: i", 'image: i, args: ["--format", "{{.Names}} {{ item }}"]')
    assert len(imported(import_cronjobs, source)[0]) == 1


def test_a_run_of_furiko_is_no_config() -> None:
    run = "apiVersion: execution.furiko.io/v1alpha1\nkind: Job\nmetadata: {name: j}\nspec: {}\n"
    message = refusal(run, import_furiko)
    assert "found Job (execution.furiko.io/v1alpha1)" in message
    assert "one run" in message


@pytest.mark.parametrize(
    ("source", "take", "path"),
    [
        pytest.param(GOOD.replace("Never", "Always"), import_cronjobs,
                     "spec.jobTemplate.spec.template.spec.restartPolicy:", id="a pod"),
        pytest.param(GOOD.replace("0 4 * * *", "0 4 * *"), import_cronjobs, "spec.schedule:",
                     id="a line"),
        pytest.param(GOOD.replace("Etc/UTC", "Mars"), import_cronjobs, "spec.timeZone:",
                     id="a zone"),
        pytest.param(GOOD + "  startingDeadlineSeconds: 99999999999\n", import_cronjobs,
                     "spec.startingDeadlineSeconds:", id="a deadline"),
        pytest.param(CONTROLLED.replace("NAME", "x").replace("0 4 * * *", "0 4 * *"),
                     import_controlled_jobs, "spec.events[0].cronSchedule:", id="an event"),
        pytest.param(CONTROLLED.replace("NAME", "x").replace("Never", "Always"),
                     import_controlled_jobs, "spec.jobTemplate.spec.template.spec.restartPolicy:",
                     id="the pod of a ControlledJob"),
        pytest.param(FURIKO.replace("NAME", "x").replace("0 4 * * *", "0 4 * *"),
                     import_furiko, "spec.schedule.cron", id="a line of Furiko"),
        pytest.param(FURIKO.replace("NAME", "x").replace("image: i", "imago: i"),
                     import_furiko, "spec.template.spec.taskTemplate.pod.spec.containers[0]",
                     id="a pod of Furiko"),
    ],
)  # fmt: skip
def test_what_the_door_refuses_is_told_in_the_words_of_the_source(
    source: str, take: Any, path: str
) -> None:
    (line,) = (line for line in told(source, take) if "Interlock would refuse" in line)
    assert f"refuse it: {path}" in line


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30 2 *", "59 23 31 FEB ?"])
def test_a_cronjob_that_is_never_due_is_run_by_hand(line: str) -> None:
    source = GOOD.replace("0 4 * * *", line).replace("good", "by-hand, namespace: ops")
    objects, draft = imported(import_cronjobs, without(source, "  timeZone: Etc/UTC\n"))
    assert not {"schedules", "catchUp"} & set(objects[0]["spec"])
    assert draft.left_out == 0
    (note,) = draft.notes
    assert "`interlock run by-hand -n ops`" in note.instead


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("0 0 L * *", True), ("0 0 * * 1#2", True), ("0 0 * * 7", True), ("H 0 * * *", True),
        ("0 0 * * 5-1", True), ("0 0 15W * *", True), ("0 0 * * MON-FRI", False),
        ("*/5 0-5/2 ? jan *", False), ("@daily", False), ("0 0 1,15 * 0", False),
        ("30/15 * * * *", False), ("0 0 * * MONDAY", True),
    ],
)  # fmt: skip
def test_a_line_that_kubernetes_refuses_is_told(line: str, is_told: bool) -> None:
    source = GOOD.replace("0 4 * * *", line)
    assert len(imported(import_cronjobs, source)[0]) == 1
    assert [one for one in told(source) if "Kubernetes refuses" in one] == told(source)
    assert bool(told(source)) == is_told


def test_no_zone_is_told_once_and_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = without(CRONJOB, "  timeZone: Etc/UTC\n")
    file = tmp_path / "file.yaml"
    file.write_text("---\n".join(bare.replace("NAME", f"n{i}.x") for i in range(3)))
    assert main(["import", "cronjob", str(file)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert ["no zone" in line for line in lines] == [False, False, False, True]
    assert "3 CronJobs name no zone" in lines[-1]


def test_only_what_is_imported_is_counted_for_its_zone() -> None:
    bare = without(CRONJOB, "  timeZone: Etc/UTC\n")
    refused = bare.replace("NAME", "b").replace("Never", "Always")
    helm = bare.replace("NAME", "c").replace("image: i", 'image: "{{ .Values.image }}"')
    source = "---\n".join((bare.replace("NAME", "a"), refused, helm))
    (line,) = (line for line in told(source) if "zone" in line)
    assert "1 CronJob names no zone" in line


def test_nothing_is_left_of_metadata_that_means_nothing() -> None:
    source = GOOD.replace("      template:\n", "      template:\n        metadata: {name: x}\n")
    (made,), draft = imported(import_cronjobs, source)
    assert "metadata" not in made["spec"]["template"]["spec"]["batchJob"]["spec"]["template"]
    assert draft.notes == []


def test_a_config_of_furiko_that_is_never_due_is_run_by_hand() -> None:
    source = FURIKO.replace("NAME", "rarely").replace("0 4 * * *", "0 0 31 2 *")
    (made,), draft = imported(import_furiko, source)
    assert "schedules" not in made["spec"]
    (note,) = draft.notes
    assert "`interlock run rarely`" in note.instead
    several = source.replace('expression: "0 0 31 2 *"', 'expressions: ["0 0 31 2 *", "0 4 * * *"]')
    (made,), draft = imported(import_furiko, several)
    assert made["spec"]["schedules"][0]["cron"] == ["0 4 * * *"]
    assert [note.what for note in draft.notes] == ['"0 0 31 2 *" is never due']


@pytest.mark.parametrize(("line", "is_told"), [("0 4 * * 7", True), ("0 4 * * 0", False)])
def test_a_line_that_the_operator_of_controlled_jobs_refuses_is_told(
    line: str, is_told: bool
) -> None:
    source = CONTROLLED.replace("NAME", "x").replace("0 4 * * *", line)
    found = told(source, import_controlled_jobs)
    assert bool(found) == is_told
    assert all("comes to life" in one for one in found)
