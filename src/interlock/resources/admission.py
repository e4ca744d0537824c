"""The admission status: whether a Job may start, and what it waits for until then."""

from __future__ import annotations

from enum import StrEnum

from interlock.resources.metadata import Moment, Noun


class AdmissionPhase(StrEnum):
    """How far a Job has come through the door."""

    #: Not looked at yet, or waiting for what `waits` says.
    WAITING = "Waiting"
    #: May run.
    ADMITTED = "Admitted"
    #: Being put back: it still holds everything, and its attempts are being stopped. It waits again
    #: once they are proven gone.
    EVICTING = "Evicting"
    #: Will never run. Final.
    REFUSED = "Refused"


class WaitReason(StrEnum):
    """Why a Job has not started."""

    #: A person holds it back: spec.suspend.
    SUSPENDED = "Suspended"
    #: spec.startAfter has not come.
    NOT_YET_DUE = "NotYetDue"
    #: Its schedule has not written it down yet: only a Job in its owner's books may start.
    NOT_IN_BOOKS = "NotInBooks"
    #: A lock it needs has no room, or others are before it in the line.
    LOCK_TAKEN = "LockTaken"

    @classmethod
    def _missing_(cls, value: object) -> WaitReason | None:
        """Take a reason that a newer version stored as it is: its Job still has to be read."""
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class EvictionReason(StrEnum):
    """Why a Job that was let in is put back."""

    #: A person said so: interlock requeue.
    REQUEUED = "Requeued"


class RefusalReason(StrEnum):
    """Why a Job will never start, or never again."""

    #: The definition is not good; it came into the store past the door.
    INVALID = "Invalid"
    #: A lock with whenTaken: Forbid was taken.
    LOCK_FORBIDDEN = "LockForbidden"
    #: As many Jobs as `maxWaiting` says were in the line before it.
    QUEUE_FULL = "QueueFull"
    #: spec.startBy passed while it waited.
    START_DEADLINE_PASSED = "StartDeadlinePassed"
    #: It was told to stop before it started, or started again.
    KILLED_BEFORE_START = "KilledBeforeStart"
    #: A newer Job with whenTaken: Replace took its place in the line.
    REPLACED = "Replaced"
    #: It was deleted before it started, or started again.
    DELETED_BEFORE_START = "DeletedBeforeStart"


class Wait(Noun):
    """One thing a Job waits for."""

    reason: WaitReason
    #: The lock key, for waits that have one.
    key: str = ""
    #: The earliest moment at which this wait can end by itself; None when only an event ends it.
    until: Moment | None = None


class Grant(Noun):
    """A lock that an admitted Job holds, with the token that proves it."""

    key: str
    token: int


class Eviction(Noun):
    """How a Job is, or was last, put back."""

    reason: EvictionReason
    began_at: Moment
    #: Who ordered it, and what they said about it.
    by: str = ""
    message: str = ""
    #: When everything was given back; not given while attempts may still be doing something.
    ended_at: Moment | None = None


class AdmissionStatus(Noun):
    """Written by the admission room alone."""

    phase: AdmissionPhase = AdmissionPhase.WAITING
    #: The Job's place in the order of creation: a version of the store, that at which it was
    #: created where the store tells it. 0 until first looked at.
    #: One that is put back takes a new place, behind those who wait.
    sequence: int = 0
    #: Grants of an earlier epoch were given back and count for nothing.
    epoch: int = 0
    waits: tuple[Wait, ...] = ()
    grants: tuple[Grant, ...] = ()
    admitted_at: Moment | None = None
    refused_at: Moment | None = None
    refusal: RefusalReason | None = None
    message: str = ""
    #: The newer Job that takes this one's place; the execution room stops it then.
    replaced_by: str = ""
    #: How often it was put back, and how that went the last time.
    evictions: int = 0
    eviction: Eviction | None = None
