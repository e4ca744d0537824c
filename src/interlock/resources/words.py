"""How lengths of time and counts are said to people."""

from __future__ import annotations

from datetime import datetime, timedelta


def length(span: timedelta) -> str:
    """A length of time in at most two units: "12.4 s", "3 m 12 s", "2 h 5 m", "4 d 1 h"."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for size, unit, small_size, small_unit in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            count, rest = divmod(whole, size)
            small = rest // small_size
            return f"{count} {unit} {small} {small_unit}" if small else f"{count} {unit}"
    raise AssertionError(span)


def format_age(age: timedelta) -> str:
    """A length of time in few characters, in kubectl's way: 90s, 12m, 3h5m, 4d, 2y30d.

    The longer it is, the less its smallest part matters, and the less of it is shown.
    """
    seconds = int(age.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(moment: datetime | None, now: datetime) -> str:
    """How long ago a moment was; empty when there is none."""
    return length(now - moment) if moment is not None else ""


def clock_time(moment: datetime, now: datetime) -> str:
    """A moment, as short as it can be said: the time today, else the date too."""
    if moment.date() == now.date():
        return f"{moment:%H:%M:%S} UTC"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def plural(count: int, noun: str) -> str:
    """A count with its noun: "1 task", "3 tasks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
