"""Find kubectl, or fetch Debian's into a cache outside of the tree; prints its path.

The tests use a client that nobody here wrote. A machine without one gets it from its own
distribution: the package is unpacked, not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "kubernetes-client"
HELP = (
    "kubectl is needed: install it, or name it in INTERLOCK_KUBECTL, or let this machine reach "
    f"a Debian package archive that has {PACKAGE}"
)


def cache() -> Path:
    """Where a fetched kubectl is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "interlock" / "kubectl"


def find() -> Path | None:
    """The kubectl that was named, is installed, or was fetched before."""
    if named := os.environ.get("INTERLOCK_KUBECTL"):
        return Path(named)
    if installed := shutil.which("kubectl"):
        return Path(installed)
    return cache() if cache().exists() else None


def fetch() -> Path:
    """Unpack kubectl from the distribution's package.

    Raises:
        OSError: apt or dpkg is not there, or the cache cannot be written.
        subprocess.CalledProcessError: The package cannot be had.
    """
    cache().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache().parent) as place:
        try:
            _run(["apt-get", "download", PACKAGE], place)
        except subprocess.CalledProcessError:
            # A fresh machine knows no package until it has asked what there is.
            _run(["apt-get", "update"], place)
            _run(["apt-get", "download", PACKAGE], place)
        (package,) = Path(place).glob("*.deb")
        _run(["dpkg", "-x", str(package), place], place)
        # Whole or not at all: several test processes may come here at once.
        (Path(place) / "usr/bin/kubectl").replace(cache())
    return cache()


def _run(command: list[str], place: str) -> None:
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=300)


def ensure() -> Path:
    """A kubectl, whatever it takes.

    Raises:
        RuntimeError: There is none to be had; the message says what to do.
    """
    try:
        return find() or fetch()
    except (OSError, subprocess.SubprocessError) as error:
        told = getattr(error, "stderr", b"") or b""
        raise RuntimeError(f"{HELP} ({error}) {told.decode(errors='replace')}") from error


if __name__ == "__main__":
    try:
        print(ensure())
    except RuntimeError as failure:
        sys.exit(str(failure))
