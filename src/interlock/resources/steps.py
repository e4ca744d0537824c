"""Steps: what an operation does one after another, how each is undone, and what it is done to."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from interlock.resources.metadata import Noun
from interlock.resources.pods import PodTemplate
from interlock.resources.process import ProcessSpec
from interlock.resources.rules import (
    ExactlyOne,
    Items,
    Limit,
    Line,
    Matches,
    NounRule,
    OnlyWith,
    SomeTime,
)
from interlock.resources.values.durations import Duration

MAX_STEPS = 100
MAX_STEP_RETRIES = 1_000
#: So many Jobs an operation may have made of parts of it.
MAX_CHILDREN = 500
MAX_PENDING = 1_000_000
#: Locks with this prefix are those of targets, and Interlock's own.
TARGET_LOCKS = "target/"

_StepName = Annotated[
    str,
    Matches(
        "[A-Za-z0-9_.-]{1,63}",
        "expected 1 to 63 letters, digits, '_', '.' and '-'",
        longest=63,
    ),
]
#: A name within a path: not of dots alone, which programs that read addresses leave out.
TARGET_NAME = "[.]*[A-Za-z0-9_:-][A-Za-z0-9._:-]*"
_PATH = f"{TARGET_NAME}(/{TARGET_NAME})*"
#: What the path of a target is like.
TARGET_PATH = re.compile(_PATH)
_TargetPath = Annotated[
    str,
    Matches(
        _PATH,
        "expected names of letters, digits, '.', '_', ':' and '-', not of dots alone, with '/'"
        " between them",
        longest=200,
    ),
]
_FunctionName = Annotated[
    str,
    Matches(
        "[A-Za-z_][A-Za-z0-9_.:-]{0,199}",
        "expected the name of a function: letters, digits, '_', '.', ':' and '-'",
        longest=200,
    ),
]


def is_at_or_below(path: str, top: str) -> bool:
    """Whether the path of a target is another one or below it; all are below the empty one."""
    return not top or path == top or path.startswith(f"{top}/")


class Target(Noun):
    """What an operation is done to: operations on one target run one at a time, in their order."""

    #: Where the target is, such as `domains/acme/applications/shop`: who has the same path has the
    #: same target.
    path: _TargetPath
    #: What sort of thing it is, such as `application`.
    type: Line = ""
    id: Line = ""
    name: Line = ""
    #: Where people find it: what the job status API shows as `object_url`.
    url: Line = ""
    #: At most so many unfinished Jobs for it, this one included: one more is refused. None, and
    #: more than the server allows, is what the server allows.
    max_pending: Annotated[int, Limit(1, MAX_PENDING)] | None = None


class PythonSpec(Noun):
    """A function of an application that workers have loaded: `interlock worker MODULE:APP`."""

    #: The name under which the application knows it.
    function: _FunctionName
    #: What it is called with, by name.
    args: dict[str, Any] = {}
    #: Only workers that serve this queue call it; empty for the queue without a name. A step of a
    #: request takes that of the request, unless it names one.
    queue: Line = ""


class StepWork(Noun):
    """What is run: exactly one of these."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("process", "pod", "python"),)

    process: ProcessSpec | None = None
    pod: PodTemplate | None = None
    python: PythonSpec | None = None


class StepRetries(Noun):
    """How often to try again, and when: the first retry of a step at once, the n-th after
    (n-1) x delay.
    """

    #: Further attempts after the first.
    limit: Annotated[int, Limit(0, MAX_STEP_RETRIES)] = 0
    delay: Duration = Duration()


class UndoRetries(Noun):
    """How often to try again to undo a step, and when: the n-th time after (n-1) x delay."""

    limit: Annotated[int, Limit(0, MAX_STEP_RETRIES)] = 0
    #: None takes that of `retries`.
    delay: Duration | None = None


class BeforeRetry(StrEnum):
    """What is done before a step that failed, or was interrupted, is run again."""

    #: Nothing: it copes with whatever its last attempt left.
    AS_IS = "AsIs"
    #: Its own undo.
    ROLL_BACK_FIRST = "RollBackFirst"
    #: The undo of the steps in `rollBack` and of all that were begun and need them; then all of
    #: them are run again.
    ROLL_BACK = "RollBack"


class Step(Noun):
    """One step of an operation."""

    RULES: ClassVar[tuple[NounRule, ...]] = (
        OnlyWith("undo_retries", "undo", expected="means nothing without undo"),
    )

    name: _StepName
    run: StepWork
    #: The steps that must be done first; None is the step before it, an empty list is none.
    needs: tuple[str, ...] | None = None
    #: What takes it back. It must cope with a step that did nothing, or only a part.
    undo: StepWork | None = None
    retries: StepRetries = StepRetries()
    undo_retries: UndoRetries | None = None
    before_retry: BeforeRetry = BeforeRetry.AS_IS
    #: For beforeRetry RollBack: steps that this one needs, directly or through others.
    roll_back: tuple[str, ...] = ()
    #: From its first attempt on nothing is rolled back any more: once it is out of retries the
    #: operation is stuck until a person decides.
    irreversible: bool = False
    #: Its undo is left out when this step is undone too.
    undo_covered_by: str | None = None
    #: An attempt that takes longer is stopped, and counts as failed; so is one to undo it.
    timeout: SomeTime | None = None

    def calls_function(self, *, undo: bool = False) -> bool:
        """Whether a worker does it, or undoes it: functions have no exit code of their own."""
        work = self.undo if undo else self.run
        return work is not None and work.python is not None


class ChildRequest(Noun):
    """A part of an operation that is an operation of its own, on a target of its own."""

    python: PythonSpec
    target: Target | None = None
    type: Line = ""
    title: Line = ""
    description: Line = ""
    #: None takes what its parent says.
    owner: Line | None = None
    steps_at_once: Annotated[int, Limit(1, MAX_STEPS)] | None = None
    max_interruptions: Annotated[int, Limit(0, MAX_STEP_RETRIES)] | None = None
    timeout: SomeTime | None = None


class Elaboration(Noun):
    """What a worker made of a request."""

    steps: tuple[Step, ...] = ()
    #: What is to be made of it once all steps are done: it is not over before these are.
    children: Annotated[tuple[ChildRequest, ...], Items(0, MAX_CHILDREN, "children")] = ()
    #: What the operation returns, as JSON: {"$result": "STEP"} stands for what that step returned.
    returns: str = ""


def needs_of(steps: tuple[Step, ...], at: int) -> tuple[str, ...]:
    """The steps that must be done before step number `at`."""
    needs = steps[at].needs
    if needs is not None:
        return needs
    return (steps[at - 1].name,) if at else ()


def target_lock(target: Target) -> str:
    """The key of the lock that keeps the operations on a target apart."""
    return f"{TARGET_LOCKS}{target.path}"
