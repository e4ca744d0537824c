"""The store on a real cluster: who may, what is lost and found again, what cannot be read."""

from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import yaml

from interlock.control.cache import Cache
from interlock.control.clock import SystemClock, pause
from interlock.control.informer import Informer
from interlock.control.lease import Election, LeaseTimes
from interlock.control.write_fence import WriteFence
from interlock.errors import (
    AlreadyExistsError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from interlock.kube.client.api_client import Call, Client
from interlock.kube.client.config import load_config
from interlock.kube.install.definitions import definitions
from interlock.kube.store.cluster_store import KubernetesStore, open_store
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job
from interlock.resources.metadata import Key
from interlock.store.contract import EventType, Selection
from interlock.testing.serving import PATIENCE_S
from interlock.testing.store_contract.suite import events_until, has, new_job, with_metadata
from support.cluster_store import PATIENT, install, store_on
from support.kube import Access, Cluster, User
from support.kube.certificates import Authority

JOBS = "/apis/interlock.dev/v1alpha1/namespaces/{}/jobs"


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test."""

    async def patiently() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await test()

    asyncio.run(patiently())


@pytest.fixture
def installed(cluster: Access) -> Access:
    """The shared cluster with our kinds."""
    install(cluster)
    return cluster


def test_who_may_not_is_told(installed: Access, namespace: str) -> None:
    async def check() -> None:
        async with store_on(installed, User.NOBODY) as store:
            with pytest.raises(ForbiddenError, match="nobody"):
                await store.list("Job")
            with pytest.raises(ForbiddenError):
                await store.create(new_job(namespace))
            with pytest.raises(ForbiddenError):
                async with store.watch("Job", since=1):
                    pass

    run(check)


def a_kubeconfig(access: Access, folder: Path, user: dict[str, Any]) -> Path:
    """A kubeconfig of the cluster for another way to log in."""
    cluster = {"server": access.url, "certificate-authority": str(access.authority)}
    content = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


async def use(file: Path, test: Callable[[KubernetesStore], Awaitable[None]]) -> None:
    """Run a test on a store as the file says."""
    clock, luck = SystemClock(), Random(7)
    client = Client(load_config(file), clock, luck, patience=lambda _: PATIENT)
    try:
        async with open_store(client, clock, luck) as store:
            await test(store)
    finally:
        clock.close()


async def sees_itself(store: KubernetesStore) -> None:
    assert isinstance(await store.get(Key("Namespace", "", "default")), Namespace)


def test_a_client_certificate_logs_in(cluster: Access, tmp_path: Path) -> None:
    certificate, key = Authority(Path(cluster.folder)).issue_client("someone", "system:masters")
    files = {"client-certificate": str(certificate), "client-key": str(key)}
    inline = {
        f"{name}-data": base64.b64encode(Path(path).read_bytes()).decode()
        for name, path in files.items()
    }

    run(lambda: use(a_kubeconfig(cluster, tmp_path, files), sees_itself))
    run(lambda: use(a_kubeconfig(cluster, tmp_path, inline), sees_itself))


def test_an_exec_plugin_logs_in(cluster: Access, tmp_path: Path) -> None:
    program = tmp_path / "login"
    version = "client.authentication.k8s.io/v1"
    told = {
        "apiVersion": version,
        "kind": "ExecCredential",
        "status": {"token": cluster.tokens[User.ADMIN]},
    }
    program.write_text(f"#!/bin/sh\necho '{msgspec.json.encode(told).decode()}'\n")
    program.chmod(0o700)
    plugin = {"apiVersion": version, "command": "./login", "interactiveMode": "Never"}

    run(lambda: use(a_kubeconfig(cluster, tmp_path, {"exec": plugin}), sees_itself))


def test_a_token_that_is_replaced_is_read_again(cluster: Access, tmp_path: Path) -> None:
    """The first is not believed; meanwhile the file holds another, as in a pod."""
    token = tmp_path / "token"
    token.write_text("nonsense")

    async def check(store: KubernetesStore) -> None:
        with pytest.raises(UnavailableError, match="who we are"):
            await sees_itself(store)
        token.write_text(cluster.tokens[User.ADMIN])
        await sees_itself(store)

    run(lambda: use(a_kubeconfig(cluster, tmp_path, {"tokenFile": str(token)}), check))


def test_a_server_that_nobody_vouches_for(cluster: Access, tmp_path: Path) -> None:
    file = a_kubeconfig(cluster, tmp_path, {"token": cluster.tokens[User.ADMIN]})
    content = yaml.safe_load(file.read_text())
    del content["clusters"][0]["cluster"]["certificate-authority"]
    file.write_text(yaml.safe_dump(content))

    async def check(store: KubernetesStore) -> None:
        with pytest.raises(UnavailableError, match="certificate"):
            await sees_itself(store)

    run(lambda: use(file, check))
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    file.write_text(yaml.safe_dump(content))
    run(lambda: use(file, sees_itself))


async def hear_from(store: KubernetesStore, version: int) -> None:
    """Watch Jobs from a version until something is heard."""
    async with store.watch("Job", since=version) as batches:
        await anext(batches)


def test_a_version_that_is_too_old_is_told(installed: Access, namespace: str) -> None:
    async def check() -> None:
        async with store_on(installed) as store:
            with pytest.raises(ExpiredError):
                await hear_from(store, 1)

    run(check)


def test_a_kind_that_is_not_installed_is_no_empty_kind(own_cluster: Cluster) -> None:
    """Runs first on its cluster: later tests install the kinds."""

    async def check() -> None:
        async with store_on(own_cluster.access) as store:
            with pytest.raises(UnavailableError, match="definitions installed"):
                await store.list("Job")
            with pytest.raises(UnavailableError, match="definitions installed"):
                await store.get(Key("Job", "default", "a"))

    run(check)


def test_owners_of_fields_keep_them(installed: Access, namespace: str) -> None:
    """What somebody applied stays theirs through our writes of status and finalizers."""
    path = f"{JOBS.format(namespace)}/applied"
    applied = {
        "apiVersion": "interlock.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "applied", "labels": {"a": "b"}},
        "spec": {"noop": {}, "priority": 3},
    }
    media = "application/apply-patch+yaml"
    installed.ask("PATCH", f"{path}?fieldManager=someone", applied, media=media)

    async def check() -> None:
        async with store_on(installed) as store:
            job = await store.get(Key("Job", namespace, "applied"))
            assert isinstance(job, Job)
            moved = await store.update_status(job)
            await store.update(with_metadata(moved, finalizers=("example.com/held",)))

    run(check)
    fields = installed.read(path)["metadata"]["managedFields"]
    theirs = next(one for one in fields if one["manager"] == "someone")
    assert theirs["fieldsV1"]["f:spec"] == {"f:noop": {}, "f:priority": {}}
    assert theirs["fieldsV1"]["f:metadata"] == {"f:labels": {"f:a": {}}}


def test_fields_of_kubernetes_survive_our_writes(installed: Access, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    before = installed.read(path)

    async def check() -> None:
        async with store_on(installed) as store:
            found = await store.get(Key("Namespace", "", namespace))
            labels = {**found.metadata.labels, "ours": "too"}
            changed = msgspec.structs.replace(found.metadata, labels=labels)
            await store.update(msgspec.structs.replace(found, metadata=changed))

    run(check)
    after = installed.read(path)
    assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "ours": "too"}
    assert after["spec"] == before["spec"] == {"finalizers": ["kubernetes"]}


def loosened() -> list[dict[str, Any]]:
    """Our definitions as a later version may have them: with fields that we do not know."""
    made = copy.deepcopy(definitions())
    for definition in made:
        for version in definition["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            }
            version["schema"]["openAPIV3Schema"].pop("x-kubernetes-validations", None)
            version.pop("selectableFields", None)
    return made


def test_an_object_that_cannot_be_read_is_in_nobodys_way(own_cluster: Cluster) -> None:
    access = own_cluster.access
    install(access, loosened())

    async def check(namespace: str) -> None:
        chosen = Selection(namespace=namespace)
        async with store_on(access) as store:
            since = (await store.list("Job", chosen)).version
            async with store.watch("Job", chosen, since=since) as batches:
                await asyncio.to_thread(
                    access.create,
                    JOBS.format(namespace),
                    {
                        "apiVersion": "interlock.dev/v1alpha1",
                        "kind": "Job",
                        "metadata": {"name": "from-the-future"},
                        "spec": {"noop": {}, "warpFactor": 9},
                    },
                )
                good = await store.create(new_job(namespace, "good"))
                events = await events_until(batches, has(EventType.ADDED, "good"))
            bad = Key("Job", namespace, "from-the-future")
            assert [event.resource for event in events if event.resource] == [good]
            assert [event.unreadable for event in events if event.unreadable] == [bad]
            listed = await store.list("Job", chosen)
            assert (listed.items, listed.unreadable) == ((good,), (bad,))
            assert [bad.key.name for bad in store.undecodable] == ["from-the-future"]
            with pytest.raises(InvalidError, match="warpFactor"):
                await store.get(Key("Job", namespace, "from-the-future"))

    with own_cluster.namespace() as namespace:
        run(lambda: check(namespace))
    install(access)


async def until(clock: SystemClock, holds: Callable[[], bool]) -> None:
    """Wait until something holds; whoever calls sets the limit."""
    while not holds():
        await pause(clock, 0.05)


async def create_anyway(store: KubernetesStore, job: Job) -> None:
    """Create a Job through whatever trouble there is."""
    while True:
        try:
            await store.create(job)
        except AlreadyExistsError:
            return
        except UnavailableError:
            continue


async def delete_anyway(store: KubernetesStore, key: Key) -> None:
    """Delete a resource through whatever trouble there is."""
    while True:
        try:
            await store.delete(key)
        except NotFoundError:
            return
        except UnavailableError:
            continue


def test_a_cache_goes_on_when_the_api_server_is_restarted(own_cluster: Cluster) -> None:
    """The watch is cut, the server is away, and what happened meanwhile is heard all the same."""
    install(own_cluster.access)

    async def check(namespace: str) -> None:
        clock = SystemClock()
        cache: Cache[Job] = Cache("Job")
        async with store_on(own_cluster.access) as store, store_on(own_cluster.access) as other:
            informer = Informer(store, cache, clock, Random(7), lambda _: None)
            running = asyncio.create_task(informer.run())
            try:
                first = await other.create(new_job(namespace, "before"))
                await until(clock, lambda: cache.get(first.key) is not None)
                await asyncio.to_thread(own_cluster.restart_api_server)
                await delete_anyway(other, first.key)
                second = new_job(namespace, "after")
                await create_anyway(other, second)
                await until(clock, lambda: cache.get(second.key) is not None)
                await until(clock, lambda: cache.get(first.key) is None)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                clock.close()

    with own_cluster.namespace() as namespace:
        run(lambda: check(namespace))


@pytest.mark.parametrize("program", ["etcd", "kube-apiserver"])
def test_a_request_outlives_a_pause(own_cluster: Cluster, program: str) -> None:
    install(own_cluster.access)

    async def check(namespace: str) -> None:
        async with store_on(own_cluster.access) as store:
            own_cluster.pause(program)
            try:
                making = asyncio.create_task(store.create(new_job(namespace)))
                await asyncio.wait((making,), timeout=0.5)
            finally:
                own_cluster.resume(program)
            # A long pause may have cost the answer; then only a look tells what became of it.
            await asyncio.gather(making, return_exceptions=True)
            await create_anyway(store, new_job(namespace))

    with own_cluster.namespace() as namespace:
        run(lambda: check(namespace))


def test_one_leads_and_the_next_takes_over(own_cluster: Cluster) -> None:
    async def check() -> None:
        clock = SystemClock()
        times = LeaseTimes(lasts_s=60.0, renew_by_s=50.0, every_s=0.1)
        async with store_on(own_cluster.access) as store:
            fences = {name: WriteFence(clock) for name in ("one", "two")}
            elections = {
                name: Election(store, clock, Random(7), fence, name, times=times)
                for name, fence in fences.items()
            }
            terms: list[tuple[str, int]] = []
            elections["one"].on_lead = lambda term: terms.append(("one", term))
            elections["two"].on_lead = lambda term: terms.append(("two", term))
            first = asyncio.create_task(elections["one"].run())
            await elections["one"].leading.wait()
            second = asyncio.create_task(elections["two"].run())
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await elections["one"].release()
            await elections["two"].leading.wait()
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            await elections["two"].release()
            assert [name for name, _ in terms] == ["one", "two"]
            assert terms[0][1] < terms[1][1]
        clock.close()

    run(check)


LIMITED = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": "hardly-any"},
    "spec": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}},
    },
}
FLOW = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "hardly-any"},
    "spec": {
        "priorityLevelConfiguration": {"name": "hardly-any"},
        "matchingPrecedence": 2,
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "controller"}}],
                "resourceRules": [
                    {
                        "verbs": ["*"],
                        "apiGroups": ["*"],
                        "resources": ["*"],
                        "namespaces": ["*"],
                        "clusterScope": True,
                    }
                ],
            }
        ],
    },
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "storm"},
    "subjects": [{"kind": "User", "name": "controller"}],
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
}


def is_in_force(flow: dict[str, Any]) -> bool:
    """Whether the server has looked at the limits."""
    conditions = flow.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Dangling" and one["status"] == "False" for one in conditions)


def test_a_server_that_refuses_most_requests_still_gets_them_all(own_cluster: Cluster) -> None:
    """Forty creates at once against a server that takes a few at a time and refuses the rest."""
    access = own_cluster.access
    install(access)
    access.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING)
    access.create("/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", LIMITED)
    access.create("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", FLOW)
    access.wait_for("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/hardly-any", is_in_force)

    async def check(namespace: str) -> None:
        async with store_on(access, User.CONTROLLER) as store:
            names = [f"job-{number:02}" for number in range(40)]
            await asyncio.gather(*(store.create(new_job(namespace, name)) for name in names))
            listed = await store.list("Job", Selection(namespace=namespace))
            assert [item.key.name for item in listed.items] == names

    with own_cluster.namespace() as namespace:
        run(lambda: check(namespace))


def test_a_raw_call_names_what_it_is_about(installed: Access, namespace: str) -> None:
    """Other code of the room asks about kinds that the store does not keep."""

    async def check() -> None:
        async with store_on(installed) as store:
            path = f"/api/v1/namespaces/{namespace}/pods"
            call = Call(method="GET", path=path, key=Key("Pod", namespace, ""))
            assert msgspec.json.decode(await store.client.send(call))["kind"] == "PodList"

    run(check)
