"""The policy for all Queues: how it is given to a server, a controller and an installation."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from interlock.client.errors import BAD_INPUT, CommandError
from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests
from interlock.modes.cli.verbs.manifests import _policy
from interlock.modes.embedded import serve
from interlock.modes.ready_policy import ReadyPolicyError, read_ready_policy
from interlock.modes.settings import read_settings
from interlock.resources.ready_gate import BlockScope, WaitForPodsReady, ready_policy
from interlock.resources.values.durations import Duration

GOOD = """\
enable: true
timeout: 10m
unscheduledTimeout: 90s
blockAdmission: true
blockScope: system
"""
READ = WaitForPodsReady(
    enable=True,
    timeout=Duration(minutes=10),
    unscheduled_timeout=Duration(seconds=90),
    block_admission=True,
    block_scope=BlockScope.SYSTEM,
)


def a_file(folder: Path, text: str) -> str:
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_policy_is_read_from_a_file_or_is_the_text_itself(tmp_path: Path) -> None:
    assert read_ready_policy(a_file(tmp_path, GOOD)) == READ
    assert read_ready_policy('{"enable": true, "timeout": "10m"}') == WaitForPodsReady(
        enable=True, timeout=Duration(minutes=10)
    )
    assert read_settings(Namespace(wait_for_pods_ready=a_file(tmp_path, GOOD))) == (
        read_settings(
            Namespace(
                wait_for_pods_ready='{"enable": true, "timeout": "10m", '
                '"unscheduledTimeout": "90s", "blockAdmission": true, "blockScope": "system"}'
            )
        )
    )
    assert read_settings(Namespace()).wait_for_pods_ready is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "enable: true\ntimeout: soon\nunscheduledTimeout: 0s\nblockScope: world\nspeed: 3\n",
            [
                "line 2: timeout 'soon': ",
                "line 3: unscheduledTimeout '0s': expected more than 0s",
                "line 4: blockScope 'world': ",
                "line 5: speed",
            ],
            id="every problem at once, with its line",
        ),
        pytest.param(
            "enable: true\nrequeuingStrategy:\n  timestamp: Now\n  backoffLimitCount: -1\n",
            [
                "line 3: requeuingStrategy.timestamp 'Now': ",
                "line 4: requeuingStrategy.backoffLimitCount -1: ",
            ],
            id="inside the strategy",
        ),
        pytest.param("timeout: 5m\n", ["line 1: enable: expected true or false"], id="silent"),
        pytest.param("", ["expected the fields of waitForPodsReady"], id="nothing"),
        pytest.param("- 1\n", ["expected the fields of waitForPodsReady"], id="a list"),
        pytest.param("a: [", ["line "], id="no YAML"),
    ],
)
def test_what_is_wrong_with_a_policy_is_told(tmp_path: Path, text: str, told: list[str]) -> None:
    path = a_file(tmp_path, text)
    with pytest.raises(ReadyPolicyError) as error:
        read_ready_policy(path)
    message = str(error.value)
    assert message.startswith(f"--wait-for-pods-ready {path}: ")
    for part in told:
        assert part in message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadyPolicyError, match=r"none\.yaml: No such file"):
        read_ready_policy(str(tmp_path / "none.yaml"))


def test_a_server_with_a_bad_policy_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = a_file(tmp_path, "enable: perhaps\n")
    data = tmp_path / "data"

    assert serve(Namespace(wait_for_pods_ready=bad, data=str(data))) == BAD_INPUT

    assert "line 1: enable 'perhaps': " in capsys.readouterr().err
    assert not data.exists(), "nothing was touched"


def test_an_installation_hands_it_to_its_controllers(tmp_path: Path) -> None:
    given = _policy(a_file(tmp_path, GOOD))
    assert read_ready_policy(given) == READ
    made = manifests(Installation(wait_for_pods_ready=given), ["controller"])
    [deployed] = [one for one in made if one["kind"] == "Deployment"]
    [container] = deployed["spec"]["template"]["spec"]["containers"]
    [argument] = [one for one in container["args"] if one.startswith("--wait-for-pods-ready=")]
    assert json.loads(argument.partition("=")[2])["timeout"] == "10m"
    with pytest.raises(CommandError) as error:
        _policy('{"enable": 3}')
    assert error.value.code == BAD_INPUT


def test_what_says_nothing_of_a_value_leaves_it_to_the_next() -> None:
    policy = ready_policy(READ, WaitForPodsReady(timeout=Duration(seconds=1)))
    assert (policy.timeout, policy.unscheduled_timeout) == (
        Duration(seconds=1),
        Duration(seconds=90),
    )
