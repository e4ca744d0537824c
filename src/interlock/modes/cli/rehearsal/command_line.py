"""The command line inside a rehearsal: real verbs, answered by the rehearsed server."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any

from interlock.client.api import Api
from interlock.client.errors import BAD_INPUT, AnswerError, CommandError
from interlock.client.http_client import Answer, Wire
from interlock.client.target import Target
from interlock.forecast.rehearsal.front import Answer as Said
from interlock.forecast.rehearsal.front import Front
from interlock.forecast.rehearsal.player import RefusedActError
from interlock.forecast.rehearsal.targets import with_version
from interlock.modes.cli.applying import Wanted, apply, misplaced
from interlock.modes.cli.flags import parse
from interlock.modes.cli.input.documents import Given, refusals_of, refused_by_server
from interlock.modes.cli.main import tell, verb_named
from interlock.modes.cli.session import Session
from interlock.resources.door.manifests import Document

#: Verbs that are about this machine or about other servers, and not about the rehearsed one.
_ELSEWHERE = frozenset(
    (
        "up",
        "controller",
        "worker",
        "backup",
        "restore",
        "manifests",
        "move",
        "completion",
        "simulate",
    )
)


class _SaidAnswer(Answer):
    """An answer that is here already, whole."""

    def __init__(self, said: Said) -> None:
        self.status = said.status
        self.headers = said.headers
        self.warnings = []
        self._left: bytes | None = said.data

    @property
    def waiting(self) -> bool:
        """It is all here."""
        return True

    def receive(self) -> bytes | None:
        """All of it, once."""
        left, self._left = self._left, None
        return left

    def ready(self, timeout_s: float | None) -> bool:  # noqa: ARG002 (there is no waiting)
        """It is all here."""
        return True

    def close(self) -> None:
        """There is no connection."""


class _Wire(Wire):
    """The way to the rehearsed server, which is no way at all."""

    def __init__(self, target: Target, front: Front) -> None:
        super().__init__(target)
        self._front = front

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Ask."""
        return _SaidAnswer(self._front.ask(method, path, headers, body))

    def stream(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Ask; what would go on for ever is refused."""
        return self.request(method, path, headers, body)

    def keep(self, answer: Answer) -> None:
        """There is no connection."""


class _Api(Api):
    """The rehearsed server."""

    def __init__(self, target: Target, front: Front) -> None:
        super().__init__(target)
        self._wire = _Wire(target, front)


class RehearsedSession(Session):
    """A command being carried out in a rehearsal."""

    def __init__(self, args: Namespace, front: Front, namespace: str) -> None:
        super().__init__(args)
        self._target = Target("http://127.0.0.1")
        self._target.namespace = namespace
        self._api = _Api(self._target, front)
        self._on_cluster = False


class CommandHands:
    """Carries out what people do in a scenario."""

    def __init__(self, front: Front, namespace: str) -> None:
        self._front = front
        self._namespace = namespace

    def apply(self, manifests: Sequence[dict[str, Any]]) -> None:
        """Apply manifests as `interlock apply` does: nothing is stored when one is bad.

        Raises:
            RefusedActError: One of them was refused.
        """
        found = [Given("apply", Document(with_version(one), {})) for one in manifests]
        for bad in refusals_of(
            found, namespace=self._namespace, placing=lambda given: misplaced(given, None)
        ):
            raise RefusedActError("; ".join(map(str, bad.problems)))
        session = RehearsedSession(Namespace(), self._front, self._namespace)
        for given in found:
            try:
                apply(session, Wanted(session, given))
            except AnswerError as error:
                refusal = refused_by_server(given, error)
                told = "; ".join(map(str, refusal.problems)) if refusal else error.message
                raise RefusedActError(told) from None
            except CommandError as error:
                raise RefusedActError(error.message) from None

    def run(self, words: Sequence[str]) -> tuple[int, str]:
        """Run a verb; its exit code, and what it printed."""
        with _captured() as printed:
            try:
                code = self._run(list(words))
            except CommandError as error:
                tell(error)
                code = error.code
            sys.stdout.flush()
        return code, printed.getvalue().decode(errors="replace")

    def _run(self, words: list[str]) -> int:
        if words and words[0] == "interlock":
            words = words[1:]
        if not words:
            raise CommandError("which verb?", code=BAD_INPUT)
        verb = verb_named(words[0])
        if verb.name in _ELSEWHERE:
            raise CommandError(f"`{verb.name}` has no place in a scenario", code=BAD_INPUT)
        module = import_module(verb.module)
        args = parse(verb, module, words[1:])
        if args is None:
            return 0
        session = RehearsedSession(args, self._front, self._namespace)
        code: int = module.run(session, args)
        return code


@contextmanager
def _captured() -> Iterator[io.BytesIO]:
    """Both outputs, as bytes: some verbs hand on what is no text."""
    printed = io.BytesIO()
    stream = io.TextIOWrapper(printed, encoding="utf-8", write_through=True)
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            yield printed
    finally:
        stream.detach()  # Else its end would close what was printed.
