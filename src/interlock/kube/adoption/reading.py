"""Reading an object of somebody else: the Job that stands for it, or what is wrong with it."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from interlock.kube.adoption.models import Foreign, ForeignJob, ForeignPod, ForeignPodSpec
from interlock.resources.adopted import (
    MAX_PODS,
    MIN_PARALLELISM_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    AdoptedKind,
    AdoptedObject,
)
from interlock.resources.job import INT32, MAX_TASKS, QUEUE_NAME, Job, JobSpec
from interlock.resources.metadata import Metadata, OwnerReference
from interlock.resources.naming import MAX_JOB_NAME, cut_name
from interlock.resources.pod_requests import requests_of_pod
from interlock.resources.pods import PodTemplate
from interlock.resources.values.amounts import Amount
from interlock.resources.values.durations import Duration

#: What Kubernetes gives a pod that does not say.
_USUAL_GRACE_S = 30
_DIGEST = 8


class Flaw(Struct, frozen=True):
    """Why an object cannot be queued, in words for its owner."""

    message: str


def stand_in_of(thing: Foreign) -> Job | Flaw:
    """The Job that stands for an object: of one uid always of the same name."""
    queue = thing.metadata.labels.queue
    if not QUEUE_NAME.holds(queue):
        return Flaw(f'its label {QUEUE_LABEL} is "{queue}": {QUEUE_NAME.expected}')
    priority = _priority_of(thing)
    if priority is None:
        found = thing.metadata.labels.priority
        return Flaw(f'its label {PRIORITY_LABEL} is "{found}": expected a whole number')
    pods = _pods_of(thing)
    if pods > MAX_PODS:
        return Flaw(f"it asks for {pods} pods at a time: expected at most {MAX_PODS}")
    least = _least_of(thing)
    if isinstance(least, Flaw):
        return least
    kind, template = kind_of(thing), _template_of(thing)
    requests = requests_of_pod(_as_template(template))
    object = AdoptedObject(
        kind=kind,
        name=thing.metadata.name,
        uid=thing.metadata.uid,
        pods=max(pods, 1),
        requests={name: Amount(milli) for name, milli in sorted(requests.items())},
    )
    grace_s = template.termination_grace_period_seconds
    spec = JobSpec(
        adopted=object,
        queue=queue,
        priority=priority,
        min_parallelism=least,
        # How long it may take is its Queue's business, and its own.
        pending_timeout=Duration(),
        grace_period=Duration(seconds=_USUAL_GRACE_S if grace_s is None else grace_s),
    )
    owner = OwnerReference(
        api_version="batch/v1" if kind is AdoptedKind.BATCH_JOB else "v1",
        kind="Job" if kind is AdoptedKind.BATCH_JOB else "Pod",
        name=thing.metadata.name,
        uid=thing.metadata.uid,
    )
    name = stand_in_name(kind, thing.metadata.name, thing.metadata.uid)
    metadata = Metadata(name=name, namespace=thing.metadata.namespace, owner_references=(owner,))
    return Job(metadata=metadata, spec=spec)


def stand_in_name(kind: AdoptedKind, name: str, uid: str) -> str:
    """What the Job is called that stands for an object."""
    digest = sha256(f"{kind}/{uid}".encode()).hexdigest()[:_DIGEST]
    plain = name.replace(".", "-")
    return f"{cut_name(plain, MAX_JOB_NAME - _DIGEST - 1)}-{digest}"


def kind_of(thing: Foreign) -> AdoptedKind:
    """What an object is."""
    return AdoptedKind.BATCH_JOB if isinstance(thing, ForeignJob) else AdoptedKind.POD


def _pods_of(thing: Foreign) -> int:
    """How many pods at a time it asks for, whatever it was granted."""
    if isinstance(thing, ForeignPod):
        return 1
    asked, completions = thing.asked_parallelism, thing.spec.completions
    at_once = 1 if asked is None else asked
    return at_once if completions is None else min(at_once, completions)


def _template_of(thing: Foreign) -> ForeignPodSpec:
    return thing.spec if isinstance(thing, ForeignPod) else thing.spec.template.spec


def _as_template(spec: ForeignPodSpec) -> PodTemplate:
    return PodTemplate(
        spec={
            "containers": spec.containers,
            "initContainers": spec.init_containers,
            "overhead": spec.overhead,
        }
    )


def _priority_of(thing: Foreign) -> int | None:
    """Its priority in the Queue; None when what is written there is none."""
    written = thing.metadata.labels.priority
    if not written:
        return _template_of(thing).priority or 0
    try:
        priority = int(written)
    except ValueError:
        return None
    return priority if INT32.holds(priority) else None


def _least_of(thing: Foreign) -> int | Flaw | None:
    written = thing.metadata.annotations.min_parallelism
    if not written or isinstance(thing, ForeignPod):
        return None
    if written.isdecimal() and 1 <= int(written) <= MAX_TASKS:
        return int(written)
    expected = f"expected a whole number from 1 to {MAX_TASKS}"
    return Flaw(f'its annotation {MIN_PARALLELISM_ANNOTATION} is "{written}": {expected}')
