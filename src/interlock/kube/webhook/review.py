"""`AdmissionReview`: how an API server asks about a change, and how it is answered."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from interlock.errors import BadRequestError, Problem
from interlock.kube.client.errors import Cause, Details, Status
from interlock.resources.kinds import KINDS

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
#: Two Jobs of the largest size that an API server takes, and what is around them.
MAX_REVIEW_BYTES = 16 << 20
#: Longer warnings are cut by the API server.
_MAX_WARNING = 250

Document = dict[str, Any]


class UserInfo(Struct, frozen=True):
    """Who asks for the change, as the API server has proven."""

    username: str = ""


class Change(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change that somebody asks an API server for."""

    uid: str
    operation: str
    sub_resource: str = ""
    user_info: UserInfo = UserInfo()
    #: As it is to be; nothing when it is to be deleted.
    object: Document | None = None
    #: As it is; nothing when it is to be created.
    old_object: Document | None = None


class _Review(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    request: Change


class Verdict(Struct, frozen=True, kw_only=True):
    """What we say about a change: it passes when there is no problem with it."""

    problems: tuple[Problem, ...] = ()
    #: What the object is, and what it is called, for people.
    kind: str = "Job"
    name: str = ""
    warnings: tuple[str, ...] = ()
    #: A JSON patch that completes the object.
    patch: tuple[Document, ...] = ()


_DECODER = msgspec.json.Decoder(_Review)


def read_review(body: bytes) -> Change:
    """The change that is asked about.

    Raises:
        BadRequestError: It is no review that we know.
    """
    try:
        review = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadRequestError(f"expected an {KIND}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        found = f"{review.kind} of {review.api_version}"
        raise BadRequestError(f"expected an {KIND} of {API_VERSION}, found {found}")
    return review.request


def answer_review(change: Change, verdict: Verdict) -> bytes:
    """The review with our answer in it."""
    response: Document = {"uid": change.uid, "allowed": not verdict.problems}
    if verdict.problems:
        response["status"] = refusal(verdict.name, verdict.problems, verdict.kind)
    if verdict.warnings:
        response["warnings"] = [warning[:_MAX_WARNING] for warning in verdict.warnings]
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    answer = {"apiVersion": API_VERSION, "kind": KIND, "response": response}
    return msgspec.json.encode(answer)


def refusal(name: str, problems: Sequence[Problem], kind_name: str = "Job") -> Status:
    """A refusal as our own server words it; kubectl prints each of its causes."""
    kind = KINDS[kind_name]
    told = [str(problem) for problem in problems]
    joined = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    causes = tuple(
        Cause(
            reason="FieldValueRequired" if problem.found is None else "FieldValueInvalid",
            message=problem.message,
            field=problem.path,
        )
        for problem in problems
    )
    return Status(
        kind="Status",
        status="Failure",
        message=f'{kind.name}.{kind.group} "{name}" is invalid: {joined}',
        reason="Invalid",
        details=Details(name=name, group=kind.group, kind=kind.name, causes=causes),
        code=422,
    )
