"""Files and directories that cannot be used: what is wrong with them is said, by every verb."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.client.errors import DEFECT
from interlock.testing.serving import PATIENCE_S

RUN = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
#: Root may go everywhere, unless it gives these rights away.
AS_OTHERS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
pytestmark = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may read everything"
)
JOB = "kind: Job\nmetadata: {name: x}\nspec: {noop: {}}\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where one stands, beside things that cannot be used."""
    (tmp_path / "locked" / "inside").mkdir(parents=True)
    (tmp_path / "locked" / "inside" / "job.yaml").write_text(JOB)
    (tmp_path / "locked").chmod(0)
    (tmp_path / "secret.yaml").write_text(JOB)
    (tmp_path / "secret.yaml").chmod(0)
    (tmp_path / "no-list").mkdir(mode=0o311)
    (tmp_path / "no-list" / "job.yaml").write_text(JOB)
    (tmp_path / "a-file").write_text("hello\n")
    (tmp_path / "jobs.yaml").write_text(JOB)
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "empty-dir").mkdir()
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "job.yaml").symlink_to("nowhere")
    return tmp_path


def interlock(place: Path, *argv: str, **env: str) -> tuple[int, str]:
    """The exit code of a command and what it says, as somebody whom the kernel stops."""
    words = [sys.executable, "-c", RUN, *argv]
    known = {"PATH": os.environ["PATH"], "HOME": str(place / "empty-dir")}
    done = subprocess.run(
        [*AS_OTHERS, *words] if os.geteuid() == 0 else words,
        cwd=place,
        env=known | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stderr


DENIED, NO_DIR, IS_DIR = "Permission denied", "ot a directory", "s a directory"
ANY_PORT = ("--listen", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    [
        (["up", "--data", "locked/inside/d", *ANY_PORT], 1, DENIED),
        (["up", "--data", "a-file", *ANY_PORT], 1, NO_DIR),
        (["up", "--data", "a-file/d", *ANY_PORT], 1, NO_DIR),
        (["up", "--token-file", "locked/inside/t", *ANY_PORT], 1, DENIED),
        (["up", "--tls-cert", "locked/a", "--tls-key", "locked/b", *ANY_PORT], 1, DENIED),
        (["backup", "locked/inside/b"], 2, DENIED),
        (["backup", "a-file/b"], 2, NO_DIR),
        (["backup", "nowhere/b"], 2, "there is no directory nowhere"),
        (["backup", "empty-dir"], 2, IS_DIR),
        (["backup", "empty-dir", "--force"], 2, IS_DIR),
        (["restore", "locked/inside/b"], 2, DENIED),
        (["restore", "secret.yaml"], 2, DENIED),
        (["restore", "empty-dir"], 2, IS_DIR),
        (["restore", "a-file", "--data", "locked/inside/d"], 2, DENIED),
        (["restore", "a-file", "--data", "a-file"], 2, NO_DIR),
        (["check", "-f", "locked/inside"], 2, DENIED),
        (["check", "-f", "locked/inside/job.yaml"], 2, DENIED),
        (["check", "-f", "locked"], 2, "cannot read locked: Permission denied"),
        (["check", "-f", "no-list"], 2, "cannot read no-list: Permission denied"),
        (["check", "-R", "-f", "."], 2, "cannot read locked: Permission denied"),
        (["check", "-f", "dangling"], 2, "cannot read dangling/job.yaml: No such file"),
        (["check", "-f", "a-file/x"], 2, NO_DIR),
        (["check", "-f", "n" * 300], 2, "File name too long"),
        (["check", "-f", "/dev/zero"], 2, "larger than"),
        (["apply", "-f", "locked"], 2, "cannot read locked: Permission denied"),
        (["delete", "-f", "locked"], 2, "cannot read locked: Permission denied"),
        (["next", "-f", "locked"], 2, "cannot read locked: Permission denied"),
        (["get", "jobs", "--token-file", "locked/t"], 2, DENIED),
        (["get", "jobs", "--server", "https://127.0.0.1:1", "--ca-file", "locked/t"], 2, DENIED),
        (["get", "jobs", "--server", "https://127.0.0.1:1", "--ca-file", "nowhere"], 2, "nowhere"),
        (["get", "jobs", "--server", "https://127.0.0.1:1", "--ca-file", "a-file"], 2, "a-file"),
        (["get", "jobs", "--kubeconfig", "locked/inside/k"], 2, DENIED),
        (["get", "jobs", "--kubeconfig", "locked/k", "--context", "x"], 2, DENIED),
        (["simulate", "locked/inside/x.yaml"], 2, DENIED),
        (["simulate", "empty-dir"], 2, IS_DIR),
        (["import", "crontab", "locked/inside/x"], 2, DENIED),
        (["import", "crontab", "/dev/zero"], 2, "larger than"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)  # fmt: skip
def test_what_cannot_be_used_is_told(
    place: Path, argv: list[str], code: int, expected: str
) -> None:
    ended, told = interlock(place, *argv)

    assert expected in told
    assert ended == code, told
    assert "defect" not in told
    assert "did you mean" not in told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INTERLOCK_DATA", "locked/inside"),
        ("INTERLOCK_DATA", "no-list"),
        ("INTERLOCK_TOKEN_FILE", "locked/inside"),
        ("KUBECONFIG", "locked/inside"),
    ],
)
def test_what_the_environment_names_and_cannot_be_used_is_told(
    place: Path, name: str, value: str
) -> None:
    code, told = interlock(place, "get", "jobs", **{name: value})

    assert (code, DENIED in told) == (2, True), told


def test_a_home_that_is_closed_is_told(place: Path) -> None:
    code, told = interlock(place, "get", "jobs", "--context", "x", HOME=str(place / "locked"))

    assert (code, DENIED in told) == (2, True), told


def test_a_place_that_is_gone_is_told(place: Path) -> None:
    """The directory one stands in can be removed, or closed, by others."""
    command = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n" + RUN
    for argv in (["up", "--data", "x"], ["check", "-f", "."], ["run", "--", "true"]):
        done = subprocess.run(
            [sys.executable, "-c", command, *argv, *(ANY_PORT if argv[0] == "up" else ())],
            cwd=place, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert done.returncode not in (0, DEFECT), done.stderr
        assert "defect" not in done.stderr


def test_a_full_disk_is_no_defect(place: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", RUN, "check", "-f", "jobs.yaml"],
            cwd=place, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("empty.yaml", ""),
        ("empty-dir", "no file in it ends in .yaml, .yml or .json"),
        ("locked-up", ""),
    ],
)
def test_nothing_defined_says_why(place: Path, file: str, hint: str) -> None:
    """-R is only told of where there is something below."""
    (place / "locked-up").mkdir()
    (place / "locked-up" / "below").mkdir()
    (place / "locked-up" / "below" / "job.yaml").write_text(JOB)
    expected = hint or ("-R" if file == "locked-up" else "")

    code, told = interlock(place, "check", "-f", file)

    assert code == 2
    assert f"nothing is defined in {file}" in told
    assert expected in told
    assert ("-R" in told) == (file == "locked-up")


def test_only_another_file_that_is_there_is_meant(place: Path) -> None:
    assert "did you mean `jobs.yaml`?" in interlock(place, "check", "-f", "job.yaml")[1]
    assert "did you mean `jobs.yaml`?" in interlock(place, "simulate", "jobz.yaml")[1]
    assert "did you mean" not in interlock(place, "check", "-f", "secret.yaml")[1]


def test_every_file_is_told_of_before_anything_is_stored(place: Path) -> None:
    (place / "bad.yaml").write_text("kind: Job\nmetadata: {name: y}\nspec: {timeout: 5}\n")
    (place / "broken.yaml").write_text(JOB + "---\nkind: Job\nspec: [\n")
    (place / "first.yaml").write_text(JOB.replace("noop: {}", "noop: 1") + "---\n{]\n")

    code, told = interlock(
        place, "check", "-f", "secret.yaml", "-f", "bad.yaml", "-f", "broken.yaml",
        "-f", "first.yaml", "-f", "nowhere/x.yaml",
    )  # fmt: skip

    assert code == 2
    for expected in (
        "cannot read secret.yaml",
        "bad.yaml: Job y was refused",
        "spec.timeout",
        "broken.yaml, line 7",
        "first.yaml: Job x was refused",
        "first.yaml, line 5",
        "cannot read nowhere/x.yaml",
    ):
        assert expected in told, expected


def test_a_file_whose_name_is_no_text_is_read_and_told(place: Path) -> None:
    """Names are bytes; what cannot be printed is written in another way."""
    name = os.fsdecode(b"\xff.yaml")
    (place / name).write_text(JOB + "---\n" + JOB)

    code, told = interlock(place, "check", "-f", name, PYTHONIOENCODING="ascii")

    assert (code, "is defined twice" in told) == (2, True), told
    assert interlock(place, "import", "cronjob", name, LC_ALL="C")[0] == 2
