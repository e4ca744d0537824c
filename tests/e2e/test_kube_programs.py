"""The programs of a control plane are found where they are said to be, if they fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.kube.binaries import VERSIONS, cache, find, inspect

ROOT = Path(__file__).resolve().parents[2]


def put_programs(folder: Path, **other: str) -> Path:
    """Fill a folder with programs that can only tell their version."""
    folder.mkdir(parents=True)
    for name, version in {**VERSIONS, **other}.items():
        (folder / name).write_text(f"#!/bin/sh\necho {name} v{version}\n", "utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any of the programs; returns its folder for caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def test_nothing_is_found_where_nothing_is(nowhere: Path) -> None:
    assert find() is None


def test_the_cache_is_found(nowhere: Path) -> None:
    put_programs(cache())

    assert found_folder() == cache()


def test_the_path_comes_before_the_cache(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_programs(cache())
    installed = put_programs(nowhere / "installed")
    monkeypatch.setenv("PATH", str(installed))

    assert found_folder() == installed


def test_a_named_folder_comes_first(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_programs(cache())
    named = put_programs(nowhere / "named")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(named))

    assert found_folder() == named


def test_a_named_folder_that_does_not_fit_is_passed_over(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(put_programs(nowhere / "old", etcd="3.4.23")))

    put_programs(cache())

    assert found_folder() == cache()


def found_folder() -> Path | None:
    found = find()
    return found.folder if found else None


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        pytest.param({}, "", id="as pinned"),
        pytest.param({"etcd": "3.6.99"}, "", id="another patch"),
        pytest.param({"etcd": "3.4.23"}, "is 3.4, not 3.6.16", id="too old"),
        pytest.param({"kwok": "none"}, "is of no known version, not 0.8.0", id="tells none"),
    ],
)
def test_versions_must_fit(tmp_path: Path, versions: dict[str, str], wrong: str) -> None:
    found = inspect(put_programs(tmp_path / "programs", **versions))

    assert found.fit == (not wrong)
    assert wrong in found.wrong


def test_all_must_be_there(tmp_path: Path) -> None:
    folder = put_programs(tmp_path / "programs")
    (folder / "kube-scheduler").unlink()

    assert inspect(folder).wrong == f"{folder} has no kube-scheduler"


def test_the_tool_prints_their_folder_last(nowhere: Path) -> None:
    put_programs(cache())
    told = subprocess.run(
        [sys.executable, str(ROOT / "tools/ensure_kube.py")],
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.splitlines()[-1] == str(cache())


def test_without_go_the_tool_says_what_to_do(nowhere: Path) -> None:
    told = subprocess.run(
        [sys.executable, str(ROOT / "tools/ensure_kube.py")],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(nowhere / "nothing"), "XDG_CACHE_HOME": str(nowhere / "cache")},
    )

    assert told.returncode == 1
    assert "building them needs Go" in told.stderr
