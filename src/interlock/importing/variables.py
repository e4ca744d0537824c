"""Texts of other systems, written so that Interlock puts nothing in where they did not."""

from __future__ import annotations

import re
from typing import Any

from interlock.resources.values.free_form import with_texts
from interlock.resources.variables import PREFIXES

#: What we would take for a variable of ours, or for the way to write a plain `${`.
_OURS = re.compile(rf"(?<=\$)\$\{{|\$\{{(?=(?:{'|'.join(sorted(PREFIXES))})\.[^${{}}]*\}})")


def escaped(text: str) -> str:
    """The text such that exactly the text itself is left once variables have their values."""
    return _OURS.sub("$${", text) if "${" in text else text


def escaped_within(data: dict[str, Any]) -> dict[str, Any]:
    """A copy of an object with every text in it escaped."""
    return with_texts(data, escaped)
