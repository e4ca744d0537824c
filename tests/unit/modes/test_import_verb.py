"""`interlock import` prints definitions that pass the door, and tells everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from import_clocks import imported

from interlock.importing.controlledjob import import_controlled_jobs
from interlock.importing.cronjob import import_cronjobs
from interlock.importing.drafts import BadSourceError
from interlock.importing.furiko import import_furiko
from interlock.importing.kueue import import_kueue
from interlock.importing.printing import written
from interlock.modes.cli.main import main
from interlock.resources.door.manifests import read_manifests
from interlock.resources.door.validation import read_resource

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "import"

#: Each example, how many objects it becomes, and the exit code.
ALL = [
    ("crontab", "crontab", 7, 1),
    ("cronjob", "cronjobs.yaml", 2, 0),
    ("controlledjob", "controlledjob.yaml", 1, 0),
    ("furiko", "furiko.yaml", 1, 0),
    ("kueue", "kueue.yaml", 2, 0),
    ("icalendar", "holidays.ics", 1, 1),
]


@pytest.mark.parametrize(("sort", "name", "count", "code"), ALL)
def test_what_is_printed_passes_the_door(
    sort: str, name: str, count: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", sort, str(EXAMPLES / name)]) == code
    told = capsys.readouterr()
    documents = read_manifests(told.out)
    assert len(documents) == count
    for document in documents:
        read_resource(document.data)
    for line in told.err.splitlines():
        assert line.startswith(str(EXAMPLES / name))


@pytest.mark.parametrize(("sort", "name", "count", "code"), ALL)
def test_json_holds_the_same_objects_and_the_report(
    sort: str, name: str, count: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", sort, str(EXAMPLES / name), "-o", "json"]) == code
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert len(found["objects"]) == count
    assert told.err == ""
    for note in found["report"]:
        assert set(note) == {"line", "where", "what", "why", "instead"}
    main(["import", sort, str(EXAMPLES / name)])
    printed = capsys.readouterr()
    assert [d.data for d in read_manifests(printed.out)] == found["objects"]
    assert len(printed.err.splitlines()) == len(found["report"])


@pytest.mark.parametrize(
    ("sort", "text", "place"),
    [
        ("crontab", "# fine\nbad line\n", "line 2"),
        ("cronjob", "kind: [", "line 2"),
        ("cronjob", "apiVersion: batch/v1\nkind: CronJob\nspec: 3\n", "line 3"),
        ("controlledjob", "apiVersion: v1\nkind: Pod\n", "line 1"),
        ("furiko", "- a\n", "line 1"),
        ("kueue", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nspec: 3\n", "line 3"),
        ("kueue", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\n", "line 1"),
        ("icalendar", "BEGIN:VCALENDAR\nEND:VCALENDAR\n", "line 1"),
        ("crontab", "\0", "line 1"),
    ],
)
def test_a_bad_file_ends_with_2_a_line_and_no_output(
    sort: str, text: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "source"
    file.write_text(text)
    assert main(["import", sort, str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{file}, {place}:" in told.err


def test_a_file_that_is_not_there_or_not_text_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "crontab", str(tmp_path / "none")]) == 2
    binary = tmp_path / "binary"
    binary.write_bytes(b"# x\n\xff\xfe")
    assert main(["import", "crontab", str(binary)]) == 2
    told = capsys.readouterr()
    assert "line 2: the line is not UTF-8" in told.err
    assert told.out == ""
    assert main(["import", "crontab", str(binary), "--timezone", "Mars"]) == 2


def test_cron_lines_need_the_name_of_their_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines"
    file.write_text("0 15 10 ? * 2-6 *\n")
    assert main(["import", "cron", str(file)]) == 2
    assert "--dialect" in capsys.readouterr().err
    assert main(["import", "crontab", str(file), "--dialect", "quartz"]) == 2
    capsys.readouterr()
    assert main(["import", "cron", str(file), "--dialect", "quartz"]) == 0
    assert "cron: 15 10 * * MON-FRI" in capsys.readouterr().out


def test_texts_are_written_so_that_every_reader_reads_them_alike() -> None:
    texts = ["y", "N", "10:30", "02:30", "yes", "null", "1e3", "a\nb\n", "a\n b", "  x", "#", "*"]
    made = {"texts": texts}
    told = written([made])
    assert yaml.safe_load(told) == made
    assert '"y"' in told
    assert "&" not in written([{"a": texts, "b": texts}])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("metadata", "name", "spec", "template", "jobTemplate", "schedule", "cron"),
                    *("containers", "events", "action", "option", "options", "type", "labels"),
                    *("concurrency", "policy", "expression", "taskTemplate", "pod", "timezone"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(spec=_VALUES, metadata=_VALUES)
def test_no_manifest_is_too_odd(spec: Any, metadata: Any) -> None:
    for take, version, kind in (
        (import_cronjobs, "batch/v1", "CronJob"),
        (import_controlled_jobs, "batch.gresearch.co.uk/v1", "ControlledJob"),
        (import_furiko, "execution.furiko.io/v1alpha1", "JobConfig"),
        (import_kueue, "kueue.x-k8s.io/v1beta2", "ClusterQueue"),
        (import_kueue, "kueue.x-k8s.io/v1beta1", "LocalQueue"),
        (import_kueue, "kueue.x-k8s.io/v1beta1", "WorkloadPriorityClass"),
        (import_kueue, "config.kueue.x-k8s.io/v1beta2", "Configuration"),
        (import_kueue, "batch/v1", "Job"),
    ):
        made = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        try:
            objects, _ = imported(take, json.dumps(made))
        except BadSourceError:
            continue
        for one in objects:
            read_resource(one)
