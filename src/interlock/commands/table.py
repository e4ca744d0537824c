"""The registry of commands: one entry feeds the HTTP actions, their rights and their docs.

To add a command is to write its function and its options, and to add an entry here; the command
line finds it by its kind and name.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from interlock.commands import exceptions, jobs, manual_runs, on_demand, operations, suspension
from interlock.commands.change import By, Change
from interlock.resources.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, Kind
from interlock.resources.metadata import Noun


class Need(StrEnum):
    """What a command does, in the words of a cluster's rights: who may order it may do all this."""

    #: The object itself is changed.
    PATCH_IT = "patch it"
    #: The object itself is read.
    GET_IT = "get it"
    #: Jobs of its namespace are looked through, made, changed.
    LIST_JOBS = "list jobs"
    CREATE_JOBS = "create jobs"
    PATCH_JOBS = "patch jobs"


class Command(Struct, frozen=True, kw_only=True):
    """Something that a person may order, and all that others need to know of it."""

    name: str
    kind: Kind
    #: What may be said with the order.
    options: type[Noun]
    #: Works out the change; of a ControlledJob it takes the view when `needs_view`.
    order: Callable[[Any, Any, By], Change]
    needs: tuple[Need, ...]
    #: What it does, for people.
    says: str

    @property
    def needs_view(self) -> bool:
        """Whether it takes a ControlledJob with its Jobs and calendars, and not by itself."""
        return self.kind is CONTROLLED_JOBS and Need.LIST_JOBS in self.needs


_CHANGES = (Need.PATCH_IT,)
_MAKES = (Need.GET_IT, Need.CREATE_JOBS)
_EXCEPTS = (Need.PATCH_IT, Need.LIST_JOBS)


def _all() -> tuple[Command, ...]:
    of_jobs = (
        ("stop", jobs.Stopping, jobs.stop, _CHANGES, "end it gracefully"),
        ("kill", jobs.Stopping, jobs.kill, _CHANGES, "end it at once"),
        (
            "requeue",
            jobs.Requeuing,
            jobs.requeue,
            _CHANGES,
            "put it back: it is stopped, gives everything back, and waits again",
        ),
        (
            "release",
            jobs.Releasing,
            jobs.release,
            _CHANGES,
            "say that its Unknown tasks are gone: it ends, its locks pass on",
        ),
        ("retry", jobs.Retrying, jobs.retry, _MAKES, "run it again, as a new Job"),
        (
            "go-forward",
            operations.Operating,
            operations.go_forward,
            _CHANGES,
            "have a stuck operation tried again, with all its retries",
        ),
        (
            "roll-back",
            operations.Operating,
            operations.roll_back,
            _CHANGES,
            "have what was done of an operation undone",
        ),
        (
            "resolve",
            operations.Resolving,
            operations.resolve,
            _CHANGES,
            "say what a stuck operation came to: it is over",
        ),
        (
            "let-go",
            operations.Operating,
            operations.remove,
            _CHANGES,
            "let a stuck operation go once it is deleted, whatever it left",
        ),
    )
    of_configs = (
        ("run", on_demand.Running, on_demand.run, _MAKES, "make a Job of it now, or for later"),
        ("enable", on_demand.Switching, on_demand.enable, _CHANGES, "switch its schedules on"),
        ("disable", on_demand.Switching, on_demand.disable, _CHANGES, "switch its schedules off"),
    )
    of_controlled = (
        (
            "start",
            manual_runs.Starting,
            manual_runs.start,
            (*_MAKES, Need.LIST_JOBS),
            "start its Job by hand, unless one runs",
        ),
        (
            "restart",
            manual_runs.Restarting,
            manual_runs.restart,
            (*_MAKES, Need.LIST_JOBS, Need.PATCH_JOBS),
            "stop its Job and start the next",
        ),
        (
            "stop",
            jobs.Stopping,
            manual_runs.stop_all,
            (Need.GET_IT, Need.LIST_JOBS, Need.PATCH_JOBS),
            "stop its Jobs; it makes no other in this window",
        ),
        (
            "skip",
            exceptions.Skipping,
            exceptions.skip,
            _EXCEPTS,
            "leave out a start, or several",
        ),
        (
            "extend",
            exceptions.Extending,
            exceptions.extend,
            _EXCEPTS,
            "let it run longer than its plan says, once",
        ),
        (
            "hold",
            exceptions.Holding,
            exceptions.hold,
            _EXCEPTS,
            "let nothing of it run until a moment",
        ),
    )
    of_all = (
        ("suspend", suspension.Suspending, suspension.suspend, _CHANGES, "hold it back"),
        ("resume", suspension.Resuming, suspension.resume, _CHANGES, "let it go on"),
    )
    return tuple(
        Command(name=name, kind=kind, options=options, order=order, needs=needs, says=says)
        for kind, rows in (
            (JOBS, (*of_jobs, *of_all)),
            (JOB_CONFIGS, (*of_configs, *of_all)),
            (CONTROLLED_JOBS, (*of_controlled, *of_all)),
        )
        for name, options, order, needs, says in rows
    )


#: Every command, in the order of the docs.
COMMANDS: tuple[Command, ...] = _all()
_BY_NAME = {(command.kind.name, command.name): command for command in COMMANDS}


def command_for(kind: str, name: str) -> Command:
    """The command of that name for a kind."""
    return _BY_NAME[kind, name]
