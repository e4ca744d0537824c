"""The policy for all Queues: what `--wait-for-pods-ready` gives a control plane at its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from interlock.errors import InterlockError, InvalidError, Problem
from interlock.findings import shown
from interlock.resources.door.manifests import Document, ManifestError, read_data
from interlock.resources.door.validation import read_resource
from interlock.resources.metadata import API_VERSION
from interlock.resources.queue import Queue
from interlock.resources.ready_gate import WaitForPodsReady

FLAG = "--wait-for-pods-ready"
_PLACE = "spec.waitForPodsReady."
_SUCH_AS = "such as: {enable: true, timeout: 10m}"


class ReadyPolicyError(InterlockError):
    """The policy cannot be used; every problem is told, with its line."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def read_ready_policy(given: str) -> WaitForPodsReady:
    """Read the policy from a file, or from the text itself, which begins with a brace.

    Raises:
        ReadyPolicyError: It cannot be used.
    """
    is_text = given.lstrip().startswith("{")
    title = FLAG if is_text else f"{FLAG} {given}"
    try:
        document, lines = read_data(given if is_text else Path(given).read_bytes())
    except OSError as error:
        raise ReadyPolicyError(f"{title}: {error.strerror}") from error
    except ManifestError as error:
        raise ReadyPolicyError(f"{title}: {error}") from error
    if not isinstance(document, dict):
        raise ReadyPolicyError(f"{title}: expected the fields of waitForPodsReady", _SUCH_AS)
    policy, problems = _read(document)
    if "enable" not in document:
        problems.append(Problem(f"{_PLACE}enable", "expected true or false: it is not given"))
    if problems or policy is None:
        raise _refused(title, problems, lines)
    return policy


def _read(document: dict[str, object]) -> tuple[WaitForPodsReady | None, list[Problem]]:
    """Read it as a part of a Queue: at the same door, where all problems are told at once."""
    spec = {"resources": {"tasks": 1}, "waitForPodsReady": document}
    queue = {"kind": "Queue", "metadata": {"name": "all"}, "spec": spec}
    try:
        made, _ = read_resource({"apiVersion": API_VERSION, **queue})
    except InvalidError as error:
        return None, list(error.problems)
    assert isinstance(made, Queue)
    return made.spec.wait_for_pods_ready, []


def _refused(title: str, problems: Sequence[Problem], lines: Mapping[str, int]) -> ReadyPolicyError:
    """Each problem with its line, its path, what was found and what was expected."""
    told = []
    for problem in problems:
        path = problem.path.removeprefix(_PLACE)
        found = "" if problem.found is None else f" {shown(problem.found)!r}"
        line = Document({}, lines).line_of(path)
        told.append(f"line {line}: {path}{found}: {problem.message}")
    return ReadyPolicyError(f"{title}: " + "\n  ".join(told), _SUCH_AS)
