"""iCalendar files, as Calendars."""

from __future__ import annotations

import codecs
from collections import Counter
from pathlib import PurePath

from interlock.findings import MAX_TOLD
from interlock.importing.drafts import BadSourceError, Draft, Flaw, quoted, text_of
from interlock.resources.schedule_limits import MAX_ICALENDAR_BYTES
from interlock.timing.icalendar import Reading, read_icalendar
from interlock.timing.icalendar_events import Event
from interlock.timing.icalendar_lines import Finding, Loss

#: Nothing that is larger was ever a calendar of holidays.
_MAX_SOURCE_BYTES = 32 << 20
_SPLIT = "split the file, and name all its Calendars in the schedule"
#: What tells the days of an event, and what they are called. The rest takes room and says nothing.
_KEPT = frozenset(
    {"DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID", "SUMMARY"}
)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def import_icalendar(draft: Draft, source: bytes) -> None:
    """Take the whole-day events of a file; those that cannot be read are left out, and told.

    Raises:
        BadSourceError: It is no iCalendar file, it is broken or too large, or none of its events
            can be read.
    """
    if len(source) > _MAX_SOURCE_BYTES:
        told = f"expected at most {_MAX_SOURCE_BYTES} bytes, found {len(source)}: {_SPLIT}"
        raise BadSourceError([Flaw(0, told)])
    text = _text(draft, source)
    stem = "calendar" if draft.wishes.file == "-" else PurePath(draft.wishes.file).stem
    name = draft.name_for("Calendar", stem)
    reading = read_icalendar(name, text)
    _refuse(reading)
    kept = _written(reading.events)
    size = len(kept.encode())
    if size > MAX_ICALENDAR_BYTES:
        told = f"its days take {size} bytes, and a Calendar has room for {MAX_ICALENDAR_BYTES}"
        raise BadSourceError([Flaw(0, f"{told}: {_SPLIT}")])
    for flaw in reading.flaws:
        _tell_flaw(draft, flaw)
    for remark in reading.remarks:
        _tell_remark(draft, remark)
    draft.add(1, f"calendar {name}", "Calendar", name, spec={"icalendar": kept})


def _text(draft: Draft, source: bytes) -> str:
    """The text of a file; one that is older than UTF-8 is Latin-1."""
    if source.startswith(_UTF_16):
        return text_of(source.decode("utf-16", "replace").encode())
    try:
        source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        why = "bytes that are no UTF-8, and the file does not say what they are"
        draft.note(line, "the file", "is read as Latin-1", why, "look at the names of its days")
        source = source.decode("latin-1").encode()
    return text_of(source)


def _refuse(reading: Reading) -> None:
    """Refuse a file that ends too soon, and one without days.

    Raises:
        BadSourceError: It is such a file.
    """
    broken = [flaw for flaw in reading.flaws if flaw.loss is Loss.REST]
    if broken or not reading.calendar.entries:
        flaws = broken or reading.flaws or (Finding(1, "", "there is no event in it"),)
        raise BadSourceError([Flaw(one.place, _said(one)) for one in flaws[:MAX_TOLD]])


def _said(one: Finding) -> str:
    return f"{quoted(one.found)}: {one.message}"


def _tell_flaw(draft: Draft, flaw: Finding) -> None:
    if flaw.loss is Loss.NOTHING:
        where, why = quoted(flaw.found), flaw.message
        draft.note(flaw.place, where, "is not carried over", why, "nothing: it has no days")
        return
    where = f"{quoted(flaw.summary)} ({flaw.found})" if flaw.summary else quoted(flaw.found)
    draft.leave_out(flaw.place, where, flaw.message, "its days are not in the calendar")


def _tell_remark(draft: Draft, remark: Finding) -> None:
    if remark.changes_days:
        # Nothing is lost, and still somebody should look at the days.
        draft.left_out += 1
    draft.note(remark.place, quoted(remark.summary), "is to be looked at", remark.message, "")


def _written(events: tuple[Event, ...]) -> str:
    """The file again, with nothing in it but what tells days."""
    uses = Counter(event.uid for event in events)
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Interlock//import//EN"]
    for event in events:
        lines.append("BEGIN:VEVENT")
        # A UID says which event a moved day belongs to; most belong to none.
        if event.uid and uses[event.uid] > 1:
            lines.append(f"UID:{event.uid}")
        if event.is_cancelled:
            lines.append("STATUS:CANCELLED")
        lines += [one.written.rstrip() for one in event.properties if one.name in _KEPT]
        lines.append("END:VEVENT")
    return "".join(f"{line}\n" for line in [*lines, "END:VCALENDAR"])
