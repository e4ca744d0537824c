"""Who vouches for whom: an authority of the cluster's own, and what it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path

_DAYS = "30"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
#: Every extension is ours: those of the machine's own configuration would come twice.
_CONFIG = """\
[req]
distinguished_name = name
x509_extensions = extensions
[name]
[extensions]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
_HOSTS = "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1"


class Authority:
    """Signs certificates for one cluster, with the machine's openssl.

    All is in one folder: `ca.crt` and `ca.key`, and two like that for each certificate it issues.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate = folder / "ca.crt"

    def create(self) -> None:
        """Make the authority's own key and certificate.

        Raises:
            RuntimeError: There is no openssl, or it failed; the message says how.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._make(
            "ca",
            "/CN=interlock-tests",
            "basicConstraints = critical,CA:TRUE",
            "keyUsage = critical,keyCertSign,cRLSign",
        )

    def issue_server(self, name: str) -> tuple[Path, Path]:
        """A certificate and key for a server on this machine, under whichever of its names."""
        extensions = (f"subjectAltName = {_HOSTS}", "extendedKeyUsage = serverAuth")
        return self._issue(name, f"/CN={name}", *extensions)

    def issue_client(self, user: str, *groups: str) -> tuple[Path, Path]:
        """A certificate and key with which somebody logs in as that user of those groups."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._issue(f"client-{user}", subject, "extendedKeyUsage = clientAuth")

    def create_key(self, name: str) -> Path:
        """A key alone, to sign the tokens of service accounts with."""
        path = self._folder / f"{name}.key"
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))
        return path

    def _issue(self, name: str, subject: str, *extensions: str) -> tuple[Path, Path]:
        signer = ("-CA", str(self.certificate), "-CAkey", str(self._folder / "ca.key"))
        usual = ("basicConstraints = critical,CA:FALSE", "keyUsage = critical,digitalSignature")
        return self._make(name, subject, *usual, *extensions, signer=signer)

    def _make(
        self, name: str, subject: str, *extensions: str, signer: tuple[str, ...] = ()
    ) -> tuple[Path, Path]:
        certificate, key, config = (self._folder / f"{name}.{end}" for end in ("crt", "key", "cnf"))
        config.write_text(_CONFIG + "\n".join(extensions) + "\n", "utf-8")
        command = ["req", "-x509", *_NEW_KEY, "-subj", subject, "-days", _DAYS, "-utf8"]
        command += ["-config", str(config), "-keyout", str(key), "-out", str(certificate)]
        _openssl(*command, *signer)
        return certificate, key


def _openssl(*arguments: str) -> None:
    try:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=120)
    except FileNotFoundError as error:
        raise RuntimeError("a control plane needs certificates: install openssl") from error
    except subprocess.CalledProcessError as error:
        told = error.stderr.decode(errors="replace")
        raise RuntimeError(f"openssl {arguments[0]} failed: {told}") from error
