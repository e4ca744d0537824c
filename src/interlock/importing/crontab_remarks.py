"""What is worth a word about the commands of a crontab: told once for a file, not for each line."""

from __future__ import annotations

import re

from interlock.importing.drafts import Draft, quoted
from interlock.resources.words import plural

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_FLOCK = re.compile(r"(?:^|[\s;&|(/])flock\s")
#: Where something is written to: what, and the file.
_REDIRECT = re.compile(r"(?:(?<=\s)([0-9]+)|(&))?>>?(?!&)\|?\s*([^\s;|&()<>]+)")
#: What stands for something that a file does not tell.
_INSTEAD = {
    "zone": "UTC (--timezone or a line CRON_TZ=ZONE names another)",
    "HOME": "the directory of the server (a line HOME=DIRECTORY names another)",
    "user": "the user of the server",
}
#: Names that are told; more are counted.
_TOLD = 5


class Remarks:
    """Collects them while a file is read."""

    def __init__(self) -> None:
        self._mail: dict[str, int] = {}
        self._locked: list[int] = []
        self._redirected: list[int] = []
        self._lacks: set[str] = set()

    def mail(self, line: int, address: str) -> None:
        """A line says who gets what commands print."""
        self._mail.setdefault(address, line)

    def lacks(self, name: str) -> None:
        """The file does not tell something that a line needs: zone, HOME or user."""
        self._lacks.add(name)

    def command(self, line: int, command: str) -> None:
        """A command is imported."""
        plain = _QUOTED.sub("''", command)
        if _FLOCK.search(plain):
            self._locked.append(line)
        found = _REDIRECT.finditer(plain)
        if any(one[1] in (None, "1") and one[3] != "/dev/null" for one in found):
            self._redirected.append(line)

    def tell(self, draft: Draft) -> None:
        """Write down what there is to say."""
        if self._mail:
            told = ", ".join(quoted(one) for one in list(self._mail)[:_TOLD])
            more = len(self._mail) - _TOLD
            what = f"{told}{f' and {more} more' if more > 0 else ''} {_gets(len(self._mail))}"
            why = "Interlock sends none"
            instead = "what a Job prints is kept: `interlock logs JOB`"
            draft.note(min(self._mail.values()), "MAILTO", what, why, instead)
        if self._locked:
            what = f"flock is used by {plural(len(self._locked), 'command')}"
            why = "it keeps commands apart on this machine alone, and nobody sees who waits"
            instead = "the same; `locks` of the Job does it for all that Interlock runs"
            draft.note(self._locked[0], "flock", what, why, instead)
        if self._redirected:
            what = f"{plural(len(self._redirected), 'command')} {_writes(len(self._redirected))}"
            why = "a command that writes into a file of its own prints nothing"
            instead = "the same; without the redirection `interlock logs JOB` shows it"
            draft.note(self._redirected[0], "output", what, why, instead)
        if lacking := [name for name in _INSTEAD if name in self._lacks]:
            *most, last = (f"no {name}" for name in lacking)
            what = f"names {', '.join(most)} and {last}" if most else f"names {last}"
            why = "cron knows its machine and whose crontab it is, and the file does not tell"
            instead = ", ".join(_INSTEAD[name] for name in lacking)
            draft.note(0, "the file", what, why, instead)


def _gets(count: int) -> str:
    return "gets no mail" if count == 1 else "get no mail"


def _writes(count: int) -> str:
    return "writes to a file" if count == 1 else "write to files"
