"""The log's line for a decision, made in the cheapest way that `logging` knows.

There are several lines for every Job. A record that is made by hand skips the search for the
caller, the thread and the process, which takes longer than all the rest of the line.
"""

from __future__ import annotations

import logging
from datetime import datetime

logger = logging.getLogger("interlock.loop")


#: What is the same for every line. Formatters read it from the record's own dictionary.
_SAME = vars(logging.LogRecord(logger.name, logging.INFO, __file__, 0, "", (), None, "decide"))


class DecisionRecord(logging.LogRecord):
    """A record whose place in the program is always the same."""

    def __init__(self, line: str, at: datetime) -> None:
        self.__dict__.update(_SAME)
        self.msg = line
        self.created = at.timestamp()
        self.msecs = at.microsecond / 1000


def log_decision(line: str, at: datetime) -> None:
    """Write a line to the log; whoever calls has asked whether anybody reads it."""
    logger.handle(DecisionRecord(line, at))
