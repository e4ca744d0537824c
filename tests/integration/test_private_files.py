"""Data directories and files that others prepared: they are not used, and nothing is sent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.client.errors import CommandError
from interlock.modes.cli.main import main
from interlock.modes.server_log import ServerLog
from interlock.private_files import (
    NotPrivateError,
    check_directory,
    make_directory,
    read_private,
    read_secret,
)
from interlock.runtimes.keeper.journal import Journal
from interlock.runtimes.keeper.launcher import open_pipe
from interlock.runtimes.keeper.log_file import open_log
from interlock.runtimes.keeper.logger import take_lock
from interlock.runtimes.keeper.main import main as become_keeper
from interlock.store.sqlite.file import FileLock
from interlock.testing.serving import PATIENCE_S

NOBODY = 65534
RUN = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("INTERLOCK_SERVER", "INTERLOCK_TOKEN_FILE", "INTERLOCK_DATA", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def plain(place: Path) -> None:
    place.mkdir(mode=0o700)


def readable(place: Path) -> None:
    place.mkdir()
    place.chmod(0o755)


def in_a_sticky_directory(place: Path) -> None:
    place.mkdir(mode=0o700)
    place.parent.chmod(0o1777)


def in_a_directory_of_my_group(place: Path) -> None:
    place.mkdir(mode=0o700)
    place.parent.chmod(0o770)


def behind_my_link(place: Path) -> None:
    (place.parent / "elsewhere").mkdir(mode=0o700)
    place.symlink_to("elsewhere")


def missing(place: Path) -> None:
    del place


@pytest.mark.parametrize(
    "prepare",
    [plain, readable, in_a_sticky_directory, in_a_directory_of_my_group, behind_my_link, missing],
)
def test_what_is_used(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    prepare(tmp_path / "data")
    check_directory("data")
    make_directory("data")
    assert (tmp_path / "data").is_dir()


def open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def open_to_its_group(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)


def sticky_itself(place: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)


def below_an_open_one(place: Path) -> None:
    place.mkdir(mode=0o700)
    place.parent.chmod(0o777)


def a_link_to_an_open_one(place: Path) -> None:
    open_to_all(place.parent / "elsewhere")
    place.symlink_to("elsewhere")


def a_link_through_an_open_one(place: Path) -> None:
    open_to_all(place.parent / "open")
    (place.parent / "open" / "inside").mkdir(mode=0o700)
    place.symlink_to("open/inside")


def a_ring(place: Path) -> None:
    place.symlink_to("data")


def a_file(place: Path) -> None:
    place.touch()


def of_nobody(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, NOBODY, NOBODY)


def a_link_of_nobody(place: Path) -> None:
    behind_my_link(place)
    os.chown(place, NOBODY, NOBODY, follow_symlinks=False)


def below_nobodys(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place.parent, NOBODY, NOBODY)


def with_a_store_of_nobody(place: Path) -> None:
    place.mkdir(mode=0o700)
    (place / "interlock.db").touch()
    os.chown(place / "interlock.db", NOBODY, NOBODY)


def below_a_foreign_group(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place.parent, 0, 12345)
    place.parent.chmod(0o770)


OPEN = [
    open_to_all,
    open_to_its_group,
    sticky_itself,
    below_an_open_one,
    a_link_to_an_open_one,
    a_link_through_an_open_one,
    a_ring,
    a_file,
]
FOREIGN = [
    of_nobody,
    a_link_of_nobody,
    below_nobodys,
    with_a_store_of_nobody,
    below_a_foreign_group,
]
REFUSED = [*OPEN, *(pytest.param(one, marks=only_root, id=one.__name__) for one in FOREIGN)]


@pytest.mark.parametrize("prepare", REFUSED)
def test_what_is_not_used(prepare: Callable[[Path], None], tmp_path: Path) -> None:
    prepare(tmp_path / "data")
    with pytest.raises(NotPrivateError) as caught:
        check_directory("data")
    assert caught.value.hint
    with pytest.raises(NotPrivateError):
        make_directory("data")


@pytest.mark.parametrize(
    "prepare", [open_to_all, pytest.param(of_nobody, marks=only_root, id="of nobody")]
)
def test_no_server_starts_and_nothing_is_restored_there(
    prepare: Callable[[Path], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path / "data")
    (tmp_path / "copy.db").touch()
    done = subprocess.run(
        [sys.executable, "-c", RUN, "up", "--data", "data", "--listen", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "is not used" in done.stderr
    assert main(["restore", "copy.db", "--data", "data"]) == 2
    assert "is not used" in capfd.readouterr().err
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize(
    "prepare", [open_to_all, pytest.param(of_nobody, marks=only_root, id="of nobody")]
)
def test_a_planted_server_file_is_sent_nothing(
    prepare: Callable[[Path], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither the file that it names as token, nor anything else; nor is another server asked."""
    secret = tmp_path / "secret"
    secret.write_text("a private key")
    secret.chmod(0o600)
    prepare(tmp_path / ".interlock")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        told = {"url": url, "tokenFile": str(secret)}
        (tmp_path / ".interlock/server.json").write_text(json.dumps(told))
        assert main(["get", "jobs"]) == 2
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()
    told_person = capfd.readouterr().err
    assert ".interlock is not used" in told_person
    assert "--server" in told_person


def test_a_server_file_that_others_can_write_is_not_believed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plain(tmp_path / ".interlock")
    file = tmp_path / ".interlock/server.json"
    file.write_text("{}")
    file.chmod(0o666)
    assert main(["get", "jobs"]) == 2
    assert "others can write it" in capfd.readouterr().err
    file.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o600)
    file.symlink_to("../elsewhere")
    assert main(["get", "jobs"]) == 2
    with pytest.raises(OSError, match="symbolic links"):
        read_private(str(file))


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("keeper.lock", lambda data: become_keeper(str(data))),
        ("keeper.journal", lambda data: Journal(data / "keeper.journal")),
        ("server.log", lambda data: ServerLog(data / "server.log")),
        ("interlock.db.lock", lambda data: FileLock(data / "interlock.db")),
        ("logger.lock", lambda data: take_lock(str(data))),
        ("task.log", lambda data: open_log(str(data / "task.log"))),
        ("task.pipe", lambda data: open_pipe(str(data / "task.pipe"))),
    ],
)
def test_a_link_in_a_data_directory_leads_nowhere(
    name: str, use: Callable[[Path], object], tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    plain(tmp_path / "data")
    (tmp_path / "data" / name).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        use(tmp_path / "data")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_secret_that_others_know_is_none(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    file.chmod(mode)
    with pytest.raises(NotPrivateError, match="no secret") as caught:
        read_secret(file)
    assert caught.value.hint == f"chmod 600 {file}"
    with pytest.raises(CommandError, match="no secret") as told:
        _find_with_token(file)
    assert told.value.hint == f"chmod 600 {file}"
    file.chmod(0o400)
    assert read_secret(file) == b"0123456789abcdef"


def _find_with_token(file: Path) -> None:
    from argparse import Namespace

    from interlock.client.target import find_target

    flags = dict.fromkeys(("server", "ca_file", "context", "kubeconfig"))
    find_target(Namespace(**flags, token_file=str(file)))


def test_a_secret_may_come_through_a_pipe() -> None:
    read, write = os.pipe()
    os.write(write, b"0123456789abcdef")
    os.close(write)
    assert read_secret(f"/dev/fd/{read}") == b"0123456789abcdef"
    os.close(read)


@only_root
@pytest.mark.parametrize(
    ("owner", "mode", "fine"),
    [
        pytest.param(0, 0o440, True, id="handed to a service"),
        pytest.param(0, 0o444, False, id="readable by everybody"),
        pytest.param(0, 0o460, False, id="writable by a group"),
        pytest.param(1, 0o440, False, id="somebody else's"),
        pytest.param(NOBODY, 0o440, False, id="its own, open to a group"),
        pytest.param(NOBODY, 0o400, True, id="its own"),
    ],
)
def test_secrets_as_a_service_reads_them(
    owner: int, mode: int, fine: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A process without rights of root reads what an administrator handed to its group."""
    place = tmp_path_factory.mktemp("secrets")
    file = place / "token"
    file.write_text("0123456789abcdef")
    os.chown(file, owner, NOBODY)
    file.chmod(mode)
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        code = 2
        try:
            # The directories above are root's alone; what is open already can still be used.
            os.fchdir(descriptor)
            place.chmod(0o755)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            read_secret("token")
            code = 0
        except NotPrivateError:
            code = 1
        finally:
            os._exit(code)
    os.close(descriptor)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if fine else 1)
