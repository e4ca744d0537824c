"""A claim: how much a Job asks of a record, on which terms, and whether that fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from interlock.resources.actions import Decision
from interlock.resources.admission import RefusalReason, Wait, WaitReason
from interlock.resources.job import Job, WhenTaken
from interlock.resources.metadata import Key, Resource, Status

#: A claim is known by the key of its record, whether that is stored yet or not. The namespace is
#: empty for a claim of the whole cluster.
ClaimKey = Key
#: How much of each resource. What is not named is not asked for, or not to be had.
Amounts = Mapping[str, int]

#: The one resource of a claim that counts its holders.
COUNT = ""
ONE: Amounts = {COUNT: 1}
NOTHING: Amounts = {}


class Holder(Protocol):
    """A grant, as a record stores it: to which Job, and for which of its epochs."""

    @property
    def job(self) -> str:
        """The name of the Job."""
        ...

    @property
    def uid(self) -> str:
        """The uid of the Job: another Job of that name holds nothing."""
        ...

    @property
    def epoch(self) -> int:
        """The Job's epoch for which it was granted; once the Job's is higher, it was given back."""
        ...

    @property
    def token(self) -> int:
        """Rises with every grant of this record."""
        ...

    @property
    def job_version(self) -> int:
        """A version of the store at which the Job was there."""
        ...


R = TypeVar("R", bound=Resource)
H = TypeVar("H", bound=Holder)


class ClaimKind(Protocol[R, H]):
    """All that differs between kinds of claims. Nothing here but what its arguments say matters."""

    #: The kind of its records.
    record_kind: str
    #: What people call such a claim.
    noun: str
    #: Why a Job is refused that must not wait for one.
    forbidden: RefusalReason
    #: Whether its record says how much there is: who asks for more than that stands in no line.
    is_sized: bool

    def asks(self, job: Job) -> tuple[Ask, ...]:
        """What the Job asks for, in the order in which it is told.

        By its spec alone, and where it is: a Job of the same uid and generation asks for the same.
        """
        ...

    def limits(self, ask: Ask, record: R | None) -> Amounts:
        """How much may be held in all when the Job joins the holders, itself included."""
        ...

    def wait_reason(self, ask: Ask, limits: Amounts) -> WaitReason:
        """Why a Job has not started that waits for this, of which there is so much."""
        ...

    def is_resized(self, before: R | None, after: R | None) -> bool:
        """Whether a change of the record changes how much there is of it in all."""
        ...

    def holders(self, record: R) -> tuple[H, ...]:
        """Every grant in the record, the oldest first."""
        ...

    def is_for(self, holder: H, ask: Ask) -> bool:
        """Whether what was granted is what is asked for now."""
        ...

    def job_of(self, claim: ClaimKey, holder: H) -> Key:
        """The Job that was granted this."""
        ...

    def amounts_of(self, holder: H, record: R) -> Amounts:
        """How much was granted, of what the record says there is now."""
        ...

    def name_of(self, record: R) -> str:
        """What people call the record: the name that a Job asks with."""
        ...

    def new_record(self, ask: Ask) -> R | None:
        """The record to be made at its first use; None where only a person makes one."""
        ...

    def granted(self, record: R, ask: Ask, job: Job, now: datetime, holders: tuple[H, ...]) -> H:
        """The grant of what the Job asks for, with a token above all that were given out.

        `holders` are those that count; it fits beside what they hold.
        """
        ...

    def written(
        self, record: R, holders: tuple[H, ...], newest: Ask | None, now: datetime
    ) -> Status:
        """The record's status with these holders; `newest` is what the last was granted for."""
        ...

    def retire(self, record: R, now: datetime) -> Decision:
        """Remove a record that nobody holds or asks for, or say when to."""
        ...


class Ask(Struct, frozen=True, kw_only=True):
    """What a Job asks of one claim, and on which terms."""

    kind: ClaimKind[Any, Any]
    key: ClaimKey
    #: What people call the claim.
    name: str
    amounts: Amounts
    #: How much may be held in all, where the Job says so and not the record.
    limits: Amounts = NOTHING
    when_taken: WhenTaken = WhenTaken.ENQUEUE
    #: The resources that it must have one by one; empty where any will do. Two that must have
    #: others than each other do not stand in each other's way.
    picks: frozenset[str] = frozenset()
    #: The Job is refused when so many are before it in the line as it joins; None takes any number.
    max_waiting: int | None = None

    @property
    def is_in_order(self) -> bool:
        """Whether the Job stands in the line; one that starts anyway is bound by no order."""
        return self.when_taken is not WhenTaken.ALLOW

    def contends(self, other: Ask) -> bool:
        """Whether one has to wait for the other that is before it in the line."""
        return not (self.picks and other.picks and self.picks.isdisjoint(other.picks))

    @property
    def said(self) -> str:
        """The claim in words."""
        return f"{self.kind.noun} {self.name}"


class ClaimView(Struct, frozen=True, kw_only=True):
    """One claim that a Job asks for, seen from that Job."""

    ask: Ask
    #: How much may be held in all, this Job included.
    limits: Amounts
    #: How much is held by those who may still be doing something, this Job included if it is one.
    held: Amounts = NOTHING
    #: The Job's own grant of its present epoch.
    grant: Holder | None = None
    #: How much was granted before this Job's own grant, if it has one.
    before: Amounts = NOTHING
    #: Jobs before it in the line that have no grant yet.
    ahead: int = 0

    @property
    def is_free(self) -> bool:
        """Whether the Job could be granted this now, or has it on the terms it asks for now.

        A grant was made on the terms of that time. Whoever asks for less room since then has to
        give it back where more than that came before.
        """
        if self.ask.when_taken is WhenTaken.ALLOW:
            return True
        if self.grant is not None:
            return fits(self.ask.amounts, self.before, self.limits)
        return self.ahead == 0 and fits(self.ask.amounts, self.held, self.limits)

    @property
    def is_taken(self) -> bool:
        """Whether those who hold the claim or come first leave no room.

        Those who come first count as if each asked for as much as this Job: to ask every one of
        them would make a look as long as the line. No grant depends on it.
        """
        if self.is_free:
            return False
        first = {name: amount * self.ahead for name, amount in self.ask.amounts.items()}
        return not fits(self.ask.amounts, total((self.held, first)), self.limits)

    @property
    def is_full(self) -> bool:
        """Whether as many Jobs wait before this one as it accepts when it joins."""
        most = self.ask.max_waiting
        return most is not None and self.ahead >= most

    @property
    def is_forbidden(self) -> bool:
        """Whether the Job would have to wait, and must not."""
        return self.ask.when_taken is WhenTaken.FORBID and self.is_taken

    @property
    def wait(self) -> Wait:
        """What to tell while the Job waits for this."""
        return Wait(reason=self.ask.kind.wait_reason(self.ask, self.limits), key=self.ask.name)


def fits(amounts: Amounts, beside: Amounts, limits: Amounts) -> bool:
    """Whether so much can be held beside what is held, of every resource that is asked for."""
    for name, amount in amounts.items():
        if beside.get(name, 0) + amount > limits.get(name, 0):
            return False
    return True


def total(parts: Iterable[Amounts]) -> Amounts:
    """How much it is of each resource, taken together."""
    added: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            added[name] = added.get(name, 0) + amount
    return added
