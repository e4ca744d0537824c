"""Real controllers in processes of their own, on a real cluster; nothing of them is left behind."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from interlock.testing.serving import PATIENCE_S
from support.kube.access import Access, Answer, User
from support.kube.component import Leash

_START = "import sys; from interlock.modes.cli.main import run; sys.exit(run())"
_LOOK_EVERY_S = 0.05
_URL = re.compile(r"(https?)://([^\s/]+):(\d+)$", re.MULTILINE)


class Controller:
    """`interlock controller` on a free port of this machine. As a context it is ready when entered.

    It finds the cluster by KUBECONFIG alone, as `user`. With `namespace` it serves that one, and
    keeps its lease there too: controllers of other tests on the same cluster are not met.
    """

    def __init__(
        self,
        access: Access,
        folder: Path,
        *arguments: str,
        user: User = User.ADMIN,
        namespace: str = "",
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = (sys.executable, "-c", _START),
    ) -> None:
        """Prepare a controller that `program` is: `interlock`, or one that knows more kinds."""
        self.access = access
        self._program = tuple(program)
        self.namespace = namespace
        scope = ("--namespace", namespace) if namespace else ()
        listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
        self._arguments = (*scope, *listen, *arguments)
        # It finds no configuration of the person who runs the tests.
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "KUBECONFIG": str(access.kubeconfig(user)),
            **(environment or {}),
        }
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = folder / f"controller-{id(self):x}.log"
        #: Where the log of the present life begins.
        self._begun = 0
        self._leash: Leash | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None, "the controller was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """All it has printed and logged since it was last started."""
        if not self._file.exists():
            return ""
        return self._file.read_bytes()[self._begun :].decode(errors="replace")

    @property
    def url(self) -> str:
        """Where it answers."""
        found = _URL.search(self.wait_for_log(_URL.pattern))
        assert found is not None
        return found[0]

    def start(self) -> Controller:
        """Start it; `wait_until_ready` says when it serves."""
        assert not self.running, "the controller runs already"
        self._leash = self._leash or Leash()
        self._begun = self._file.stat().st_size if self._file.exists() else 0
        with self._file.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._program, "controller", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment,
                process_group=self._leash.group,
            )
        return self

    def wait_until_ready(self) -> Controller:
        """Wait until it says that it is ready."""
        until = time.monotonic() + PATIENCE_S
        while self._status_of("/readyz") != 200:
            self._look_again(until, "does not get ready")
        return self

    def wait_for_log(self, pattern: str) -> str:
        """Wait until its log has something that the pattern finds; returns the whole log."""
        until = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.log, re.MULTILINE):
            self._look_again(until, f"does not say {pattern!r}")
        return self.log

    @property
    def leads(self) -> bool:
        """Whether the lease is its own."""
        return f"-{self.pid}-" in self.holder

    @property
    def holder(self) -> str:
        """Who has the lease; empty when nobody has."""
        place = self.namespace or "interlock-system"
        path = f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases/interlock"
        answer = self.access.ask("GET", path)
        return str(answer.body.get("spec", {}).get("holderIdentity") or "")

    def wait_until_leading(self) -> Controller:
        """Wait until the lease is its own, and it has heard of that."""
        until = time.monotonic() + PATIENCE_S
        while not self.leads:
            self._look_again(until, f"does not lead, but {self.holder!r}")
        self.wait_for_log("leading, term")
        return self

    def ask(
        self, method: str, path: str, body: object = None, *, token: str = "", **headers: str
    ) -> Answer:
        """Ask it over HTTP, with a token or without; returns the answer, whatever it is."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body)
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = self._connection()
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            read = answer.read()
        finally:
            connection.close()
        told: dict[str, Any] = {"message": read.decode(errors="replace")}
        if "json" in (answer.getheader("Content-Type") or ""):
            told = json.loads(read)
        return Answer(answer.status, dict(answer.getheaders()), told)

    def stop(self) -> int:
        """Ask it to stop and wait until it has; returns its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill it as the kernel would."""
        assert self._process is not None
        self._process.kill()
        self.wait()

    def pause(self) -> None:
        """Let it stand still, without anybody being told."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def wait(self) -> int:
        """Wait until it has ended; returns its exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """End it, whatever became of it."""
        if self._leash is not None:
            self._leash.close()
            self._leash = None
        if self._process is not None:
            self._process.wait(PATIENCE_S)

    def __enter__(self) -> Controller:
        with ExitStack() as undo:
            undo.callback(self.close)
            self.start().wait_until_ready()
            undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _connection(self) -> http.client.HTTPConnection:
        found = _URL.search(self.url)
        assert found is not None
        host, port = found[2], int(found[3])
        if found[1] == "https":
            trusted = ssl.create_default_context(cafile=str(self.access.authority))
            return http.client.HTTPSConnection(host, port, timeout=PATIENCE_S, context=trusted)
        return http.client.HTTPConnection(host, port, timeout=PATIENCE_S)

    def _status_of(self, path: str) -> int:
        if not _URL.search(self.log):
            return 0
        try:
            return self.ask("GET", path).status
        except (OSError, http.client.HTTPException):
            return 0

    def _look_again(self, until: float, problem: str) -> None:
        """Wait a moment before the next look, unless there is no hope or no time any more."""
        if not self.running:
            raise AssertionError(f"the controller ended with {self.wait()}:\n{self.log}")
        if time.monotonic() > until:
            raise AssertionError(f"the controller {problem}:\n{self.log}")
        select.select([], [], [], _LOOK_EVERY_S)
