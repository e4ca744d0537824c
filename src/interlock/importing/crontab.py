"""Crontabs, as JobConfigs of processes: what vixie cron, Debian's cron and cronie do with a file.

About clock changes these crons say: a line with a `*` in front of its minutes or its hours goes by
what the clock shows, so what is skipped is not run and what is shown twice is run twice. Any other
line runs soon after a gap that it fell into, and once in an hour that comes twice.
"""

from __future__ import annotations

import codecs
import re
from functools import partial
from typing import Any

from interlock.importing.cron_lines import first_in_gap, is_never_due
from interlock.importing.crontab_jobs import Entry, job_of, schedule_of
from interlock.importing.crontab_remarks import Remarks
from interlock.importing.crontab_times import Times, read_times
from interlock.importing.crontab_titles import title_of
from interlock.importing.crontab_users import (
    Begins,
    begins,
    can_be_system,
    is_program,
    is_system,
    stands_for_system,
)
from interlock.importing.drafts import BadSourceError, Draft, Flaw, quoted
from interlock.importing.naming import name_of_command
from interlock.timing.cron import read_cron
from interlock.timing.flaws import UnreadableError
from interlock.timing.zones import find_zone

_SETTING = re.compile(r"""\s*("[^"]*"|'[^']*'|[^\s="'#]+)\s*=\s*(.*)""", re.DOTALL)
#: `1 5 cron.daily nice run-parts ...`: no day of the month is a word.
_ANACRON = re.compile(r"\s*(?:[0-9]+|@\w+)\s+[0-9]+\s+[A-Za-z][\w.-]+\s+\S")
_MAIL = ("MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING")
#: What the door would say in the words of a crontab.
_PATHS = (
    (r"spec\.template\.spec\.process\.user", "the user"),
    (r"spec\.template\.spec\.process\.group", "the group"),
    (r"spec\.template\.spec\.process\.command", "the command"),
    (r"spec\.template\.spec\.process\.stdin", "what follows %"),
    (r"spec\.template\.spec\.process\.workingDir", "HOME"),
    (r"spec\.template\.spec\.process\.env\.?", "variable "),
    (r"spec\.schedules.*", "the times"),
)


class _State:
    """What the lines above say: they count for those below."""

    def __init__(self, has_users: bool) -> None:
        self.has_users = has_users
        self.variables: dict[str, str] = {}
        self.zone: str | None = None
        #: The line with a CRON_TZ that is no zone; 0 when that above is good.
        self.bad_zone = 0
        #: The comment that stands directly above.
        self.title = ""
        #: The last line that was imported.
        self.imported = 0
        self.remarks = Remarks()


def import_crontab(draft: Draft, source: bytes) -> None:
    """Take every line of a crontab that runs something; a bad one costs no other.

    Raises:
        BadSourceError: There is no line that can be taken, or users stand where commands should.
    """
    lines = [_text(line) for line in source.removeprefix(codecs.BOM_UTF8).split(b"\n")]
    _check_sort(lines)
    state = _State(_has_users(draft, lines))
    for number, line in enumerate(lines, 1):
        draft.attempt(partial(_take, draft, state, number, line))
    draft.settle()
    if not draft.objects and not draft.left_out:
        raise BadSourceError([Flaw(len(lines), "nothing is run by this crontab")])
    _tell_end(draft, state, lines)
    state.remarks.tell(draft)


def _text(line: bytes) -> str:
    """A line; what is not UTF-8 in it becomes a mark by which it is known later."""
    return line.decode(errors="surrogateescape").rstrip("\r")


def _kind_of(line: str) -> str:
    """What a line is: "" for an empty one, a comment, a setting or an entry."""
    stripped = line.strip()
    if not stripped:
        return ""
    if stripped.startswith("#"):
        return "comment"
    return "setting" if _SETTING.fullmatch(line) else "entry"


def _check_sort(lines: list[str]) -> None:
    """Refuse an anacrontab: cron would run the delays of its lines as programs."""
    entries = [number for number, line in enumerate(lines, 1) if _kind_of(line) == "entry"]
    if entries and all(_ANACRON.match(lines[number - 1]) for number in entries):
        message = (
            "this looks like an anacrontab (days, a delay, a name and a command) and not like a"
            " crontab: write its lines with a time of day, such as @daily in place of 1 5 NAME"
        )
        raise BadSourceError([Flaw(entries[0], message)])


def _has_users(draft: Draft, lines: list[str]) -> bool:
    """Whether the commands are behind users.

    Raises:
        BadSourceError: They seem to be, and nobody said so.
    """
    if draft.wishes.has_users is not None:
        return draft.wishes.has_users
    found: dict[int, Begins] = {}
    for number, line in enumerate(lines, 1):
        parts = _split(line) if _kind_of(line) == "entry" else ()
        if len(parts) == 2:
            found[number] = begins(parts[1], draft.wishes.people)
    if found and stands_for_system(draft.wishes.file):
        has_users = can_be_system(list(found.values()))
        if has_users:
            why = "it stands where cron expects one"
            draft.note(0, "the file", "has a column of users", why, "--no-system reads it without")
        else:
            why = "it stands where cron expects one, and most commands begin with programs"
            draft.note(0, "the file", "has no column of users", why, "--system reads one")
        return has_users
    sure = {number: each for number, each in found.items() if each.is_user}
    if is_system(list(found.values())):
        number, first = next(iter(sure.items()))
        message = (
            f"{quoted(first.word)} looks like a user and not like a command: --system reads a"
            " column of users, --no-system takes every line as it is"
        )
        raise BadSourceError([Flaw(number, message)])
    for number, each in sure.items():
        why = f"{quoted(each.word)} looks like a user, and most other lines name none"
        instead = "it is read as a command; --system reads a column of users"
        draft.note(number, quoted(each.word), "begins with a user", why, instead)
    return False


def _take(draft: Draft, state: _State, number: int, line: str) -> None:
    match _kind_of(line):
        case "":
            state.title = ""
        case "comment":
            state.title = title_of(line)
        case "setting":
            _check_text(number, line)
            setting = _SETTING.fullmatch(line)
            assert setting
            _set(draft, state, number, setting[1].strip("\"'"), _value(setting[2]))
        case _:
            title, state.title = state.title, ""
            _check_text(number, line)
            _import(draft, state, _entry(draft, state, number, line, title))


def _check_text(number: int, line: str) -> None:
    if "\0" in line:
        raise BadSourceError([Flaw(number, "a NUL character: this is no text")])
    try:
        line.encode()
    except UnicodeEncodeError:
        raise BadSourceError([Flaw(number, "the line is not UTF-8")]) from None


def _value(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _set(draft: Draft, state: _State, number: int, name: str, value: str) -> None:
    if name == "CRON_TZ":
        state.bad_zone = number
        state.zone = _zone(number, value)
        state.bad_zone = 0
        return
    if name in _MAIL:
        if value and name == "MAILTO":
            state.remarks.mail(number, value)
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
        raise BadSourceError([Flaw(number, str(error), "CRON_TZ")]) from None
    return name or None


def _split(line: str) -> tuple[str, ...]:
    """The times and the rest of a line; the times alone when there is no rest."""
    line = line.strip().removeprefix("-")
    count = 1 if line.startswith("@") else 5
    words = line.split(None, count)
    times = " ".join(words[:count])
    return (times, words[count]) if len(words) > count else (times,)


def _entry(draft: Draft, state: _State, number: int, line: str, title: str) -> Entry:
    times, *rest = _split(line)
    if not rest:
        expected = "a time such as @daily" if times.startswith("@") else "five fields"
        message = f"expected {expected} and a command, found {quoted(line.strip())}"
        raise BadSourceError([Flaw(number, message)])
    command = rest[0]
    if not state.has_users:
        return Entry(number, times, command, None, title)
    user, *rest = command.split(None, 1)
    if is_program(user, draft.wishes.people):
        hint = "leave --system out" if draft.wishes.has_users else "--no-system reads it so"
        message = (
            f"expected a user before the command, found {quoted(user)};"
            f" is it somebody's own crontab? {hint}"
        )
        raise BadSourceError([Flaw(number, message)])
    if not rest:
        message = f"expected a user and a command, found {quoted(user)}"
        raise BadSourceError([Flaw(number, message)])
    return Entry(number, times, rest[0], user, title)


def _import(draft: Draft, state: _State, entry: Entry) -> None:
    if state.bad_zone:
        message = f"the CRON_TZ of line {state.bad_zone} counts for it, and is no zone"
        raise BadSourceError([Flaw(entry.line, message, quoted(entry.command))])
    zone = state.zone or draft.zone
    name = draft.name_for("JobConfig", name_of_command(entry.command))
    # Cron starts a command whether or not the last one still runs, and makes up for nothing.
    spec: dict[str, Any] = {"concurrency": {"policy": "Allow"}}
    if not _is_by_hand(draft, entry, name):
        times = _times(draft, entry, zone)
        if state.zone is None and draft.wishes.timezone is None:
            state.remarks.lacks("zone")
        schedule = schedule_of(draft, times, zone)
        spec = {"schedules": [schedule], **spec, "catchUp": {"policy": "SkipAll"}}
    spec["template"] = {"spec": job_of(draft, state.remarks, state.variables, entry)}
    state.remarks.command(entry.line, entry.command)
    state.imported = entry.line
    draft.add(entry.line, quoted(entry.command), "JobConfig", name, paths=_PATHS, spec=spec)


def _is_by_hand(draft: Draft, entry: Entry, name: str) -> bool:
    """Whether no time of a clock starts it: when the machine starts, or never."""
    where = quoted(entry.command)
    if entry.times.lower() == "@reboot":
        what = "does not start by itself"
        why = "Interlock starts nothing because a machine or a server has started"
        instead = (
            "a JobConfig without schedules; have the machine's service manager run"
            f" {draft.by_hand(name)}"
        )
        draft.left_out += 1
        draft.note(entry.line, where, what, why, instead)
        return True
    if is_never_due(read_times(entry.line, entry.times).line):
        why = f"{quoted(entry.times)} names days that no month has"
        instead = f"a JobConfig without schedules: {draft.by_hand(name)} runs it by hand"
        draft.note(entry.line, where, "is never due", why, instead)
        return True
    return False


def _times(draft: Draft, entry: Entry, zone: str) -> Times:
    where = quoted(entry.command)
    times = read_times(entry.line, entry.times)
    for what, why, instead in times.remarks:
        draft.note(entry.line, where, what, why, instead)
    try:
        line = read_cron(times.line, "default/crontab")
    except UnreadableError as error:
        raise BadSourceError([Flaw(entry.line, str(error), where)]) from None
    if times.is_wild:
        return times
    skipped = first_in_gap(line, find_zone(zone), draft.wishes.now, several=True)
    if skipped:
        what = f"several of its times are skipped on {skipped.wall:%Y-%m-%d}"
        why = "cron runs the command once for each of them, right after the gap"
        draft.note(entry.line, where, what, why, "it is run once")
    return times


def _tell_end(draft: Draft, state: _State, lines: list[str]) -> None:
    """Tell of a last line that does not end: cron does not run it, or nothing of the file."""
    if state.imported == len(lines):
        why = "cronie never runs such a line, and Debian's cron then takes nothing of the file"
        draft.note(len(lines), "the last line", "has no newline at its end", why, "it is imported")
