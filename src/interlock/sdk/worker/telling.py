"""What a worker says for people. Nobody needs to read it: work goes on all the same."""

from __future__ import annotations

import os
from typing import TextIO


def tell(stream: TextIO, text: str) -> None:
    """Write whole lines; once the reader is gone they go nowhere."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        # Else what could not be written would be tried again, and be an error at the very end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
