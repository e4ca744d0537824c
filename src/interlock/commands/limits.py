"""Limits of options that whoever takes down an order checks as well: they load at once."""

from __future__ import annotations

#: So many starts can be left out by one exception.
MOST_SKIPPED = 100
#: No length of time is longer: ten years.
LONGEST_S = 10 * 366 * 86_400
