"""Certificate rotation: when and in which order, so that nobody is ever distrusted.

The authority is trusted by API servers, and signs the certificate that we serve with. Whoever is
to trust a new authority must have heard of it before the first certificate that it signed is
served. So a new authority begins with signing nothing: in the same step the old one signs a
certificate once more, and weeks later the next one is the new authority's. The authority that
signed the one before stays trusted until the one after, as some may still serve with it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

#: How long they are good for.
AUTHORITY_LASTS = timedelta(days=3650)
CERTIFICATE_LASTS = timedelta(days=90)
#: They begin before they are made: clocks differ.
BACKDATED = timedelta(minutes=10)
#: They are replaced when this part of their time has passed.
_RENEWED_AFTER = 2 / 3


class Span(Struct, frozen=True):
    """From when to when a certificate is good."""

    begins_at: datetime
    ends_at: datetime

    @property
    def due_at(self) -> datetime:
        """When it is to be replaced."""
        return self.begins_at + (self.ends_at - self.begins_at) * _RENEWED_AFTER

    def holds_at(self, now: datetime) -> bool:
        """Whether it is good now."""
        return self.begins_at <= now < self.ends_at


class Holding(Struct, frozen=True, kw_only=True):
    """What there is. All of it fits together: keys to certificates, signatures to authorities."""

    #: The newest authority, which signs.
    authority: Span
    #: The authority that signed what we serve with; mostly the same.
    signer: Span
    #: What we serve with, and for which names it speaks.
    certificate: Span
    names: frozenset[str]


class Step(StrEnum):
    """What to make."""

    #: Nothing: all is well.
    NOTHING = "Nothing"
    #: A new certificate, signed by the newest authority.
    CERTIFICATE = "Certificate"
    #: A new authority that signs nothing yet, and a new certificate, signed by the old one.
    AUTHORITY = "Authority"
    #: All, from the beginning; whoever trusted what was there has to be told.
    EVERYTHING = "Everything"


def decide(holding: Holding | None, names: frozenset[str], now: datetime) -> Step:
    """What to make, of what there is; None is nothing, or nothing that fits together.

    What is trusted no more comes first. Then the authority: with it a certificate is made too.
    """
    if holding is None or not holding.authority.holds_at(now):
        return Step.EVERYTHING
    if now >= holding.authority.due_at:
        return Step.AUTHORITY
    is_good = holding.certificate.holds_at(now) and holding.signer.holds_at(now)
    if is_good and names <= holding.names and now < holding.certificate.due_at:
        return Step.NOTHING
    return Step.CERTIFICATE
