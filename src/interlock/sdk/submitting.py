"""Submissions: Jobs that are durable when the call returns, and never made twice.

Every submission has an idempotency key. A server with a status API keeps the keys; on a cluster the
key makes the name where none is given, so that a Job that is sent again finds itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from interlock.client.api import refusal_of
from interlock.client.kinds import JOBS
from interlock.resources.codec import encode
from interlock.sdk.asking import Site, ask, ask_json, find_status_api, json_of
from interlock.sdk.effects import Call, Plan
from interlock.sdk.errors import BadInput, Conflict, Refused, refused
from interlock.sdk.record import JobRecord, record_of

OPERATIONS = "/operations"
KEY_HEADER = "Idempotency-Key"
#: A server takes so many in one request.
MOST = 1000
#: What comes of one of many: its record, or why it was refused.
Submitted: TypeAlias = JobRecord | Refused


def submit(site: Site, job: Mapping[str, Any], key: str) -> Plan[JobRecord]:
    """Make one Job, or find the one that was made with this key."""
    key = _own_key(job) or key
    if not (yield from find_status_api(site)):
        return (yield from _create(site, job, key))
    call = Call(method="POST", path=OPERATIONS, body=encode(job), headers={KEY_HEADER: key})
    reply = yield from ask(site, call)
    return _accepted(json_of(reply))


def submit_many(
    site: Site, jobs: Sequence[Mapping[str, Any]], key: str, chunk: int
) -> Plan[list[Submitted]]:
    """Make many Jobs, so many at a time; one that is refused does not keep back the others."""
    keyed = [_keyed(job, _own_key(job) or f"{key}-{at}") for at, job in enumerate(jobs)]
    if not (yield from find_status_api(site)):
        return (yield from _create_each(site, keyed))
    found: list[Submitted] = []
    for begin in range(0, len(keyed), chunk):
        body = encode({"items": keyed[begin : begin + chunk]})
        call = Call(method="POST", path=OPERATIONS, body=body)
        answer = yield from ask_json(site, call)
        found += [_accepted_or_not(site, item) for item in answer["items"]]
    return found


def _create_each(site: Site, jobs: Sequence[Mapping[str, Any]]) -> Plan[list[Submitted]]:
    found: list[Submitted] = []
    for job in jobs:
        try:
            found.append((yield from _create(site, job, _own_key(job))))
        except Refused as error:
            found.append(error)
    return found


def _create(site: Site, job: Mapping[str, Any], key: str) -> Plan[JobRecord]:
    """Store a Job as any Kubernetes client does."""
    made = _named(_keyed(job, key), key)
    namespace, name = made["metadata"]["namespace"], made["metadata"]["name"]
    query = {"fieldManager": "interlock", "fieldValidation": "Strict"}
    call = Call(method="POST", path=JOBS.path(namespace), query=query, body=encode(made))
    try:
        stored = yield from ask_json(site, call)
    except Conflict as error:
        if error.code != "AlreadyExists":
            raise
        stored = yield from ask_json(site, Call(method="GET", path=JOBS.path(namespace, name)))
        if _own_key(stored) != key:
            raise
    return record_of(stored)


def _own_key(job: Mapping[str, Any]) -> str:
    spec = job.get("spec")
    return str(spec.get("idempotencyKey") or "") if isinstance(spec, Mapping) else ""


def _keyed(job: Mapping[str, Any], key: str) -> dict[str, Any]:
    spec = job.get("spec")
    if not isinstance(spec, Mapping):
        return dict(job)  # The server says what is wrong with it.
    return {**job, "spec": {**spec, "idempotencyKey": key}}


def _named(job: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The Job with a name that the same key makes again."""
    metadata = dict(job["metadata"])
    if not metadata.get("name"):
        prefix = metadata.pop("generateName", "") or "job-"
        metadata["name"] = f"{prefix}{sha256(key.encode()).hexdigest()[:10]}"
    return {**job, "metadata": metadata}


def _accepted(item: Mapping[str, Any]) -> JobRecord:
    return JobRecord(
        job_id=item["job_id"],
        name=item["name"],
        namespace=item["namespace"],
        state=item.get("state") or "queued",
    )


def _accepted_or_not(site: Site, item: Mapping[str, Any]) -> Submitted:
    if "job_id" in item:
        return _accepted(item)
    status = item.get("error") or item
    code = int(status.get("code") or status.get("status") or 422)
    return refused(refusal_of(site.target, code, encode(status)))


def checked_chunk(chunk: int) -> int:
    """How many are sent in one request."""
    if not 1 <= chunk <= MOST:
        raise BadInput(f"chunk: expected 1 to {MOST}, found {chunk}")
    return chunk
