"""The ledger of a record: how much each of its Queues may use, of its own and of what is lent.

What a Queue has is its own quota. Of that it keeps what it does not lend (`lendingLimit`), and
lends the rest, as far as it does not use it itself; a Queue uses what it keeps first, then its
share of what all lend, then that of others, up to its `borrowingLimit`. A Queue without a cohort is
alone in its record, and lends to nobody.

All amounts are in thousandths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf

from interlock.resources.queue import Member
from interlock.resources.values.amounts import Amount

Milli = Mapping[str, int]
_NOTHING: Milli = {}


class Ledger:
    """Who uses how much of what the Queues of a record have together."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._terms = {member.queue: _Terms(member) for member in members}
        #: What all lend together, and how much of that is in use.
        self._lendable: dict[str, int] = {}
        for terms in self._terms.values():
            for name, amount in terms.has.items():
                lent = amount - terms.keeps[name]
                self._lendable[name] = self._lendable.get(name, 0) + lent
        self._lent = dict.fromkeys(self._lendable, 0)
        self._used: dict[str, dict[str, int]] = {name: {} for name in self._terms}

    def knows(self, queue: str) -> bool:
        """Whether a Queue is one of the record."""
        return queue in self._terms

    def copy(self) -> Ledger:
        """The same, to be changed apart."""
        made = Ledger.__new__(Ledger)
        made._terms, made._lendable = self._terms, self._lendable
        made._lent = dict(self._lent)
        made._used = {queue: dict(used) for queue, used in self._used.items()}
        return made

    def add(self, queue: str, amounts: Milli, sign: int = 1) -> None:
        """Count what a Job uses. One of a Queue that has left uses what the others lend."""
        terms = self._terms.get(queue)
        if terms is None:
            for name, amount in amounts.items():
                if name in self._lent:
                    self._lent[name] += sign * amount
            return
        used = self._used[queue]
        for name, amount in amounts.items():
            keeps = terms.keeps.get(name)
            if keeps is None:
                continue
            before = used.get(name, 0)
            after = used[name] = before + sign * amount
            self._lent[name] += max(0, after - keeps) - max(0, before - keeps)

    def free(self, queue: str) -> dict[str, int]:
        """How much more of each resource the Jobs of a Queue may use."""
        terms, used = self._terms[queue], self._used[queue]
        return {name: self._free_of(terms, name, used.get(name, 0)) for name in terms.has}

    def _free_of(self, terms: _Terms, name: str, used: int) -> int:
        keeps = terms.keeps[name]
        shared = self._lendable[name] - self._lent[name]
        most = terms.most.get(name)
        if most is not None:
            shared = min(shared, most - max(used, keeps))
        return max(0, keeps - used) + max(0, shared)

    def most(self, queue: str) -> dict[str, int]:
        """How much of each resource the Jobs of a Queue could use if nobody else used any."""
        terms = self._terms[queue]
        found = {}
        for name, keeps in terms.keeps.items():
            most = keeps + self._lendable[name]
            found[name] = min(most, terms.most.get(name, most))
        return found

    def used(self, queue: str) -> Milli:
        """How much the Jobs of a Queue use."""
        return self._used[queue]

    def has_room(self, queue: str, amounts: Milli, *, may_borrow: bool = True) -> bool:
        """Whether the Queue may use so much more, and whether that is its own, where it has to."""
        terms, used = self._terms[queue], self._used[queue]
        for name, amount in amounts.items():
            if name not in terms.has:
                continue
            now = used.get(name, 0)
            if amount > self._free_of(terms, name, now):
                return False
            if not may_borrow and now + amount > terms.has[name]:
                return False
        return True

    def borrows(self, queue: str, more: Milli = _NOTHING) -> bool:
        """Whether a Queue uses more than its own of any resource, with so much more."""
        terms, used = self._terms[queue], self._used[queue]
        return any(
            used.get(name, 0) + more.get(name, 0) > amount for name, amount in terms.has.items()
        )

    def borrows_any(self, queue: str, names: Collection[str]) -> bool:
        """Whether a Queue uses more than its own of one of these resources."""
        terms, used = self._terms[queue], self._used[queue]
        return any(used.get(name, 0) > terms.has[name] for name in names if name in terms.has)

    def share(self, queue: str, weight: int, more: Milli = _NOTHING) -> float:
        """How large the part of what all lend is that a Queue has beyond its own, by weight.

        That of the resource of which it is the largest, as is fair to those who need that one.
        """
        terms, used = self._terms[queue], self._used[queue]
        largest = 0.0
        for name, amount in terms.has.items():
            beyond = used.get(name, 0) + more.get(name, 0) - amount
            if beyond > 0:
                largest = max(largest, beyond / max(1, self._lendable[name]))
        if not largest:
            return 0.0
        return largest / weight if weight else inf


class _Terms:
    """What a Queue has, keeps for itself, and may use at the most, where there is such a limit."""

    __slots__ = ("has", "keeps", "most")

    def __init__(self, member: Member) -> None:
        self.has = _milli(member.limits)
        lends = self.has | _milli(member.lending or {})
        self.keeps = {name: max(0, amount - lends[name]) for name, amount in self.has.items()}
        borrows = _milli(member.borrowing or {})
        self.most = {
            name: amount + borrows[name] for name, amount in self.has.items() if name in borrows
        }


def _milli(amounts: Mapping[str, Amount]) -> dict[str, int]:
    return {name: amount.milli for name, amount in amounts.items()}
