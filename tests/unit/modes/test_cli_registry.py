"""The tables that are copied for a fast start agree with their originals."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from interlock.client.kind_table import ROWS
from interlock.client.kinds import job_name, kind_named, parse_names
from interlock.modes.cli.flags import parser_for
from interlock.modes.cli.reference import page
from interlock.modes.cli.registry import VERBS, overview
from interlock.resources.job import JobPhase, WhenTaken
from interlock.resources.kinds import rows
from interlock.resources.transitions import JOB_MOVES

ROOT = Path(__file__).parents[3]


def test_the_kinds_are_those_of_the_resources() -> None:
    """Write the table anew with `make docs`."""
    assert rows() == ROWS


def test_the_words_for_jobs_are_those_of_the_resources() -> None:
    from interlock.client.outcomes import ENDS
    from interlock.modes.cli.output.formats import _MOODS
    from interlock.modes.cli.verbs.run import POLICIES

    assert {phase.value for phase, moves in JOB_MOVES.items() if not moves} == ENDS
    assert set(_MOODS) == {phase.value for phase in JobPhase}
    assert set(POLICIES) == {policy.value for policy in WhenTaken}


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_every_verb_has_its_module(verb: object) -> None:
    entry = VERBS[getattr(verb, "name", "")]
    module = import_module(entry.module)
    assert module.__doc__
    assert callable(module.run)
    assert "usage: interlock" in parser_for(entry, module).format_help()
    assert f"  {entry.name} " in overview()


def test_the_reference_page_is_up_to_date() -> None:
    """Write it anew with `make docs`."""
    assert (ROOT / "docs/reference/cli.md").read_text() == page()


@pytest.mark.parametrize("typed", ["get jobs", "run -- true", "locks", "logs x"])
def test_a_verb_starts_without_what_is_heavy(typed: str) -> None:
    """What is imported decides how fast a command starts; this holds on any machine."""
    loaded = _loaded_by(["--server", "http://127.0.0.1:1", *typed.split()])
    assert "'socket'" in loaded
    heavy = ("asyncio", "msgspec", "yaml", "ssl", "http.client", "urllib.request", "inspect")
    assert [name for name in heavy if f"'{name}'" in loaded] == []


def test_help_is_only_the_table() -> None:
    loaded = _loaded_by(["--help"])
    unneeded = ("argparse", "socket", "typing", "interlock.commands")
    assert [name for name in unneeded if f"'{name}'" in loaded] == []


def _loaded_by(argv: list[str]) -> str:
    """The modules that a command loads, on the last line that it prints."""
    script = (
        "import sys; from interlock.modes.cli.main import main;"
        f"main({argv!r}); print(sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["jobs"], [("Job", "")], id="a kind"),
        pytest.param(["job", "a", "b"], [("Job", "a"), ("Job", "b")], id="a kind and names"),
        pytest.param(["job/a", "lock/b"], [("Job", "a"), ("Lock", "b")], id="pairs"),
        pytest.param(["jobs,locks"], [("Job", ""), ("Lock", "")], id="several kinds"),
        pytest.param(["jobs.interlock.dev"], [("Job", "")], id="with its group"),
        pytest.param(["NS"], [("Namespace", "")], id="a short name in capitals"),
        pytest.param(
            ["jc/a", "ctj/b", "cal/c"],
            [("JobConfig", "a"), ("ControlledJob", "b"), ("Calendar", "c")],
            id="schedules",
        ),
    ],
)
def test_names(words: list[str], expected: list[tuple[str, str]]) -> None:
    assert [(kind.name, name) for kind, name in parse_names(words)] == expected


def test_paths() -> None:
    job, space = kind_named("job"), kind_named("namespace")
    assert job.path("a b", "x") == "/apis/interlock.dev/v1alpha1/namespaces/a%20b/jobs/x"
    assert job.path(None) == "/apis/interlock.dev/v1alpha1/jobs"
    assert space.path("ignored", "x") == "/api/v1/namespaces/x"
    assert job_name("job/x") == job_name("x") == "x"
