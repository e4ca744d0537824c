"""What the pods of a task print, read through the API server from the node they run on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from interlock.errors import (
    BadRequestError,
    ForbiddenError,
    InterlockError,
    NotFoundError,
    UnavailableError,
)
from interlock.kube.client.api_client import Call, Client, Stream, path_of
from interlock.kube.pods.informer import Informer
from interlock.kube.pods.models import Pod
from interlock.kube.pods.reporting import has_run
from interlock.resources.metadata import Key
from interlock.resources.tasks import TaskId, attempt_in_words

#: A follower of a task that prints nothing for so long is let go.
_SILENT_S = 24 * 3600.0


class NoLogError(UnavailableError):
    """The output of a task cannot be had, at least not now."""


class PodLogs:
    """The output of attempts, as the reporting room asks for it.

    Of a batch Job it is that of its newest pod. Of a pod with several containers it is that of the
    one which `kubectl logs` would show: the one named by an annotation, else the first.
    """

    def __init__(self, pods: Informer[Pod], client: Client) -> None:
        self._pods = pods
        self._client = client

    def newest_attempt(self, job_uid: str, task: int) -> int | None:
        """The newest attempt of a task that has a pod, or None."""
        found = (pod.task for pod in self._pods.of_job(job_uid))
        return max((one.attempt for one in found if one and one.task == task), default=None)

    async def read(
        self,
        job_uid: str,
        task: int,
        attempt: int,
        *,
        since: datetime | None,
        tail: int | None,
        follow: bool,
    ) -> AsyncIterator[bytes]:
        """The output, part by part; with `follow`, until the pod is over.

        Raises:
            NoLogError: There is no pod, or nobody can say what it printed; the message says why.
        """
        pod = await self._begun(TaskId(job_uid, task, attempt), follow)
        stream = await self._open(pod, since, tail, follow)
        try:
            while piece := await stream.read():
                yield piece
        finally:
            stream.close()

    async def _begun(self, task: TaskId, follow: bool) -> Pod:
        """The pod to read from; whoever follows waits until it runs."""
        pod = self._newest(task)
        if not follow or pod is None or _can_be_read(pod):
            return _there(pod, task)
        changed = asyncio.Event()
        unsubscribe = self._pods.subscribe(lambda _: changed.set())
        try:
            while pod is not None and not _can_be_read(pod):
                changed.clear()
                await changed.wait()
                pod = self._newest(task)
        finally:
            unsubscribe()
        return _there(pod, task)

    def _newest(self, task: TaskId) -> Pod | None:
        pods = sorted(self._pods.of_task(task), key=_age)
        return pods[-1] if pods else None

    async def _open(
        self, pod: Pod, since: datetime | None, tail: int | None, follow: bool
    ) -> Stream:
        namespace, name = pod.place
        call = Call(
            method="GET",
            path=path_of("", "v1", "pods", namespace=namespace, name=name, part="log"),
            key=Key("Pod", namespace, name),
            query=_query(pod, since, tail, follow),
        )
        try:
            return await self._client.stream(call, silent_s=_SILENT_S)
        except (NotFoundError, BadRequestError, ForbiddenError, UnavailableError) as error:
            raise NoLogError(_why(pod, error)) from error


def _query(pod: Pod, since: datetime | None, tail: int | None, follow: bool) -> dict[str, str]:
    query = {"container": _container(pod)} if pod.spec.containers else {}
    if since is not None:
        query["sinceTime"] = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if tail is not None:
        query["tailLines"] = str(tail)
    if follow and not pod.is_over:
        # Of what is over there is nothing to come.
        query["follow"] = "true"
    return query


def _container(pod: Pod) -> str:
    named = pod.metadata.annotations.default_container
    names = [one.name for one in pod.spec.containers]
    return named if named in names else names[0]


def _age(pod: Pod) -> tuple[datetime, int]:
    return pod.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC), pod.version


def _can_be_read(pod: Pod) -> bool:
    return has_run(pod) or pod.is_over or pod.is_going


def _there(pod: Pod | None, task: TaskId) -> Pod:
    if pod is None:
        raise NoLogError(
            f"there is no pod of {attempt_in_words(task.attempt)} of task {task.task}: "
            "it was not created yet, or somebody deleted it, and its log with it"
        )
    if pod.never_ran:
        # The server would answer with nothing, as if it had printed nothing.
        raise NoLogError(f"pod {'/'.join(pod.place)} has no log: it is on no node")
    return pod


def _why(pod: Pod, error: InterlockError) -> str:
    where = f"pod {'/'.join(pod.place)}"
    return f"the log of {where} on node {pod.spec.node_name} cannot be read: {error}"
