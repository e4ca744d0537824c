"""A command as a pod: its container sees every word as it was typed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.client.pod_template import plain, pod_of
from interlock.resources.variables import names_in


def expanded(text: str) -> str:
    """What a kubelet makes of a command when no variable of that name is known."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda found: "$" if found[0] == "$$" else found[0], text)


def substituted(text: str) -> str:
    """What Interlock makes of a text before: `$${` is a plain `${`."""
    return text.replace("$${", "${")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("echo $HOME", "echo $HOME", id="a shell's variable"),
        pytest.param("echo $(date)", "echo $$(date)", id="a shell's command"),
        pytest.param("kill $$", "kill $$$$", id="a shell's own number"),
        pytest.param("${task.index}", "${task.index}", id="a variable of ours"),
        pytest.param("$${task.index}", "$${task.index}", id="no variable of ours"),
    ],
)
def test_dollar_signs(text: str, written: str) -> None:
    assert plain(text) == written


@settings(deadline=None)
@given(text=st.text(alphabet="$({)}a", max_size=12))
def test_a_cluster_changes_nothing_in_a_text(text: str) -> None:
    assert expanded(substituted(plain(text))) == substituted(text)
    assert names_in(plain(text)) == names_in(text)


def test_a_pod_has_what_the_command_had() -> None:
    pod = pod_of("tools:1", ["run"], args=["a"], env={"A": "1"}, working_dir="/srv")
    (container,) = pod["spec"]["containers"]
    assert container == {
        "name": "main",
        "image": "tools:1",
        "command": ["run"],
        "args": ["a"],
        "env": [{"name": "A", "value": "1"}],
        "workingDir": "/srv",
    }
    assert pod["spec"]["restartPolicy"] == "Never"
