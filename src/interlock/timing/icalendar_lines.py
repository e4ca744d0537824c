"""The lines of an iCalendar file: which properties its events have, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from interlock.findings import shortened

_LINE = re.compile(r'([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:,]*)(?:,[^";:]*)?)*):(.*)')
_PARAMETER = re.compile(r';([A-Za-z0-9-]+)=("[^"]*"|[^";:]*)')
_COMPONENTS = re.compile("VCALENDAR|VEVENT|VALARM|VTIMEZONE|STANDARD|DAYLIGHT|X-.*")


class Loss(StrEnum):
    """What is not in the calendar because of a flaw."""

    #: The days of one event.
    EVENT = "event"
    #: Something that has no days of its own.
    NOTHING = "nothing"
    #: All that comes after it in the file.
    REST = "rest"


class Finding(NamedTuple):
    """Something in a file that is not read as it stands."""

    #: The number of the line.
    place: int
    #: The line, shortened.
    found: str
    message: str
    #: What the event calls itself; empty for what is in no event.
    summary: str = ""
    loss: Loss = Loss.EVENT
    #: Of a remark: whether a day may be in the calendar that should not, or the other way round.
    changes_days: bool = False

    def __str__(self) -> str:
        event = f'"{self.summary}": ' if self.summary else ""
        return f"line {self.place}: {event}{self.message}"


class Property(Struct, frozen=True):
    """A line with a name, such as `DTSTART;VALUE=DATE:20261225`."""

    line: int
    name: str
    parameters: dict[str, str]
    value: str
    #: The line as it stands, what it was folded into put together.
    written: str

    @property
    def shown(self) -> str:
        """The line, as far as people need to see it."""
        return shortened(f"{self.name}:{self.value}")


class RawEvent(NamedTuple):
    """What stands between the BEGIN and the END of an event."""

    line: int
    properties: list[Property]

    @property
    def summary(self) -> str:
        """What the event calls itself; empty when it does not."""
        text = next((given.value for given in self.properties if given.name == "SUMMARY"), "")
        plain = re.sub(r"\\(.)", lambda match: " " if match[1] in "nN" else match[1], text)
        return shortened(plain.strip())


def events_of(text: str, findings: list[Finding]) -> Iterator[RawEvent]:
    """The events of a file; what is no event, and no part of a calendar, is told."""
    inside: list[Property] = []
    event: RawEvent | None = None
    broken: list[Finding] = []
    for given in _properties(text):
        if isinstance(given, Finding):
            (broken if event else findings).append(given)
            continue
        if not inside and (given.name, given.value.upper()) != ("BEGIN", "VCALENDAR"):
            findings.append(_ends(given, "expected BEGIN:VCALENDAR before it"))
            return
        if given.name == "BEGIN":
            inside.append(given)
            if not _COMPONENTS.fullmatch(given.value.upper()):
                told = "is not known"
                findings.append(Finding(given.line, given.shown, told, loss=Loss.NOTHING))
            if given.value.upper() == "VEVENT":
                event = RawEvent(given.line, [])
        elif given.name == "END":
            ended = inside.pop()
            if ended.value.upper() != given.value.upper():
                findings.append(_ends(given, f"expected the end of {ended.value} first"))
                return
            if ended.value.upper() == "VEVENT" and event is not None:
                if broken:
                    findings.append(broken[0]._replace(summary=event.summary))
                else:
                    yield event
                event, broken = None, []
        elif inside[-1].value.upper() == "VEVENT" and event is not None:
            event.properties.append(given)
    findings.extend(_ends(given, "expected its END") for given in inside)


def _ends(given: Property, message: str) -> Finding:
    return Finding(given.line, given.shown, message, loss=Loss.REST)


def _properties(text: str) -> Iterator[Property | Finding]:
    for number, line in _unfolded(text):
        match = _LINE.fullmatch(line)
        if match:
            parameters = {
                key.upper(): value.strip('"') for key, value in _PARAMETER.findall(match[2])
            }
            yield Property(number, match[1].upper(), parameters, match[3].strip(), line)
        elif line.strip():
            yield Finding(number, shortened(line), "expected NAME:VALUE")


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a file; a line that starts with a blank goes on where the one before ended."""
    current: list[str] = []
    begun = 1
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if line[:1] in (" ", "\t") and current:
            current.append(line[1:])
            continue
        if current:
            yield begun, "".join(current)
        current, begun = [line], number
    yield begun, "".join(current)
