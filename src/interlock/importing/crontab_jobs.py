"""What a line of a crontab becomes: a schedule and a process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from interlock.importing.crontab_remarks import Remarks
from interlock.importing.crontab_times import Times
from interlock.importing.drafts import Draft
from interlock.importing.variables import escaped

#: An odd number of backslashes before a % makes it a plain one.
_PERCENT = re.compile(r"\\%|%")
#: What a command is given when the file says nothing else.
_DEFAULTS = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}


class Entry(NamedTuple):
    """One line that runs something."""

    line: int
    times: str
    command: str
    user: str | None
    title: str


def schedule_of(draft: Draft, times: Times, zone: str) -> dict[str, Any]:
    """When a line is due."""
    made: dict[str, Any] = {"cron": times.line, "timezone": zone}
    if times.is_wild:
        made |= {"onGap": "Skip", "onRepeat": "Both"}
    if times.weekdays:
        made["only"] = [_calendar(draft, times.weekdays)]
    return made


def _calendar(draft: Draft, weekdays: str) -> str:
    """The calendar of some weekdays, made when it is first needed."""
    spec = {"days": [{"day": weekdays, "name": weekdays}]}
    for made in draft.objects:
        if made["kind"] == "Calendar" and made["spec"] == spec:
            return str(made["metadata"]["name"])
    name = draft.name_for("Calendar", f"weekdays-{weekdays.lower().replace(',', '-')}")
    draft.add(0, name, "Calendar", name, spec=spec)
    return name


def job_of(
    draft: Draft, remarks: Remarks, variables: Mapping[str, str], entry: Entry
) -> dict[str, Any]:
    """What a line runs, with the variables of the lines above."""
    variables = {**_DEFAULTS, **variables}
    command, stdin = _split_input(entry.command)
    process: dict[str, Any] = {"command": [variables["SHELL"], "-c", escaped(command)]}
    process["env"] = {name: escaped(value) for name, value in variables.items()}
    if home := variables.get("HOME"):
        process["workingDir"] = escaped(home)
    else:
        remarks.lacks("HOME")
    if stdin is not None:
        process["stdin"] = escaped(stdin)
    if entry.user:
        process |= _account(draft, entry)
    else:
        remarks.lacks("user")
    return {"process": process, "title": entry.title} if entry.title else {"process": process}


def _account(draft: Draft, entry: Entry) -> dict[str, str]:
    user, _, group = (entry.user or "").partition("/")[0].partition(":")
    why = "only a server that runs as root can start a command as somebody else"
    draft.note(0, "the file", "names users", why, "a server that cannot fails the Job and says so")
    return {"user": user, "group": group} if group else {"user": user}


def _split_input(text: str) -> tuple[str, str | None]:
    """The shell line, and what it reads: a % ends the line, further ones end lines of input."""
    parts: list[str] = [""]
    last = 0
    for match in _PERCENT.finditer(text):
        parts[-1] += text[last : match.start()]
        last = match.end()
        if match[0] == "%":
            parts.append("")
        else:
            parts[-1] += "%"
    parts[-1] += text[last:]
    command, *rest = parts
    if not rest:
        return command, None
    given = "\n".join(rest)
    return command, given if given.endswith("\n") else f"{given}\n"
