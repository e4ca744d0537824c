"""The Python clients on a real cluster, through a kubeconfig and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from installing import install_definitions

from interlock.sdk.async_client import AsyncClient
from interlock.sdk.client import Client
from interlock.sdk.errors import Conflict, Invalid, NotFound, Refused, StillRunning
from interlock.testing.serving import PATIENCE_S
from support.kube import Access, Cluster, User
from support.kube.cluster import POD_LOG
from support.kube.controllers import Controller
from support.kube.pods import Play

JOB: dict[str, Any] = {"spec": {"noop": {}}}
HELD: dict[str, Any] = {"spec": {"noop": {}, "suspend": True}}


@pytest.fixture(scope="module")
def access(own_cluster: Cluster) -> Access:
    """A cluster with our kinds."""
    install_definitions(own_cluster.access)
    return own_cluster.access


@pytest.fixture
def namespace(access: Access, tmp_path: Path) -> Iterator[str]:
    """A namespace with a controller."""
    with access.namespace() as name, Controller(access, tmp_path / "controller", namespace=name):
        yield name


def test_jobs_are_submitted_waited_for_and_steered(access: Access, namespace: str) -> None:
    with Client(kubeconfig=access.kubeconfig(User.ADMIN), namespace=namespace) as client:
        handle = client.submit(JOB, idempotency_key="once")
        assert client.submit(JOB, idempotency_key="once").id == handle.id
        assert handle.wait(PATIENCE_S).succeeded
        assert client.site.has_status_api is False

        made = client.submit_many([JOB, {"spec": {}}, HELD])
        assert [isinstance(one, Refused) for one in made] == [False, True, False]
        assert isinstance(made[1], Invalid)
        held = made[2]
        assert not isinstance(held, Refused)
        with pytest.raises(StillRunning):
            held.wait(0.1)
        assert client.why("Job", held.name)["phase"] == "Queued"
        client.resume(held.name)
        assert held.wait(PATIENCE_S).succeeded

        with pytest.raises(Conflict, match="is no operation"):
            client.go_forward(held.name, reason="again")
        found = [one.job_id for one in client.jobs(state="complete", namespace=namespace)]
        assert {handle.id, held.id} <= set(found)
        with pytest.raises(NotFound):
            client.job("nobody")


def test_the_log_of_a_pod_is_followed_from_before_it_begins(access: Access, namespace: str) -> None:
    played = {"annotations": {Play.STARTS_AFTER.value: "1s"}}
    pod = {"metadata": played, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    with Client(kubeconfig=access.kubeconfig(User.ADMIN), namespace=namespace) as client:
        handle = client.submit({"spec": {"pod": pod}})
        # The kubelet that plays pods may end a stream before it has read its file.
        lines = handle.logs(follow=True)
        assert [*islice(lines, len(POD_LOG.splitlines()))] == POD_LOG.splitlines()
        handle.cancel(reason="seen")
        assert handle.wait(PATIENCE_S).is_over


def test_an_event_loop_sees_what_happens(access: Access, namespace: str) -> None:
    async def work() -> list[str]:
        config = access.kubeconfig(User.ADMIN)
        async with AsyncClient(kubeconfig=config, namespace=namespace) as client:
            stored = await client.apply({"kind": "Job", "metadata": {"name": "told"}, **HELD})
            since = stored["metadata"]["resourceVersion"]
            await client.resume("told")
            seen = []
            changes = client.stream(namespace=namespace, since=since)
            async for change in changes:
                seen.append(change.job.state)
                if change.job.ended_at is not None:
                    break
            return seen

    assert asyncio.run(work())[-1] == "Succeeded"
