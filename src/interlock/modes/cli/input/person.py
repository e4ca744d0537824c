"""The caller's name, as far as this machine knows. A server that knows better says so."""

from __future__ import annotations

import os


def person() -> str:
    """The name of whoever types; by the user's number where no variable tells it."""
    named = os.environ.get("USER") or os.environ.get("LOGNAME")
    if named:
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid:{os.getuid()}"
