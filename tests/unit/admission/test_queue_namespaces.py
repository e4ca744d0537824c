"""Queues that choose namespaces by their labels: who is let in, and whom a change wakes."""

from __future__ import annotations

from interlock.admission.queues.desk import QueueDesk
from interlock.control.cache import Cache
from interlock.resources.admission import WaitReason
from interlock.resources.cluster import Namespace
from interlock.resources.job import Job
from interlock.resources.metadata import Metadata
from interlock.resources.namespace_selector import NamespaceSelector
from interlock.resources.queue import Queue, QueueQuota
from support.queue_desk import BLUE, Desk, a_queue, a_record, waits

BY_LABEL = NamespaceSelector(match_labels={"team": "ml"})
BY_NAME = NamespaceSelector(match_names=("default",))


def a_namespace(name: str = "default", version: int = 5, **labels: str) -> Namespace:
    metadata = Metadata(name=name, uid=f"uid-{name}", resource_version=str(version), labels=labels)
    return Namespace(metadata=metadata)


def refusal(desk: QueueDesk, job: Job) -> WaitReason | None:
    view = desk.view_of(job)
    assert view is not None
    return view.refusal.reason if view.refusal is not None else None


def test_who_may_use_it_follows_from_the_labels_of_the_namespace() -> None:
    desk = Desk(a_queue(selector=BY_LABEL), a_record(), a_namespace(), waits("a", 10))
    assert desk.grants() == []

    woken = desk.put(a_namespace(version=20, team="ml"))

    assert BLUE in woken
    assert desk.grants() == ["ax1"]


def test_a_change_of_labels_wakes_those_whom_it_concerns() -> None:
    job = waits("a", 10)
    desk = Desk(a_queue(selector=BY_LABEL), a_record(), a_namespace(), job)

    assert set(desk.put(a_namespace(version=20, team="x"))) == {BLUE, job.key}
    assert desk.put(a_namespace(version=30, team="x")) == ()
    assert desk.put(a_namespace("other", version=40, team="ml")) == (BLUE,)


def test_a_queue_that_chooses_by_name_does_not_mind_labels() -> None:
    desk = Desk(a_queue(selector=BY_NAME), a_record(), a_namespace(), waits("a", 10))

    assert desk.put(a_namespace(version=20, team="x")) == ()
    assert desk.grants() == ["ax1"]


def test_where_no_namespace_may_be_read_that_is_told() -> None:
    jobs, queues, quotas = Cache[Job]("Job"), Cache[Queue]("Queue"), Cache[QueueQuota]("QueueQuota")
    queues.note(a_queue(selector=BY_LABEL))
    desk = QueueDesk(jobs, queues, quotas, "default")
    knowing = QueueDesk(jobs, queues, quotas, namespaces=Cache("Namespace"))

    assert refusal(desk, waits("a", 10)) is WaitReason.NAMESPACE_UNKNOWN
    assert refusal(knowing, waits("a", 10)) is WaitReason.QUEUE_NOT_ALLOWED
    queues.note(a_queue(version=2, selector=BY_NAME))
    assert refusal(desk, waits("a", 10)) is None
