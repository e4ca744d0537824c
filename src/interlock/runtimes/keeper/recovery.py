"""Recovery: what became of the tasks after a keeper was killed or the machine restarted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from interlock.resources.tasks import ReportState
from interlock.runtimes.keeper.kernel import Stat
from interlock.runtimes.keeper.ledger import Ledger
from interlock.runtimes.keeper.records import Entry, Over, Record, Started

RESTARTED = "the machine was restarted: what ran before is gone, and nobody saw how it ended"
GONE_UNSEEN = "its keeper was killed; the process is proven gone, but nobody saw its exit code"
MAYBE_RAN = (
    "its keeper was killed while it was being started; nothing of it runs now, "
    "but whether it ran cannot be proven"
)
ADOPTED = "found again after its keeper was killed; its exit code cannot be learnt any more"


class Findings(Struct, frozen=True):
    """What a new keeper makes of what the old one left."""

    #: Facts to add to the journal.
    records: tuple[Record, ...]
    #: Serial numbers of attempts that live on without a parent that knows them.
    adopted: tuple[int, ...]
    #: Serial numbers of attempts that were never started, and still are to be.
    to_start: tuple[int, ...]


def find_out(
    ledger: Ledger,
    *,
    boot_id: str,
    marked: Mapping[int, list[int]],
    stat_of: Callable[[int], Stat | None],
    now: datetime,
) -> Findings:
    """Judge every attempt that was not over. `marked` has the living processes by their mark.

    Another boot is looked at first: no process survives it, whatever its number now means.
    """
    records: list[Record] = []
    adopted: list[int] = []
    to_start: list[int] = []
    for entry in ledger.open.values():
        survivors = [] if boot_id != ledger.boot_id else survivors_of(entry, marked, stat_of)
        if boot_id != ledger.boot_id:
            # Also for those not known to be spawning: that record may be lost with the power.
            records.append(Over(entry.serial, ReportState.ENDED, now, None, None, RESTARTED))
        elif not entry.spawning:
            to_start.append(entry.serial)
        elif survivors:
            adopted.append(entry.serial)
            records += _started(entry, survivors, stat_of, now)
        else:
            records.append(gone(entry, now))
    return Findings(tuple(records), tuple(adopted), tuple(to_start))


def survivors_of(
    entry: Entry, marked: Mapping[int, list[int]], stat_of: Callable[[int], Stat | None]
) -> list[int]:
    """The living processes of an attempt. A pid counts only with the start time it had."""
    found = list(marked.get(entry.serial, ()))
    if entry.pid is not None and entry.pid not in found:
        stat = stat_of(entry.pid)
        if stat is not None and stat.ticks == entry.ticks and not stat.is_dead:
            found.append(entry.pid)
    return found


def gone(entry: Entry, now: datetime) -> Over:
    """The end of an attempt whose processes are gone and had no parent that knew them."""
    if entry.main_ended:
        # The exit code was seen; only children were left when the keeper was killed.
        code, signal = entry.exit_code, entry.signal
        return Over(entry.serial, ReportState.ENDED, now, code, signal, "")
    message = GONE_UNSEEN if entry.pid is not None else MAYBE_RAN
    return Over(entry.serial, ReportState.UNKNOWN, now, None, None, message)


def _started(
    entry: Entry, survivors: list[int], stat_of: Callable[[int], Stat | None], now: datetime
) -> list[Record]:
    """The start that the old keeper had no time to write down."""
    if entry.pid is not None:
        return []
    alive = [(stat.ticks, pid) for pid in survivors if (stat := stat_of(pid)) is not None]
    ticks, pid = min(alive, default=(0, survivors[0]))
    return [Started(entry.serial, pid, ticks, now)]
