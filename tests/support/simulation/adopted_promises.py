"""What is promised of batch Jobs and pods of others: they run by a grant alone, and stay theirs."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.forecast.rehearsal.simulated_machine import Life
from interlock.kube.pods import naming
from interlock.resources.adopted import AdoptedKind
from interlock.resources.job import Job
from interlock.resources.metadata import GROUP
from interlock.resources.queue import QueueQuota, QuotaHolder
from interlock.resources.transitions import has_ended, is_admitted
from interlock.store.contract import EventType
from interlock.store.watching import Change
from support.simulation.adopted_truth import (
    Asked,
    Theirs,
    is_held,
    is_queued_by_itself,
    is_stopped,
    order_of_job,
)
from support.simulation.batch_controller import end_of, is_active, part_of
from support.simulation.cluster import Cluster
from support.simulation.kube_api import (
    Body,
    Happened,
    gates_of,
    is_going,
    is_over,
    node_of,
    uid_of,
)
from support.simulation.pod_promises import PodPromise
from support.simulation.promises import jobs_of
from support.simulation.truth import Truth


class AdoptedPromise(PodPromise):
    """A promise that also hears of what happens to things of others."""

    def __init__(self, truth: Truth, cluster: Cluster, theirs: Theirs) -> None:
        super().__init__(truth, cluster)
        self.theirs = theirs

    def object_changed(self, happened: Happened) -> None:
        """A batch Job or a pod of others was made, changed or removed, by whomever."""

    def part_starts(self, life: Life) -> None:
        """A pod runs that is no attempt of ours: a part of a batch Job, or nobody's."""

    def stand_in(self, uid: str) -> Job | None:
        """The Job that stands for an object, if one does that is not over."""
        for job in self.truth.jobs.values():
            if job.spec.adopted is not None and job.spec.adopted.uid == uid:
                return job if not has_ended(job) else None
        return None

    def grant(self, uid: str) -> QuotaHolder | None:
        """What an object may take, by the records of quotas."""
        job = self.stand_in(uid)
        if job is None:
            return None
        for record in self.truth.quotas.values():
            for holder in record.status.holders:
                is_its = holder.uid == job.metadata.uid
                if is_its and holder.epoch == job.status.admission.epoch:
                    return holder
        return None

    def parts_alive(self, uid: str) -> Iterator[str]:
        """What really runs of a batch Job, or may still begin to, whoever knows of it."""
        for node in self.cluster.nodes.values():
            for box in node.boxes.values():
                if box.part_of == uid and box.life is not None and not box.has_ended:
                    yield box.order.name
        for pod in self.cluster.api.all("Pod"):
            if part_of(pod) == uid and self._may_begin(pod):
                yield pod["metadata"]["name"]

    def _may_begin(self, pod: Body) -> bool:
        if is_over(pod):
            return False
        if not node_of(pod):
            return not is_going(pod)
        node = self.cluster.nodes.get(node_of(pod))
        if node is None or node.doomed:
            return False
        box = node.boxes.get(uid_of(pod))
        return box is None or not box.has_ended


class LetRunByGrant(AdoptedPromise):
    """We let nothing of others run that was not granted its part, nor more of it than was."""

    def object_changed(self, happened: Happened) -> None:
        """Whoever resumes a batch Job, or opens the gate of a pod, finds a grant for all of it."""
        body, before = happened.body, happened.before
        if not self.cluster.api.caller or before is None or happened.type == "DELETED":
            return
        if happened.kind == "Job" and not body["spec"].get("suspend"):
            was = before["spec"]
            if was.get("suspend") or was["parallelism"] < body["spec"]["parallelism"]:
                self._check(body, _at_once(body))
        is_opened = _is_gated(before) and not _is_gated(body)
        # What goes is never placed, gate or no gate.
        if is_opened and is_queued_by_itself(body) and not is_going(body):
            self._check(body, 1)

    def _check(self, body: Body, pods: int) -> None:
        name, job = body["metadata"]["name"], self.stand_in(uid_of(body))
        if job is None or not is_admitted(job):
            raise self.broken(f"{name} is let run, and nobody let it in", name)
        its_name, grant = job.metadata.name, self.grant(uid_of(body))
        if grant is None:
            raise self.broken(f"{name} is let run without a part of a quota", name, its_name)
        if pods > grant.tasks:
            told = f"{name} is let run with {pods} pods, and was granted {grant.tasks}"
            raise self.broken(told, name, its_name)

    def part_starts(self, life: Life) -> None:
        """No more pods of a batch Job run than it was granted, if not by its owner's doing."""
        name = life.order.name
        pod = next(
            (one for one in self.cluster.api.all("Pod") if one["metadata"]["name"] == name), None
        )
        if pod is None or is_going(pod):
            return
        uid = part_of(pod)
        if not uid and self.theirs.asked[uid_of(pod)][0].queue:
            raise self.broken(f"{name} runs, and no Queue let it", name)
        job = self.cluster.api.find("Job", uid) if uid else None
        if job is None:
            return
        if self.theirs.is_doing_of_owner(uid) or not self._always_asked(uid):
            return
        its_name, grant = job["metadata"]["name"], self.grant(uid)
        alive = sum(
            part_of(pod) == uid and is_active(pod) and bool(node_of(pod))
            for pod in self.cluster.api.all("Pod")
        )
        allowed = 0 if grant is None else grant.tasks
        if alive > allowed:
            told = f"{alive} pods of {its_name} run, granted are {allowed}"
            raise self.broken(told, its_name, name)

    def _always_asked(self, uid: str) -> bool:
        return all(asked.queue for asked in self.theirs.asked[uid])


class HeldUntilQuiet(AdoptedPromise):
    """What a batch Job holds it holds until none of its pods lives, whoever stopped it."""

    def object_changed(self, happened: Happened) -> None:
        """We hold a batch Job as long as its attempt is on record, and stop it for a cause."""
        body, before = happened.body, happened.before
        if happened.kind != "Job" or not self.cluster.api.caller or before is None:
            return
        task, name = order_of_job(body).id, body["metadata"]["name"]
        is_same = order_of_job(before).id == task
        if not is_same or not self.is_on_record(task) or task in self.truth.written_off:
            return
        if is_held(before) and not is_held(body):
            raise self.broken(f"{name} is let go before its end is recorded", name)
        if is_stopped(body) and not is_stopped(before):
            [active] = [
                one
                for one in self.truth.by_uid[task.job_uid].status.execution.active
                if (one.index, one.attempt) == (task.task, task.attempt)
            ]
            if active.stop_cause is None and not is_going(body):
                raise self.broken(f"{name} is stopped, and no reason is on record", name)

    def wrote(self, change: Change) -> None:
        """A Job that stands for one is put back, ends and goes with nothing of that left."""
        before, after = jobs_of(change)
        job = after or before
        if job is None or job.spec.adopted is None or before is None:
            return
        if job.spec.adopted.kind is not AdoptedKind.BATCH_JOB:
            return
        if after is None:
            if is_admitted(before) and not has_ended(before):
                self._check(before, "goes")
        elif has_ended(after) and not has_ended(before):
            self._check(after, "ends")
        elif after.status.admission.evictions > before.status.admission.evictions:
            self._check(after, "waits again")

    def granted(self, change: Change) -> None:
        """Whoever is taken off a record has nothing left."""
        before, after = change.before, change.event.resource
        is_gone = change.event.type is EventType.DELETED
        kept = after.status.holders if isinstance(after, QueueQuota) and not is_gone else ()
        elsewhere = {
            (holder.uid, holder.epoch)
            for record in self.truth.quotas.values()
            for holder in record.status.holders
        }
        for holder in before.status.holders if isinstance(before, QueueQuota) else ():
            job = self.truth.by_uid.get(holder.uid)
            if holder in kept or (holder.uid, holder.epoch) in elsewhere or job is None:
                continue
            if job.spec.adopted is None or job.status.admission.epoch > holder.epoch:
                # A Job that was put back had nothing left then, and may have been let in again.
                continue
            self._check(job, "loses its part")

    def _check(self, job: Job, what: str) -> None:
        assert job.spec.adopted is not None
        uid, name = job.spec.adopted.uid, job.metadata.name
        # What a person declared over, and what its owner lets run again, is their business.
        is_written_off = any(task.job_uid == job.metadata.uid for task in self.truth.written_off)
        if is_written_off or uid in self.theirs.went_past:
            return
        alive = tuple(self.parts_alive(uid))
        if alive:
            raise self.broken(f"{name} {what} while {alive[0]} lives", name, job.spec.adopted.name)
        its = self.cluster.api.find("Job", uid)
        if its is None or end_of(its) or is_going(its):
            return
        if not its["spec"].get("suspend"):
            raise self.broken(f"{name} {what}, and its batch Job may run", name)


class StaysTheirs(AdoptedPromise):
    """Nothing of others is deleted but a pod that we let run, and nothing else of it is changed."""

    def object_changed(self, happened: Happened) -> None:
        """What a control plane does to an object is what is its business."""
        body, before, name = happened.body, happened.before, happened.body["metadata"]["name"]
        if not self.cluster.api.caller:
            return
        if before is None:
            raise self.broken(f"{name} is made in the name of others", name)
        if is_going(body) and not is_going(before):
            self._check_deleted(happened.kind, body)
        was, now = _without_ours(before), _without_ours(body)
        if happened.type != "DELETED" and was != now:
            raise self.broken(f"something of {name} is changed that is not ours", name)
        if happened.kind == "Job" and is_stopped(body) and not is_stopped(before):
            given, asked = body["spec"]["parallelism"], self.theirs.parallelism(uid_of(body))
            if given != asked:
                told = f"{name} is stopped with parallelism {given}, and its owner wrote {asked}"
                raise self.broken(told, name)

    def _check_deleted(self, kind: str, body: Body) -> None:
        name = body["metadata"]["name"]
        if kind == "Job":
            raise self.broken(f"batch Job {name} is deleted by us", name)
        if part_of(body):
            if uid_of(body) not in self.theirs.told_to_go:
                raise self.broken(f"{name} is deleted, and its batch Job was not stopped", name)
            return
        labels = body["metadata"].get("labels") or {}
        if naming.JOB_UID not in labels:
            raise self.broken(f"pod {name} is deleted, and was never let run", name)


class StandsForIt(AdoptedPromise):
    """The Job that stands for an object asks for what that asks for, and goes when that has to."""

    def wrote(self, change: Change) -> None:
        """What a control plane writes of it, or that it goes, follows from the object."""
        before, after = jobs_of(change)
        job = after or before
        if job is None or job.spec.adopted is None or self.truth.writer == "user":
            return
        name = job.metadata.name
        if after is not None and (before is None or _wish(before) != _wish(after)):
            asked = self.theirs.asked.get(job.spec.adopted.uid, ())
            if all((one.queue, one.pods) != _wish(after) for one in asked):
                raise self.broken(f"{name} asks for {_wish(after)}, and nobody did", name)
        goes = after is None or (after.is_going and not (before is not None and before.is_going))
        if goes and job.metadata.uid not in self.truth.to_delete and not self._has_cause(job):
            raise self.broken(f"{name} is removed, and what it stands for is there", name)

    def _has_cause(self, job: Job) -> bool:
        """Whether what it stands for was ever something else than what it was made for."""
        object = job.spec.adopted
        assert object is not None
        kind = "Job" if object.kind is AdoptedKind.BATCH_JOB else "Pod"
        body = self.cluster.api.find(kind, object.uid)
        if body is None or is_going(body) or end_of(body) or is_over(body):
            return True
        if object.uid in self.theirs.raised:
            return True
        return any(
            asked.queue != job.spec.queue or asked.pods > object.pods or _is_nonsense(asked)
            for asked in self.theirs.asked[object.uid]
        )

    def settled(self) -> None:
        """Everything that asks for a Queue has had its turn, and nothing runs past one."""
        for job in self.cluster.api.all("Job"):
            self._check_rest(job, bool(end_of(job)), bool(job["spec"].get("suspend")))
        for pod in self.cluster.api.all("Pod"):
            if is_queued_by_itself(pod):
                self._check_rest(pod, is_over(pod), _is_gated(pod))

    def _check_rest(self, body: Body, is_over: bool, is_kept_back: bool) -> None:
        uid, name = uid_of(body), body["metadata"]["name"]
        asked = self.theirs.asked[uid][-1]
        jobs = [
            job
            for job in self.truth.jobs.values()
            if job.spec.adopted is not None and job.spec.adopted.uid == uid
        ]
        if len(jobs) > 1:
            raise self.broken(f"{len(jobs)} Jobs stand for {name}", name)
        if is_held(body):
            raise self.broken(f"{name} is still held", name)
        if not asked.queue or is_over:
            return
        if not is_kept_back:
            raise self.broken(f"{name} runs past queue {asked.queue}", name)
        if not jobs and not _is_nonsense(asked):
            raise self.broken(f"{name} asks for queue {asked.queue}, and nobody sees to it", name)


def _wish(job: Job) -> tuple[str | None, int]:
    return job.spec.queue, job.spec.adopted.pods if job.spec.adopted is not None else 0


def _is_nonsense(asked: Asked) -> bool:
    return bool(asked.priority) and not asked.priority.lstrip("-").isdecimal()


def _at_once(job: Body) -> int:
    spec = job["spec"]
    at_once: int = spec["parallelism"]
    completions = spec.get("completions")
    return at_once if completions is None else min(at_once, completions)


def _is_gated(pod: Body) -> bool:
    return {"name": naming.GATE} in gates_of(pod)


def _without_ours(body: Body) -> Body:
    """What is their business alone: all but our marks and what holds it back."""
    metadata = body["metadata"]
    ours = {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"}
    kept = {name: value for name, value in metadata.items() if name not in ours}
    for marks, theirs in (("labels", _THEIR_LABELS), ("annotations", _THEIR_NOTES)):
        given = metadata.get(marks) or {}
        kept[marks] = {
            name: value
            for name, value in given.items()
            if name in theirs or not name.startswith(f"{GROUP}/")
        }
    kept["finalizers"] = [
        one for one in metadata.get("finalizers") or () if one != naming.FINALIZER
    ]
    spec = {
        name: value
        for name, value in body["spec"].items()
        if name not in ("suspend", "parallelism")
    }
    spec["schedulingGates"] = [gate for gate in gates_of(body) if gate != {"name": naming.GATE}]
    return {"metadata": kept, "spec": spec}


_THEIR_LABELS = (f"{GROUP}/queue", f"{GROUP}/priority")
_THEIR_NOTES = (f"{GROUP}/min-parallelism",)

#: What else is promised where there are things of others.
ADOPTED_PROMISES: tuple[type[AdoptedPromise], ...] = (
    LetRunByGrant,
    HeldUntilQuiet,
    StaysTheirs,
    StandsForIt,
)
