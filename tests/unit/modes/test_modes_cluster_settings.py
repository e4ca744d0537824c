"""What may be typed for a controller, where its lease is, and how long things take."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path

import pytest

from interlock.modes.cli.flags import parse
from interlock.modes.cli.registry import VERBS
from interlock.modes.cluster import identity_of
from interlock.modes.cluster_plane import lease_times
from interlock.modes.settings import (
    ControllerSettings,
    SettingsError,
    read_controller_settings,
)


def typed(*argv: str) -> Namespace:
    verb = VERBS["controller"]
    args = parse(verb, import_module(verb.module), list(argv))
    assert args is not None
    return args


def settings(*argv: str, **environment: str) -> ControllerSettings:
    return read_controller_settings(typed(*argv), environment)


def test_nothing_need_be_typed() -> None:
    assert settings() == ControllerSettings()


def test_everything_can_be_typed() -> None:
    assert settings(
        "--kubeconfig=k", "--context=c", "--namespace=n", "--lease-namespace=l", "--lease-lasts=9",
        "--listen=0.0.0.0:1", "--tls-cert=x", "--tls-key=y", "--most-tasks=5",
    ) == ControllerSettings(
        kubeconfig=Path("k"),
        context="c",
        namespace="n",
        lease_namespace="l",
        lease_lasts_s=9,
        listen="0.0.0.0:1",
        tls_cert=Path("x"),
        tls_key=Path("y"),
        most_tasks=5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "environment", "namespace"),
    [
        pytest.param((), {}, "interlock-system", id="our own"),
        pytest.param((), {"POD_NAMESPACE": "pods"}, "pods", id="the pod's"),
        pytest.param(("-n", "one"), {}, "one", id="the only one it serves"),
        pytest.param(("-n", "one"), {"POD_NAMESPACE": "pods"}, "pods", id="the pod's comes first"),
        pytest.param(
            ("--lease-namespace", "said"), {"POD_NAMESPACE": "pods"}, "said", id="as it was said"
        ),
    ],
)
def test_where_the_lease_is(
    argv: tuple[str, ...], environment: dict[str, str], namespace: str
) -> None:
    assert settings(*argv, **environment).lease_namespace == namespace


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        pytest.param(("--listen", "0.0.0.0:1"), "in the clear", id="tokens in the clear"),
        pytest.param(("--listen", "here"), "HOST:PORT", id="no address"),
        pytest.param(("--extender-listen", "0.0.0.0:1"), "without encryption", id="slots"),
        pytest.param(
            ("--extender-listen", "127.0.0.1:1", "-n", "one"), "all namespaces", id="slots of one"
        ),
        pytest.param(("--tls-cert", "x"), "together", id="half a certificate"),
        pytest.param(("--token-file", "x"), "--token-file", id="tokens of our own"),
        pytest.param(("--server", "http://x"), "--server", id="another server"),
    ],
)
def test_what_is_refused(argv: tuple[str, ...], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        settings(*argv)


def test_plain_http_is_a_choice() -> None:
    assert settings("--listen", "0.0.0.0:1", "--plain-http").plain_http


def test_a_leader_that_is_killed_is_followed_within_five_seconds() -> None:
    """Whoever looked just before the last renewal waits longest."""
    times = lease_times(ControllerSettings())
    longest_look_s = times.every_s * 1.2
    assert longest_look_s + times.lasts_s + longest_look_s < 5.0


@pytest.mark.parametrize("lasts_s", [2, 3, 15, 60])
def test_a_leader_gives_up_before_its_lease_runs_out_and_has_time_to_try_twice(
    lasts_s: int,
) -> None:
    times = lease_times(ControllerSettings(lease_lasts_s=lasts_s))
    assert times.lasts_s == lasts_s
    assert times.renew_by_s < times.lasts_s
    assert times.every_s * 2 < times.renew_by_s


def test_no_two_processes_share_a_name() -> None:
    first, second = identity_of({"POD_NAME": "pod"}), identity_of({"POD_NAME": "pod"})
    assert first != second
    assert first.startswith("pod-")
    assert identity_of({})
