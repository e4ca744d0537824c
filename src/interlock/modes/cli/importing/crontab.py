"""Crontabs, as JobConfigs of processes: what vixie cron, Debian's cron and cronie do with a file.

About clock changes these crons say: a line with a `*` in front of its minutes or its hours goes by
what the clock shows, so what is skipped is not run and what is shown twice is run twice. Any other
line runs soon after a gap that it fell into, and once in an hour that comes twice.
"""

from __future__ import annotations

import re
import string
from typing import Any, NamedTuple

from interlock.modes.cli.importing.crontab_times import Times, read_times
from interlock.modes.cli.importing.drafts import BadSourceError, Draft, Flaw, quoted, text_of
from interlock.modes.cli.importing.lines import first_in_gap
from interlock.modes.cli.importing.naming import name_of_command
from interlock.modes.cli.importing.variables import escaped
from interlock.resources.suggestions import MAX_TOLD
from interlock.resources.timing.cron import read_cron
from interlock.resources.timing.flaws import UnreadableError
from interlock.resources.timing.zones import find_zone

_SETTING = re.compile(r"""\s*("[^"]*"|'[^']*'|[^\s="'#]+)\s*=\s*(.*)""", re.DOTALL)
#: An odd number of backslashes before a % makes it a plain one.
_PERCENT = re.compile(r"\\%|%")
_WORD = re.compile(r"\w")
_LOOKS_LIKE_LINE = re.compile(r"[#\s]*(?:@\w+|(?:[0-9*][-0-9A-Za-z*/,]*\s+){3,}).*")
#: What a command is given when the file says nothing else.
_DEFAULTS = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
_MAIL = ("MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING")


class _Entry(NamedTuple):
    """One line that runs something."""

    line: int
    times: str
    command: str
    user: str | None
    title: str


class _State:
    """What the lines above say: they count for those below."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.zone: str | None = None
        #: The comment that stands directly above.
        self.title = ""


def import_crontab(draft: Draft, source: bytes) -> None:
    """Take every line of a crontab that runs something.

    Raises:
        BadSourceError: There are lines that cron would not read either.
    """
    state = _State()
    flaws: list[Flaw] = []
    lines = text_of(source).split("\n")
    for number, line in enumerate(lines, 1):
        try:
            _take(draft, state, number, line.rstrip("\r"))
        except BadSourceError as error:
            flaws.extend(error.flaws)
    if flaws:
        raise BadSourceError(flaws[:MAX_TOLD])
    if not draft.objects and not draft.notes:
        raise BadSourceError([Flaw(len(lines), "nothing is run by this crontab")])


def _take(draft: Draft, state: _State, number: int, line: str) -> None:
    stripped = line.strip()
    if not stripped:
        state.title = ""
    elif stripped.startswith("#"):
        title = stripped.lstrip("#" + string.whitespace)
        is_title = _WORD.search(title) and not _LOOKS_LIKE_LINE.fullmatch(stripped)
        state.title = title[:200].rstrip() if is_title else ""
    elif setting := _SETTING.fullmatch(line):
        _set(draft, state, number, setting[1].strip("\"'"), _value(setting[2]))
    else:
        entry = _entry(draft, state, number, stripped.removeprefix("-"))
        state.title = ""
        _import(draft, state, entry)


def _value(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _set(draft: Draft, state: _State, number: int, name: str, value: str) -> None:
    if name == "CRON_TZ":
        state.zone = _zone(number, value)
        return
    if name in _MAIL:
        if value:
            why = "Interlock sends no mail"
            instead = "what a Job prints is kept: `interlock logs JOB`"
            draft.note(number, name, f"{quoted(value)} is not carried over", why, instead)
        return
    if name == "RANDOM_DELAY":
        why = "Jobs are not delayed at random"
        draft.note(number, name, "is not carried over", why, "an H in a line spreads the load")
        return
    if name == "TZ":
        why = "it is the zone of the commands, and not of the times at which they run"
        draft.note(number, name, "is not the zone of the lines", why, "it is given to the commands")
    state.variables[name] = value


def _zone(number: int, name: str) -> str | None:
    try:
        find_zone(name)
    except UnreadableError as error:
        raise BadSourceError([Flaw(number, f"CRON_TZ: {error}")]) from None
    return name or None


def _entry(draft: Draft, state: _State, number: int, line: str) -> _Entry:
    count = 1 if line.startswith("@") else 5
    words = line.split(None, count)
    if len(words) <= count:
        expected = "a time such as @daily" if count == 1 else "five fields"
        message = f"expected {expected} and a command, found {quoted(line)}"
        raise BadSourceError([Flaw(number, message)])
    user, command = None, words[-1]
    if draft.wishes.has_users:
        user, *rest = command.split(None, 1)
        if not rest:
            message = f"expected a user and a command, found {quoted(user)}"
            raise BadSourceError([Flaw(number, message)])
        command = rest[0]
    return _Entry(number, " ".join(words[:-1]), command, user, state.title)


def _import(draft: Draft, state: _State, entry: _Entry) -> None:
    where = quoted(entry.command)
    if entry.times.lower() == "@reboot":
        why = "a Job is not started because a machine or a server is"
        instead = "it is left out: the machine's own service manager can run `interlock run`"
        draft.leave_out(entry.line, where, why, instead)
        return
    times = read_times(entry.line, entry.times)
    for what, why, instead in times.remarks:
        draft.note(entry.line, where, what, why, instead)
    zone = state.zone or draft.zone
    if not _is_ever_due(draft, entry, times, zone):
        return
    if state.zone is None and draft.wishes.timezone is None:
        why = "cron goes by the clock of its machine, which the file does not tell"
        instead = "UTC; --timezone or a line CRON_TZ=ZONE names another"
        draft.note(0, "the file", "names no zone", why, instead)
    name = draft.name_for("JobConfig", name_of_command(entry.command))
    spec = {
        "schedules": [_schedule(draft, times, zone)],
        # Cron starts a command whether or not the last one still runs, and makes up for nothing.
        "concurrency": {"policy": "Allow"},
        "catchUp": {"policy": "SkipAll"},
        "template": {"spec": _job(draft, state, entry)},
    }
    draft.add(entry.line, where, "JobConfig", name, spec=spec)


def _is_ever_due(draft: Draft, entry: _Entry, times: Times, zone: str) -> bool:
    where = quoted(entry.command)
    try:
        line = read_cron(times.line, "default/crontab")
    except UnreadableError as error:
        if "never be due" in str(error):
            why = f"{quoted(entry.times)} names days that no month has: it never runs"
            draft.leave_out(entry.line, where, why)
            return False
        raise BadSourceError([Flaw(entry.line, str(error))]) from None
    if times.is_wild:
        return True
    skipped = first_in_gap(line, find_zone(zone), draft.wishes.now, several=True)
    if skipped:
        what = f"several of its times are skipped on {skipped.wall:%Y-%m-%d}"
        why = "cron runs the command once for each of them, right after the gap"
        draft.note(entry.line, where, what, why, "it is run once")
    return True


def _schedule(draft: Draft, times: Times, zone: str) -> dict[str, Any]:
    made: dict[str, Any] = {"cron": times.line, "timezone": zone}
    if times.is_wild:
        made |= {"onGap": "Skip", "onRepeat": "Both"}
    if times.weekdays:
        made["only"] = [_calendar(draft, times.weekdays)]
    return made


def _calendar(draft: Draft, weekdays: str) -> str:
    """The calendar of some weekdays, made when it is first needed."""
    wanted = f"weekdays-{weekdays.lower().replace(',', '-')}"
    prefix = f"{draft.wishes.prefix}-" if draft.wishes.prefix else ""
    if not any(made["metadata"]["name"] == prefix + wanted for made in draft.objects):
        name = draft.name_for("Calendar", wanted)
        day = {"day": weekdays, "name": weekdays}
        draft.add(0, name, "Calendar", name, spec={"days": [day]})
    return prefix + wanted


def _job(draft: Draft, state: _State, entry: _Entry) -> dict[str, Any]:
    variables = {**_DEFAULTS, **state.variables}
    command, stdin = _split_input(entry.command)
    process: dict[str, Any] = {"command": [variables["SHELL"], "-c", escaped(command)]}
    process["env"] = {name: escaped(value) for name, value in variables.items()}
    if home := variables.get("HOME"):
        process["workingDir"] = escaped(home)
    else:
        why = "cron starts in the home directory of whoever the command runs as"
        instead = "commands start where the server was started; a line HOME=DIRECTORY names another"
        draft.note(0, "the file", "names no HOME", why, instead)
    if stdin is not None:
        process["stdin"] = escaped(stdin)
    if entry.user:
        process |= _account(draft, entry)
    elif not draft.wishes.has_users:
        why = "the file does not tell whose crontab it is"
        draft.note(0, "the file", "names no user", why, "commands run as the server does")
    return {"process": process, "title": entry.title} if entry.title else {"process": process}


def _account(draft: Draft, entry: _Entry) -> dict[str, str]:
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
