"""The keeper's own log: what it prints when something goes wrong inside it."""

from __future__ import annotations

import os
from pathlib import Path

from interlock.private_files import open_private


def redirect_output(log: Path) -> None:
    """Have everything that this process prints go to the end of a file.

    Raises:
        OSError: There cannot be such a file; what was printed to before still is.
    """
    nothing = os.open("/dev/null", os.O_RDONLY)
    try:
        said = open_private(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(nothing, 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.close(said)
    finally:
        os.close(nothing)
