"""Which cluster is meant, and as whom: kubeconfig files and the pod's own."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.kube.client.config import KubeConfigError, in_cluster, load_config, read_kubeconfig

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
DATA = base64.b64encode(PEM.encode()).decode()


def a_kubeconfig(
    folder: Path, name: str = "config", *, user: Any = None, cluster: Any = None, **more: Any
) -> Path:
    """A file with one context, "one"."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "team"}}
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
    }
    file = folder / name
    file.write_text(yaml.safe_dump(content | more))
    return file


def test_a_context(tmp_path: Path) -> None:
    found = load_config(a_kubeconfig(tmp_path), environment={})

    assert found.server == "https://one:6443"
    assert found.namespace == "team"
    assert found.user.token == "secret"
    assert "context one" in found.source


def test_what_is_in_place_and_what_is_in_files(tmp_path: Path) -> None:
    """Paths are relative to the file that names them; what is in place wins."""
    (tmp_path / "ca.crt").write_text(PEM)
    (tmp_path / "client.crt").write_text("certificate")
    (tmp_path / "client.key").write_text("key")
    user = {"client-certificate": "client.crt", "client-key": "client.key", "tokenFile": "token"}
    found = read_kubeconfig(
        [a_kubeconfig(tmp_path, cluster={"certificate-authority": "ca.crt"}, user=user)]
    )

    assert found.authority == PEM
    assert (found.user.certificate, found.user.key) == (b"certificate", b"key")
    assert found.user.token_file == tmp_path / "token"

    both = {"certificate-authority": "absent", "certificate-authority-data": DATA}
    assert read_kubeconfig([a_kubeconfig(tmp_path, cluster=both)]).authority == PEM


def test_several_files_are_one(tmp_path: Path) -> None:
    """The first that says something is believed; absent files are passed over."""
    first = tmp_path / "first"
    first.write_text(
        yaml.safe_dump(
            {
                "current-context": "two",
                "contexts": [{"name": "two", "context": {"cluster": "c", "user": "other"}}],
            }
        )
    )
    second = a_kubeconfig(
        tmp_path,
        "second",
        users=[{"name": "u", "user": {"token": "u"}}, {"name": "other", "user": {"token": "o"}}],
    )
    environment = {"KUBECONFIG": f"{tmp_path / 'absent'}:{first}::{second}", "HOME": "/nowhere"}

    assert load_config(environment=environment).user.token == "o"
    assert load_config(environment=environment).namespace == "default"
    assert load_config(context="one", environment=environment).user.token == "u"


def test_all_the_rest_of_a_context(tmp_path: Path) -> None:
    cluster = {
        "insecure-skip-tls-verify": True,
        "tls-server-name": "other",
        "proxy-url": "http://proxy:3128",
    }
    user = {"username": "me", "password": "pw", "as": "boss", "as-uid": "7", "as-groups": ["a"]}
    found = read_kubeconfig([a_kubeconfig(tmp_path, cluster=cluster, user=user)])

    assert found.skip_verify
    assert (found.tls_server_name, found.proxy_url) == ("other", "http://proxy:3128")
    assert (found.user.username, found.user.password) == ("me", "pw")
    assert found.user.impersonation == (
        ("Impersonate-User", "boss"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_an_exec_plugin(tmp_path: Path, version: str) -> None:
    plugin = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": "./login",
        "args": ["-x", 7],
        "env": [{"name": "A", "value": "b"}],
        "installHint": "get it there",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    found = read_kubeconfig(
        [
            a_kubeconfig(
                tmp_path, user={"exec": plugin}, cluster={"certificate-authority-data": DATA}
            )
        ]
    ).user.exec

    assert found is not None
    assert found.command == str(tmp_path / "./login")
    assert found.args == ("-x", "7")
    assert found.env == {"A": "b"}
    assert found.install_hint == "get it there"
    assert found.interactive == "Never"
    assert found.cluster == {"server": "https://one:6443/", "certificate-authority-data": DATA}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"current-context": ""}, "none is current"),
        ({"current-context": "ones"}, "no context 'ones'; did you mean \"one\"?"),
        ({"clusters": []}, "no cluster 'c'"),
        ({"users": None}, "no user 'u'"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "has no server"),
        ({"clusters": [{"name": "c", "cluster": ["x"]}]}, "expected fields"),
        ({"clusters": ["c"]}, "has no name"),
        ({"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, "exec plugin"),
        ({"users": [{"name": "u", "user": {"exec": {"command": "x"}}}]}, "apiVersion"),
        ({"users": [{"name": "u", "user": {"exec": {"apiVersion": "x"}}}]}, "command"),
        ({"users": [{"name": "u", "user": {"client-key-data": "*"}}]}, "not base64"),
        ({"users": [{"name": "u", "user": {"client-key": "absent"}}]}, "cannot read client-key"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, more: dict[str, Any], told: str) -> None:
    file = a_kubeconfig(tmp_path, **more)

    with pytest.raises(KubeConfigError) as caught:
        read_kubeconfig([file])
    assert told in str(caught.value)


def test_files_that_are_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(KubeConfigError, match="does not exist"):
        read_kubeconfig([tmp_path / "absent"])
    bad = tmp_path / "bad"
    bad.write_text("a: [")
    with pytest.raises(KubeConfigError, match="not YAML"):
        read_kubeconfig([bad])
    bad.write_text("just text")
    with pytest.raises(KubeConfigError, match="expected fields"):
        read_kubeconfig([bad])


def a_service_account(folder: Path) -> Path:
    """What a pod finds."""
    (folder / "token").write_text("pod's\n")
    (folder / "ca.crt").write_text(PEM)
    (folder / "namespace").write_text("interlock-system")
    return folder


def test_in_a_pod(tmp_path: Path) -> None:
    account = a_service_account(tmp_path)
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    found = load_config(environment=environment | {"HOME": "/nowhere"}, service_account=account)

    assert found.server == "https://10.0.0.1:6443"
    assert found.namespace == "interlock-system"
    assert found.authority == PEM
    assert found.user.token_file == account / "token"
    six = in_cluster(environment={"KUBERNETES_SERVICE_HOST": "fd00::1"}, service_account=account)
    assert six.server == "https://[fd00::1]:443"


def test_the_pods_own_cluster_comes_before_the_home_directorys(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    a_kubeconfig(tmp_path / ".kube")
    account = a_service_account(tmp_path)
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}

    found = load_config(environment=environment, service_account=account)
    assert found.server == "https://10.0.0.1:443"
    found = load_config(environment={"HOME": str(tmp_path)}, service_account=account)
    assert found.server == "https://one:6443"


def test_no_cluster_at_all(tmp_path: Path) -> None:
    with pytest.raises(KubeConfigError, match="no cluster is configured"):
        load_config(environment={"HOME": str(tmp_path)}, service_account=tmp_path)
    with pytest.raises(KubeConfigError, match="not in a cluster"):
        in_cluster(environment={}, service_account=tmp_path)
    with pytest.raises(KubeConfigError, match="token"):
        in_cluster(environment={"KUBERNETES_SERVICE_HOST": "x"}, service_account=tmp_path)
