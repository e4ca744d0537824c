"""Preemption: who is put back, so that a Job of a higher priority finds room.

    victims: already being put back, then the lowest priority, then whoever was let in last; as
    many as are needed, and none of them in vain: who turns out not to be needed is let be.

A victim is stopped gracefully and gives everything back, as everybody who is put back; it keeps its
place and waits for no time. Until it is gone, what comes free is kept for whom it had to go: Jobs
behind that one are granted only what is left beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from interlock.admission.lines import Place, place_of
from interlock.resources.job import Job, keeps_its_turn
from interlock.resources.queue import PreemptionPolicy, QuotaHolder
from interlock.resources.transitions import is_admitted, is_evicting

#: So many Jobs are put back in one decision; the rest in the next.
MOST_VICTIMS = 50


class Holding(NamedTuple):
    """A Job that was granted a part of the quota, and what that counts for."""

    job: Job
    holder: QuotaHolder
    amounts: Mapping[str, int]


def coming_free(holdings: Iterable[Holding]) -> dict[str, int]:
    """What those hold who are being put back."""
    found: dict[str, int] = {}
    for holding in holdings:
        if is_evicting(holding.job):
            for name, amount in holding.amounts.items():
                found[name] = found.get(name, 0) + amount
    return found


def victims_for(
    place: Place,
    wanted: Mapping[str, int],
    free: Mapping[str, int],
    holdings: Iterable[Holding],
    policy: PreemptionPolicy,
) -> tuple[Job, ...]:
    """Who has to go for a Job to find what it wants; nobody where that would not be enough.

    `free` is what is free once all are gone who are being put back already.
    """
    lacking = {name: amount - free[name] for name, amount in wanted.items() if name in free}
    chosen: list[Holding] = []
    for holding in sorted(_possible(place, holdings, policy), key=_order):
        if _is_enough(lacking):
            break
        if any(lacking.get(name, 0) > 0 for name in holding.amounts):
            chosen.append(holding)
            _add(lacking, holding.amounts, -1)
    if not _is_enough(lacking):
        return ()
    for holding in tuple(reversed(chosen)):
        _add(lacking, holding.amounts, 1)
        if _is_enough(lacking):
            chosen.remove(holding)
        else:
            _add(lacking, holding.amounts, -1)
    return tuple(holding.job for holding in chosen)


def _possible(
    place: Place, holdings: Iterable[Holding], policy: PreemptionPolicy
) -> Iterator[Holding]:
    """Who may have to go for whoever stands at a place."""
    for holding in holdings:
        job = holding.job
        if not is_admitted(job) or is_evicting(job) or keeps_its_turn(job.spec):
            continue
        other = place_of(job)
        newer = policy is PreemptionPolicy.LOWER_OR_NEWER_EQUAL_PRIORITY and other > place
        if other.rank > place.rank or (newer and other.rank == place.rank):
            yield holding


def _order(holding: Holding) -> tuple[int, int]:
    return holding.job.spec.priority, -holding.holder.token


def _is_enough(lacking: Mapping[str, int]) -> bool:
    return all(amount <= 0 for amount in lacking.values())


def _add(lacking: dict[str, int], amounts: Mapping[str, int], sign: int) -> None:
    for name in lacking:
        lacking[name] += sign * amounts.get(name, 0)
