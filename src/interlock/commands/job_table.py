"""The registry of commands about Jobs, apart from the others because it loads quickly.

To add a command is to write its function and its options, and to add an entry here.
"""

from __future__ import annotations

from interlock.commands import jobs, operations, suspension
from interlock.commands.command import Command, Entry, Need, commands_of
from interlock.resources.kinds import JOBS

CHANGES = (Need.PATCH_IT,)
MAKES = (Need.GET_IT, Need.CREATE_JOBS)

#: What holds back and lets go is the same for every kind.
OF_ALL: tuple[Entry, ...] = (
    ("suspend", suspension.Suspending, suspension.suspend, CHANGES, "hold it back"),
    ("resume", suspension.Resuming, suspension.resume, CHANGES, "let it go on"),
)

JOB_COMMANDS: tuple[Command, ...] = commands_of(
    JOBS,
    ("stop", jobs.Stopping, jobs.stop, CHANGES, "end it gracefully"),
    ("kill", jobs.Stopping, jobs.kill, CHANGES, "end it at once"),
    (
        "requeue",
        jobs.Requeuing,
        jobs.requeue,
        CHANGES,
        "put it back: it is stopped, gives everything back, and waits again",
    ),
    (
        "release",
        jobs.Releasing,
        jobs.release,
        CHANGES,
        "say that its Unknown tasks are gone: it ends, its locks pass on",
    ),
    ("retry", jobs.Retrying, jobs.retry, MAKES, "run it again, as a new Job"),
    (
        "go-forward",
        operations.Operating,
        operations.go_forward,
        CHANGES,
        "have a stuck operation tried again, with all its retries",
    ),
    (
        "roll-back",
        operations.Operating,
        operations.roll_back,
        CHANGES,
        "have what was done of an operation undone",
    ),
    (
        "resolve",
        operations.Resolving,
        operations.resolve,
        CHANGES,
        "say what a stuck operation came to: it is over",
    ),
    (
        "let-go",
        operations.Operating,
        operations.remove,
        CHANGES,
        "let a stuck operation go once it is deleted, whatever it left",
    ),
    *OF_ALL,
)
