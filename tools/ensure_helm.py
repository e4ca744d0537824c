"""Find helm, or build it; prints its path last.

The chart's tests render it with the program that people install it with. Helm comes from
INTERLOCK_HELM, from the PATH, or from a cache outside of the tree; otherwise it is built once and
kept there. The Go module it is built from is written there too: Go completes it with the versions
and checksums of all that is fetched, and the digest of the whole has to be the one below.

    python tools/ensure_helm.py            find or build
    python tools/ensure_helm.py --digest   the digest for the version named here, after a change
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "3.22.0"
#: The digest of go.mod and go.sum as Go completes them for that version.
DIGEST = "675660e14e8e131937ad084eb9a503564ce4076257bb86f5092caf9c15a78437"
PACKAGE = "helm.sh/helm/v3/cmd/helm"
GO_VERSION = "1.26"
HELP = (
    f"run `make kube` to get helm, which needs Go {GO_VERSION} or newer; "
    "or install helm, or name it in INTERLOCK_HELM"
)
_MODULE = f"""\
module interlock.dev/tools/helm

go {GO_VERSION}.0

tool {PACKAGE}

require helm.sh/helm/v3 v{VERSION}
"""


class BuildError(Exception):
    """Helm cannot be had; the message says what to do."""


def cache() -> Path:
    """Where a helm of this version is kept once built: outside of the tree, for all trees."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    machine = f"{platform.system()}-{platform.machine()}".lower()
    return Path(home) / "interlock" / "helm" / f"helm-{VERSION}-{machine}"


def find() -> Path | None:
    """The helm that was named, is installed, or was built before."""
    if named := os.environ.get("INTERLOCK_HELM"):
        return Path(named)
    if installed := shutil.which("helm"):
        return Path(installed)
    return cache() if cache().exists() else None


def ensure() -> Path:
    """A helm, whatever it takes.

    Raises:
        BuildError: It is not here and cannot be built.
    """
    return find() or _build_once()


def _build_once() -> Path:
    cache().parent.mkdir(parents=True, exist_ok=True)
    with _beside("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another run may have built it while this one waited.
        if not cache().exists():
            _check_module()
            _build()
    return cache()


def _build() -> None:
    """Build beside the place and move it there in one step."""
    draft = _beside("building")
    print(f"building helm {VERSION} once; this takes some minutes on two cores", flush=True)
    told = f"-s -w -X helm.sh/helm/v3/internal/version.version=v{VERSION}"
    _go("build", "-trimpath", "-ldflags", told, "-o", str(draft), PACKAGE)
    draft.rename(cache())


def _beside(what: str) -> Path:
    return cache().with_name(f"{cache().name}.{what}")


def _module() -> Path:
    return _beside("module")


def write_module() -> str:
    """Write go.mod for the pinned version, let Go complete it and go.sum; returns their digest."""
    _module().mkdir(parents=True, exist_ok=True)
    (_module() / "go.mod").write_text(_MODULE, "utf-8")
    (_module() / "go.sum").unlink(missing_ok=True)
    _go("mod", "tidy")
    written = b"".join((_module() / name).read_bytes() for name in ("go.mod", "go.sum"))
    return hashlib.sha256(written).hexdigest()


def _check_module() -> None:
    """Build from nothing but what was pinned."""
    found = write_module()
    if found != DIGEST:
        raise BuildError(f"the sources are not those that were pinned: {found}, not {DIGEST}")


def _go(*arguments: str) -> None:
    try:
        subprocess.run(
            ["go", *arguments],
            cwd=_module(),
            env={**os.environ, "CGO_ENABLED": "0"},
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError as error:
        raise BuildError(f"there is no `go` on the PATH: {HELP}") from error
    except subprocess.CalledProcessError as error:
        raise BuildError(f"go {arguments[0]} failed:\n{error.stderr}\n{HELP}") from error


def main(arguments: list[str]) -> None:
    """Do what the command line asks for."""
    try:
        if arguments == ["--digest"]:
            cache().parent.mkdir(parents=True, exist_ok=True)
            print(write_module())
        else:
            print(ensure())
    except BuildError as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main(sys.argv[1:])
