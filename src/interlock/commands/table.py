"""The registry of commands: one entry feeds the HTTP actions, their rights and their docs.

To add a command is to write its function and its options, and to add an entry here, or in
`job_table` for a Job; the command line finds it by its kind and name.
"""

from __future__ import annotations

from interlock.commands import exceptions, jobs, manual_runs, on_demand
from interlock.commands.command import Command, Need, commands_of
from interlock.commands.job_table import CHANGES, JOB_COMMANDS, MAKES, OF_ALL
from interlock.resources.kinds import CONTROLLED_JOBS, JOB_CONFIGS

_EXCEPTS = (Need.PATCH_IT, Need.LIST_JOBS)

#: Every command, in the order of the docs.
COMMANDS: tuple[Command, ...] = (
    *JOB_COMMANDS,
    *commands_of(
        JOB_CONFIGS,
        ("run", on_demand.Running, on_demand.run, MAKES, "make a Job of it now, or for later"),
        ("enable", on_demand.Switching, on_demand.enable, CHANGES, "switch its schedules on"),
        ("disable", on_demand.Switching, on_demand.disable, CHANGES, "switch its schedules off"),
        *OF_ALL,
    ),
    *commands_of(
        CONTROLLED_JOBS,
        (
            "start",
            manual_runs.Starting,
            manual_runs.start,
            (*MAKES, Need.LIST_JOBS),
            "start its Job by hand, unless one runs",
        ),
        (
            "restart",
            manual_runs.Restarting,
            manual_runs.restart,
            (*MAKES, Need.LIST_JOBS, Need.PATCH_JOBS),
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
        *OF_ALL,
    ),
)
