"""Reports of a cluster: our server's answers, worked out here from what is stored."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.client.api import Api
from interlock.client.cluster.events import read_events
from interlock.client.cluster.leading import Leader, find_leader
from interlock.client.cluster.schedules import read_schedule
from interlock.client.cluster.snapshot import Snapshot, read_job, read_lines, read_snapshot
from interlock.client.errors import NOT_FOUND, AnswerError
from interlock.client.http_client import Answer
from interlock.client.kinds import JOB_CONFIGS, Kind
from interlock.client.moments import server_now
from interlock.client.reports import Excerpt, Report
from interlock.reporting.listing import page, read_listing
from interlock.reporting.live_jobs import LiveJobs
from interlock.reporting.queue_lines import WAITERS
from interlock.reporting.why import WhyView, explain
from interlock.resources.codec import to_builtins
from interlock.resources.job import Job, lock_requests
from interlock.resources.metadata import Key
from interlock.resources.transitions import has_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator


class ClusterReports:
    """Answers without a controller: one that is away is part of the answer."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def why(self, namespace: str, name: str) -> Report:
        """Why a Job is, or is not, running; that nobody leads comes before all other reasons."""
        view = self._view(namespace, name)
        answer: Report = to_builtins(explain(view, server_now(self._api)))
        return answer if has_ended(view.job) else self._with_leader(answer, namespace)

    def why_schedule(self, kind: Kind, namespace: str, name: str) -> Report:
        """Why a JobConfig or a ControlledJob is, or is not, running."""
        reader = read_schedule(self._api, kind, namespace, name)
        explain = reader.why_config if kind is JOB_CONFIGS else reader.why_controlled
        answer: Report = to_builtins(explain(namespace, name, server_now(self._api)))
        return self._with_leader(answer, namespace)

    def _with_leader(self, answer: Report, namespace: str) -> Report:
        """The answer with whoever leads; that nobody does comes before all other reasons."""
        leader = find_leader(self._api, namespace)
        answer["leader"] = leader.data()
        if leader.leads is False:
            nobody = {"reason": "NoLeader", "message": f"nothing moves: {leader.told}"}
            answer["waits"] = [nobody, *answer.get("waits", ())]
        else:
            answer["details"] = [*answer.get("details", ()), ("leader", leader.told)]
        return answer

    def _view(self, namespace: str, name: str) -> WhyView:
        """The Job, and the lines it stands in; the others are listed only when they matter."""
        job = read_job(self._api, namespace, name)
        has_locks = bool(lock_requests(job.spec) or job.status.admission.grants)
        if has_ended(job) or not (has_locks or job.spec.queue or job.spec.slots):
            return WhyView(job=job)
        snapshot = self._lines_of(job, namespace, locks=has_locks)
        found: Job = snapshot.jobs.get(Key("Job", namespace, name)) or job
        queue = snapshot.queues.view_of(found) if snapshot.knows_queues else None
        children = LiveJobs(snapshot.roster, snapshot.jobs).children(found)
        return replace(
            snapshot.lines.why_view(found),
            children=children,
            queue=queue,
            slots=snapshot.beds.wait_of(found),
            knows_slots=True,
        )

    def _lines_of(self, job: Job, namespace: str, *, locks: bool) -> Snapshot:
        """The lines that a Job stands in; those of Queues as far as whoever asks may read them."""
        if job.spec.queue is None:
            return read_snapshot(self._api, namespace)
        try:
            return read_lines(self._api, namespace, locks=locks)
        except AnswerError as error:
            if error.status != 403:
                raise
        return read_snapshot(self._api, namespace, locks=locks)

    def standstill(self, namespace: str) -> str:
        """Why nothing at all moves in a namespace; empty when nothing is wrong with that."""
        leader = self.leader(namespace)
        return leader.told if leader.leads is False else ""

    def leader(self, namespace: str) -> Leader:
        """Which controller leads."""
        return find_leader(self._api, namespace)

    def locks(self, namespace: str | None) -> list[Report]:
        """Who holds and who waits for each lock, of a namespace or of all."""
        return _locks(read_snapshot(self._api, namespace))

    def queues(self, namespace: str) -> list[Report]:
        """Each Queue in short; of a namespace alone where its Jobs are all that may be read."""
        return [to_builtins(one) for one in read_lines(self._api, namespace).queues.queues()]

    def queue(self, namespace: str, name: str, limit: int | None) -> Report:
        """One Queue: who holds its quota, the first of those who wait, and why."""
        reader = read_lines(self._api, namespace).queues
        now = server_now(self._api)
        found = reader.queue(name, now, WAITERS if limit is None else limit)
        if found is None:
            message = f'queues.interlock.dev "{name}" not found'
            raise AnswerError(404, {"reason": "NotFound"}, message, NOT_FOUND)
        answer: Report = to_builtins(found)
        return answer

    def beds(self, namespace: str | None) -> list[Report]:
        """Each TestBed in short, of a namespace or of all."""
        reader = read_snapshot(self._api, namespace, locks=False, beds=True).beds
        return [to_builtins(one) for one in reader.beds(namespace or "")]

    def bed(self, namespace: str, name: str) -> Report:
        """One TestBed: each of its slots, who is in it, and who waits."""
        reader = read_snapshot(self._api, namespace, locks=False, beds=True).beds
        found = reader.bed(namespace, name)
        if found is None:
            message = f'testbeds.interlock.dev "{name}" not found'
            raise AnswerError(404, {"reason": "NotFound"}, message, NOT_FOUND)
        answer: Report = to_builtins(found)
        return answer

    def overview(
        self, namespace: str | None, *queries: dict[str, object]
    ) -> tuple[list[Report], list[Report]]:
        """Pages of Jobs in short, one for each query, and the locks, all from one look."""
        snapshot = read_snapshot(self._api, namespace)
        listings = [
            read_listing({name: str(value) for name, value in query.items()}) for query in queries
        ]
        live = LiveJobs(snapshot.roster, snapshot.jobs)
        pages = [page(one, live.part(one), version=live.version) for one in listings]
        return [to_builtins(one) for one in pages], _locks(snapshot)

    def history(self, key: dict[str, str], limit: int, before: int | None) -> Report:
        """What happened, newest first, as far as the cluster still has its events."""
        return read_events(self._api, key, limit, before)

    def log(
        self, namespace: str, name: str, excerpt: Excerpt, known: Container[str] = ()
    ) -> Iterator[tuple[str, Answer]]:
        """The logs of the pods of an attempt."""
        from interlock.client.cluster.pod_logs import open_logs

        return open_logs(self._api, namespace, name, excerpt, known)


def _locks(snapshot: Snapshot) -> list[Report]:
    return [to_builtins(lock) for lock in snapshot.lines.locks("")]
