"""What a decision about a Job or a claim's record may depend on."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from interlock.admission.claims.candidates import Candidate
from interlock.admission.claims.claim import ClaimKind, ClaimView
from interlock.admission.queues.demands import QuotaView
from interlock.resources.job import Job
from interlock.resources.metadata import Resource
from interlock.resources.modes import Mode


class JobView(Struct, frozen=True, kw_only=True):
    """A Job at the door."""

    job: Job
    #: All that it asks for, seen from it.
    claims: tuple[ClaimView, ...] = ()
    #: Its Queue, if it names one.
    quota: QuotaView | None = None
    #: It holds something that it does not ask for (any more).
    has_stray_grant: bool = False
    #: Whom it has to replace: holders to be stopped, and older Jobs in its lines.
    rivals: tuple[Job, ...] = ()
    #: Whether it needs no schedule's word, or has it: only a Job in the books may start.
    in_books: bool = True
    #: The operation that it is a part of and that comes before it on its target: that would wait
    #: for it, and it for that.
    held_above: Job | None = None
    #: What this installation can run.
    mode: Mode = Mode.EMBEDDED
    #: Whether its definition was found good already, as it is now.
    is_checked: bool = False


class RecordView(Struct, frozen=True, kw_only=True):
    """One claim: its record, who of its holders counts, and who is next."""

    kind: ClaimKind[Any, Any]
    record: Resource | None
    #: Holders that may still be doing something. All others are proven not to.
    kept: tuple[Any, ...] = ()
    candidate: Candidate | None = None
    #: Whether any Job that is not over asks for it.
    is_wanted: bool = False
    #: Whether the Job of a holder is not found, and not all about Jobs was heard up to its grant.
    is_unheard: bool = False
