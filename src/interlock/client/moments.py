"""Moments as the server writes them, and lengths of time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from interlock.resources.values.durations import told_length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.client.api import Api


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
    return told_length((now - since).total_seconds()) if since else ""


def write_moment(moment: datetime) -> str:
    """The moment as the server reads it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def between(start: Any, end: Any) -> str:
    """The length from one written moment to another; empty when one is missing."""
    first, last = parse_moment(start), parse_moment(end)
    if first is None or last is None:
        return ""
    return told_length((last - first).total_seconds())


def day_and_time(text: Any) -> str:
    """Day and time, in the reader's own zone."""
    moment = parse_moment(text)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""
