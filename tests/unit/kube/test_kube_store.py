"""What the store sends, and what it makes of the answers."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from aiohttp import web
from kube_fakes import (
    ScriptedServer,
    a_list,
    a_status,
    a_store,
    a_wire_job,
    refuses,
    run,
    says,
)
from msgspec.structs import replace

from interlock.control.clock import SystemClock
from interlock.errors import (
    BadRequestError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from interlock.kube.store.cluster_store import KubernetesStore
from interlock.resources.cluster import Lease, Namespace
from interlock.resources.job import JobPhase, JobStatus
from interlock.resources.metadata import Key
from interlock.store.contract import DeleteOptions, Propagation, Selection
from interlock.testing.builders import T0, a_job

KEY = Key("Job", "default", "a")
JOB = a_wire_job("a", 8)
LEASE = {
    "metadata": {
        "name": "l",
        "namespace": "default",
        "uid": "uid-l",
        "resourceVersion": "5",
        "labels": {"a": "1", "b": "2"},
        "managedFields": [{}],
    },
    "spec": {
        "holderIdentity": "me",
        "leaseDurationSeconds": 9,
        "renewTime": "2026-01-05T12:00:00.000000Z",
        "strategy": "OldestEmulationVersion",
    },
}
NAMESPACE = {
    "kind": "Namespace",
    "apiVersion": "v1",
    "metadata": {"name": "n", "uid": "u", "resourceVersion": "5"},
    "spec": {"finalizers": ["kubernetes"], "futureField": 1},
    "status": {"phase": "Active", "conditions": [{"type": "X", "status": "True"}]},
}


async def body_of(request: web.Request) -> Any:
    return json.loads(await request.read())


def asked(server: ScriptedServer) -> list[tuple[str, str]]:
    return [(request.method, request.path) for request in server.requests]


def test_what_only_the_server_needs_is_passed_over() -> None:
    async def check() -> None:
        job = a_wire_job("a", 8)
        owner = {"apiVersion": "v1", "kind": "X", "name": "o", "uid": "u", "future": 1}
        job["metadata"] |= {"selfLink": "/x", "ownerReferences": [owner], "labels": {"a": "b"}}
        async with a_store(says(job)) as (store, _):
            found = await store.get(KEY)
            assert found.key == KEY
            assert found.version == 8
            assert found.metadata.labels == {"a": "b"}
            assert found.metadata.owner_references[0].uid == "u"

    run(check)


def test_kinds_of_kubernetes_are_read_in_part() -> None:
    async def check() -> None:
        async with a_store(says(NAMESPACE), says(LEASE)) as (store, _):
            namespace = await store.get(Key("Namespace", "", "n"))
            lease = await store.get(Key("Lease", "default", "l"))
            assert isinstance(namespace, Namespace)
            assert namespace.spec.finalizers == ("kubernetes",)
            assert namespace.status.phase == "Active"
            assert isinstance(lease, Lease)
            assert lease.spec.lease_duration_seconds == 9
            assert lease.spec.renew_time == T0

    run(check)


def test_only_what_differs_is_sent_for_kinds_of_kubernetes() -> None:
    """Fields that we do not know would be lost otherwise; an empty holder is refused."""

    async def check() -> None:
        async with a_store(says(LEASE)) as (store, server):
            lease = await store.get(Key("Lease", "default", "l"))
            assert isinstance(lease, Lease)
            changed = replace(
                lease,
                metadata=replace(lease.metadata, labels={"b": "3"}),
                spec=replace(lease.spec, holder_identity="", acquire_time=T0),
            )
            await store.update(changed)
            patch = server.requests[-1]
            assert patch.method == "PATCH"
            assert patch.headers["Content-Type"] == "application/merge-patch+json"
            assert await body_of(patch) == {
                "metadata": {"labels": {"a": None, "b": "3"}, "resourceVersion": "5"},
                "spec": {"holderIdentity": None, "acquireTime": "2026-01-05T12:00:00.000000Z"},
            }

    run(check)


def test_nothing_is_sent_when_nothing_differs() -> None:
    async def check() -> None:
        async with a_store(says(LEASE)) as (store, server):
            lease = await store.get(Key("Lease", "default", "l"))
            assert await store.update(lease) == lease
            assert [method for method, _ in asked(server)] == ["GET", "GET"]
            with pytest.raises(ConflictError):
                await store.update(replace(lease, metadata=replace(lease.metadata, uid="other")))

    run(check)


def test_a_job_is_replaced_whole_and_without_what_the_system_writes() -> None:
    async def check() -> None:
        async with a_store(says(JOB)) as (store, server):
            job = a_job("a", version=7, status=JobStatus(phase=JobPhase.RUNNING), noop=None)
            await store.update(job)
            await store.update_status(job)
            await store.create(job)
            update, status, create = [await body_of(request) for request in server.requests]
            assert asked(server) == [
                ("PUT", "/apis/interlock.dev/v1alpha1/namespaces/default/jobs/a"),
                ("PUT", "/apis/interlock.dev/v1alpha1/namespaces/default/jobs/a/status"),
                ("POST", "/apis/interlock.dev/v1alpha1/namespaces/default/jobs"),
            ]
            assert set(update["metadata"]) == {
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "finalizers",
            }
            assert "status" not in update
            assert status["status"] == {"phase": "Running"}
            assert status["metadata"]["resourceVersion"] == "7"
            assert set(create["metadata"]) == {"name", "namespace", "finalizers"}
            assert "status" not in create
            assert (update["apiVersion"], update["kind"]) == ("interlock.dev/v1alpha1", "Job")

    run(check)


def test_no_version_means_the_one_that_is_there() -> None:
    async def check() -> None:
        conflict = refuses(409, "Conflict")
        script = (says(JOB), conflict, says(a_wire_job("a", 9)), says(a_wire_job("a", 10)))
        async with a_store(*script) as (store, server):
            job = a_job("a", metadata={"resource_version": "", "uid": ""})
            assert (await store.update(job)).version == 10
            sent = [await body_of(server.requests[place]) for place in (1, 3)]
            assert [body["metadata"]["resourceVersion"] for body in sent] == ["8", "9"]

    run(check)


def test_a_list_of_all_is_read_in_parts() -> None:
    async def check() -> None:
        first = a_list(a_wire_job("b", 3), token="more", left=1)
        second = a_list(a_wire_job("a", 4))
        async with a_store(says(first), says(second)) as (store, server):
            page = await store.list("Job")
            assert [item.key.name for item in page.items] == ["a", "b"]
            assert (page.version, page.continue_token) == (9, "")
            assert [dict(request.query) for request in server.requests] == [
                {"limit": "1000"},
                {"limit": "1000", "continue": "more"},
            ]

    run(check)


def test_a_list_that_took_too_long_is_begun_anew() -> None:
    async def check() -> None:
        first = says(a_list(a_wire_job("old", 3), token="more"))
        expired = refuses(410, "Expired")
        async with a_store(first, expired, says(a_list(a_wire_job("new", 4)))) as (store, _):
            assert [item.key.name for item in (await store.list("Job")).items] == ["new"]
        async with a_store(first, expired, first, expired, first, expired) as (store, _):
            with pytest.raises(ExpiredError):
                await store.list("Job")

    run(check)


def test_a_part_is_what_the_server_gives() -> None:
    async def check() -> None:
        part = a_list(a_wire_job("b", 3), token="more", left=7)
        async with a_store(says(part)) as (store, server):
            page = await store.list("Job", Selection(namespace="n"), limit=1)
            assert (page.continue_token, page.remaining) == ("more", 7)
            assert server.requests[0].path.endswith("/namespaces/n/jobs")

    run(check)


def test_one_bad_object_harms_itself_only(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        bad = a_wire_job("bad", 4, spec={"invented": True})
        listed = a_list(a_wire_job("a", 3), bad, a_wire_job("c", 5))
        mended = a_list(a_wire_job("bad", 6))
        script = (says(listed), says(bad), says(listed), says(mended))
        async with a_store(*script) as (store, _):
            assert [item.key.name for item in (await store.list("Job")).items] == ["a", "c"]
            assert [one.key.name for one in store.undecodable] == ["bad"]
            with pytest.raises(InvalidError, match="cannot be read"):
                await store.get(Key("Job", "default", "bad"))
            await store.list("Job")
            assert len(caplog.records) == 1
            await store.list("Job")
            assert store.undecodable == ()

    run(check)


def test_fields_are_selected_where_they_can_be() -> None:
    async def check() -> None:
        listed = a_list(
            a_wire_job("a", 3, status={"phase": "Running"}), a_wire_job("b", 4), version=9
        )
        async with a_store(says(listed)) as (store, server):
            chosen = Selection(fields="metadata.name!=x, status.phase == Running", labels="a")
            page = await store.list("Job", chosen, limit=10)
            assert [item.key.name for item in page.items] == ["a"]
            assert dict(server.requests[0].query) == {
                "limit": "10",
                "labelSelector": "a",
                "fieldSelector": "metadata.name!=x",
            }
            with pytest.raises(BadRequestError):
                await store.list("Job", Selection(fields="spec.nonsense=1"))
            assert len(server.requests) == 1

    run(check)


def test_what_was_deleted_is_returned_as_it_last_was() -> None:
    """Only that very object is deleted, and a server that removed it says nothing of it."""

    async def check() -> None:
        success = {"kind": "Status", "status": "Success", "details": {"name": "a"}}
        async with a_store(says(JOB), says(success)) as (store, server):
            gone = await store.delete(KEY, DeleteOptions(propagation=Propagation.ORPHAN))
            assert gone.version == 8
            assert await body_of(server.requests[1]) == {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "uid-a"},
                "propagationPolicy": "Orphan",
            }

    run(check)


def test_what_is_held_is_returned_as_it_is_now() -> None:
    async def check() -> None:
        going = a_wire_job("a", 9)
        going["metadata"] |= {"deletionTimestamp": "2026-01-05T12:00:00Z", "finalizers": ["x/y"]}
        async with a_store(says(JOB), says(going)) as (store, server):
            options = DeleteOptions(uid="given", resource_version="8")
            assert (await store.delete(KEY, options, dry_run=True)).is_going
            body = await body_of(server.requests[1])
            assert body["preconditions"] == {"uid": "given", "resourceVersion": "8"}
            assert body["dryRun"] == ["All"]

    run(check)


def test_a_name_that_was_given_again_meanwhile_is_deleted_too() -> None:
    async def check() -> None:
        conflict = says(a_status(409, "Conflict", "Precondition failed: UID"), 409)
        success = says({"kind": "Status", "status": "Success"})
        script = (says(JOB), conflict, says(a_wire_job("a", 11)), success)
        async with a_store(*script) as (store, _):
            assert (await store.delete(KEY)).version == 11
        async with a_store(says(JOB), conflict) as (store, _):
            with pytest.raises(ConflictError):
                await store.delete(KEY, DeleteOptions(uid="mine"))

    run(check)


def test_a_dry_run_says_so() -> None:
    async def check() -> None:
        async with a_store(says(JOB)) as (store, server):
            await store.create(a_job("a"), dry_run=True)
            await store.update(a_job("a"), dry_run=True)
            assert {request.query["dryRun"] for request in server.requests} == {"All"}

    run(check)


def test_a_store_of_one_namespace_asks_for_that_alone() -> None:
    """Whoever may see one namespace only would be refused the list of all."""

    async def check() -> None:
        async with a_store(says(a_list())) as (whole, server):
            store = KubernetesStore(whole.client, SystemClock(), Random(7), namespace="team")
            await store.list("Job")
            await store.list("Namespace")
            await store.list("Job", Selection(namespace="other"))
            assert [path for _, path in asked(server)] == [
                "/apis/interlock.dev/v1alpha1/namespaces/team/jobs",
                "/api/v1/namespaces",
                "/apis/interlock.dev/v1alpha1/namespaces/other/jobs",
            ]

    run(check)


def test_only_who_opens_a_client_pays_for_it() -> None:
    program = "import sys, interlock.kube.store.cluster_store; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_places_that_make_no_sense() -> None:
    async def check() -> None:
        async with a_store(says(JOB)) as (store, _):
            with pytest.raises(BadRequestError, match="needs a namespace"):
                await store.create(a_job("a", namespace=""))
            with pytest.raises(BadRequestError, match="no kind"):
                await store.get(Key("Nonsense", "", "a"))
            with pytest.raises(BadRequestError, match="has no status"):
                await store.update_status(Lease())

    run(check)


def test_a_login_page_is_no_answer() -> None:
    async def check() -> None:
        async def page(_: web.Request) -> web.StreamResponse:
            return web.Response(text="<html>please log in</html>")

        async with a_store(page) as (store, _):
            with pytest.raises(UnavailableError, match="cannot be read"):
                await store.get(KEY)
            with pytest.raises(UnavailableError, match="cannot be read"):
                await store.list("Job")

    run(check)


def test_what_is_not_there() -> None:
    async def check() -> None:
        async with a_store(refuses(404, "NotFound", name="a", kind="jobs")) as (store, _):
            with pytest.raises(NotFoundError):
                await store.get(KEY)
            with pytest.raises(NotFoundError):
                await store.delete(KEY)

    run(check)
