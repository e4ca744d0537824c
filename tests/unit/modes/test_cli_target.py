"""Which server a command is for: flags, environment, working directory, kubeconfig."""

from __future__ import annotations

import argparse
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.client.errors import CommandError
from interlock.client.http_client import Wire
from interlock.client.target import Target, find_target
from interlock.private_files import user_name

_FLAGS = ("server", "token_file", "ca_file", "context", "kubeconfig", "insecure_token")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SERVER", "TOKEN_FILE", "CA_FILE", "DATA", "INSECURE_TOKEN"):
        monkeypatch.delenv(f"INTERLOCK_{name}", raising=False)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def find(**flags: str) -> Target:
    return find_target(argparse.Namespace(**(dict.fromkeys(_FLAGS) | flags)))


def test_the_default() -> None:
    target = find()
    assert (target.url, target.token) == ("http://127.0.0.1:8470", "")
    assert target.is_local


def test_the_nearest_word_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("token").write_text(" secret\n")
    Path("token").chmod(0o600)
    Path(".interlock").mkdir()
    told = {"url": "https://127.0.0.1:1", "tokenFile": "token", "caFile": "ca.pem"}
    Path(".interlock/server.json").write_text(json.dumps(told))
    here = find()
    assert (here.url, here.token, here.ca_file) == ("https://127.0.0.1:1", "secret", "ca.pem")
    monkeypatch.setenv("INTERLOCK_SERVER", "http://there:2")
    assert find().url == "http://there:2"
    assert find().token == ""
    assert find(server="http://flag:3").url == "http://flag:3"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param("ann:the-token-of-ann", "the-token-of-ann", id="the only one"),
        pytest.param("# mine\nann:one\nME:two\nthree", "two", id="our own"),
        pytest.param("ann:one\nthree\nfour", "three", id="one without a name"),
    ],
)
def test_which_of_several_tokens_is_shown(lines: str, expected: str) -> None:
    Path("token").write_text(lines.replace("ME", user_name(os.geteuid())))
    Path("token").chmod(0o600)
    assert find(server="http://127.0.0.1:1", token_file="token").token == expected


def test_nobody_shows_the_token_of_another() -> None:
    Path("token").write_text("ann:one\nbob:two\n")
    Path("token").chmod(0o600)
    with pytest.raises(CommandError, match=f"is that of {user_name(os.geteuid())}"):
        find(server="http://127.0.0.1:1", token_file="token")


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


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1", True),
        ("http://127.0.0.1:1", True),
        ("http://127.1.2.3:1", True),
        ("http://[::1]:1", True),
        ("http://[::ffff:127.0.0.1]:1", True),
        ("http://10.0.0.1:1", False),
        ("http://127.0.0.1.evil.example:1", False),
        ("http://127.evil.example:1", False),
        ("http://localhost.evil.example:1", False),
        ("http://[::2]:1", False),
    ],
)
def test_what_is_on_this_machine(url: str, local: bool) -> None:
    assert Target(url).is_local is local


@pytest.mark.parametrize(
    ("url", "secret", "fine"),
    [
        pytest.param("http://127.0.0.1:1", True, True, id="on this machine"),
        pytest.param("https://there.invalid:1", True, True, id="encrypted"),
        pytest.param("http://there.invalid:1", False, True, id="no secret"),
        pytest.param("http://there.invalid:1", True, False, id="a token"),
        pytest.param("http://127.0.0.1.evil.invalid:1", True, False, id="a name like an address"),
    ],
)
@pytest.mark.parametrize("basic", [False, True], ids=["token", "password"])
def test_a_secret_does_not_travel_in_the_clear(
    url: str, secret: bool, fine: bool, basic: bool
) -> None:
    target = Target(url)
    if secret and basic:
        target.headers = [("Authorization", "Basic x")]
    elif secret:
        target.token = "t"
    assert target.may_tell_secrets is fine
    if not fine:
        for ask in (Wire(target).request, Wire(target).stream):
            with pytest.raises(CommandError, match="in the clear") as caught:
                ask("GET", "/", {}, b"")
            assert "--insecure-token" in caught.value.hint
            assert caught.value.code == 2


def test_a_secret_for_a_proxy_is_told_to_the_proxy() -> None:
    target = Target("http://127.0.0.1:1", token="t")
    target.proxy_url = "http://proxy.invalid:3128"
    assert not target.may_tell_secrets


def test_whoever_wants_it_sends_a_token_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("token").write_text("secret")
    Path("token").chmod(0o600)
    given = {"server": "http://there.invalid:1", "token_file": "token"}
    assert not find(**given).may_tell_secrets
    assert find(**given, insecure_token="yes").may_tell_secrets
    kubeconfig({"token": "t"}, server="http://there.invalid:1")
    assert not find(kubeconfig="config").may_tell_secrets
    monkeypatch.setenv("INTERLOCK_INSECURE_TOKEN", "1")
    assert find(kubeconfig="config").may_tell_secrets
    assert find(**given).may_tell_secrets


def kubeconfig(user: dict[str, Any], name: str = "config", **cluster: Any) -> None:
    ca = base64.b64encode(b"authority").decode()
    place = {"server": "https://k:6443", "certificate-authority-data": ca, **cluster}
    config = {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "two", "context": {"cluster": "missing"}},
        ],
        "clusters": [{"name": "c", "cluster": place}],
        "users": [{"name": "u", "user": user}],
    }
    Path(name).write_text(yaml.safe_dump(config))


def test_a_context_of_a_kubeconfig() -> None:
    Path("crt").write_text("certificate")
    Path("key").write_text("secret")
    kubeconfig(
        {"token": "t", "client-certificate": "crt", "client-key": "key", "as": "somebody"},
        **{"tls-server-name": "name", "proxy-url": "http://p:3128"},
    )
    target = find(kubeconfig="config")
    assert (target.url, target.namespace, target.token) == ("https://k:6443", "team", "t")
    assert (target.ca_data, target.cert_data, target.key_data) == (
        "authority",
        b"certificate",
        b"secret",
    )
    assert (target.tls_name, target.proxy_url) == ("name", "http://p:3128")
    assert target.headers == [("Impersonate-User", "somebody")]
    assert target.by_context


def test_a_token_in_a_file_is_read_again_when_it_is_not_believed() -> None:
    Path("token").write_text("old\n")
    kubeconfig({"tokenFile": "token"})
    target = find(kubeconfig="config")
    assert target.token == "old"
    Path("token").write_text("new\n")
    assert target.renew()
    assert target.token == "new"


def test_a_token_that_cannot_change_is_not_asked_for_again() -> None:
    kubeconfig({"token": "t"})
    assert not find(kubeconfig="config").renew()


def test_a_program_may_tell_the_token() -> None:
    version = "client.authentication.k8s.io/v1"
    answer = json.dumps({"apiVersion": version, "status": {"token": "fresh"}})
    kubeconfig({"exec": {"apiVersion": version, "command": "printf", "args": ["%s", answer]}})
    target = find(kubeconfig="config", context="one")
    assert target.token == "fresh"
    assert target.renew()


def test_a_program_that_fails_is_named() -> None:
    version = "client.authentication.k8s.io/v1"
    kubeconfig({"exec": {"apiVersion": version, "command": "false"}})
    with pytest.raises(CommandError, match="no credentials from false") as caught:
        find(kubeconfig="config")
    assert caught.value.code == 6


@pytest.mark.parametrize(("context", "told"), [("onne", "did you mean"), ("two", "there are: c")])
def test_what_a_kubeconfig_lacks(context: str, told: str) -> None:
    kubeconfig({})
    with pytest.raises(CommandError, match=told) as caught:
        find(kubeconfig="config", context=context)
    assert caught.value.code == 2


def test_kubeconfig_counts_only_where_no_server_is_named_or_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kubeconfig({"token": "t"})
    monkeypatch.setenv("KUBECONFIG", "missing:config")
    assert find().url == "https://k:6443"
    Path(".interlock").mkdir()
    Path(".interlock/server.json").write_text(json.dumps({"url": "http://here:1"}))
    assert find().url == "http://here:1"
    monkeypatch.setenv("INTERLOCK_SERVER", "http://there:2")
    assert find().url == "http://there:2"
    assert find(context="one").url == "https://k:6443"


def test_the_kubeconfig_at_home_needs_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".kube").mkdir()
    kubeconfig({"token": "t"}, ".kube/config")
    monkeypatch.setenv("HOME", str(Path.cwd()))
    assert find().url == "http://127.0.0.1:8470"
    assert find(context="one").url == "https://k:6443"


def test_a_server_and_a_cluster_are_not_both_meant() -> None:
    with pytest.raises(CommandError, match="--server names a server") as caught:
        find(server="http://x", context="one")
    assert caught.value.code == 2
