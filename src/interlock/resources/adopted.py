"""Adopted work: a batch Job or a pod that somebody else made, and that a Queue lets run.

Whoever made it labels it with the name of a Queue. A Job of ours stands for it from then on: it is
what waits, is let in, put back and told of. What runs stays theirs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from interlock.resources.metadata import GROUP, Noun
from interlock.resources.naming import MAX_SUBDOMAIN, SUBDOMAIN, SUBDOMAIN_RULE
from interlock.resources.rules import Entries, Limit, Matches, Names
from interlock.resources.values.amounts import Amount

#: The label by which the owner of a batch Job, or of a pod, asks for a Queue.
QUEUE_LABEL = f"{GROUP}/queue"
#: The label that gives it a priority there.
PRIORITY_LABEL = f"{GROUP}/priority"
#: The annotation that says with how many pods at a time a batch Job may start.
MIN_PARALLELISM_ANNOTATION = f"{GROUP}/min-parallelism"

MAX_PODS = 100_000
#: How many resources the pods of one object may ask for.
MAX_REQUESTS = 32
_NAMES = Names(
    "[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?",
    "expected letters, digits, '.', '_', '-' and '/'",
)


class AdoptedKind(StrEnum):
    """What a Job may stand for."""

    #: A `batch/v1` Job: suspended until it is let in, and again when it is put back.
    BATCH_JOB = "BatchJob"
    #: A pod: held by a scheduling gate until it is let in, and deleted when it is put back.
    POD = "Pod"


class AdoptedObject(Noun):
    """An object of somebody else, in the namespace of the Job that stands for it."""

    #: What it is.
    kind: AdoptedKind
    #: Its name.
    name: Annotated[str, Matches(SUBDOMAIN, SUBDOMAIN_RULE, longest=MAX_SUBDOMAIN)]
    #: Which object of that name.
    uid: Annotated[str, Matches("[0-9A-Za-z-]{1,64}", "expected the uid of an object", longest=64)]
    #: How many pods it runs at a time.
    pods: Annotated[int, Limit(1, MAX_PODS)] = 1
    #: What each of its pods requests, all containers together.
    requests: Annotated[dict[str, Amount], Entries(0, MAX_REQUESTS, "resources"), _NAMES] = {}
