"""What a decision about a Job or a Lock may depend on."""

from __future__ import annotations

from msgspec import Struct

from interlock.resources.job import Job, LockRequest, WhenTaken
from interlock.resources.lock import Holder, Lock
from interlock.resources.modes import Mode


class KeyView(Struct, frozen=True, kw_only=True):
    """One lock that a Job asks for, seen from that Job."""

    request: LockRequest
    #: Holders that may still be doing something, this Job included when it is one.
    held: int
    #: The Job's own grant of its present epoch.
    grant: Holder | None = None
    #: Holders that were granted the lock before this Job was, if it was.
    before: int = 0
    #: Jobs before it in the line that have no grant yet.
    ahead: int = 0

    @property
    def is_free(self) -> bool:
        """Whether the Job could be granted the lock now, or has it on the terms it asks for now.

        A grant was made on the terms of that time. Whoever asks for less room since then has to
        give it back where more than that came before.
        """
        if self.request.when_taken is WhenTaken.ALLOW:
            return True
        if self.grant is not None:
            return self.before < self.request.limit
        return self.ahead == 0 and self.held < self.request.limit

    @property
    def is_taken(self) -> bool:
        """Whether those who hold the lock or come first leave no room."""
        return not self.is_free and self.held + self.ahead >= self.request.limit

    @property
    def is_full(self) -> bool:
        """Whether as many Jobs wait before this one as it accepts when it joins."""
        most = self.request.max_waiting
        return most is not None and self.ahead >= most


class JobView(Struct, frozen=True, kw_only=True):
    """A Job at the door."""

    job: Job
    keys: tuple[KeyView, ...] = ()
    #: It holds a lock that it does not ask for (any more).
    has_stray_grant: bool = False
    #: Whom it has to replace: holders to be stopped, and older Jobs in its lines.
    rivals: tuple[Job, ...] = ()
    #: Whether it needs no schedule's word, or has it: only a Job in the books may start.
    in_books: bool = True
    #: What this installation can run.
    mode: Mode = Mode.EMBEDDED


class Candidate(Struct, frozen=True, kw_only=True):
    """The Job that is next for a lock, with all the locks it asks for."""

    job: Job
    request: LockRequest
    #: Whether it could be granted every lock it asks for, this one included.
    has_way: bool


class LockView(Struct, frozen=True, kw_only=True):
    """One lock key: its record, who of its holders counts, and who is next."""

    namespace: str
    key: str
    lock: Lock | None
    #: Holders that may still be doing something. All others are proven not to.
    kept: tuple[Holder, ...] = ()
    candidate: Candidate | None = None
    #: Whether any Job that is not over names this key.
    is_wanted: bool = False
    #: Whether the Job of a holder is not found, and not all about Jobs was heard up to its grant.
    is_unheard: bool = False
