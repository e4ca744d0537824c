"""Operations: which step is run, retried or undone next, and when an operation is over or stuck.

Every step is run by tasks of its own (`resources/operation.py` says which), so starting, watching,
stopping and proving gone are those of all tasks. What is here is the arithmetic between them:

- A step that failed is tried again at once the first time, and then each time after its delay times
  the retries already made, counted from when the failure was recorded. All but the first wait in
  the queue: that is recorded before the next attempt is.
- A step that is out of retries has the operation rolled back: against the order in which steps need
  each other, every step that was begun is undone. Every retry of an undo waits in the queue.
- An undo that is out of retries leaves the operation stuck, and so does a step that is out of
  retries when an irreversible one was begun. Then nobody acts but a person.
- Steps under way are never cut off in order to roll back: they end first, as they will.

A step that is recorded as done is not run again unless it was undone in between; one that is
recorded as undone is not undone again; what is being rolled back does not go forward again by
itself.
"""

from interlock.execution.operations.ends import take_in, undo_delay
from interlock.execution.operations.record import (
    begun,
    is_done,
    is_over,
    moments,
    specs_of,
    step_spec,
)
from interlock.execution.operations.rollback import forward, reverting
from interlock.execution.operations.stepping import Next, move
from interlock.execution.operations.summary import completed, told

__all__ = [
    "Next",
    "begun",
    "completed",
    "forward",
    "is_done",
    "is_over",
    "moments",
    "move",
    "reverting",
    "specs_of",
    "step_spec",
    "take_in",
    "told",
    "undo_delay",
]
