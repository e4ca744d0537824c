"""Moments as the server writes them, and lengths of time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.modes.cli.api import Api


def parse_moment(text: Any) -> datetime | None:
    """The moment that the server wrote; None when there is none."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def server_now(api: Api) -> datetime:
    """The server's clock as of its last answer; this machine's when it does not tell."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(api.date)
    except ValueError:
        from interlock.control.clock import SystemClock

        return SystemClock().now()


def ago(moment: Any, now: datetime) -> str:
    """How long ago the written moment was; empty when there is none."""
    since = parse_moment(moment)
    return length((now - since).total_seconds()) if since else ""


def write_moment(moment: datetime) -> str:
    """The moment as the server reads it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def between(start: Any, end: Any) -> str:
    """The length from one written moment to another; empty when one is missing."""
    first, last = parse_moment(start), parse_moment(end)
    if first is None or last is None:
        return ""
    return length((last - first).total_seconds())


def length(total_s: float) -> str:
    """A length of time in at most two units: "12.4 s", "3 m 12 s", "2 h 5 m", "4 d 3 h"."""
    if total_s < 60:
        return f"{max(total_s, 0):.1f} s" if total_s < 20 else f"{total_s:.0f} s"
    whole = int(total_s)
    for unit, size, smaller, small in (
        ("m", 60, "s", 1),
        ("h", 3600, "m", 60),
        ("d", 86400, "h", 3600),
    ):
        if whole < size * (60 if unit == "m" else 24 if unit == "h" else 10**9):
            count, left = divmod(whole, size)
            rest = left // small
            return f"{count} {unit} {rest} {smaller}" if rest else f"{count} {unit}"
    raise AssertionError("days have no end")


def day_and_time(text: Any) -> str:
    """Day and time, in the reader's own zone."""
    moment = parse_moment(text)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""
