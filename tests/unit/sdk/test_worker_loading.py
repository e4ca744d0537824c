"""An application that cannot be loaded is told in a line, with the place in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.sdk.worker.loading import load

APP = "from interlock import App\napp = App()\n"
STEP = "@app.step()\ndef dns(ctx, name: str) -> str: ...\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "broker_under_test", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path / "broker_under_test.py"


def test_an_application_is_found_from_the_directory_here(module: Path) -> None:
    module.write_text(APP + STEP)
    assert load("broker_under_test:app").functions == ("dns",)


@pytest.mark.parametrize(
    ("text", "name", "told", "hint"),
    [
        ("", "broker_under_test", "expected MODULE:APP", "such as broker:app"),
        ("", "no_such_module:app", "there is no module no_such_module here", ""),
        ("", "broker_under_test:app", "there is no app in broker_under_test", ""),
        (
            APP,
            "broker_under_test:ap",
            'there is no ap in broker_under_test; did you mean "app"',
            "",
        ),
        (APP, "broker_under_test:app", "it has no operations and no steps", ""),
        ("app = 3", "broker_under_test:app", "it is a int, and no interlock.App", ""),
        ("\n1/0", "broker_under_test:app", "ZeroDivisionError: division by zero", "line 2"),
        ("x ==", "broker_under_test:app", "SyntaxError: invalid syntax", "line 1"),
        ("import nowhere", "broker_under_test:app", "No module named 'nowhere'", "line 1"),
        ("raise SystemExit(3)", "broker_under_test:app", "SystemExit: 3", "line 1"),
        (
            APP + "@app.step()\ndef dns(name): ...",
            "broker_under_test:app",
            "step dns: expected ctx as its first parameter",
            "line 3",
        ),
        (
            APP + "@app.step()\ndef dns(ctx, name: Nmae): ...",
            "broker_under_test:app",
            "step dns: an annotation cannot be read: name 'Nmae' is not defined",
            "",
        ),
    ],
)
def test_what_cannot_be_loaded(module: Path, text: str, name: str, told: str, hint: str) -> None:
    future = "from __future__ import annotations\n" if "Nmae" in text else ""
    module.write_text(future + text)
    with pytest.raises(CommandError) as error:
        load(name)
    assert told in error.value.message
    assert hint in error.value.hint
    assert error.value.code == BAD_INPUT
