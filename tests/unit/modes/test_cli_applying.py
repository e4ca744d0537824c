"""What an apply says about what it did, whatever else happens at the same time."""

from __future__ import annotations

from typing import Any, cast

import pytest

from interlock.client.errors import AnswerError
from interlock.commands.merging import LAST_APPLIED
from interlock.modes.cli.applying import Wanted, apply
from interlock.modes.cli.input.documents import Given
from interlock.modes.cli.session import Session
from interlock.resources.door.manifests import Document

NOT_THERE = AnswerError(404, {"reason": "NotFound"}, "not found", 4)
EXISTS = AnswerError(409, {"reason": "AlreadyExists"}, "exists", 5)


class ScriptedServer:
    """Answers gets, creates and patches in the order it was given."""

    namespace = "default"

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.api = self

    def _answer(self, asked: str) -> Any:
        self.asked.append(asked)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get(self, *_: object) -> Any:
        return self._answer("get")

    def create(self, *_: object, dry_run: bool) -> Any:
        return self._answer("create")

    def patch(self, *_: object, dry_run: bool) -> Any:
        return self._answer("patch")


def stored(version: int, phase: str = "Queued", **spec: object) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "default", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def noted(version: int, annotations: dict[str, str]) -> dict[str, Any]:
    item = stored(version)
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(
    ("answers", "word", "asked"),
    [
        pytest.param([NOT_THERE, stored(1)], "created", "get create", id="new"),
        pytest.param(
            [stored(1), stored(2, "Running")], "unchanged", "get patch", id="only its status moved"
        ),
        pytest.param(
            [stored(1), stored(2, priority=1)], "configured", "get patch", id="its spec changed"
        ),
        pytest.param(
            [stored(1), noted(2, {LAST_APPLIED: "{}"})], "unchanged", "get patch",
            id="only the record of it is new",
        ),
        pytest.param(
            [stored(1), noted(2, {LAST_APPLIED: "{}", "a": "b"})], "configured", "get patch",
            id="its annotations changed",
        ),
        pytest.param(
            [NOT_THERE, EXISTS, stored(1), stored(2, priority=1)],
            "configured", "get create get patch", id="somebody else created it",
        ),
        pytest.param(
            [stored(1), NOT_THERE, NOT_THERE, stored(3)],
            "created", "get patch get create", id="somebody else deleted it",
        ),
    ],
)  # fmt: skip
def test_apply(answers: list[Any], word: str, asked: str) -> None:
    server = ScriptedServer(*answers)
    session = cast(Session, server)
    data = {"kind": "Job", "metadata": {"name": "x"}, "spec": {"priority": 0}}
    wanted = Wanted(session, Given("f.yaml", Document(data, {})))

    assert apply(session, wanted)[0] == word
    assert " ".join(server.asked) == asked
