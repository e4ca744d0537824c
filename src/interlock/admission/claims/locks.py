"""Locks: the claim that counts its holders. The limit is what each Job asks with."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from interlock.admission.claims.claim import COUNT, ONE, Amounts, Ask, ClaimKey
from interlock.resources.actions import Decision, DeleteResource
from interlock.resources.admission import RefusalReason, WaitReason
from interlock.resources.job import Job, LockRequest, lock_requests
from interlock.resources.lock import Holder, Lock, LockSpec, LockStatus, lock_name
from interlock.resources.metadata import Key, Metadata
from interlock.resources.waits import WORDS

#: A record that nobody holds or wants is removed after this time.
IDLE_LOCK_KEPT = timedelta(minutes=10)


class LockClaims:
    """How locks are asked for, granted and written down."""

    record_kind = "Lock"
    noun = WORDS[WaitReason.LOCK_TAKEN].noun
    forbidden = RefusalReason.LOCK_FORBIDDEN
    is_sized = False

    def asks(self, job: Job) -> tuple[Ask, ...]:
        """One of each lock that the Job names, in its own namespace."""
        requests = lock_requests(job.spec)
        if not requests:
            return ()
        namespace = job.metadata.namespace
        return tuple(self.ask(namespace, request) for request in requests)

    def ask(self, namespace: str, request: LockRequest) -> Ask:
        """What a request for a lock asks for."""
        return Ask(
            kind=self,
            key=Key("Lock", namespace, lock_name(request.key)),
            name=request.key,
            amounts=ONE,
            limits={COUNT: request.limit},
            when_taken=request.when_taken,
            max_waiting=request.max_waiting,
        )

    def limits(self, ask: Ask, record: Lock | None) -> Amounts:  # noqa: ARG002
        """As many as the Job accepts beside it: a lock has no limit of its own."""
        return ask.limits

    def wait_reason(self, ask: Ask, limits: Amounts) -> WaitReason:  # noqa: ARG002
        """It is taken, or others are before."""
        return WaitReason.LOCK_TAKEN

    def is_resized(self, before: Lock | None, after: Lock | None) -> bool:  # noqa: ARG002
        """Never: each Job brings its own limit."""
        return False

    def holders(self, record: Lock) -> tuple[Holder, ...]:
        """The holders as they are stored."""
        return record.status.holders

    def is_for(self, holder: Holder, ask: Ask) -> bool:  # noqa: ARG002
        """Always: there is nothing to choose."""
        return True

    def job_of(self, claim: ClaimKey, holder: Holder) -> Key:
        """A Job in the lock's namespace."""
        return Key("Job", claim.namespace, holder.job)

    def amounts_of(self, holder: Holder, record: Lock) -> Amounts:  # noqa: ARG002
        """One each."""
        return ONE

    def name_of(self, record: Lock) -> str:
        """The lock's key: the record itself is named by a digest."""
        return record.spec.key

    def new_record(self, ask: Ask) -> Lock:
        """A lock that nobody holds yet."""
        metadata = Metadata(name=ask.key.name, namespace=ask.key.namespace)
        return Lock(metadata=metadata, spec=LockSpec(key=ask.name))

    def granted(
        self,
        record: Lock,
        ask: Ask,  # noqa: ARG002
        job: Job,
        now: datetime,
        holders: tuple[Holder, ...],  # noqa: ARG002
    ) -> Holder:
        """One of the lock to the Job in its present epoch.

        The token is the version of the record that the grant replaces, so it rises with every
        grant by itself, also after the record was removed and made again. A record that came from
        another store may know of a higher one: then that is what has to be topped.
        """
        return Holder(
            job=job.metadata.name,
            uid=job.metadata.uid,
            epoch=job.status.admission.epoch,
            token=max(record.version, record.status.last_token + 1),
            granted_at=now,
            job_version=job.version,
        )

    def written(
        self, record: Lock, holders: tuple[Holder, ...], newest: Ask | None, now: datetime
    ) -> LockStatus:
        """The holders, since when there are none, and on which terms the newest came."""
        idle_since = None if holders else now
        status = replace(record.status, holders=holders, idle_since=idle_since)
        if newest is None:
            return status
        return replace(status, limit=newest.limits[COUNT], last_token=holders[-1].token)

    def retire(self, record: Lock, now: datetime) -> Decision:
        """Remove a record that nobody has needed for a while."""
        if record.status.last_token >= record.version:
            # It came from another store, and it alone knows which tokens were given out there.
            return Decision()
        idle_since = record.status.idle_since or record.metadata.creation_timestamp
        if idle_since is None or now < idle_since + IDLE_LOCK_KEPT:
            return Decision(wake_at=(idle_since or now) + IDLE_LOCK_KEPT)
        reason = f"lock {record.spec.key} is not needed any more"
        return Decision((DeleteResource(record),), reason=reason)


LOCKS = LockClaims()
