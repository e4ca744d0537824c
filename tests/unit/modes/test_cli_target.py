"""Which server a command is for: flags, environment, working directory, kubeconfig."""

from __future__ import annotations

import argparse
import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.modes.cli.errors import CommandError
from interlock.modes.cli.target import Target, find_target

_FLAGS = ("server", "token_file", "ca_file", "context", "kubeconfig")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SERVER", "TOKEN_FILE", "CA_FILE", "DATA"):
        monkeypatch.delenv(f"INTERLOCK_{name}", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def find(**flags: str) -> Target:
    return find_target(argparse.Namespace(**(dict.fromkeys(_FLAGS) | flags)))


def test_the_default() -> None:
    target = find()
    assert (target.url, target.token) == ("http://127.0.0.1:8470", "")
    assert target.is_local


def test_the_nearest_word_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("token").write_text(" secret\n")
    Path(".interlock").mkdir()
    told = {"url": "https://127.0.0.1:1", "tokenFile": "token", "caFile": "ca.pem"}
    Path(".interlock/server.json").write_text(json.dumps(told))
    here = find()
    assert (here.url, here.token, here.ca_file) == ("https://127.0.0.1:1", "secret", "ca.pem")
    monkeypatch.setenv("INTERLOCK_SERVER", "http://there:2")
    assert find().url == "http://there:2"
    assert find().token == ""
    assert find(server="http://flag:3").url == "http://flag:3"


def test_a_broken_server_file_is_none() -> None:
    Path(".interlock").mkdir()
    Path(".interlock/server.json").write_text("{")
    assert find().url == "http://127.0.0.1:8470"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:1", ("h", 1, "", False)),
        ("https://h/base/", ("h", 443, "/base", True)),
        ("h:5", ("h", 5, "", False)),
        ("http://[::1]:7", ("::1", 7, "", False)),
        ("http://[::1]", ("::1", 80, "", False)),
    ],
)
def test_addresses(url: str, expected: tuple[str, int, str, bool]) -> None:
    target = Target(url)
    assert (target.host, target.port, target.base, target.is_https) == expected


def kubeconfig(user: dict[str, Any]) -> None:
    ca = base64.b64encode(b"authority").decode()
    config = {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "two", "context": {"cluster": "missing"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://k:6443", "certificate-authority-data": ca}}
        ],
        "users": [{"name": "u", "user": user}],
    }
    Path("config").write_text(yaml.safe_dump(config))


def test_a_context_of_a_kubeconfig() -> None:
    kubeconfig({"token": "t", "client-certificate": "crt", "client-key": "/abs/key"})
    target = find(kubeconfig="config")
    assert (target.url, target.namespace, target.token) == ("https://k:6443", "team", "t")
    assert (target.ca_data, target.cert_file, target.key_file) == ("authority", "crt", "/abs/key")


def test_a_program_may_tell_the_token() -> None:
    answer = json.dumps({"status": {"token": "fresh"}})
    kubeconfig({"exec": {"command": "printf", "args": ["%s", answer]}})
    assert find(kubeconfig="config", context="one").token == "fresh"


@pytest.mark.parametrize(
    ("context", "hint"), [("oen", "did you mean `one`?"), ("two", "it has: c")]
)
def test_what_a_kubeconfig_lacks(context: str, hint: str) -> None:
    kubeconfig({})
    with pytest.raises(CommandError) as caught:
        find(kubeconfig="config", context=context)
    assert caught.value.hint == hint
    assert caught.value.code == 2
