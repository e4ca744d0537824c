"""What may be asked of each operation, and what it may answer: the facts behind the documents.

A parameter says here what the server checks. A code is in the table of its verb when the server
can give it; `tests` holds the real router against both.
"""

from __future__ import annotations

from typing import Any

from interlock.api.answers import REASONS
from interlock.api.parameters import Parameter, flag, number
from interlock.api.views import INCLUDES
from interlock.resources.door.validation import FieldValidation
from interlock.store.contract import Propagation

Schema = dict[str, Any]

_SELECTING = (
    Parameter(name="labelSelector", says="Only resources whose labels match."),
    Parameter(name="fieldSelector", says="Only resources whose fields match."),
)
_VERSION = Parameter(
    name="resourceVersion", says="The version to begin at.", pattern="^[0-9]{0,18}$"
)
_WATCHING = (
    flag("watch", "Tell changes as they happen."),
    flag("allowWatchBookmarks", "Tell now and then how far a watch is."),
    flag("sendInitialEvents", "Begin a watch with everything that is there."),
    number("timeoutSeconds", "End a watch after so many seconds."),
)
_LISTING = (
    *_SELECTING,
    number("limit", "At most so many at a time; 0 means all."),
    Parameter(name="continue", says="Go on where the last part ended."),
    _VERSION,
    Parameter(
        name="resourceVersionMatch",
        says="How resourceVersion is meant.",
        enum=("Exact", "NotOlderThan"),
    ),
    *_WATCHING,
)
_SHOWING = (Parameter(name="includeObject", says="What the rows of a table carry.", enum=INCLUDES),)
_DRY_RUN = Parameter(
    name="dryRun", says="All: say what would happen, and change nothing.", enum=("All",)
)
_WRITING = (
    _DRY_RUN,
    Parameter(name="fieldManager", says="Who writes; not kept."),
    Parameter(
        name="fieldValidation",
        says="What to do about unknown fields.",
        enum=tuple(FieldValidation),
    ),
)
_DELETING = (
    _DRY_RUN,
    Parameter(
        name="propagationPolicy",
        says="What becomes of what belongs to it.",
        enum=tuple(Propagation),
    ),
    number("gracePeriodSeconds", "Accepted; a Job's own gracePeriod counts."),
)

#: The parameters of each verb.
PARAMETERS: dict[str, tuple[Parameter, ...]] = {
    "get": _SHOWING,
    "list": (*_LISTING, *_SHOWING),
    "create": (*_WRITING, *_SHOWING),
    "update": (*_WRITING, *_SHOWING),
    "patch": (*_WRITING, *_SHOWING),
    "delete": _DELETING,
    "deletecollection": (*_DELETING, *_SELECTING, *_SHOWING),
}

#: What every operation may answer: who asks and how is judged before anything else is. The last
#: ones are those of a client that takes too long, says too much, or comes at a bad moment.
_ALL = (400, 401, 403, 406, 408, 431, 500, 503)
_BODY = (413, 415)
_REFUSALS: dict[str, tuple[int, ...]] = {
    "get": (404,),
    "list": (410, 429, 504),
    "create": (404, 409, 422, *_BODY),
    "update": (404, 409, 422, *_BODY),
    "patch": (404, 409, 422, *_BODY),
    "delete": (404, 409, 422, *_BODY),
    "deletecollection": (409, 422, *_BODY),
}


def refusals_of(verb: str) -> tuple[int, ...]:
    """The codes with which an operation may be refused."""
    return tuple(sorted((*_ALL, *_REFUSALS[verb])))


LOCATION = Parameter(name="Location", says="Where its status is.", format="uri-reference")
RETRY_AFTER = number("Retry-After", "After how many seconds to ask again.")
#: The headers that every refusal with a code has, beside those of all answers.
HEADERS_OF_REFUSALS: dict[int, tuple[Parameter, ...]] = {
    401: (Parameter(name="WWW-Authenticate", says="What lets in.", enum=("Bearer",)),),
    429: (RETRY_AFTER,),
    503: (RETRY_AFTER,),
}


def told(code: int) -> str:
    """What a code says, in a word."""
    return REASONS[code]


#: The body of every refusal.
STATUS: Schema = {
    "description": "Why a request was refused, or that a deletion is done.",
    "type": "object",
    "required": ["kind", "apiVersion", "status", "code"],
    "properties": {
        "kind": {"type": "string", "enum": ["Status"]},
        "apiVersion": {"type": "string", "enum": ["v1"]},
        "metadata": {"type": "object"},
        "status": {"type": "string", "enum": ["Failure", "Success"]},
        "message": {"type": "string", "description": "Why, for people."},
        "reason": {"type": "string", "description": "Why, for programs."},
        "details": {
            "type": "object",
            "description": "What it is about.",
            "properties": {
                "name": {"type": "string"},
                "group": {"type": "string"},
                "kind": {"type": "string"},
                "uid": {"type": "string"},
                "causes": {
                    "type": "array",
                    "description": "Every problem, with its field.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "reason": {"type": "string"},
                            "message": {"type": "string"},
                            "field": {"type": "string"},
                        },
                    },
                },
                "retryAfterSeconds": {"type": "integer"},
            },
        },
        "code": {"type": "integer", "description": "The code of the answer."},
    },
}

#: The body that a deletion may have.
DELETE_OPTIONS: Schema = {
    "description": "How to delete.",
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["DeleteOptions"]},
        "apiVersion": {"type": "string"},
        "dryRun": {
            "type": "array",
            "items": {"type": "string", "enum": ["All"]},
            "maxItems": 1,
            "nullable": True,
        },
        "propagationPolicy": {
            "type": "string",
            "enum": [*Propagation, None],
            "nullable": True,
        },
        "gracePeriodSeconds": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "nullable": True,
        },
        "preconditions": {
            "type": "object",
            "description": "Delete only what is still so.",
            "nullable": True,
            "properties": {
                "uid": {"type": "string", "nullable": True},
                "resourceVersion": {"type": "string", "nullable": True},
            },
        },
    },
}
