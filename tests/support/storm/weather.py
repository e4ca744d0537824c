"""The faults of a storm, drawn from a seed: kills, restarts, and processes that stand still."""

from __future__ import annotations

import signal
from collections import Counter
from enum import StrEnum
from random import Random

from support.storm.ground import Ground, pause

_LONGEST_OUTAGE_S = 1.5
#: A server needs a few tenths of a second to start: kills hit it in all of its beginnings.
_STARTING_S = 0.8
_LONGEST_STILL_S = 2.5


class Fault(StrEnum):
    """What can be done to a server and its keeper."""

    KILL = "server kill -9"
    KILL_STARTING = "server kill -9 while starting"
    RESTART = "server SIGTERM"
    STAND_STILL = "server SIGSTOP"
    KILL_KEEPER = "keeper kill -9"
    KEEPER_STANDS_STILL = "keeper SIGSTOP"
    KILL_BOTH = "both kill -9"
    KILL_LOGGER = "logger kill -9"


class Keepers(StrEnum):
    """What becomes of keepers in a storm."""

    #: They are left alone, but for standing still: then no fate may ever be unknown.
    SPARED = "spared"
    #: They are killed now and then.
    RARELY = "rarely"
    #: Only they are killed, and servers are left alone.
    ONLY = "only"


_KILLS_OF_KEEPERS = (Fault.KILL_KEEPER, Fault.KILL_BOTH)
_WEIGHTS = {
    Fault.KILL: 8,
    Fault.KILL_STARTING: 3,
    Fault.RESTART: 2,
    Fault.STAND_STILL: 2,
    Fault.KEEPER_STANDS_STILL: 2,
    Fault.KILL_KEEPER: 2,
    Fault.KILL_BOTH: 1,
    Fault.KILL_LOGGER: 2,
}


class Weather:
    """Does something bad whenever it is asked to, and counts what it did."""

    def __init__(self, ground: Ground, keepers: Keepers, random: Random) -> None:
        self._ground = ground
        self._random = random
        self.done: Counter[Fault] = Counter()
        self._weights = _weights(keepers)

    @property
    def killed_keepers(self) -> bool:
        """Whether a fate may be unknown."""
        return any(self.done[fault] for fault in _KILLS_OF_KEEPERS)

    def strike(self) -> None:
        """Let something happen; the server is up again when it is over."""
        fault = self._random.choices(list(self._weights), list(self._weights.values()))[0]
        ground, server = self._ground, self._ground.server
        match fault:
            case Fault.KILL:
                server.kill()
                self._stay_away()
            case Fault.KILL_STARTING:
                server.kill()
                server.launch()
                pause(self._random.uniform(0, _STARTING_S))
                server.kill()
                server.start()
            case Fault.RESTART:
                server.stop()
                self._stay_away()
            case Fault.STAND_STILL:
                server.process.send_signal(signal.SIGSTOP)
                pause(self._random.uniform(0, _LONGEST_STILL_S))
                server.process.send_signal(signal.SIGCONT)
            case Fault.KILL_KEEPER:
                ground.signal_keeper(signal.SIGKILL)
            case Fault.KEEPER_STANDS_STILL:
                ground.signal_keeper(signal.SIGSTOP)
                pause(self._random.uniform(0, _LONGEST_STILL_S))
                ground.signal_keeper(signal.SIGCONT)
            case Fault.KILL_BOTH:
                ground.signal_keeper(signal.SIGKILL)
                server.kill()
                self._stay_away()
            case Fault.KILL_LOGGER:
                ground.replace_logger()
        self.done[fault] += 1

    def _stay_away(self) -> None:
        """Be away for a while, or not at all."""
        pause(self._random.choice((0, self._random.uniform(0, _LONGEST_OUTAGE_S))))
        self._ground.server.start()


def _weights(keepers: Keepers) -> dict[Fault, int]:
    if keepers is Keepers.ONLY:
        return {Fault.KILL_KEEPER: 6, Fault.KEEPER_STANDS_STILL: 1}
    spared = _KILLS_OF_KEEPERS if keepers is Keepers.SPARED else ()
    return {fault: weight for fault, weight in _WEIGHTS.items() if fault not in spared}
