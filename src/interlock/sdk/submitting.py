"""Submissions: Jobs that are durable when the call returns, and never made twice.

Every submission has a key, so that one whose answer was lost is sent again without harm. Of a key
that the caller chose a server with a status API makes the name; else the name is made here. A Job
that is sent with a name carries the key as an annotation, by which it is known when the name is
found taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import uuid4

from interlock.client.api import refusal_of
from interlock.client.kinds import JOBS
from interlock.resources.codec import encode
from interlock.resources.naming import MAX_JOB_NAME, cut_name
from interlock.sdk.asking import Site, ask, ask_json, find_status_api, json_of
from interlock.sdk.effects import Call, Plan
from interlock.sdk.errors import BadInput, Conflict, Refused, refused
from interlock.sdk.reading import get
from interlock.sdk.record import JobRecord, record_of

OPERATIONS = "/operations"
KEY_HEADER = "Idempotency-Key"
#: On Jobs that have a name of their own: which call made them.
SUBMISSION = "python.interlock.dev/submission"
#: A server takes so many in one request.
MOST = 1000
_LONGEST_KEY = 200
#: What a name has of the digest of a key: of a million, hardly two are alike, and one of these is
#: refused.
_DIGITS = 13
_TAKEN = "AlreadyExists"
#: What comes of one of many: its record, or why it was refused.
Submitted: TypeAlias = JobRecord | Refused
Data: TypeAlias = Mapping[str, Any]


def checked_key(key: str) -> str:
    """An idempotency key that can be sent."""
    if not 1 <= len(key) <= _LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise BadInput(
            f"idempotency_key: expected 1 to {_LONGEST_KEY} letters, digits and signs of ASCII,"
            f" found {key[:40]!r}"
        )
    return key


def checked_chunk(chunk: int) -> int:
    """How many are sent in one request."""
    if not 1 <= chunk <= MOST:
        raise BadInput(f"chunk: expected 1 to {MOST}, found {chunk}")
    return chunk


def submit(site: Site, job: Data, key: str | None) -> Plan[JobRecord]:
    """Make one Job, or find the one that was made with this key."""
    if key is not None:
        checked_key(key)
    job, key = _keyed(job, _own_key(job) or key, uuid4().hex)
    if not (yield from find_status_api(site)):
        return (yield from _create(site, job, key))
    call = Call(
        method="POST",
        path=OPERATIONS,
        query={"namespace": job["metadata"]["namespace"]},
        body=encode(_with_key(_marked(job, key), key)),
        headers={} if _is_named(job) else {KEY_HEADER: key},
    )
    try:
        reply = yield from ask(site, call)
    except Conflict as error:
        found = yield from _own(site, job, key, error)
        if isinstance(found, Refused):
            raise
        return found
    return _accepted(json_of(reply))


def submit_many(
    site: Site, given: Sequence[Data], key: str | None, chunk: int
) -> Plan[list[Submitted]]:
    """Make many Jobs, so many at a time; one that is refused does not keep back the others."""
    if key is not None:
        checked_key(key)
    checked_chunk(chunk)
    own = uuid4().hex
    keyed = [
        _keyed(job, _own_key(job) or (key and f"{key}-{at}"), f"{own}-{at}")
        for at, job in enumerate(given)
    ]
    jobs, keys = [job for job, _ in keyed], [each for _, each in keyed]
    if not (yield from find_status_api(site)):
        return (yield from _create_each(site, jobs, keys))
    found: dict[int, Submitted] = {}
    for places in _chunks(jobs, chunk):
        items = [_with_key(_marked(jobs[at], keys[at]), keys[at]) for at in places]
        call = Call(
            method="POST",
            path=OPERATIONS,
            query={"namespace": jobs[places[0]]["metadata"]["namespace"]},
            body=encode({"items": items}),
        )
        answer = yield from ask_json(site, call)
        for at, item in zip(places, answer["items"], strict=True):
            one = _accepted_or_not(site, item)
            if isinstance(one, Refused):
                one = yield from _own(site, jobs[at], keys[at], one)
            found[at] = one
    return [found[at] for at in range(len(jobs))]


def _chunks(jobs: Sequence[Data], chunk: int) -> list[list[int]]:
    """Which are sent together: a request is about one namespace."""
    by_namespace: dict[str, list[int]] = {}
    for at, job in enumerate(jobs):
        by_namespace.setdefault(job["metadata"]["namespace"], []).append(at)
    return [
        places[begin : begin + chunk]
        for places in by_namespace.values()
        for begin in range(0, len(places), chunk)
    ]


def _own(site: Site, job: Data, key: str, error: Refused) -> Plan[Submitted]:
    """The Job that an earlier sending of this very submission made; else the refusal."""
    if error.code != _TAKEN or not _is_named(job):
        return error
    metadata = job["metadata"]
    stored = yield from get(site, JOBS, metadata["namespace"], metadata["name"])
    marks = stored["metadata"].get("annotations") or {}
    return record_of(stored) if marks.get(SUBMISSION) == key else error


def _create_each(site: Site, jobs: Sequence[Data], keys: Sequence[str]) -> Plan[list[Submitted]]:
    found: list[Submitted] = []
    for job, key in zip(jobs, keys, strict=True):
        try:
            found.append((yield from _create(site, job, key)))
        except Refused as error:
            found.append(error)
    return found


def _create(site: Site, job: Data, key: str) -> Plan[JobRecord]:
    """Store a Job as any Kubernetes client does."""
    named = _named(job, key)
    namespace = named["metadata"]["namespace"]
    query = {"fieldManager": "interlock", "fieldValidation": "Strict"}
    body = encode(_with_key(_marked(named, key), key))
    call = Call(method="POST", path=JOBS.path(namespace), query=query, body=body)
    try:
        stored = yield from ask_json(site, call)
    except Conflict as error:
        found = yield from _own(site, named, key, error)
        if isinstance(found, Refused):
            raise
        return found
    return record_of(stored)


def _own_key(job: Data) -> str:
    spec = job.get("spec")
    return str(spec.get("idempotencyKey") or "") if isinstance(spec, Mapping) else ""


def _keyed(job: Data, chosen: str | None, made: str) -> tuple[Data, str]:
    """The Job and its key: one that the caller chose names it, one that was made up does not."""
    if chosen:
        return job, chosen
    return _named(job, made), made


def _is_named(job: Data) -> bool:
    return bool(job["metadata"].get("name"))


def _marked(job: Data, key: str) -> Data:
    """The Job, with the key as an annotation when it has a name."""
    metadata = job["metadata"]
    marks = metadata.get("annotations") or {}
    if not _is_named(job) or not isinstance(marks, Mapping):
        return job
    return {**job, "metadata": {**metadata, "annotations": {**marks, SUBMISSION: key}}}


def _with_key(job: Data, key: str) -> Data:
    """The Job, with the key in its spec when it has no name."""
    spec = job.get("spec")
    if _is_named(job) or not isinstance(spec, Mapping):
        return job  # The server says what is wrong with it.
    metadata = {name: part for name, part in job["metadata"].items() if name != "generateName"}
    return {**job, "metadata": metadata, "spec": {**spec, "idempotencyKey": key}}


def _named(job: Data, key: str) -> Data:
    """The Job with a name that the same key makes again."""
    if _is_named(job):
        return job
    metadata = dict(job["metadata"])
    prefix = metadata.pop("generateName", "")
    plain = prefix.removesuffix("-") if isinstance(prefix, str) and prefix else "op"
    tail = sha256(key.encode()).hexdigest()[:_DIGITS]
    metadata["name"] = f"{cut_name(plain, MAX_JOB_NAME - _DIGITS - 1)}-{tail}"
    return {**job, "metadata": metadata}


def _accepted(item: Data) -> JobRecord:
    return JobRecord(
        job_id=item["job_id"],
        name=item["name"],
        namespace=item["namespace"],
        state=item.get("state") or "queued",
    )


def _accepted_or_not(site: Site, item: Data) -> Submitted:
    if item.get("job_id"):
        return _accepted(item)
    status = item.get("refusal") or {}
    return refused(refusal_of(site.target, int(status.get("code") or 422), encode(status)))
