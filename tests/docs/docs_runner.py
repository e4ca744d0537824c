"""Types what pages say, in a directory and against a server that are there for them alone.

The server is the one that `make up` starts, with the examples.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from docs_pages import ROOT, Block, Command, blocks_of, commands_of, name_of, pages

from interlock.private_files import user_name
from interlock.testing.serving import Server
from support.worker_program import WorkerProgram

#: A server tells who gave an order by the kernel's word. On a page that is its reader.
_BY_ME = re.compile(rf"\bby {re.escape(user_name(os.geteuid()))}\b")
#: Stands in for curl where there is none: the pages use these flags of it, and no others.
_CURL = """\
#!{python}
import argparse, sys, urllib.error, urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("-s", action="store_true")
parser.add_argument("-X", dest="method")
parser.add_argument("-H", dest="headers", action="append", default=[])
parser.add_argument("-d", dest="data")
parser.add_argument("url")
given = parser.parse_args()
request = urllib.request.Request(
    given.url,
    method=given.method,
    data=given.data.encode() if given.data is not None else None,
    headers=dict(header.split(": ", 1) for header in given.headers),
)
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    answer = error
with answer:
    sys.stdout.buffer.write(answer.read())
"""
#: A command that takes longer hangs: nothing on a page takes a tenth of it on a slow machine.
DEADLINE_S = 120.0


def pages_to_run(*, on_cluster: bool = False) -> list[Path]:
    """Every page that has commands for a server of our own, or for a cluster."""
    return [
        page
        for page in pages()
        if any(
            block.is_run and block.on_cluster is on_cluster
            for block in blocks_of(page.read_text("utf-8"))
        )
    ]


def follow(page: Path, place: Path) -> None:
    """Do everything that a page says about a server of our own, in order.

    Raises:
        AssertionError: Something is not as the page says.
    """
    walk([page], place)


def walk(found: list[Path], place: Path) -> None:
    """Do everything that some pages say, one after the other, as one reader on one server.

    Raises:
        AssertionError: Something is not as a page says.
    """
    texts = {page: page.read_text("utf-8") for page in found}
    with PageRunner(place, kubectl=kubectl_for("\n".join(texts.values()))) as reader:
        for page, text in texts.items():
            try:
                obey(text, reader)
            except AssertionError as error:
                raise AssertionError(f"{name_of(page)}, {error}") from None
            reader.turn()


def obey(text: str, reader: PageRunner) -> None:
    """Do everything that a page says to a reader of this kind.

    Raises:
        AssertionError: Something is not as the page says.
    """
    for block in blocks_of(text):
        if block.on_cluster is not reader.on_cluster:
            continue
        told = reader.run(block)
        for words in block.expected:
            assert words in told, f"line {block.line}: expected {words!r} in\n{told}"


def kubectl_for(text: str) -> Path | None:
    """kubectl, for a page that uses it."""
    if not re.search(r"^\$ .*\bkubectl\b", text, re.MULTILINE):
        return None
    return find_kubectl()


def find_kubectl() -> Path:
    """kubectl, fetched if it is not there."""
    found: Path = runpy.run_path(str(ROOT / "tools" / "ensure_kubectl.py"))["ensure"]()
    return found


class PageRunner:
    """A reader with a shell, `interlock` and a running server. As a context it leaves nothing."""

    #: Which blocks are for this reader.
    on_cluster = False

    def __init__(self, place: Path, *, kubectl: Path | None = None) -> None:
        self._home = place / "home"
        self._work = place / "work"
        self._place = place
        self._stack = ExitStack()
        #: The servers that a page starts itself.
        self._page = ExitStack()
        #: How the server that is there from the start is found.
        self._found: dict[str, str] = {}
        self._env = _environment(self._home, self._programs(kubectl))

    def __enter__(self) -> PageRunner:
        self._home.mkdir()
        shutil.copytree(ROOT / "examples", self._work / "examples")
        with ExitStack() as undo:
            undo.callback(self._stack.close)
            self._begin()
            undo.pop_all()
        return self

    def _begin(self) -> None:
        """Start what every page finds running."""
        data = self._place / "data"
        server = Server(data, "--examples", env=self._server_env(), cwd=self._work)
        self._stack.enter_context(server)
        self._stack.callback(self._page.close)
        self._found = {"INTERLOCK_SERVER": server.url}
        self._env |= self._found

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def turn(self) -> None:
        """Turn to the next page: what it finds running is what the first one found."""
        self._page.close()
        self._env.pop("INTERLOCK_DATA", None)
        self._env |= self._found

    def run(self, block: Block) -> str:
        """Do what a block is for; returns what its commands printed."""
        if block.file:
            self._save(block)
        elif block.is_server:
            self._serve(block)
        elif block.is_worker:
            self._work_for(block)
        elif block.is_run:
            return "".join(self.type(command) for command in commands_of(block))
        return ""

    def type(self, command: Command) -> str:
        """Run one command to its end; returns what it printed.

        Raises:
            AssertionError: It did not end as the page says, or did not end.
        """
        shell = subprocess.Popen(
            ["bash", "-c", command.text],
            cwd=self._work,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            told, _ = shell.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            told, _ = shell.communicate()
            raise AssertionError(f"line {command.line}: no end of {command.text}\n{told}") from None
        assert shell.returncode == command.code, (
            f"line {command.line}: {command.text}\n{told}\n"
            f"ended with {shell.returncode}, the page says {command.code}"
        )
        return _BY_ME.sub("by you", told)

    def _save(self, block: Block) -> None:
        path = self._work / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(block.lines) + "\n")

    def _serve(self, block: Block) -> None:
        """Start the server that a block shows; from here on commands find it by its directory."""
        (command,) = commands_of(block)
        words = shlex.split(command.text)
        assert words[:3] == ["interlock", "up", "--data"], command.text
        server = Server(self._work / words[3], *words[4:], env=self._server_env(), cwd=self._work)
        self._page.enter_context(server)
        self._env.pop("INTERLOCK_SERVER", None)
        self._env["INTERLOCK_DATA"] = words[3]

    def _work_for(self, block: Block) -> None:
        """Start the worker that a block shows; it is told to end when the page is turned."""
        (command,) = commands_of(block)
        words = shlex.split(command.text)
        assert words[:2] == ["interlock", "worker"], command.text
        worker = WorkerProgram(words[2:], cwd=self._work, env=self._env)
        self._page.enter_context(worker)

    def _server_env(self) -> dict[str, str]:
        return {"HOME": str(self._home), "PATH": self._env["PATH"]}

    def _programs(self, kubectl: Path | None) -> list[Path]:
        """Where the programs are that a page uses beside the machine's own."""
        beside = self._place / "bin"
        beside.mkdir()
        if kubectl is not None:
            (beside / "kubectl").symlink_to(kubectl)
        if shutil.which("curl") is None:
            curl = beside / "curl"
            curl.write_text(_CURL.format(python=sys.executable))
            curl.chmod(0o755)
        return [Path(sys.executable).parent, beside]


def _environment(home: Path, programs: list[Path]) -> dict[str, str]:
    """What a reader's shell has, and nothing that would lead it to another server."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("INTERLOCK_", "KUBE"))
    }
    path = os.pathsep.join([*map(str, programs), kept.get("PATH", os.defpath)])
    own = {"HOME": str(home), "PATH": path, "TMPDIR": str(home), "USER": "you", "NO_COLOR": "1"}
    return kept | own
