"""Quarantine: which of the steps that were at work in a lost worker is to blame for its loss.

The rule: a step that is cut off although it has begun is suspected, until an attempt of it ends by
itself, or it is to be undone. What is suspected is run with nothing beside it in the process of its
worker. Being cut off counts against `max_interruptions` for what was suspected before, and for what
was alone there; the first time, beside others, it counts for nobody.

- Whatever kills its worker comes to an end. It is cut off at most once without being counted: it is
  suspected from then on, and every further time counts. So what never ends by itself is cut off
  `max_interruptions` + 2 times and no more, the same as whatever is silent for too long. What ends
  by itself has used up a retry, of which there are so many.
- Who is beside it keeps what it has. It was cut off together with others once, which counts for
  nobody, and is run alone then: what kills workers is elsewhere. Only what did not end by itself
  since is counted, so an innocent step loses something only when the machine of its worker is lost
  while it is alone.
- Being alone is not for ever: an attempt that ends by itself, well or not, is cleared.

What runs a suspect alone is `runtimes.workers.solitude`. It takes a worker that comes again after
its connection broke for one that did not die, and lets what was cut off there run beside others
once.
"""

from __future__ import annotations

from interlock.resources.operation import ELABORATION, OperationStatus, StepStatus, is_undo, step_of
from interlock.resources.tasks import EndedTask, TaskResult


def is_counted(step: StepStatus, end: EndedTask) -> bool:
    """Whether being cut off counts for a step. What nobody saw begin is not to blame."""
    if end.result is not TaskResult.INTERRUPTED:
        # It was not done by a worker.
        return True
    return end.started_at is not None and (step.suspected or not end.beside_others)


def is_suspected_after(step: StepStatus, end: EndedTask) -> bool:
    """Whether a step is suspected once it was cut off."""
    has_begun = end.result is TaskResult.INTERRUPTED and end.started_at is not None
    return step.suspected or has_begun


def is_run_alone(operation: OperationStatus, index: int) -> bool:
    """Whether an attempt is made with nothing beside it: of a suspect, or on its account."""
    at = 0 if index == ELABORATION else step_of(index)
    if at >= len(operation.steps):
        return False
    step = operation.steps[at]
    if step.suspected or not is_undo(index) or not step.undo_for:
        return step.suspected
    return any(one.suspected for one in operation.steps if one.name == step.undo_for)
