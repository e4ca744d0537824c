"""The command line and a real server: final lines and exit codes, never what is in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_program import Program

from interlock.testing.serving import PATIENCE_S, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def interlock(server: Server, tmp_path: Path) -> Program:
    return Program(server.url, tmp_path)


def test_run_ends_as_the_command_does(interlock: Program) -> None:
    told = interlock("run", "--wait", "--name", "fine", "--", "true")
    assert told.splitlines()[-1].startswith("fine  succeeded")
    told = interlock("run", "--wait", "--name", "bad", "--", "sh", "-c", "exit 7", code=7)
    assert "exit code 7" in told.splitlines()[-1]
    assert interlock("wait", "fine", "bad", code=7)
    assert interlock.json("wait", "fine")["status"]["phase"] == "Succeeded"


def test_follow_hands_on_what_is_printed(interlock: Program) -> None:
    script = "echo one; echo two >&2; pwd; cat; exit 3"
    told = interlock("run", "--follow", "--stdin", "--", "sh", "-c", script, code=3, given="in")
    assert told == f"one\ntwo\n{interlock.folder}\nin"
    assert "failed" in interlock.errors.splitlines()[-1]


def test_logs(interlock: Program) -> None:
    script = "echo a; echo b"
    name = interlock("run", "-o", "name", "--", "sh", "-c", script).strip()
    assert interlock("logs", "-f", name) == "a\nb\n"
    assert interlock("logs", name, "--tail", "1") == "b\n"
    assert interlock("logs", name, "--since", "1h", "--attempt", "1", "--task", "0") == "a\nb\n"
    interlock("logs", "nothing-here", code=4)


def test_a_task_that_is_not_there_is_told_with_those_that_are(interlock: Program) -> None:
    interlock("run", "--name", "fan", "--count", "3", "--wait", "--", "true")
    interlock("run", "--name", "fan-held", "--count", "3", "--suspend", "--", "true")
    for name, flag in (("fan", "--tail=1"), ("fan", "-f"), ("fan-held", "-f")):
        interlock("logs", name, "--task", "999", flag, code=4)
        told = f"error: job/{name} has no task 999: its tasks are 0 to 2\n"
        assert interlock.errors == told
    interlock("logs", "fan", "--attempt", "7", code=4)
    assert interlock.errors == "error: task 0 of job/fan had 1 attempt so far\n"


def test_a_word_that_is_no_jobconfig_is_perhaps_a_command(interlock: Program) -> None:
    interlock("run", "--wait", "date", "-n", "default", code=4)
    assert "a command comes after --: interlock run --wait -n default -- date\n" in interlock.errors
    interlock("run", "jc/date", code=4)
    assert "comes after" not in interlock.errors


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--timeout", "0s"], ["--timeout: expected more than 0s"]),
        (["--lock", "a", "--lock", "a"], ["--lock: is there twice"]),
        (["--label", "a b=c"], ["--label a b: bad name"]),
        (["--env", "1A=x"], ["--env 1A: bad name"]),
        (["--name", "Bad Name"], ["--name: expected lower-case", 'did you mean "bad-name"?']),
        (["--title", "a\nb", "--retries", "5000"], ["  --title: ", "  --retries: expected 0 to"]),
        (["--count", "20000", "--priority", "9999999999"], ["  --count: ", "  --priority: "]),
        (["--substitution", "a=b"], ["--substitution a: expected the full name"]),
        (["--", "${task.indx}"], ["the command: unknown variable"]),
        (["--", "x", "${task.indx}"], ["argument 1 of the command: unknown variable"]),
    ],
    ids=lambda value: value[0].strip("- ")[:20],
)
def test_what_flags_say_is_refused_in_their_words(
    interlock: Program, argv: list[str], expected: list[str]
) -> None:
    interlock("run", *argv, *(() if "--" in argv else ("--", "true")), code=2)
    assert interlock.errors.startswith("error: interlock run: ")
    assert "is invalid" not in interlock.errors
    for words in expected:
        assert words in interlock.errors


def test_another_systems_definition_is_told_with_its_import(interlock: Program) -> None:
    for version, kind, sort in (
        ("batch/v1", "CronJob", "cronjob"),
        ("interlock.dev/v1alpha1", "CronJob", "cronjob"),
        ("batch.gresearch.co.uk/v1beta1", "ControlledJob", "controlledjob"),
        ("execution.furiko.io/v1alpha1", "JobConfig", "furiko"),
        ("execution.furiko.io/v1alpha1", "Job", "furiko"),
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue", "kueue"),
    ):
        text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {{a: 1}}\n"
        file = interlock.folder / "my file.yaml"
        file.write_text(text)
        interlock("apply", "-f", file.name, code=2)
        assert f"interlock import {sort} 'my file.yaml'\n" in interlock.errors
        assert "unknown field" not in interlock.errors
        interlock("check", "-f", "-", code=2, given=text)
        assert f"interlock import {sort} -\n" in interlock.errors
    for name, text in (
        ("crontab", "# nightly\nMAILTO=me\n0 2 * * * /bin/x\n"),
        ("crontab", "@daily x\n*/5 * * * MON-FRI y z\n"),
        ("icalendar", "BEGIN:VCALENDAR\nVERSION:2.0\nEND:VCALENDAR\n"),
    ):
        interlock("check", "-f", "-", code=2, given=text)
        assert f"interlock import {name} -\n" in interlock.errors
    interlock("check", "-f", "-", code=2, given="just some words\n")
    assert "import" not in interlock.errors


def test_a_data_directory_that_is_passed_over_is_told(interlock: Program) -> None:
    """Only where people look for it: with the version, and when it does not work."""
    told = "INTERLOCK_SERVER names it, so INTERLOCK_DATA is not looked at"
    assert told not in interlock("version")
    interlock.env |= {"INTERLOCK_DATA": "/somewhere/else"}
    assert told in interlock("version")
    assert interlock.json("version")["note"] == told
    interlock("get", "jobs")
    assert told not in interlock.errors
    assert told not in interlock("version", "--server", interlock.env["INTERLOCK_SERVER"])
    interlock.env |= {"INTERLOCK_SERVER": "http://127.0.0.1:1"}
    interlock("get", "jobs", code=3)
    assert told in interlock.errors


def test_the_wrong_protocol_or_path_is_told(interlock: Program) -> None:
    url = interlock.env["INTERLOCK_SERVER"]
    interlock("get", "jobs", "--server", url.replace("http:", "https:"), code=3)
    assert f"does not speak https\n  perhaps it speaks http: {url}\n" in interlock.errors
    interlock("get", "jobs", "--server", f"{url}/api", code=4)
    assert "the address ends in /api: leave that out?" in interlock.errors


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("kind: Job\nspec: {noop: {}}\n", "line 1   metadata.name"),
        ("kind: Job\nmetadata: []\n", "line 2   metadata.name"),
        ("kind: Job\nmetadata: {name: {}}\n", "line 2   metadata.name"),
        ("kind: Job\nmetadata: {generateName: x-}\n", "line 2   metadata.name"),
        ("kind: Pod\nmetadata: {name: x}\n", "line 1   kind"),
        ("metadata: {name: x}\n", "line 1   kind"),
        ("kind: 7\nmetadata: {name: x}\n", "line 1   kind"),
    ],
)
def test_what_cannot_be_found_by_a_file_is_not_deleted(
    interlock: Program, document: str, expected: str
) -> None:
    good = "kind: Job\nmetadata: {name: stays}\nspec: {noop: {}, suspend: true}\n"
    interlock("apply", "-f", "-", given=good)
    interlock("delete", "-f", "-", code=2, given=f"{document}---\n{good}")
    assert expected in interlock.errors
    interlock("get", "job/stays")


def test_words_that_are_no_text_are_no_defect(interlock: Program) -> None:
    word = os.fsdecode(b"\xff\xfe")
    interlock("get", "job", word, code=4)
    interlock("get", "jobs", "-n", word)
    interlock("run", "--name", word, "--", "true", code=2)
    interlock("run", "--", word, code=2)
    assert "the command: " in interlock.errors


def test_a_day_that_cannot_be_read_is_told_also_when_nothing_is_scheduled(
    interlock: Program,
) -> None:
    for argv in (["--from", "x"], ["--to", "x"], ["--from", "2026-01-05", "--to", "2026-01-04"]):
        interlock("timeline", "-n", "kube-system", *argv, code=2)


def test_every_task_is_shown(interlock: Program) -> None:
    told = interlock("run", "--follow", "--count", "3", "--", "echo", "I am ${task.index}")
    assert sorted(told.splitlines()) == ["0| I am 0", "1| I am 1", "2| I am 2"]


def test_locks_are_told_and_pass_on(interlock: Program) -> None:
    lock = ("--lock", "cli-db")
    interlock("run", "--name", "holder", *lock, "--", "sleep", "1000")
    interlock("wait", "holder", "--for", "started")
    interlock("run", "--name", "waiter", *lock, "--", "true")
    interlock("run", "--wait", *lock, "--when-taken", "forbid", "--", "true", code=75)

    found = interlock.json("locks", "cli-db")["items"]
    assert [holder["job"] for holder in found[0]["holders"]] == ["holder"]
    assert "holder" in interlock("locks")
    assert "lock cli-db is held by job/holder" in interlock("why", "waiter")
    assert interlock.json("why", "waiter")["waits"][0]["key"] == "cli-db"
    assert "holder" in interlock("top")
    interlock("wait", "waiter", "--timeout", "10ms", code=124)
    interlock("release", "cli-db", "--job", "holder", "--reason", "x", code=5)
    interlock("release", "cli-bd", "--job", "holder", "--reason", "x", code=4)
    assert "did you mean `cli-db`?" in interlock.errors

    interlock("kill", "holder", "--wait")
    interlock("wait", "holder", code=137)
    interlock("wait", "waiter")
    assert "already killed" in interlock("stop", "holder")


def test_stop_suspend_resume_retry(interlock: Program) -> None:
    name = "steered"
    interlock("run", "--name", name, "--suspend", "--", "true")
    assert interlock("suspend", name, "--reason", "later") == f"job/{name} suspended\n"
    assert interlock.json("get", f"job/{name}")["spec"]["suspendReason"] == "later"
    assert interlock("resume", name) == f"job/{name} resumed\n"
    interlock("wait", name)
    told = interlock("retry", name, "--wait").splitlines()[-1]
    assert told.startswith(f"{name}-retry-")
    assert "succeeded" in told
    interlock("run", "--name", "long", "--", "sleep", "1000")
    interlock("stop", "long", "--wait")
    interlock("wait", "long", code=137)
    assert "job/long" in interlock("history", "--limit", "1000")
    assert interlock.json("history", "long")["items"]


DEFINITION = """\
kind: Job
metadata: {{name: applied, labels: {{team: {team}}}}}
spec:
  noop: {{}}
  suspend: true
  priority: {priority}
"""


TWICE = "kind: {kind}\nmetadata: {{name: twice{more}}}\nspec: {spec}\n"
SPECS = {"Job": "{noop: {}, suspend: true}", "JobConfig": "{template: {spec: {noop: {}}}}"}


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("verb", ["check", "apply", "diff", "plan"])
def test_the_same_name_twice_is_refused_as_a_whole(
    interlock: Program, kind: str, verb: str
) -> None:
    document = TWICE.format(kind=kind, spec=SPECS[kind], more="")
    below = interlock.folder / "below"
    below.mkdir()
    (below / "a.yaml").write_text(document)
    (below / "b.yaml").write_text("# other\n" + document)
    both = interlock.folder / "both.yaml"
    both.write_text(f"{document}---\n{document}")

    for argv, first, second in (
        (["-f", "both.yaml"], "both.yaml, line 2", "both.yaml: "),
        (["-R", "-f", "."], "below/a.yaml, line 2", "below/b.yaml: "),
        (["-f", "below/a.yaml", "-f", "below/b.yaml"], "below/a.yaml, line 2", "below/b.yaml: "),
        (["-f", "-"], "standard input, line 2", "standard input: "),
        (["-f", "below/a.yaml", "-f", "-"], "below/a.yaml, line 2", "standard input: "),
    ):
        interlock(verb, *argv, code=2, given=both.read_text())
        assert f"{second}{kind} twice was refused, nothing was stored" in interlock.errors
        assert f"is defined twice, and first in {first}" in interlock.errors
    interlock("get", kind, "twice", code=4)


def test_a_file_that_is_named_twice_is_read_once(interlock: Program) -> None:
    (interlock.folder / "once.yaml").write_text(
        TWICE.format(kind="Job", spec=SPECS["Job"], more="").replace("twice", "once")
    )
    told = interlock("apply", "-f", "once.yaml", "-f", ".", "-f", "./once.yaml")
    assert told == "job/once created\n"


def test_one_name_in_two_namespaces_is_fine(interlock: Program) -> None:
    here = TWICE.format(kind="Job", spec=SPECS["Job"], more="")
    named = TWICE.format(kind="Job", spec=SPECS["Job"], more=", namespace: default")
    other = TWICE.format(kind="Job", spec=SPECS["Job"], more=", namespace: elsewhere")
    config = TWICE.format(kind="JobConfig", spec=SPECS["JobConfig"], more="")

    interlock("check", "-f", "-", given=f"{here}---\n{other}---\n{config}")
    interlock("apply", "-f", "-", code=2, given=f"{here}---\n{named}")
    assert "is defined twice" in interlock.errors


def test_what_has_no_place_is_told_with_the_rest(interlock: Program) -> None:
    documents = [
        "kind: Job\nmetadata: {generateName: a-}\nspec: {noop: {}}\n",
        "kind: Job\nmetadata: {name: b, namespace: other}\nspec: {noop: {}}\n",
        "kind: Job\nmetadata: {name: c}\nspec: {timeout: 5}\n",
    ]
    interlock("apply", "-n", "default", "-f", "-", code=2, given="---\n".join(documents))
    for path in ("metadata.generateName", "metadata.namespace", "spec.timeout"):
        assert path in interlock.errors


STORED = """\
{{"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {{"name": "{name}"}},
 "spec": {{"noop": {{}}, "suspend": true, "priority": 3}}}}
"""


@pytest.mark.parametrize(
    ("file", "word"),
    [
        pytest.param("{noop: {}, suspend: true, priority: 3}", "unchanged", id="the same"),
        pytest.param("{noop: {}, suspend: true}", "unchanged", id="less"),
        pytest.param('{noop: {}, suspend: true, title: ""}', "unchanged", id="a default"),
        pytest.param("{noop: {}, suspend: true, priority: 4}", "configured", id="other"),
    ],
)
def test_apply_and_diff_agree_on_what_was_stored_without_them(
    interlock: Program, server: Server, request: pytest.FixtureRequest, file: str, word: str
) -> None:
    """As the examples are, and what kubectl creates: without a record of what was applied."""
    name = request.node.callspec.id.replace(" ", "-")
    post = urllib.request.Request(
        f"{server.url}/apis/interlock.dev/v1alpha1/namespaces/default/jobs",
        STORED.format(name=name).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(post).close()
    document = f"kind: Job\nmetadata: {{name: {name}}}\nspec: {file}\n"

    differs = word == "configured"
    assert bool(interlock("diff", "-f", "-", given=document, code=int(differs))) == differs
    assert interlock("apply", "-f", "-", "--dry-run", given=document).split()[1] == word
    assert interlock("apply", "-f", "-", given=document) == f"job/{name} {word}\n"
    assert interlock("diff", "-f", "-", given=document) == ""
    assert interlock("apply", "-f", "-", given=document) == f"job/{name} unchanged\n"

    # What it said is on record all the same: what a file no longer says is removed.
    assert "last-applied" in interlock("get", f"job/{name}", "-o", "json")


def test_apply_diff_delete(interlock: Program) -> None:
    file = interlock.folder / "jobs" / "deep" / "job.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(DEFINITION.format(team="a", priority=0))
    interlock("diff", "-f", "jobs", code=2)
    assert "-R" in interlock.errors
    interlock("diff", "-R", "-f", "jobs", code=1)
    assert interlock("apply", "-R", "-f", "jobs") == "job/applied created\n"
    assert interlock("apply", "-R", "-f", "jobs") == "job/applied unchanged\n"
    assert interlock("diff", "-R", "-f", "jobs") == ""
    file.write_text(DEFINITION.format(team="a", priority=3).replace(", labels: {team: a}", ""))
    told = interlock("diff", "-R", "-f", "jobs", code=1)
    assert "+  priority: 3" in told
    assert "-    team: a" in told
    assert interlock("apply", "-f", "-", given=file.read_text()) == "job/applied configured\n"
    stored = interlock.json("get", "job", "applied")
    assert stored["spec"]["priority"] == 3
    assert "labels" not in stored["metadata"]

    assert interlock("delete", "-R", "-f", "jobs") == "job/applied deleted\n"
    interlock("get", "job/applied", code=4)
    interlock("delete", "job/applied", code=4)
    interlock("delete", "job/applied", "--ignore-not-found")


def test_bad_definitions_are_told_with_their_lines_and_nothing_is_stored(
    interlock: Program,
) -> None:
    good = DEFINITION.format(team="a", priority=0).replace("applied", "good-one")
    bad = "kind: Job\nmetadata: {name: bad-one}\nspec:\n  proces: {command: [x]}\n  timeout: soon\n"
    (interlock.folder / "bad.yaml").write_text(f"{good}---\n{bad}")
    for verb in ("apply", "check", "diff"):
        interlock(verb, "-f", "bad.yaml", code=2)
        first, *rest = interlock.errors.splitlines()
        assert first == "bad.yaml: Job bad-one was refused, nothing was stored"
        assert any("line 11" in line and "did you mean" in line for line in rest)
        assert any("line 12" in line and '"soon"' in line for line in rest)
    interlock("get", "job/good-one", code=4)
    (interlock.folder / "broken.yaml").write_text("a: [")
    interlock("apply", "-f", "broken.yaml", code=2)
    assert "line " in interlock.errors
    interlock("apply", "-f", "brokn.yaml", code=2)
    assert "did you mean `broken.yaml`?" in interlock.errors


def test_get_and_describe(interlock: Program) -> None:
    interlock("run", "--name", "shown", "-l", "show=me", "--wait", "--", "true")
    table = interlock("get", "jobs", "-l", "show=me").splitlines()
    assert table[0].split()[:2] == ["NAME", "PHASE"]
    assert table[1].split()[:2] == ["shown", "Succeeded"]
    assert interlock("get", "jobs", "-l", "show=me", "-o", "name") == "job/shown\n"
    assert interlock("get", "jobs", "-A", "-l", "show=me", "--no-headers").startswith("default ")
    path = "jsonpath={.items[*].metadata.name}"
    assert interlock("get", "jobs", "-l", "show=me", "-o", path) == "shown\n"
    assert "phase: Succeeded" in interlock("get", "job/shown", "-o", "yaml")
    told = interlock("describe", "job", "shown")
    assert "Phase:        Succeeded" in told
    assert "shown-0-0" in told
    interlock("get", "jobs", "-l", "show=nobody")
    assert "nothing found" in interlock.errors
    interlock("get", "jobs", "--field-selector", "nonsense", code=2)
    assert "server" in interlock("version")


def test_watch_prints_changes(interlock: Program) -> None:
    interlock("run", "--name", "watched", "--", "true")
    told = interlock("watch", "job/watched", "--limit", "1", "-o", "json")
    assert json.loads(told)["object"]["metadata"]["name"] == "watched"


@pytest.fixture
def heard_signal() -> Iterator[None]:
    """Have children hear SIGINT, also where a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_signal")
def test_ctrl_c_ends_quietly(interlock: Program) -> None:
    interlock("run", "--name", "endless", "--", "sleep", "1000")
    argv = interlock.command("watch", "job/endless")
    with subprocess.Popen(
        argv, env=interlock.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 130
    assert errors == ""
    interlock("kill", "endless", "--wait")


def test_a_reader_that_leaves_is_no_error(interlock: Program) -> None:
    interlock("run", "--name", "piped", "--wait", "--", "true")
    argv = interlock.command("get", "jobs", "-o", "json")
    with subprocess.Popen(
        argv, env=interlock.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(PATIENCE_S)


def test_no_server_is_said(interlock: Program) -> None:
    interlock("--server", "http://127.0.0.1:1", "get", "jobs", code=3)
    assert "interlock up" in interlock.errors


def test_backup_and_restore(interlock: Program, server: Server) -> None:
    interlock("run", "--name", "saved", "--wait", "--", "true")
    interlock("backup", "copy.db")
    assert (interlock.folder / "copy.db").stat().st_mode & 0o777 == 0o600
    interlock("backup", "copy.db", code=2)
    interlock("restore", "copy.db", "--data", str(server.data), "--force", code=5)
    assert "stop the server first" in interlock.errors
    interlock("restore", "copy.db", "--data", "fresh")
    with Server(interlock.folder / "fresh") as second:
        restored = Program(second.url, interlock.folder)
        assert restored.json("get", "job/saved")["status"]["phase"] == "Succeeded"
    (interlock.folder / "bad.db").write_text("nonsense" * 1000)
    interlock("restore", "bad.db", "--data", "other", code=2)


def test_the_server_of_this_directory_is_found(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".interlock").symlink_to(server.data)
    here = Program("", tmp_path)
    here("run", "--wait", "--", "true")


def test_completion_knows_names(interlock: Program) -> None:
    interlock("run", "--name", "completed", "--wait", "--", "true")
    assert "completed" in interlock("__complete", "logs", "compl").split()
    assert "_interlock" in interlock("completion", "bash")
