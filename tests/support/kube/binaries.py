"""Where are the five programs, and are they the ones we mean?"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

#: The programs of a control plane and the versions they are pinned to.
VERSIONS = {
    "etcd": "3.6.16",
    "kube-apiserver": "1.36.3",
    "kube-controller-manager": "1.36.3",
    "kube-scheduler": "1.36.3",
    "kwok": "0.8.0",
}
#: What to tell somebody who has none of them.
HELP = "run `make kube` to get the programs of a Kubernetes control plane"

_NUMBER = re.compile(r"\bv?(\d+\.\d+)\.\d+")


class Programs(Struct, frozen=True):
    """A folder that may hold the five programs, and what is wrong with it; empty if nothing is."""

    folder: Path
    wrong: str = ""

    @property
    def fit(self) -> bool:
        """Whether all five are there in a version that fits."""
        return not self.wrong


def cache() -> Path:
    """Where programs of these versions are kept once built: outside of the tree, for all trees."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    machine = f"{platform.system()}-{platform.machine()}".lower()
    name = "kubernetes-{kube-apiserver}-etcd-{etcd}-kwok-{kwok}".format(**VERSIONS)
    return Path(home) / "interlock" / "kube" / f"{name}-{machine}"


def find() -> Programs | None:
    """The first folder with programs that fit: named, installed, or built before."""
    return next((found for found in candidates() if found.fit), None)


def candidates() -> Iterator[Programs]:
    """Every folder that is worth a look, the wrong ones too, in order."""
    if named := os.environ.get("KUBEBUILDER_ASSETS"):
        yield inspect(Path(named))
    if installed := shutil.which("kube-apiserver"):
        yield inspect(Path(installed).parent)
    # The cache holds only what was built whole; asking five programs for their version every
    # time would cost a second.
    if all((cache() / program).exists() for program in VERSIONS):
        yield Programs(cache())


def inspect(folder: Path) -> Programs:
    """Say whether a folder holds all five, each of the pinned major and minor version.

    A folder must have them all: a control plane of programs from two places fits by luck only.
    """
    for program, wanted in VERSIONS.items():
        path = folder / program
        if not os.access(path, os.X_OK):
            return Programs(folder, f"{folder} has no {program}")
        found = version_of(path)
        if found != _NUMBER.match(wanted)[1]:  # type: ignore[index]
            return Programs(folder, f"{path} is {found or 'of no known version'}, not {wanted}")
    return Programs(folder)


def version_of(program: Path) -> str:
    """The major and minor version a program says it has; empty when it says none."""
    try:
        told = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    number = _NUMBER.search(told)
    return number[1] if number else ""
