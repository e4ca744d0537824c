"""Every verb of the command line on a real cluster, through a kubeconfig and nothing else.

Most tests have no controller: what one would have written is written by the test, and what the
command line says must not need one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from commanding import Program
from installing import apply, install_definitions, wait_until_allowed

from interlock.kube.install.installation import Installation
from interlock.kube.install.manifests import manifests
from interlock.resources.lock import lock_name
from support.kube import Access, Cluster, User
from support.kube.access import Document
from support.kube.cluster import POD_LOG
from support.kube.controllers import Controller
from support.kube.pods import Play, a_batch_job, a_pod

GROUP = "/apis/interlock.dev/v1alpha1"
NOW = "2026-01-05T12:00:00Z"


@pytest.fixture(scope="module")
def access(own_cluster: Cluster) -> Access:
    """A cluster with our kinds, which has no controller for all namespaces."""
    install_definitions(own_cluster.access)
    return own_cluster.access


@pytest.fixture
def interlock(access: Access, tmp_path: Path) -> Iterator[Program]:
    """The program in a fresh namespace."""
    with access.namespace() as name:
        yield Program(access, tmp_path, name)


@pytest.fixture
def controller(interlock: Program, tmp_path: Path) -> Iterator[Controller]:
    """A controller of that namespace."""
    place = tmp_path / "controller"
    with Controller(interlock.access, place, namespace=interlock.namespace) as started:
        yield started


def path_of(interlock: Program, name: str, plural: str = "jobs") -> str:
    return f"{GROUP}/namespaces/{interlock.namespace}/{plural}/{name}"


def make(interlock: Program, name: str, status: Document | None = None, **spec: Any) -> Document:
    """Store a Job, and the status that a controller would have written."""
    spec = spec if {"pod", "batchJob"} & set(spec) else {"noop": {}, **spec}
    body = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}}
    path = path_of(interlock, name)
    made = interlock.access.create(path.rpartition("/")[0], body | {"spec": spec})
    if status is None:
        return made
    return interlock.access.change(f"{path}/status", {"status": status})


def running(name: str, task: int = 0, attempt: int = 0, **more: Any) -> Document:
    active = {"index": task, "attempt": attempt, "name": f"{name}-{task}-{attempt}"}
    return {
        "phase": "Running",
        "admission": {"phase": "Admitted", "admittedAt": NOW, "sequence": 1, **more},
        "execution": {
            "startedAt": NOW,
            "total": 1,
            "active": [active | {"state": "Running", "createdAt": NOW, "startedAt": NOW}],
        },
    }


def waiting(*waits: Document, sequence: int = 1) -> Document:
    return {
        "phase": "Queued",
        "admission": {"phase": "Waiting", "sequence": sequence, "waits": list(waits)},
    }


def hold(interlock: Program, key: str, job: Document) -> None:
    """Store the record of a lock that a Job holds."""
    path = path_of(interlock, lock_name(key), "locks")
    interlock.access.create(
        path.rpartition("/")[0],
        {
            "apiVersion": "interlock.dev/v1alpha1",
            "kind": "Lock",
            "metadata": {"name": lock_name(key)},
            "spec": {"key": key},
        },
    )
    metadata = job["metadata"]
    holder = {"job": metadata["name"], "uid": metadata["uid"], "epoch": 0, "token": 7}
    status = {"limit": 1, "lastToken": 7, "holders": [holder | {"grantedAt": NOW}]}
    interlock.access.change(f"{path}/status", {"status": status})


def lead(interlock: Program, renewed: datetime) -> None:
    """Store the lease of a controller that serves the namespace."""
    spec = {
        "holderIdentity": "somebody",
        "leaseDurationSeconds": 3,
        "renewTime": renewed.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    path = f"/apis/coordination.k8s.io/v1/namespaces/{interlock.namespace}/leases"
    interlock.access.create(path, {"metadata": {"name": "interlock"}, "spec": spec})


def server_now(access: Access) -> datetime:
    date = access.ask("GET", "/version").headers["Date"]
    return datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)


def lock_line(interlock: Program) -> None:
    """A Job that holds a lock, and two that wait for it."""
    first = make(interlock, "first", running("first"), locks=[{"key": "db"}])
    hold(interlock, "db", first)
    for number, name in enumerate(("second", "third"), 2):
        wait = {"reason": "LockTaken", "key": "db"}
        make(interlock, name, waiting(wait, sequence=number), locks=[{"key": "db"}])


def test_lists_are_tables_and_names(interlock: Program) -> None:
    make(interlock, "a", running("a"), title="hello")
    make(interlock, "b", waiting({"reason": "Suspended"}), suspend=True)

    rows = [line.split() for line in interlock("get", "ijob").splitlines()]
    assert rows[0][:2] == ["NAME", "PHASE"]
    # As an embedded server tells it: the cluster itself cannot count tasks.
    assert [row[:4] for row in rows[1:]] == [
        ["a", "Running", "0/1", "-"],
        ["b", "Queued", "0/1", "suspended"],
    ]
    assert interlock("get", "job/b", "--no-headers").split()[2] == "0/1"
    assert "hello" in interlock("get", "jobs", "-o", "wide")
    assert interlock("get", "jobs.interlock.dev", "-o", "name").split() == ["job/a", "job/b"]
    selected = ("get", "job", "--field-selector", "status.phase=Running", "-o", "name")
    assert interlock(*selected).split() == ["job/a"]
    assert interlock.json("get", "job/a")["spec"]["title"] == "hello"
    interlock("get", "job/none", code=4)
    assert interlock("get", "ns", interlock.namespace, "-o", "name").strip() == (
        f"namespace/{interlock.namespace}"
    )


def test_apply_diff_and_delete(interlock: Program) -> None:
    file = interlock.folder / "job.yaml"
    job = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": "x"}}
    file.write_text(yaml.safe_dump(job | {"spec": {"noop": {}, "suspend": True, "title": "one"}}))
    assert "(dry run)" in interlock("apply", "-f", str(file), "--dry-run")
    assert "+" in interlock("diff", "-f", str(file), code=1)
    assert interlock("apply", "-f", str(file)) == "job/x created\n"
    assert interlock("apply", "-f", str(file)) == "job/x unchanged\n"
    assert interlock("diff", "-f", str(file)) == ""
    file.write_text(yaml.safe_dump(job | {"spec": {"noop": {}, "suspend": True}}))
    assert "-  title: one" in interlock("diff", "-f", str(file), code=1)
    assert interlock("apply", "-f", str(file)) == "job/x configured\n"
    assert "title" not in interlock.json("get", "job/x")["spec"]
    assert interlock("delete", "job/x", "--dry-run") == "job/x deleted (dry run)\n"
    interlock("get", "job/x")
    assert interlock("delete", "-f", str(file)) == "job/x deleted\n"
    interlock("delete", "job/x", code=4)
    interlock("delete", "job/x", "--ignore-not-found")


def test_what_the_api_server_refuses_is_told_with_its_field(interlock: Program) -> None:
    make(interlock, "x", running("x"))
    file = interlock.folder / "job.json"
    job = {"apiVersion": "interlock.dev/v1alpha1", "kind": "Job", "metadata": {"name": "x"}}
    file.write_text(json.dumps(job | {"spec": {"noop": {}, "parallelism": {"count": 2}}}))
    for verb in ("apply", "diff"):
        interlock(verb, "-f", str(file), code=2)
        assert "Job x was refused, nothing was stored" in interlock.errors
        assert "may not change" in interlock.errors


def test_deleting_waits_for_the_finalizer(interlock: Program) -> None:
    make(interlock, "x", suspend=True)
    path = path_of(interlock, "x")
    interlock.access.change(path, {"metadata": {"finalizers": ["interlock.dev/tasks"]}})
    interlock("delete", "job/x", "--timeout", "0", code=124)
    assert "not gone yet" in interlock.errors
    interlock.access.change(path, {"metadata": {"finalizers": None}})
    interlock.access.wait_until_gone(path)


def test_steering(interlock: Program) -> None:
    make(interlock, "x")
    interlock("suspend", "x", "--reason", "rest")
    spec = interlock.json("get", "job/x")["spec"]
    assert (spec["suspend"], spec["suspendReason"]) == (True, "rest")
    interlock("resume", "x")
    assert not interlock.json("get", "job/x")["spec"].get("suspend")
    assert interlock("stop", "x") == "job/x stopping\n"
    assert "killAt" in interlock.json("get", "job/x")["spec"]
    interlock("kill", "x")
    assert interlock.json("get", "job/x")["spec"]["gracePeriod"] == "0s"
    name = interlock("retry", "x", "-o", "name").strip()
    assert name.startswith("job/x-retry-")
    assert "killAt" not in interlock.json("get", name)["spec"]


def test_run_makes_a_pod_of_the_command(interlock: Program) -> None:
    told = interlock(
        *("run", "--image", "tools:1", "--env", "A=1", "--working-dir", "/srv", "--suspend"),
        *("-o", "json", "--", "sh", "-c", "echo $$ $(date) ${task.index}"),
    )
    job = json.loads(told)
    assert job["metadata"]["name"].startswith("run-")
    (container,) = job["spec"]["pod"]["spec"]["containers"]
    assert container["name"] == "main"
    assert container["command"] == ["sh", "-c", "echo $$$ $$(date) ${task.index}"]
    assert container["workingDir"] == "/srv"
    interlock("run", "--", "true", code=2)
    assert "--image IMAGE" in interlock.errors


def test_why_names_the_holder_and_the_place_in_the_line(interlock: Program) -> None:
    lock_line(interlock)
    lead(interlock, server_now(interlock.access) + timedelta(hours=1))

    answer = interlock.json("why", "third")

    assert answer["summary"].endswith("place 2 of 2 for lock db")
    (wait,) = answer["waits"]
    assert [holder["job"] for holder in wait["holders"]] == ["first"]
    assert answer["leader"]["identity"] == "somebody"
    assert "lock db is held by job/first" in interlock("why", "third")
    interlock("why", "none", code=4)


def test_why_says_that_no_controller_ever_led(interlock: Program) -> None:
    make(interlock, "x")
    told = interlock("why", "x")
    assert "nothing moves: no controller has ever led here" in told


def test_why_names_the_controller_that_fell_silent(interlock: Program) -> None:
    make(interlock, "x")
    lead(interlock, server_now(interlock.access) - timedelta(minutes=5))
    told = interlock("why", "x")
    assert "nothing moves: no controller leads: somebody last renewed its lease 5 m" in told
    assert "leader    no controller leads: somebody" in interlock("version")


def test_locks_top_and_describe(interlock: Program) -> None:
    lock_line(interlock)
    (lock,) = interlock.json("locks")["items"]
    assert (lock["key"], lock["waiters"]) == ("db", ["second", "third"])
    assert "first" in interlock("locks", "db")
    view = interlock.json("top")
    assert [job["name"] for job in view["active"]["items"]] == ["first"]
    assert {job["name"] for job in view["waiting"]["items"]} == {"second", "third"}
    assert [lock["key"] for lock in view["locks"]] == ["db"]
    told = interlock("describe", "job/second")
    assert "lock db is held by job/first" in told
    assert "Holder" in interlock("describe", f"lock/{lock_name('db')}").replace("holder", "Holder")


@pytest.fixture
def full_queue(interlock: Program) -> Iterator[str]:
    """A Queue whose quota one Job of the namespace has, and for which two wait; gives its name."""
    name = f"q-{interlock.namespace}"[:63]
    head = {"apiVersion": "interlock.dev/v1alpha1"}
    spec = {"resources": {"gpu": 8, "memory": "16Gi"}}
    body = {**head, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    interlock.access.create(f"{GROUP}/queues", body)
    asks = {"queue": name, "resources": {"gpu": 6, "memory": "1.5Gi"}}
    grant = {"queue": name, "token": 7, "tasks": 1}
    train = make(interlock, "train", running("train", quota=grant), timeout="10h", **asks)
    for number, waits in enumerate(("next", "later")):
        wait = {"reason": "QuotaTaken", "key": name}
        make(interlock, waits, waiting(wait, sequence=number + 2), **asks)
    record = {**head, "kind": "QueueQuota", "metadata": {"name": f"queue.{name}"}}
    interlock.access.create(f"{GROUP}/queuequotas", record | {"spec": {"queue": name}})
    holder = {
        "queue": name,
        "job": "train",
        "namespace": interlock.namespace,
        "uid": train["metadata"]["uid"],
        "epoch": 0,
        "token": 7,
        "tasks": 1,
        "each": asks["resources"],
        "grantedAt": NOW,
    }
    path = f"{GROUP}/queuequotas/queue.{name}"
    interlock.access.change(f"{path}/status", {"status": {"holders": [holder], "lastToken": 7}})
    yield name
    for made in (f"{GROUP}/queues/{name}", path):
        interlock.access.ask("DELETE", made)


def test_queues_are_told_as_by_a_server(interlock: Program, full_queue: str) -> None:
    short = {one["name"]: one for one in interlock.json("queues")["items"]}[full_queue]
    memory = {"quota": "16Gi", "used": "1536Mi", "free": "14848Mi", "borrowed": 0}
    assert short["resources"]["memory"] == memory
    assert (short["admitted"], short["waiting"]) == (1, 2)
    assert full_queue in interlock("queues")

    whole = interlock.json("queue", full_queue, "--limit", "1")
    assert [one["job"] for one in whole["holders"]] == ["train"]
    assert [one["job"] for one in whole["waiters"]] == ["next"]
    told = "no room: needs gpu 6, free 2; job/train holds gpu 6"
    assert whole["why"] == f"queue {full_queue} has {told}"
    assert f"{interlock.namespace}/train" in interlock("queue", full_queue)

    why = interlock("why", "later")
    assert f"place 2 of 2 in queue {full_queue}" in why
    assert told in why
    assert f"holds     of queue {full_queue}: gpu 6, memory 1536Mi" in interlock("why", "train")
    interlock("queue", full_queue[:-1], code=4)
    assert full_queue in interlock("get", "job", "later", "-o", "wide")


def test_releasing_a_lock_writes_the_reason(interlock: Program) -> None:
    status = running("lost")
    status["phase"] = "Unknown"
    status["execution"]["active"][0]["state"] = "Unknown"
    job = make(interlock, "lost", status, locks=[{"key": "db"}])
    hold(interlock, "db", job)
    interlock("release", "db", "--job", "lost", "--reason", "its node burnt down")
    found = interlock.json("get", "job/lost")["metadata"]["annotations"]
    assert found["interlock.dev/release"] == "its node burnt down"


def test_history_is_what_the_events_of_that_very_object_tell(interlock: Program) -> None:
    make(interlock, "x")
    for version, reason in (("interlock.dev/v1alpha1", "Started"), ("batch/v1", "Other")):
        about = {
            "apiVersion": version,
            "kind": "Job",
            "name": "x",
            "namespace": interlock.namespace,
        }
        interlock.access.create(
            f"/api/v1/namespaces/{interlock.namespace}/events",
            {
                "metadata": {"name": f"x.{reason.lower()}"},
                "involvedObject": about,
                "reason": reason,
                "message": f"it is {reason}",
                "type": "Normal",
                "lastTimestamp": NOW,
                "count": 2,
            },
        )
    told = interlock("history", "x")
    assert "Started" in told
    assert "it is Started (2 times)" in told
    assert "Other" not in told
    assert "about an hour" in interlock.errors
    (entry,) = interlock.json("history")["items"]
    assert entry["name"] == "x"
    assert interlock.json("history", "x", "--before", str(entry["number"]))["items"] == []
    assert "it is Started" in interlock("describe", "job/x")


def test_watch_tells_changes(interlock: Program) -> None:
    make(interlock, "a", running("a"))
    assert interlock("watch", "jobs", "--limit", "1").startswith("ADDED     job/a")


def test_wait_ends_as_the_job_did(interlock: Program) -> None:
    status = running("x")
    ended = status["execution"].pop("active")[0]
    status["phase"] = "Failed"
    status["execution"] |= {
        "endedAt": NOW,
        "result": "Failed",
        "failed": "0",
        "ended": [ended | {"result": "Failed", "exitCode": 3, "endedAt": NOW}],
    }
    del status["execution"]["ended"][0]["state"]
    make(interlock, "x", status)
    assert "failed" in interlock("wait", "x", code=3)
    make(interlock, "y")
    interlock("wait", "y", "--timeout", "0", code=124)


@pytest.fixture
def pod_log(interlock: Program) -> str:
    """A Job with a pod that runs; gives what it prints."""
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    job = make(interlock, "x", running("x"), pod=template)
    pod = a_pod("x-0-0")
    pod["metadata"]["labels"] = {
        "interlock.dev/job-uid": job["metadata"]["uid"],
        "interlock.dev/task": "0",
        "interlock.dev/attempt": "0",
    }
    interlock.access.create(f"/api/v1/namespaces/{interlock.namespace}/pods", pod)
    interlock.access.wait_for(
        f"/api/v1/namespaces/{interlock.namespace}/pods/x-0-0",
        lambda found: found.get("status", {}).get("phase") == "Running",
    )
    return POD_LOG


def test_logs_are_those_of_the_pod(interlock: Program, pod_log: str) -> None:
    assert interlock("logs", "x") == pod_log
    assert interlock("logs", "x", "--task", "0", "--attempt", "1", "-c", "main") == pod_log
    interlock("logs", "x", "-c", "none", code=2)
    interlock("logs", "x", "--attempt", "2", code=4)
    assert "had no attempt 2" in interlock.errors
    interlock("logs", "x", "--task", "5", code=4)
    assert "has no task 5" in interlock.errors


def test_logs_of_a_pod_that_is_gone_say_so(interlock: Program) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    make(interlock, "x", running("x"), pod=template)
    interlock("logs", "x", code=4)
    assert "there is no pod x-0-0 (any more)" in interlock.errors
    make(interlock, "y", pod=template)
    interlock("logs", "y", code=4)
    assert "has not been started" in interlock.errors


def test_logs_without_a_kubelet_name_the_node(interlock: Program, own_cluster: Cluster) -> None:
    node = f"silent-{interlock.namespace}"
    own_cluster.add_node(node, silent=True)
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    make(interlock, "x", running("x"), pod=template)
    pods = f"/api/v1/namespaces/{interlock.namespace}/pods"
    interlock.access.create(pods, a_pod("x-0-0", nodeName=node))
    interlock("logs", "x", code=3)
    assert node in interlock.errors


def test_logs_of_a_batch_job_are_those_of_its_pods(interlock: Program) -> None:
    template = a_batch_job("x-0-0")
    make(interlock, "x", running("x"), batchJob={"spec": template["spec"]})
    jobs = f"/apis/batch/v1/namespaces/{interlock.namespace}/jobs"
    template["spec"] |= {"parallelism": 2, "completions": 2}
    interlock.access.create(jobs, template)
    interlock.access.wait_for(
        f"{jobs}/x-0-0", lambda found: found.get("status", {}).get("ready") == 2
    )
    lines = interlock("logs", "x").splitlines()
    assert len(lines) == 2
    assert all(line.startswith("x-0-0-") for line in lines)
    assert all(line.endswith(f"| {POD_LOG.strip()}") for line in lines)


def test_backup_is_a_manifest_of_all_that_is_ours(interlock: Program) -> None:
    lock_line(interlock)
    interlock("backup", "all.yaml")
    kinds = [one["kind"] for one in yaml.safe_load_all((interlock.folder / "all.yaml").read_text())]
    # Queues are of the whole cluster: others may have some at this moment.
    assert [kind for kind in kinds if kind != "Queue"] == ["Job", "Job", "Job", "Lock"]
    interlock("backup", "all.json")
    (listed, *_) = json.loads((interlock.folder / "all.json").read_text())["items"]
    assert listed["status"]["phase"] == "Running"
    assert "managedFields" not in listed["metadata"]
    interlock.plain("check", "-f", "all.yaml")
    interlock.plain("--kubeconfig", interlock.kubeconfig, "restore", "all.yaml", code=2)
    assert "etcd" in interlock.errors


def test_the_namespace_is_that_of_the_context(interlock: Program) -> None:
    make(interlock, "x")
    config = yaml.safe_load(Path(interlock.kubeconfig).read_text())
    config["contexts"][0]["context"]["namespace"] = interlock.namespace
    file = interlock.folder / "config"
    file.write_text(yaml.safe_dump(config))
    named = interlock.plain("get", "jobs", "-o", "name", KUBECONFIG=str(file))
    assert named == "job/x\n"
    other = interlock.plain("get", "jobs", "-n", "default", "-o", "name", KUBECONFIG=str(file))
    assert other == ""


def test_whoever_may_not_is_told_so(interlock: Program, tmp_path: Path) -> None:
    nobody = Program(interlock.access, tmp_path, interlock.namespace, User.NOBODY)
    nobody("get", "jobs", code=6)
    assert "nobody" in nobody.errors


def test_a_viewer_sees_everything_but_changes_nothing(interlock: Program, tmp_path: Path) -> None:
    for made in manifests(Installation(), ["rbac"]):
        answer = apply(interlock.access, made)
        assert answer.status in (200, 201), answer.body
    for resource in ("interlock.dev/jobs", "interlock.dev/locks"):
        wait_until_allowed(interlock.access, User.VIEWER, "list", resource, interlock.namespace)
    lock_line(interlock)
    viewer = Program(interlock.access, tmp_path, interlock.namespace, User.VIEWER)
    assert viewer("get", "jobs", "-o", "name").split() == ["job/first", "job/second", "job/third"]
    assert "lock db is held by job/first" in viewer("why", "second")
    assert "db" in viewer("locks")
    assert "first" in viewer("top")
    viewer("history", "first")
    viewer("suspend", "second", code=6)
    assert "viewer" in viewer.errors


def test_rights_in_one_namespace_are_none_to_queues(
    interlock: Program, full_queue: str, tmp_path: Path
) -> None:
    """What a Queue allows such a person cannot read, and is told what was written down."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["interlock.dev"], "resources": ["jobs", "locks"]}
    body = {"apiVersion": f"{group}/v1", "metadata": {"name": "reads"}}
    place = f"/apis/{group}/v1/namespaces/{interlock.namespace}"
    rules = [rule | {"verbs": ["get", "list"]}]
    interlock.access.create(f"{place}/roles", body | {"kind": "Role", "rules": rules})
    role = {"apiGroup": group, "kind": "Role", "name": "reads"}
    who = [{"apiGroup": group, "kind": "User", "name": User.NOBODY.value}]
    bound = body | {"kind": "RoleBinding", "roleRef": role, "subjects": who}
    interlock.access.create(f"{place}/rolebindings", bound)
    wait_until_allowed(
        interlock.access, User.NOBODY, "list", "interlock.dev/jobs", interlock.namespace
    )
    nobody = Program(interlock.access, tmp_path, interlock.namespace, User.NOBODY)

    nobody("queues", code=6)
    told = nobody("why", "later")

    assert f"queue {full_queue} has no room for later, or others are before it" in told


def test_completion_knows_the_names(interlock: Program) -> None:
    make(interlock, "nightly")
    kubeconfig = ("--kubeconfig", interlock.kubeconfig, "-n", interlock.namespace)
    assert interlock.plain("__complete", *kubeconfig, "wait", "ni") == "nightly\n"


def test_a_job_runs_from_beginning_to_end(interlock: Program, controller: Controller) -> None:
    assert controller.running
    make(interlock, "x", locks=[{"key": "db"}])
    assert "succeeded" in interlock("wait", "x")
    assert "leader    " in interlock("version")
    assert interlock.json("version")["leader"]["leads"]
    assert interlock.json("why", "x")["phase"] == "Succeeded"
    interlock("delete", "job/x")


def test_what_a_pod_printed_is_shown_after_its_end(
    interlock: Program, controller: Controller
) -> None:
    assert controller.running
    container = {"name": "main", "image": "none"}
    template = {
        "metadata": {"annotations": {Play.RUNS_FOR: "1s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    make(interlock, "x", pod=template)
    assert "succeeded" in interlock("wait", "x")
    assert interlock("logs", "x") == POD_LOG
    assert interlock("logs", "-f", "x") == POD_LOG
    told = interlock("retry", "x", "--wait").splitlines()[-1]
    assert "succeeded" in told
    assert interlock("logs", "-f", told.split()[0]) == POD_LOG


def test_run_follows_the_pod_and_a_kill_ends_it(interlock: Program, controller: Controller) -> None:
    assert controller.running
    interlock("run", "--image", "none", "--name", "x", "--lock", "db", "--", "true")
    interlock("wait", "x", "--for", "started")
    assert "x" in interlock("locks", "db")
    assert "killed" in interlock("kill", "x", "--wait").splitlines()[-1]
    interlock("delete", "job/x")
    interlock.access.wait_until_gone(path_of(interlock, "x"))


@pytest.mark.parametrize("work", ["pod", "batchJob"])
def test_a_job_is_put_back_and_begins_a_new_round(
    interlock: Program, controller: Controller, work: str
) -> None:
    assert controller.running
    template = a_pod("x") if work == "pod" else a_batch_job("x")
    make(interlock, "x", **{work: {"spec": template["spec"]}}, locks=[{"key": "db"}])
    interlock("wait", "x", "--for", "started")
    interlock.access.wait_for(path_of(interlock, "x"), lambda job: _runs(job, "x-0-0"))

    told = interlock("requeue", "x", "--reason", "node 12 is slow")

    assert "is being stopped; gives back lock db, then waits again, behind others" in told
    found = interlock.access.wait_for(path_of(interlock, "x"), lambda job: _runs(job, "x-0-r1-0"))
    assert found["status"]["admission"]["eviction"]["message"] == "node 12 is slow"
    assert "put back" in interlock("why", "x")
    interlock("kill", "x", "--wait")


def _runs(job: Document, task: str) -> bool:
    active = job.get("status", {}).get("execution", {}).get("active", [])
    return [(one["name"], one["state"]) for one in active] == [(task, "Running")]
