"""Find the programs of a Kubernetes control plane, or build them; prints their folder last.

They come from KUBEBUILDER_ASSETS, from the PATH, or from a cache outside of the tree, if all five
are there in versions that fit. Otherwise they are built once and kept in the cache. The Go module
they are built from is written there too: Go completes it with the versions and checksums of all
that is fetched, and the digest of the whole has to be the one below.

    python tools/ensure_kube.py            find or build
    python tools/ensure_kube.py --digest   the digest for the versions named here, after a change
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from support.kube.binaries import VERSIONS, cache, candidates, inspect

#: The digest of go.mod and go.sum as Go completes them for the versions named here.
DIGEST = "9fa56b7560aaa26925343ac51c088ec077f66a4ecf093c9ad8141938c20e4c71"
KUBERNETES = VERSIONS["kube-apiserver"]
#: Where each program's source is.
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
#: The modules those packages are in, with their versions.
MODULES = {
    "go.etcd.io/etcd/server/v3": VERSIONS["etcd"],
    "k8s.io/kubernetes": KUBERNETES,
    "sigs.k8s.io/kwok": VERSIONS["kwok"],
}
GO_VERSION = (1, 26)
NEEDS_GO = (
    "The programs of a Kubernetes control plane ({wanted}) are not here, and building them needs "
    "Go {major}.{minor} or newer: {found}.\nInstall Go, or put the programs into one folder and "
    "name it in KUBEBUILDER_ASSETS."
)
#: A line is printed this often while one program is built, so that nobody takes it for hung.
TELL_EVERY_S = 30
_STAGING = re.compile(r"^\s*(k8s\.io/[\w-]+) => \./staging/", re.MULTILINE)


class BuildError(Exception):
    """The programs cannot be had; the message says what to do."""


def ensure() -> Path:
    """The folder of the five programs, whatever it takes.

    Raises:
        BuildError: They are not here and cannot be built.
    """
    return find() or _build_once()


def find() -> Path | None:
    """The folder of programs that are already there; says why others do not do."""
    for found in candidates():
        if found.fit:
            return found.folder
        _say(f"not used: {found.wrong}")
    return None


def _build_once() -> Path:
    place = cache()
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        _lock(lock.fileno())
        # Another run may have built them while this one waited.
        if not place.exists():
            _check_go()
            _check_module()
            _build(place)
    return place


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say("another run builds them already; waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)


def _check_go() -> None:
    found = "there is no `go` on the PATH"
    if shutil.which("go"):
        # Within the module Go fetches the version that the module asks for, if it may.
        asked = _go("env", "GOVERSION")
        found = (asked.stdout + asked.stderr).strip()
        number = re.match(r"go(\d+)\.(\d+)", found)
        if number and (int(number[1]), int(number[2])) >= GO_VERSION:
            return
    wanted = ", ".join(f"{name} {version}" for name, version in VERSIONS.items())
    major, minor = GO_VERSION
    raise BuildError(NEEDS_GO.format(wanted=wanted, major=major, minor=minor, found=found))


def _build(place: Path) -> None:
    """Build all five beside the place and move them there in one step."""
    began = time.monotonic()
    draft = place.with_name(f"{place.name}.building")
    shutil.rmtree(draft, ignore_errors=True)
    _say(f"building {len(PACKAGES)} programs once; this takes some ten minutes on two cores")
    for number, program in enumerate(PACKAGES, start=1):
        _build_one(program, draft / program, f"[{number}/{len(PACKAGES)}]")
    checked = inspect(draft)
    if not checked.fit:
        raise BuildError(f"what was built does not fit: {checked.wrong}")
    draft.rename(place)
    _say(f"built in {time.monotonic() - began:.0f} s, kept in {place}")


def _build_one(program: str, target: Path, counted: str) -> None:
    began = time.monotonic()
    _say(f"{counted} {program} {VERSIONS[program]}")
    command = ["build", "-trimpath", "-o", str(target), "-ldflags", _link_flags()]
    with _start_go(*command, PACKAGES[program]) as building:
        while True:
            try:
                told, _ = building.communicate(timeout=TELL_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                _say(f"{counted} {program}: {time.monotonic() - began:.0f} s ...")
    if building.returncode != 0:
        raise BuildError(f"go build failed for {program}:\n{told}")
    _say(f"{counted} {program}: done in {time.monotonic() - began:.0f} s")


def _link_flags() -> str:
    """Without debugging symbols, and with the version that the programs tell."""
    major, minor, _ = KUBERNETES.split(".")
    told = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    named = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in told.items()]
    return " ".join(["-s", "-w", *named])


def module() -> Path:
    """Where the Go module is that the programs are built from."""
    return cache().with_name(f"{cache().name}.module")


def write_module() -> str:
    """Write go.mod for the pinned versions, let Go complete it and go.sum; returns their digest.

    Kubernetes publishes its libraries as modules of their own, but its go.mod looks for them in
    its own tree: each is pointed to the published one.
    """
    libraries = _STAGING.findall(_published_module())
    staged = "0." + KUBERNETES.partition(".")[2]
    lines = ["module interlock.dev/tools/kube", "", f"go {GO_VERSION[0]}.{GO_VERSION[1]}.0", ""]
    lines += ["tool (", *(f"\t{package}" for package in PACKAGES.values()), ")", ""]
    lines += ["require (", *(f"\t{name} v{version}" for name, version in MODULES.items()), ")", ""]
    lines += ["replace (", *(f"\t{name} => {name} v{staged}" for name in libraries), ")", ""]
    (module() / "go.mod").write_text("\n".join(lines), "utf-8")
    (module() / "go.sum").unlink(missing_ok=True)
    _say("finding all that they are made of")
    tidied = _go("mod", "tidy")
    if tidied.returncode != 0:
        raise BuildError(tidied.stderr)
    written = b"".join((module() / name).read_bytes() for name in ("go.mod", "go.sum"))
    return hashlib.sha256(written).hexdigest()


def _check_module() -> None:
    """Build from nothing but what was pinned."""
    found = write_module()
    if found != DIGEST:
        raise BuildError(f"the sources are not those that were pinned: {found}, not {DIGEST}")


def _published_module() -> str:
    (module() / "go.mod").write_text("module interlock.dev/tools/kube\n", "utf-8")
    asked = _go("mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}")
    named = re.search(r'"GoMod": "(.*)"', asked.stdout)
    if named is None:
        raise BuildError(asked.stdout + asked.stderr)
    return Path(named[1]).read_text("utf-8")


def _go(*arguments: str) -> subprocess.CompletedProcess[str]:
    with _start_go(*arguments, stderr=subprocess.PIPE) as running:
        told, complained = running.communicate()
    return subprocess.CompletedProcess(arguments, running.returncode, told, complained)


def _start_go(*arguments: str, stderr: int = subprocess.STDOUT) -> subprocess.Popen[str]:
    module().mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "CGO_ENABLED": "0"}
    return subprocess.Popen(
        ["go", *arguments],
        cwd=module(),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> None:
    """Do what the command line asks for."""
    try:
        if arguments == ["--digest"]:
            _check_go()
            _say(write_module())
        else:
            _say(str(ensure()))
    except BuildError as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main(sys.argv[1:])
