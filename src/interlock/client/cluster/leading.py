"""The leader's lease: which controller leads, and whether it is still there."""

from __future__ import annotations

from datetime import datetime, timedelta

from interlock.client.api import Api
from interlock.client.errors import AnswerError
from interlock.client.kinds import kind_named
from interlock.client.moments import parse_moment, server_now
from interlock.control.lease import LEASE
from interlock.resources.values.durations import told_length

#: The leader's clock and the API server's may differ by this before a leader is called silent.
_SKEW = timedelta(seconds=5)


class Leader:
    """What is known of the leader, in words and for programs."""

    def __init__(self, identity: str, renewed_at: str, *, leads: bool | None, told: str) -> None:
        self.identity = identity
        self.renewed_at = renewed_at
        #: None when it cannot be known.
        self.leads = leads
        self.told = told

    def data(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "identity": self.identity,
            "renewedAt": self.renewed_at,
            "leads": self.leads,
            "message": self.told,
        }


def find_leader(api: Api, namespace: str) -> Leader:
    """The controller of a namespace: one that serves it alone, or the one for all.

    Where both have left a lease, the one that leads counts.
    """
    found = [_read(api, place) for place in dict.fromkeys((LEASE.namespace, namespace))]
    known = [leader for leader in found if leader is not None]
    if not known:
        told = "no controller has ever led here; start one with: interlock controller"
        return Leader("", "", leads=False, told=told)
    return min(known, key=lambda leader: (True, None, False).index(leader.leads))


def _read(api: Api, namespace: str) -> Leader | None:
    try:
        lease = api.get(kind_named("leases"), namespace, LEASE.name)
    except AnswerError as error:
        if error.status == 404:
            return None
        if error.status != 403:
            raise
        told = f"who leads is not known: {error.message}"
        return Leader("", "", leads=None, told=told)
    return judge(lease.get("spec") or {}, server_now(api))


def judge(spec: dict[str, object], now: datetime) -> Leader:
    """Whether the holder of a lease still leads."""
    holder, renewed_at = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
    renewed = parse_moment(renewed_at)
    silent = now - renewed if renewed else None
    ago = f"{told_length(silent.total_seconds())} ago" if silent is not None else "never"
    if not holder:
        told = f"no controller leads: the last one stopped, its lease was last renewed {ago}"
        return Leader("", renewed_at, leads=False, told=told)
    lasts = timedelta(seconds=int(str(spec.get("leaseDurationSeconds") or 0)))
    if silent is None or silent > lasts + _SKEW:
        told = (
            f"no controller leads: {holder} last renewed its lease {ago}, and no other has"
            " taken over"
        )
        return Leader(holder, renewed_at, leads=False, told=told)
    return Leader(holder, renewed_at, leads=True, told=f"{holder}, renewed {ago}")
