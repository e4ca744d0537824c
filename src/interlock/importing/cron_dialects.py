"""Files of cron lines as Quartz, Spring, AWS and Jenkins have them, as JobConfigs."""

from __future__ import annotations

import re
from typing import Any

from interlock.importing.dialects import Converted, Dialect, DialectError, convert
from interlock.importing.drafts import BadSourceError, Draft, Flaw, quoted, text_of
from interlock.timing.flaws import UnreadableError
from interlock.timing.zones import find_zone

#: `nightly.cron=0 0 2 * * *`, `nightly: "0 0 2 * * *"`, or the line alone.
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9._-]*)\s*[=:]\s*(\S.*)")
_ZONE = re.compile(r"TZ=(\S+)")


def import_cron_lines(draft: Draft, source: bytes) -> None:
    """Take every line of a file; those that cannot be said in our words are left out, and told.

    Raises:
        BadSourceError: There is no line in it, or a zone that there is not.
    """
    dialect = Dialect(draft.wishes.dialect)
    zone: str | None = None
    count = 0
    for number, given in enumerate(text_of(source).splitlines(), 1):
        text = given.strip()
        if not text or text.startswith(("#", "//")):
            continue
        if dialect is Dialect.JENKINS and (match := _ZONE.fullmatch(text)):
            zone = _known(number, match[1])
            continue
        count += 1
        _take(draft, dialect, number, text, zone)
    if not count:
        raise BadSourceError([Flaw(1, "there is no cron line in it")])


def _known(number: int, name: str) -> str:
    try:
        find_zone(name)
    except UnreadableError as error:
        raise BadSourceError([Flaw(number, str(error))]) from None
    return name


def _take(draft: Draft, dialect: Dialect, number: int, text: str, zone: str | None) -> None:
    named = _NAMED.fullmatch(text)
    name, line = (named[1], named[2]) if named else (f"line-{number}", text)
    line = _unquoted(line)
    where = quoted(line)
    try:
        made = convert(dialect, line)
    except DialectError as error:
        draft.leave_out(number, where, str(error))
        return
    for what, why, instead in made.remarks:
        draft.note(number, where, what, why, instead)
    if zone is None and draft.wishes.timezone is None and dialect is not Dialect.AWS:
        why = "lines go by the clock of their machine, which the file does not tell"
        draft.note(0, "the file", "names no zone", why, "UTC; --timezone names another")
    why = "a line says when, and not what is to be done"
    draft.note(0, "the file", "names no work", why, "noop, which does nothing: write yours there")
    spec = {
        "schedules": [_schedule(draft, made, zone or draft.zone)],
        "template": {"spec": {"noop": {}, "title": f"{dialect}: {line}"[:200]}},
    }
    draft.add(number, where, "JobConfig", draft.name_for("JobConfig", name), spec=spec)


def _unquoted(text: str) -> str:
    match = re.fullmatch(r"""(["'])(.*)\1[,;]?""", text)
    return match[2].strip() if match else text


def _schedule(draft: Draft, made: Converted, zone: str) -> dict[str, Any]:
    cron = made.lines[0] if len(made.lines) == 1 else list(made.lines)
    schedule: dict[str, Any] = {"cron": cron, "timezone": zone}
    if made.format:
        schedule["format"] = made.format
    if made.only:
        schedule["only"] = [_calendar(draft, made.only)]
    return schedule


def _calendar(draft: Draft, days: tuple[str, ...]) -> str:
    """The Calendar of some days, made when it is first needed."""
    spec = {"days": [{"day": day, "name": day} for day in days]}
    for known in draft.objects:
        if known["kind"] == "Calendar" and known["spec"] == spec:
            name: str = known["metadata"]["name"]
            return name
    words = re.sub("[^a-z0-9]+", "-", "-".join(days).lower()).strip("-")
    name = draft.name_for("Calendar", f"weekdays-{words}")
    draft.add(0, name, "Calendar", name, spec=spec)
    return name
