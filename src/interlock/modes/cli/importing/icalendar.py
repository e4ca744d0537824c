"""iCalendar files, as Calendars."""

from __future__ import annotations

import re
from pathlib import PurePath

from interlock.modes.cli.importing.drafts import BadSourceError, Draft, Flaw, quoted, text_of
from interlock.resources.suggestions import MAX_TOLD
from interlock.resources.timing.flaws import Flaw as FileFlaw
from interlock.resources.timing.icalendar import Reading, read_icalendar

#: Each round takes out up to MAX_TOLD events that cannot be read; no honest file has more.
_ROUNDS = 20


def import_icalendar(draft: Draft, source: bytes) -> None:
    """Take the whole-day events of a file; those that cannot be read are left out, and told.

    Raises:
        BadSourceError: It is no iCalendar file, or none of its events can be read.
    """
    text = text_of(source)
    stem = "calendar" if draft.wishes.file == "-" else PurePath(draft.wishes.file).stem
    name = draft.name_for("Calendar", stem)
    first = read_icalendar(name, text)
    if not first.calendar.entries:
        flaws = first.flaws or (FileFlaw(1, "", "there is no event in it"),)
        told = [Flaw(one.place, f"{quoted(one.found)}: {one.message}") for one in flaws[:MAX_TOLD]]
        raise BadSourceError(told)
    kept = _without_flaws(draft, name, text, first)
    draft.add(1, f"calendar {name}", "Calendar", name, spec={"icalendar": kept})


def _without_flaws(draft: Draft, name: str, text: str, reading: Reading) -> str:
    lines = re.split(r"\r\n|\r|\n", text)
    for _ in range(_ROUNDS):
        if not reading.flaws:
            break
        for flaw in reading.flaws:
            draft.note(
                flaw.place,
                quoted(flaw.found),
                "is not carried over",
                flaw.message,
                "its days are not in the calendar" if _take_out(lines, flaw.place) else "nothing",
            )
        reading = read_icalendar(name, "\n".join(lines))
    return "".join(f"{line}\n" for line in lines if line.strip())


def _take_out(lines: list[str], number: int) -> bool:
    """Empty the lines of the part that a line is in; the numbers of the others stay."""
    begin = end = number - 1
    while begin >= 0 and not lines[begin].upper().startswith("BEGIN:"):
        begin -= 1
    if begin < 0 or lines[begin].upper().startswith("BEGIN:VCALENDAR"):
        lines[number - 1] = ""
        return False
    closing = lines[begin].upper().replace("BEGIN:", "END:").strip()
    while end < len(lines) and lines[end].upper().strip() != closing:
        end += 1
    lines[begin : end + 1] = [""] * len(lines[begin : end + 1])
    return True
