"""Pod logs of a Job, through the API server, which asks the kubelet."""

from __future__ import annotations

from typing import Any, NamedTuple

from interlock.client.api import Api
from interlock.client.errors import NOT_FOUND, AnswerError, CommandError, UnreachableError
from interlock.client.http_client import Answer, quote
from interlock.client.kinds import JOBS
from interlock.client.outcomes import attempts_of, execution_of, phase_of
from interlock.client.reports import Excerpt
from interlock.resources.tasks import attempt_in_words, task_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

#: On every pod and batch Job that is made for an attempt.
_JOB_UID, _TASK, _ATTEMPT = (
    "interlock.dev/job-uid",
    "interlock.dev/task",
    "interlock.dev/attempt",
)
#: On every pod that a batch Job makes.
_BATCH_JOB = "batch.kubernetes.io/job-name"
#: On a pod: the container that people mean when they name none.
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
#: What our own pods call their container.
_MAIN = "main"

Object = dict[str, Any]


class LogRequest(NamedTuple):
    """How the log of a pod is asked for."""

    pod: Object
    path: str
    query: dict[str, object]


def open_logs(
    api: Api, namespace: str, name: str, excerpt: Excerpt, known: Container[str]
) -> Iterator[tuple[str, Answer]]:
    """A stream for each pod of the attempt that is not known yet, by the pod's name."""
    for request in log_requests(api, namespace, name, excerpt):
        if request.pod["metadata"]["name"] not in known:
            yield request.pod["metadata"]["name"], _open(api, request)


def log_requests(api: Api, namespace: str, name: str, excerpt: Excerpt) -> Iterator[LogRequest]:
    """How the log of each pod of the attempt is asked for."""
    job = api.get(JOBS, namespace, name)
    if "noop" in job["spec"]:
        raise CommandError(f"job/{name} runs nothing, so it prints nothing", code=NOT_FOUND)
    attempt = _attempt(api, job, excerpt)
    pods = _pods(api, job, excerpt.task, attempt)
    if not pods:
        raise CommandError(_nothing(job, excerpt.task, attempt), code=NOT_FOUND)
    # What is over is read to its end, and needs nobody to say when that is.
    is_over = any((one["index"], one["attempt"]) == (excerpt.task, attempt) for one in _ended(job))
    for pod in pods:
        yield _request(pod, excerpt, follow=excerpt.follow and not is_over)


def _ended(job: Object) -> list[Object]:
    return execution_of(job).get("ended") or []


def _attempt(api: Api, job: Object, excerpt: Excerpt) -> int:
    """The attempt that is meant: the newest of the task when none was named."""
    if excerpt.attempt is not None:
        return excerpt.attempt
    told = [attempt for task, attempt in attempts_of(job) if task == excerpt.task]
    if not told:
        # A status keeps the newest ends alone; of older ones the objects still tell.
        made = _made(api, job, "pods" if "pod" in job["spec"] else "batch", excerpt.task)
        told = [int(one["metadata"]["labels"].get(_ATTEMPT, -1)) for one in made]
    if not told:
        raise CommandError(_nothing(job, excerpt.task, None), code=NOT_FOUND)
    return max(told)


def _pods(api: Api, job: Object, task: int, attempt: int) -> list[Object]:
    """The pods of one attempt, the oldest first."""
    namespace, uid = job["metadata"]["namespace"], job["metadata"]["uid"]
    name = task_name(job["metadata"]["name"], task, attempt)
    path = f"/api/v1/namespaces/{quote(namespace)}/pods"
    if "batchJob" in job["spec"]:
        pods: list[Object] = api.call("GET", path, {"labelSelector": f"{_BATCH_JOB}={name}"})[
            "items"
        ]
        return sorted(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    try:
        pod = api.call("GET", f"{path}/{quote(name)}")
    except AnswerError as error:
        if error.status != 404:
            raise
        return []
    # A pod of an earlier Job with the same name is not meant.
    owner = (pod["metadata"].get("labels") or {}).get(_JOB_UID, uid)
    return [pod] if owner == uid else []


def _made(api: Api, job: Object, what: str, task: int) -> list[Object]:
    root = "/api/v1" if what == "pods" else "/apis/batch/v1"
    plural = "pods" if what == "pods" else "jobs"
    labels = f"{_JOB_UID}={job['metadata']['uid']},{_TASK}={task}"
    path = f"{root}/namespaces/{quote(job['metadata']['namespace'])}/{plural}"
    items: list[Object] = api.call("GET", path, {"labelSelector": labels})["items"]
    return items


def _request(pod: Object, excerpt: Excerpt, *, follow: bool) -> LogRequest:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{quote(metadata['namespace'])}/pods/{quote(metadata['name'])}/log"
    query: dict[str, object] = {
        "container": excerpt.container or _container_of(pod),
        "follow": "true" if follow else None,
        "sinceTime": excerpt.since,
        "tailLines": excerpt.tail,
    }
    return LogRequest(pod, path, query)


def _open(api: Api, request: LogRequest) -> Answer:
    pod, metadata = request.pod, request.pod["metadata"]
    try:
        return api.stream("GET", request.path, request.query, accept="*/*")
    except AnswerError as error:
        if error.status < 500:
            error.message = f"pod {metadata['name']}: {error.message}"
            raise
        node = (pod.get("spec") or {}).get("nodeName") or "no node"
        raise UnreachableError(
            f"pod {metadata['name']} has a log that cannot be had now: {error.message}",
            hint=f"it is on {node}, whose kubelet does not answer; try again when it does",
        ) from None


def _container_of(pod: Object) -> str:
    """The container that is meant when none is named."""
    names = [str(one["name"]) for one in (pod.get("spec") or {}).get("containers") or []]
    chosen = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER) or _MAIN
    return chosen if chosen in names else names[0]


def _nothing(job: Object, task: int, attempt: int | None) -> str:
    """Why there is no log."""
    name, total = job["metadata"]["name"], int(execution_of(job).get("total") or 0)
    if total and task >= total:
        return f"job/{name} has no task {task}: its tasks are 0 to {total - 1}"
    if attempt is None:
        return f"task {task} of job/{name} has not been started: it is {phase_of(job)}"
    if (task, attempt) in attempts_of(job) or not execution_of(job):
        pod = task_name(name, task, attempt)
        return f"there is no pod {pod} (any more): its log is gone with it, or not begun"
    return f"task {task} of job/{name} had no {attempt_in_words(attempt)} so far"
