"""What clients ask for in a storm: Jobs of every sort, and schedules that are always due."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType

from interlock.testing.clients import Object
from support.storm import task

#: How many Jobs may be at work at once under each key; what tasks find agrees with it, or not.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "ledger": 1,
        "archive": 1,
        "stage": 1,
        "vault": 1,
        "fan": 1,
        "desk": 3,
        "jobconfig/forbid": 1,
        "jobconfig/enqueue": 1,
        "controlledjob/short": 1,
        "controlledjob/long": 1,
    }
)
#: The windows of each ControlledJob open every so many seconds; whole minutes hold whole numbers.
WINDOWS_EVERY_S: Mapping[str, int] = MappingProxyType({"short": 4, "long": 10})
CONFIGS = ("forbid", "allow", "enqueue")
#: Nobody is so patient that a test has to wait for more than this.
_LONGEST_S = 1.2
#: All Jobs of schedules are kept, so that every due time can be asked after.
_HISTORY = {"succeeded": 10_000, "failed": 10_000}


class Load:
    """Draws Jobs from a seed, for tasks that write their evidence into a folder."""

    def __init__(self, folder: Path, random: Random) -> None:
        self._folder = folder
        self._random = random
        self._sorts = (
            self._alone,
            self._alone,
            self._few,
            self._few,
            self._with_two_locks,
            self._tried_again,
            self._fanned_out,
            self._with_children,
            self._polite_to_others,
            self._replacing,
        )

    def job(self) -> Object:
        """The spec of another Job."""
        spec = self._random.choice(self._sorts)()
        return {"priority": self._random.choice((0, 0, 0, 1)), "gracePeriod": "1s", **spec}

    def _alone(self) -> Object:
        return self._under("ledger")

    def _few(self) -> Object:
        return self._under("desk")

    def _with_two_locks(self) -> Object:
        keys = self._random.sample(("ledger", "archive", "desk"), 2)
        return self._under(*keys)

    def _tried_again(self) -> Object:
        codes = self._random.choice(("3,0", "3,4,0", "5,5,5", "6"))
        retries = {"limit": 2, "delay": self._random.choice(("0s", "200ms")), "failExitCodes": [6]}
        return self._under(self._random.choice(("archive", "desk")), codes=codes) | {
            "retries": retries
        }

    def _fanned_out(self) -> Object:
        count = self._random.randint(2, 5)
        parallelism = {"count": count, "atOnce": self._random.randint(1, count)}
        codes = self._random.choice(("0", "0", "2,0"))
        return self._under("fan", codes=codes) | {
            "parallelism": parallelism,
            "retries": {"limit": 1},
        }

    def _with_children(self) -> Object:
        return self._under("archive", manner="daemon")

    def _polite_to_others(self) -> Object:
        return self._under("ledger", when_taken="Forbid")

    def _replacing(self) -> Object:
        return self._under("stage", when_taken="Replace")

    def _under(
        self, *keys: str, codes: str = "", manner: str = "", when_taken: str = "Enqueue"
    ) -> Object:
        """Work under some keys, which lasts a while and then ends with some code."""
        seconds = self._random.choice((0.0, 0.05, 0.2, 0.6, _LONGEST_S))
        code = codes or self._random.choice(("0", "0", "0", "1", "77"))
        drawn = manner or self._random.choice(("plain", "plain", "polite", "stubborn"))
        locks = [{"key": key, "limit": LIMITS[key], "whenTaken": when_taken} for key in keys]
        return {"process": work(self._folder, keys, seconds, code, drawn), "locks": locks}


def planted(folder: Path) -> Object:
    """A Job that breaks the promise: it asks for more room than the evidence allows."""
    locks = [{"key": "ledger", "limit": 5}]
    return {"process": work(folder, ("ledger",), 0, "0", "witness"), "locks": locks}


def held(folder: Path, key: str, gate: str) -> Object:
    """A Job that is at work until a file of that name is in the folder."""
    locks = [{"key": key, "limit": LIMITS[key]}]
    process = work(folder, (key,), 0, "0", f"until:{gate}")
    return {"process": process, "locks": locks, "gracePeriod": "1s"}


def schedules(folder: Path) -> dict[tuple[str, str], Object]:
    """The specs of what is due all the time, by kind and name."""
    due = [{"cron": "* * * * * * *"}]
    found: dict[tuple[str, str], Object] = {}
    for name, seconds in zip(CONFIGS, (1.5, 0.3, 0.5), strict=True):
        keys = () if name == "allow" else (f"jobconfig/{name}",)
        found["JobConfig", name] = {
            "schedules": due,
            "concurrency": {"policy": name.capitalize(), "maxQueued": 5},
            "history": _HISTORY,
            "template": {"spec": {"process": work(folder, keys, seconds, "0", "plain")}},
        }
    for name, every in WINDOWS_EVERY_S.items():
        process = work(folder, (f"controlledjob/{name}",), 60, "0", "polite")
        found["ControlledJob", name] = {
            "events": [
                {"action": "start", "cron": f"0/{every} * * * * * *"},
                {"action": "stop", "cron": f"{every // 2}/{every} * * * * * *"},
            ],
            "history": _HISTORY,
            "jobTemplate": {"spec": {"process": process, "gracePeriod": "1s"}},
        }
    return found


def work(folder: Path, keys: tuple[str, ...], seconds: float, codes: str, manner: str) -> Object:
    """A process that takes its places, lasts so long, and tells of itself."""
    # Places are files: a key's slash is none of theirs.
    places = ",".join(f"{key.replace('/', '.')}:{LIMITS[key]}" for key in keys)
    program = [sys.executable, "-I", "-S", str(Path(task.__file__))]
    return {"command": [*program, str(folder), places, str(seconds), codes, manner]}
