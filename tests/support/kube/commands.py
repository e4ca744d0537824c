"""With which flags is each program of the control plane started?"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from support.kube.access import User
from support.kube.certificates import Authority


class Ground(Struct, frozen=True):
    """What the programs of one cluster share: folders and ports."""

    programs: Path
    folder: Path
    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int
    kwok: int

    @property
    def secrets(self) -> Path:
        """Certificates, tokens and kubeconfigs."""
        return self.folder / "secrets"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.secrets / f"{User.ADMIN}.kubeconfig"

    @property
    def etcd_url(self) -> str:
        """Where the API server finds etcd."""
        return f"http://127.0.0.1:{self.etcd}"

    def create_keys(self) -> None:
        """Make the certificates and keys that the programs read."""
        authority = Authority(self.secrets)
        authority.create()
        authority.issue_server("server")
        authority.create_key("accounts")


def commands(ground: Ground) -> dict[str, list[str]]:
    """Every program with its flags, in the order they must be started."""
    flags = {
        "etcd": _etcd(ground),
        "kube-apiserver": _api_server(ground),
        "kube-controller-manager": _controller_manager(ground),
        "kube-scheduler": _scheduler(ground),
        "kwok": _kwok(ground),
    }
    return {name: [str(ground.programs / name), *given] for name, given in flags.items()}


def _etcd(ground: Ground) -> list[str]:
    peer = f"http://127.0.0.1:{ground.etcd_peer}"
    return [
        f"--data-dir={ground.folder / 'etcd'}",
        f"--listen-client-urls={ground.etcd_url}",
        f"--advertise-client-urls={ground.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
        # What a test stores need not survive the machine.
        "--unsafe-no-fsync",
    ]


def _api_server(ground: Ground) -> list[str]:
    accounts = ground.secrets / "accounts.key"
    return [
        f"--etcd-servers={ground.etcd_url}",
        *_serving(ground, ground.api_server),
        f"--client-ca-file={ground.secrets / 'ca.crt'}",
        f"--token-auth-file={ground.secrets / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={accounts}",
        f"--service-account-signing-key-file={accounts}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        f"--kubelet-certificate-authority={ground.secrets / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _controller_manager(ground: Ground) -> list[str]:
    return [
        f"--kubeconfig={ground.kubeconfig}",
        "--leader-elect=false",
        *_serving(ground, ground.controller_manager),
        f"--service-account-private-key-file={ground.secrets / 'accounts.key'}",
        f"--root-ca-file={ground.secrets / 'ca.crt'}",
        # It would make a folder of the machine's otherwise.
        f"--flex-volume-plugin-dir={ground.folder / 'volumes'}",
        # Its own limit of 20 requests a second is what makes Kubernetes slow.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-job-syncs=20",
        "--concurrent-namespace-syncs=20",
    ]


def _scheduler(ground: Ground) -> list[str]:
    return [
        f"--kubeconfig={ground.kubeconfig}",
        "--leader-elect=false",
        *_serving(ground, ground.scheduler),
        "--kube-api-qps=5000",
        "--kube-api-burst=10000",
    ]


def another_scheduler(ground: Ground, configuration: Path, port: int) -> list[str]:
    """A scheduler beside the usual one, with a configuration of its own."""
    program = str(ground.programs / "kube-scheduler")
    return [program, f"--config={configuration}", *_serving(ground, port)]


def _kwok(ground: Ground) -> list[str]:
    return [
        f"--kubeconfig={ground.kubeconfig}",
        f"--config={ground.folder / 'kwok.yaml'}",
        f"--server-address=127.0.0.1:{ground.kwok}",
        f"--node-port={ground.kwok}",
        *_certified(ground),
    ]


def _serving(ground: Ground, port: int) -> list[str]:
    return ["--bind-address=127.0.0.1", f"--secure-port={port}", *_certified(ground)]


def _certified(ground: Ground) -> list[str]:
    certificate, key = ground.secrets / "server.crt", ground.secrets / "server.key"
    return [f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"]
