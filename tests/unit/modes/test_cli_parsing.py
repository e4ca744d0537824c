"""What is typed is understood, or refused with a suggestion."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import pytest

from interlock.client.errors import BAD_INPUT, CommandError, did_you_mean
from interlock.modes.cli import completing
from interlock.modes.cli.flags import parse, seconds
from interlock.modes.cli.main import main
from interlock.modes.cli.registry import VERBS
from interlock.modes.cli.verbs.run import job_from


def typed(verb: str, *argv: str) -> argparse.Namespace:
    args = parse(VERBS[verb], import_module(VERBS[verb].module), list(argv))
    assert args is not None
    return args


def spec_of(*argv: str) -> dict[str, Any]:
    spec: dict[str, Any] = job_from(typed("run", *argv), local=False)["spec"]
    return spec


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        pytest.param(["gte"], "did you mean `get`?", id="a verb"),
        pytest.param(["xyzzy"], "lists the verbs", id="a verb nothing is near"),
        pytest.param(["get", "jbos"], "did you mean `jobs`?", id="a kind"),
        pytest.param(["get", "jobs", "--selctor=a"], "did you mean `--selector`?", id="a flag"),
        pytest.param(["get", "jobs", "-o", "jsno"], "did you mean `json`?", id="a format"),
        pytest.param(["get", "all"], "there are: jobs,", id="a kind nothing is near"),
        pytest.param(["get", "jobs", "--failed"], "--help` tells", id="a flag nothing is near"),
        pytest.param(
            ["run", "echo", "hi"], "interlock run -- echo hi\n", id="a command without --"
        ),
        pytest.param(["run", "ls", "-la"], "interlock run -- ls -la\n", id="with flags of its own"),
        pytest.param(["run", "ls", "-l", "a b"], "interlock run -- ls -l 'a b'\n", id="quoted"),
        pytest.param(["run", "./x", "--flag"], "interlock run -- ./x --flag\n", id="a long flag"),
        pytest.param(["run", "./x"], "interlock run -- ./x\n", id="a path"),
        pytest.param(["run", "--wait", "/bin/x"], "interlock run --wait -- /bin/x\n", id="from /"),
        pytest.param(["run", "tar", "-xzf", "-"], "interlock run -- tar -xzf -\n", id="tar"),
        pytest.param(["run", "sh", "-c", "exit 3"], "interlock run -- sh -c 'exit 3'\n", id="sh"),
        pytest.param(
            ["run", "--wait", "--lock", "db=1", "-n", "x", "pg_dump", "-f", "out", "shop"],
            "interlock run --wait --lock db=1 -n x -- pg_dump -f out shop\n",
            id="after flags of ours",
        ),
        pytest.param(
            ["-n", "x", "run", "echo", "hi"],
            "interlock run -n x -- echo hi\n",
            id="before the verb",
        ),
        pytest.param(
            ["run", "nightly", "--optoin", "a=b"], "did you mean `--option`?", id="of a JobConfig"
        ),
        pytest.param(["run", "nightly", "--at"], "expected one argument", id="half a flag"),
        pytest.param(
            ["run", "--name", "x", "x", "--lock", "a"],
            "or, if x is a command: interlock run --name x --lock a -- x\n",
            id="a flag of a command beside a word",
        ),
        pytest.param(["run"], "put it after --", id="no command"),
        pytest.param(["run", "x", "--", "y"], "not both", id="a config and a command"),
        pytest.param(["run", "x", "--lock", "a"], "is for a command", id="a flag of a command"),
        pytest.param(["run", "--at", "x", "--", "y"], "is for a JobConfig", id="of a config"),
        pytest.param(["run", "x", "--option", "a"], "NAME=VALUE", id="an option"),
        pytest.param(["run", "x", "--substitution", "a"], "NAME=VALUE", id="a substitution"),
        pytest.param(
            ["run", "x", "--substitution", "job.name=a", "--substitution", "job.name=b"],
            "--substitution job.name is given more than once",
            id="two substitutions of one name",
        ),
        pytest.param(["run", "x", "--policy", "y"], "none of Enqueue", id="a policy"),
        pytest.param(["hold", "x"], "--until monday and --for 3d", id="hold until when"),
        pytest.param(["hold", "x", "--untill", "y"], "did you mean `--until`?", id="hold's flag"),
        pytest.param(["extend", "x"], "--until 19:00 and --by 2h", id="extend until when"),
        pytest.param(["skip", "x", "--count", "0"], "from 1 up", id="skip none"),
        pytest.param(["skip", "x", "--count", "2", "--cancel"], "--count", id="cancel two"),
        pytest.param(["skip"], "NAME", id="skip nobody"),
        pytest.param(["start"], "NAME", id="start nobody"),
        pytest.param(["enable", "job/x"], "is not a JobConfig", id="enable a Job"),
        pytest.param(["enable", "jc/"], "jobconfig/NAME", id="enable nothing"),
        pytest.param(["start", "jc/x"], "is not a ControlledJob", id="start a config"),
        pytest.param(["stop", "jc/x"], "is not a Job or ControlledJob", id="stop a config"),
        pytest.param(["suspend", "lock/x"], "is not a Job or JobConfig or", id="suspend a lock"),
        pytest.param(["why", "lock/x"], "is not a Job or JobConfig or", id="why a lock"),
        pytest.param(["wait", "x", "--timeout", "soon"], "not a length of time", id="a time"),
        pytest.param(["run", "--env", "A", "--", "x"], "NAME=VALUE", id="a variable"),
        pytest.param(["run", "--lock", "a=0", "--", "x"], "at once: a whole number", id="a limit"),
        pytest.param(["run", "--lock", "a=x", "--", "x"], "at once: a whole number", id="no limit"),
        pytest.param(["run", "--lock", "=1", "--", "x"], "KEY=LIMIT", id="no key"),
        pytest.param(["run", "--priority", "x", "--", "x"], "is not a whole number", id="a word"),
        pytest.param(["run", "--count", "9" * 5000, "--", "x"], "whole number", id="endless"),
        pytest.param(["run", "--count", "\u0663", "--", "x"], "whole number", id="other digits"),
        pytest.param(
            ["run", "--env", "A=1", "--env", "A=2", "--", "x"], "--env A is given more", id="env"
        ),
        pytest.param(
            ["run", "-l", "a=1", "-l", "a=2", "--", "x"], "--label a is given more", id="label"
        ),
        pytest.param(
            ["run", "--wait-timeout", "5s", "--", "x"], "is for --wait and --follow", id="no wait"
        ),
        *(
            pytest.param(argv, "found an empty word", id=" ".join(argv) or "nothing")
            for argv in (
                ["get", ""],
                ["get", "jobs", ""],
                ["get", "jobs", "a", ""],
                ["delete", ""],
                ["delete", "jobs", "", "--all"],
                ["describe", ""],
                ["history", ""],
                ["next", ""],
                ["timeline", ""],
                ["get", "jobs", "-n", ""],
                ["get", "jobs", "--namespace="],
                ["get", "jobs", "--server", ""],
                ["get", "jobs", "--context", ""],
                ["get", "jobs", "--token-file", ""],
                ["get", "jobs", "--kubeconfig", ""],
                ["get", "jobs", "--ca-file", ""],
                ["apply", "-f", ""],
                ["apply", "-f", "x", "-f", ""],
                ["up", "--data", ""],
                ["up", "--listen", ""],
                ["restore", ""],
                ["backup", ""],
                ["restore", "x", "--data", ""],
                ["import", "crontab", ""],
                ["simulate", ""],
                ["run", "--name", "", "--", "x"],
                ["run", "--working-dir", "", "--", "x"],
                ["stop", ""],
                ["skip", "x", ""],
                ["wait", "a", ""],
                ["release", "", "--job", "x", "--reason", "y"],
            )
        ),
        pytest.param(["get", "jobs", "-o", "yaml=x"], "'yaml=x' is none of", id="a value of yaml"),
        pytest.param(["import", "crontabs", "x"], "did you mean `crontab`?", id="a choice"),
        pytest.param(["wait", "x", "--for", "start"], "did you mean `started`?", id="of a flag"),
        pytest.param(["get", "jobs", "-o", "jsonpath={.a"], "{ without }", id="an open brace"),
        pytest.param(["get", "jobs", "-o", "jsonpath={.a}}"], "} without {", id="a closed brace"),
        pytest.param(["get", "jobs", "-o", "jsonpath={.a{.b}}"], "without", id="a brace in one"),
        pytest.param(["get", "jobs", "-o", "jsonpath={.a[}"], "cannot read", id="an open bracket"),
        pytest.param(
            ["get", "jobs", "-o", "jsonpath={range .items[*]}{x y}{end}"],
            "cannot read",
            id="inside",
        ),
        pytest.param(
            ["apply", "-f", "x", "-o", "jsonpath={"], "{ without }", id="before it is done"
        ),
        pytest.param(["get", "jobs", "--server", "http://[::1"], "not an address", id="a bracket"),
        pytest.param(["get", "jobs", "--server", "http://a b"], "not an address", id="a space"),
        pytest.param(["get", "jobs", "--server", "http://a:\u0663"], "not an address", id="digits"),
        pytest.param(["logs", "x", "--tail", "-1"], "", id="a negative number"),
        pytest.param(["get"], "which kind?", id="no kind"),
        pytest.param(["delete", "jobs"], "give names, -l LABELS or --all", id="delete all jobs"),
        pytest.param(["apply"], "which files?", id="no file"),
        pytest.param(["get", "jobs", "--server", "ftp://x"], "is not an address", id="a scheme"),
        pytest.param(["get", "jobs", "--server", "http://x:y"], "is not an address", id="a port"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_do(
    argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == BAD_INPUT
    told = capsys.readouterr()
    assert told.err.startswith("error: ")
    assert expected in told.err
    assert told.out == ""


def test_help_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--help"], ["help"], ["help", "get"], ["get", "-h"], ["-n", "x", "--help"]):
        assert main(argv) == 0
        assert "usage: interlock" in capsys.readouterr().out
    assert main([]) == BAD_INPUT


def test_names_and_flags_come_in_any_order() -> None:
    args = typed("get", "job", "-n", "x", "a", "-o", "json", "b")
    assert (args.what, args.namespace, args.output) == (["job", "a", "b"], "x", "json")


def test_what_is_after_the_dashes_is_the_command() -> None:
    args = typed("run", "--wait", "--", "sh", "-c", "exit 3", "--", "--name")
    assert args.command == ["sh", "-c", "exit 3", "--", "--name"]
    assert args.wait
    assert args.name is None


def test_run_says_only_what_was_asked() -> None:
    assert spec_of("--", "true") == {"process": {"command": ["true"]}}
    assert spec_of(
        "--lock", "db", "--lock", "a=b=3", "--when-taken", "forbid", "--retries", "2",
        "--timeout", "90", "--env", "A=b=c", "--count", "4", "--priority", "-1",
        "--substitution", "option.a=b=c", "--", "true",
    ) == {
        "process": {"command": ["true"], "env": {"A": "b=c"}},
        "locks": [
            {"key": "db", "whenTaken": "Forbid"},
            {"key": "a=b", "limit": 3, "whenTaken": "Forbid"},
        ],
        "retries": {"limit": 2},
        "timeout": "90s",
        "parallelism": {"count": 4},
        "priority": -1,
        "substitutions": {"option.a": "b=c"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90), ("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("2d", 172800)]
)
def test_lengths_of_time(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["ge"], ["get"], id="a verb"),
        pytest.param(["get", "jo"], ["jobs", "jobconfigs"], id="a kind"),
        pytest.param(["wait", "--tim"], ["--timeout"], id="a flag"),
        pytest.param(["run", "x", "--sub"], ["--substitution"], id="a flag of run"),
        pytest.param(["apply", "-f", ""], ["__files"], id="a file"),
        pytest.param(["completion", "z"], ["zsh"], id="a shell"),
        pytest.param(["wait", "x", "--for", "s"], ["started"], id="a choice"),
        pytest.param(["get", "jobs", "-o", "y"], ["yaml"], id="a format"),
    ],
)
def test_completion(words: list[str], expected: list[str]) -> None:
    assert completing.candidates(words) == expected


def test_completion_without_a_server_knows_no_names() -> None:
    assert completing.candidates(["logs", "--server", "http://127.0.0.1:1", ""]) == []


def test_an_error_keeps_its_code() -> None:
    assert CommandError("x", code=7).code == 7


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        pytest.param("gte", ["get", "set"], "get", id="two letters changed places"),
        pytest.param("--selctor", ["--selector", "--server"], "--selector", id="one is missing"),
        pytest.param("nightly", ["nightly-report"], "nightly-report", id="how it begins"),
        pytest.param("JOBS", ["jobs"], "jobs", id="other capitals"),
        pytest.param("job_configs", ["job-configs"], "job-configs", id="other dashes"),
        pytest.param("fan", ["fan"], "", id="itself"),
        pytest.param("fan", ["fan", "fin"], "", id="it is there"),
        pytest.param("all", ["cal", "jobs"], "", id="short and only alike"),
        pytest.param("--failed", ["--ca-file", "--field-selector"], "", id="long and only alike"),
        pytest.param("no", ["ns"], "", id="two letters"),
        pytest.param("report", ["resort", "retort", "export"], "resort", id="the first of several"),
        pytest.param("x", [], "", id="nothing is known"),
        pytest.param("x" * 10_000, ["x" * 9_999], "", id="too long to be worth the time"),
    ],
)
def test_only_what_is_near_is_suggested(word: str, known: list[str], meant: str) -> None:
    assert did_you_mean(word, known) == (f"did you mean `{meant}`?" if meant else "")
