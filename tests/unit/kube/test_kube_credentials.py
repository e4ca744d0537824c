"""Credentials are found out once, and again when they run out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kube_fakes import run

from interlock.control.clock import Clock, Timer
from interlock.errors import UnavailableError
from interlock.kube.client.config import ClusterConfig, ExecPlugin, KubeConfigError, User
from interlock.kube.client.credentials import MARGIN, REREAD_S, Credentials, tls_context
from interlock.testing.builders import T0

V1 = "client.authentication.k8s.io/v1"


class StillClock(Clock):
    """A clock that moves only when told; nothing here waits on it."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now(self) -> datetime:
        return T0 + timedelta(seconds=self.passed_s)

    def monotonic(self) -> float:
        return self.passed_s

    def call_at(self, moment: datetime, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError


def a_config(**user: Any) -> ClusterConfig:
    return ClusterConfig(server="http://x", source="a test", user=User(**user))


def a_plugin(folder: Path, program: str, **more: Any) -> ExecPlugin:
    """A plugin that is a Python program; it can count its calls in a file."""
    script = folder / "plugin.py"
    script.write_text(program)
    given: dict[str, Any] = {"api_version": V1, "interactive": "Never"}
    return ExecPlugin(command=sys.executable, args=(str(script), str(folder)), **(given | more))


TELLS = """
import json, os, sys, pathlib
calls = pathlib.Path(sys.argv[1]) / "calls"
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
(calls.parent / "asked").write_text(json.dumps(asked))
status = {"token": "t" + str(len(calls.read_text()))}
if os.environ.get("EXPIRES"):
    status["expirationTimestamp"] = os.environ["EXPIRES"]
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def test_a_plugin_is_asked_once_until_it_expires(tmp_path: Path) -> None:
    expires = T0 + timedelta(hours=1)
    clock = StillClock()
    plugin = a_plugin(
        tmp_path, TELLS, env={"EXPIRES": expires.isoformat()}, cluster={"server": "s"}
    )

    async def check() -> None:
        credentials = Credentials(a_config(exec=plugin), clock)
        assert await credentials.headers() == [("Authorization", "Bearer t1")]
        clock.passed_s = (timedelta(hours=1) - MARGIN).total_seconds() - 1
        assert await credentials.headers() == [("Authorization", "Bearer t1")]
        clock.passed_s += 1
        assert await credentials.headers() == [("Authorization", "Bearer t2")]

    run(check)
    asked = json.loads((tmp_path / "asked").read_text())
    assert asked == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "s"}},
    }


def test_a_plugin_without_expiry_is_asked_again_when_not_believed(tmp_path: Path) -> None:
    async def check() -> None:
        credentials = Credentials(a_config(exec=a_plugin(tmp_path, TELLS)), StillClock())
        await credentials.headers()
        await credentials.headers()
        assert (tmp_path / "calls").read_text() == "x"
        assert credentials.forget()
        assert await credentials.headers() == [("Authorization", "Bearer t2")]

    run(check)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import sys; sys.exit('log in first')", "log in first"),
        ("print('hello')", "did not tell an ExecCredential"),
        (f'print(\'{{"apiVersion": "{V1}", "status": {{}}}}\')', "neither a token"),
        (f'print(\'{{"apiVersion": "{V1}"}}\')', "neither a token"),
        ('print(\'{"apiVersion": "other", "status": {}}\')', "answers in 'other'"),
    ],
)
def test_a_plugin_that_tells_nothing(tmp_path: Path, program: str, told: str) -> None:
    async def check() -> None:
        credentials = Credentials(a_config(exec=a_plugin(tmp_path, program)), StillClock())
        with pytest.raises(UnavailableError) as caught:
            await credentials.headers()
        assert told in str(caught.value)

    run(check)


def test_a_plugin_that_is_not_there(tmp_path: Path) -> None:
    plugin = ExecPlugin(
        command=str(tmp_path / "absent"), api_version=V1, install_hint="get it there"
    )

    async def check() -> None:
        with pytest.raises(UnavailableError, match="get it there"):
            await Credentials(a_config(exec=plugin), StillClock()).headers()

    run(check)


def test_a_token_in_a_file_is_read_again(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", StillClock()
    file.write_text("one\n")

    async def check() -> None:
        credentials = Credentials(a_config(token_file=file), clock)
        assert await credentials.headers() == [("Authorization", "Bearer one")]
        file.write_text("two\n")
        assert await credentials.headers() == [("Authorization", "Bearer one")]
        clock.passed_s = REREAD_S
        assert await credentials.headers() == [("Authorization", "Bearer two")]
        file.unlink()
        clock.passed_s += REREAD_S
        assert await credentials.headers() == [("Authorization", "Bearer two")]

    run(check)


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    async def check() -> None:
        credentials = Credentials(a_config(token_file=tmp_path / "absent"), StillClock())
        with pytest.raises(UnavailableError, match="absent"):
            await credentials.headers()

    run(check)


def test_a_fixed_token_cannot_be_found_out_anew() -> None:
    async def check() -> None:
        credentials = Credentials(a_config(token="t"), StillClock())
        assert await credentials.headers() == [("Authorization", "Bearer t")]
        assert not credentials.forget()
        assert credentials.tls is None

    run(check)


def test_bad_certificates_are_told() -> None:
    config = ClusterConfig(server="https://x", source="context one", authority="nonsense")
    with pytest.raises(KubeConfigError, match="context one"):
        tls_context(config, b"", b"")
    with pytest.raises(KubeConfigError, match="certificate or key"):
        tls_context(ClusterConfig(server="https://x", source="s"), b"no", b"pair")


def test_a_server_can_be_trusted_blindly() -> None:
    context = tls_context(ClusterConfig(server="https://x", source="s", skip_verify=True), b"", b"")
    assert context is not None
    assert not context.check_hostname
