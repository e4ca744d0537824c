"""What a command is to those who carry it out, and where it is found by its kind and name."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from interlock.commands.change import By, Change
from interlock.resources.kinds import CONTROLLED_JOBS, JOBS, Kind
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


#: A command without its kind: its name, options and function, what it does, what it says.
Entry = tuple[str, type[Noun], Callable[[Any, Any, By], Change], tuple[Need, ...], str]


def commands_of(kind: Kind, *entries: Entry) -> tuple[Command, ...]:
    """The commands of a kind."""
    return tuple(
        Command(name=name, kind=kind, options=options, order=order, needs=needs, says=says)
        for name, options, order, needs, says in entries
    )


def command_for(kind: str, name: str) -> Command:
    """The command of that name for a kind.

    Whoever looks for one of a Job loads none of the others: the command line starts anew for each
    order, and those of schedules bring calendars, zones and plans along.
    """
    if kind == JOBS.name:
        from interlock.commands.job_table import JOB_COMMANDS

        return _named(JOB_COMMANDS, kind, name)
    from interlock.commands.table import COMMANDS

    return _named(COMMANDS, kind, name)


def _named(commands: tuple[Command, ...], kind: str, name: str) -> Command:
    return next(each for each in commands if (each.kind.name, each.name) == (kind, name))
