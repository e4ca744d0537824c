"""Names, labels and annotations of an attempt's objects: by these anybody can tell whose."""

from __future__ import annotations

from interlock.resources.metadata import GROUP
from interlock.resources.tasks import TaskOrder

#: Labels: the Job, and which attempt of which task of it.
JOB = f"{GROUP}/job"
JOB_UID = f"{GROUP}/job-uid"
TASK = f"{GROUP}/task"
ATTEMPT = f"{GROUP}/attempt"
#: Kubernetes' own label on the pods of a batch Job: the uid of that Job.
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"

#: Whatever has this label was made for an attempt.
SELECTOR = JOB_UID

#: Holds an object until its end is recorded.
FINALIZER = f"{GROUP}/pod"
#: Holds a pod back from the scheduler until it is armed.
GATE = f"{GROUP}/launch"

#: Annotations of a batch Job of somebody else that was let run. How many pods at a time it was
#: granted, and how many it asked for.
GRANTED = f"{GROUP}/granted-pods"
PARALLELISM = f"{GROUP}/parallelism"

#: Annotations. A version of the store at which the Job was there.
JOB_VERSION = f"{GROUP}/job-version"
#: Seconds after the grace period before a pod on a silent node is removed by force.
FORCE_DELETE_AFTER = f"{GROUP}/force-delete-after"
#: Why a pod was removed by force; whatever it did then counts as over.
FORCED = f"{GROUP}/removed-by-force"
#: When a batch Job was let run.
ARMED_AT = f"{GROUP}/armed-at"
#: When a batch Job was told to stop; it is never armed again.
STOPPED_AT = f"{GROUP}/stopped-at"
#: Until when the controller of batch Jobs may act on what it knew before the stop.
SETTLED_AT = f"{GROUP}/settled-at"


def labels_of(order: TaskOrder) -> dict[str, str]:
    """The labels of everything that is made for an attempt."""
    return {
        JOB: order.job,
        JOB_UID: order.job_uid,
        TASK: str(order.index),
        ATTEMPT: str(order.attempt),
    }


def annotations_of(order: TaskOrder) -> dict[str, str]:
    """The annotations of everything that is made for an attempt."""
    told = {JOB_VERSION: str(order.job_version)}
    if order.force_delete_after is not None:
        told[FORCE_DELETE_AFTER] = f"{order.force_delete_after.total_seconds():g}"
    return told
