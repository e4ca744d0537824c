"""The status of an operation: which steps are done, what failed, and what comes next.

The words for states and the two counters are those of the job status API: see docs/reference.
"""

from __future__ import annotations

from enum import StrEnum

from interlock.resources.metadata import Moment, Noun
from interlock.resources.steps import MAX_STEPS, ChildRequest, Step

#: The numbers that the tasks of an operation have: step n is run by task 2n, undone by task 2n+1.
#: The task that turns a request into steps comes after all of them.
ELABORATION = 2 * MAX_STEPS
#: What the step is called that turns a request into steps, as long as there are no others.
ELABORATE = "elaborate"


class OperationState(StrEnum):
    """Where an operation is."""

    #: It waits: for its turn, for the moment of a retry, or for a worker that takes it up.
    QUEUED = "queued"
    #: Its steps are run.
    EXECUTING = "executing"
    #: Its steps are undone.
    REVERTING = "reverting"
    #: It is over.
    COMPLETE = "complete"


class CompletionState(StrEnum):
    """What an operation that is over came to."""

    #: All was done.
    SUCCESS = "success"
    #: Some of its children succeeded and some failed.
    PARTIAL_SUCCESS = "partial_success"
    #: It was not done, and nothing is left behind.
    FAILED = "failed"


class StepState(StrEnum):
    """Where a step is."""

    #: To be run once what it needs is done; also what was undone in order to be run again.
    WAITS = "Waits"
    #: An attempt to run it is under way.
    RUNNING = "Running"
    #: It is done, and not run again.
    DONE = "Done"
    #: Its last attempt failed; it is tried again, or out of retries.
    FAILED = "Failed"
    #: To be undone.
    TO_UNDO = "ToUndo"
    #: An attempt to undo it is under way.
    UNDOING = "Undoing"
    #: The last attempt to undo it failed.
    UNDO_FAILED = "UndoFailed"
    #: It is undone, and neither run nor undone again.
    UNDONE = "Undone"


class StepStatus(Noun):
    """How one step is going."""

    name: str
    state: StepState = StepState.WAITS
    #: Attempts so far to run it, and to undo it.
    runs: int = 0
    undos: int = 0
    #: Retries so far, of running it and of undoing it. Success takes them back to 0.
    retries: int = 0
    undo_retries: int = 0
    #: How often an attempt was cut off without its doing: a death of its worker, a restart.
    interruptions: int = 0
    #: Whether it was cut off in a worker since an attempt of it ended by itself: then it is run
    #: with nothing beside it in its process.
    suspected: bool = False
    #: It is tried again at this moment, not before.
    not_before: Moment | None = None
    #: Whether what comes next goes on after an interruption, and so is no retry.
    interrupted: bool = False
    #: The step on whose account this one is undone before that is tried again.
    undo_for: str = ""
    started_at: Moment | None = None
    ended_at: Moment | None = None
    #: How its last attempt failed.
    message: str = ""
    #: What it returned, as JSON.
    result: str = ""


class OperationStatus(Noun):
    """How an operation is going. Its size is bounded by the number of its steps."""

    state: OperationState = OperationState.QUEUED
    completion_state: CompletionState | None = None
    #: The retries of the step that is being tried again.
    retry_count: int = 0
    rollback_retry_count: int = 0
    #: Steps done out of all steps; not given before it is known which there are.
    percentage: float | None = None
    #: How every step is going, in their order; none once the operation is over.
    steps: tuple[StepStatus, ...] = ()
    #: The steps that a worker made of the request; none when the definition names them.
    elaborated: tuple[Step, ...] | None = None
    #: The names of those, once the operation is over: what they wrote is found by them.
    step_names: tuple[str, ...] = ()
    #: The Jobs that are to be made of parts of it once all steps are done; none once they are made.
    children: tuple[ChildRequest, ...] = ()
    #: What it returns once it is done, as JSON with references to what steps returned.
    returns: str = ""
    #: Why it is, or is to be, rolled back: a reason of the Job's execution. Steps under way end
    #: first.
    reverting_for: str = ""
    #: Whether that has begun, also while it waits.
    reverting: bool = False
    #: When it is tried again.
    next_attempt_at: Moment | None = None
    #: Since when nobody acts but a person, and why.
    stuck_at: Moment | None = None
    stuck_message: str = ""
    #: How many orders of a person to go on were carried out.
    interventions: int = 0
    #: The last error that came from running a step, not from undoing one.
    error: str = ""
    #: How attempts failed, of steps and of what undoes them: the newest, bounded.
    failures: tuple[str, ...] = ()
    #: What the operation returned, as JSON.
    result: str = ""
    #: When any of this changed last.
    updated_at: Moment | None = None


def run_task(step: int) -> int:
    """The number of the task that runs a step."""
    return 2 * step


def undo_task(step: int) -> int:
    """The number of the task that undoes a step."""
    return 2 * step + 1


def step_of(task: int) -> int:
    """The step that a task is of."""
    return task // 2


def is_undo(task: int) -> bool:
    """Whether a task undoes a step."""
    return task % 2 == 1 and task < ELABORATION
