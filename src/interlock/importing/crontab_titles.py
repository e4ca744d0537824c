"""Titles from the comments of a crontab: what a person wrote about a line, and nothing else.

A title is a kindness. Whatever a comment holds, it never stands in the way of a line.
"""

from __future__ import annotations

import re

_LONGEST = 200
#: No comment is looked at beyond this: a title is far shorter.
_LOOKED_AT = 2000
_DECORATION = re.compile(r"[-#=*~_+]{2,}\Z")
_WORD = re.compile(r"\w")
#: A line that was switched off, or that shows how lines are written.
_LINE = re.compile(r"(?:@\w+|(?:[0-9*][-0-9A-Za-z*/,]*\s+){3,}).*", re.DOTALL)
#: The tree of lines that points at the fields.
_DRAWING = re.compile(r"[.|+`'│┌├└╭┬]\s*[-─.|+│┌├└╭┬]|[.|+│┌├└╭┬]\s")
#: The names of the fields, as headers have them.
_FIELDS = frozenset(
    {
        *("m", "mn", "min", "mins", "minute", "minutes"),
        *("h", "hr", "hrs", "hour", "hours"),
        *("d", "day", "days", "dom", "mday", "dayofmonth", "day-of-month"),
        *("mo", "mon", "month", "months", "moy"),
        *("dow", "wday", "weekday", "dayofweek", "day-of-week"),
        *("user", "username", "who", "command", "cmd"),
    }
)


def title_of(comment: str) -> str:
    """The title that a comment holds; empty when it holds none."""
    spaced = " ".join(comment[:_LOOKED_AT].split())
    text = "".join(c for c in spaced if c.isprintable()).lstrip("# ")
    if _LINE.fullmatch(text) or _DRAWING.match(text) or _is_header(text):
        return ""
    text = _undecorated(text)
    if not _WORD.search(text):
        return ""
    return text[:_LONGEST].rstrip()


def _undecorated(text: str) -> str:
    words = text.split(" ")
    while words and _DECORATION.match(words[0]):
        words = words[1:]
    while words and _DECORATION.match(words[-1]):
        words = words[:-1]
    return " ".join(words)


def _is_header(text: str) -> bool:
    """Whether it names the fields: `m h dom mon dow user command`."""
    plain = re.sub(r"\([^()]*\)", " ", text.lower()).replace(",", " ")
    words = [word.strip(";:|") for word in plain.split()[:3]]
    return len(words) == 3 and all(word in _FIELDS for word in words)
