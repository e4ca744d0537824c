"""The simulation can fail: each planted bug breaks a promise, and is caught by it.

A bug is a patch of the code under test, made here and nowhere else. Worlds are run one after
another until one of them notices; which one does is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from msgspec.structs import replace

import interlock.admission.claims.candidates as candidates
import interlock.admission.claims.locks as locks
import interlock.admission.claims.proof as proof
import interlock.admission.lines as lines
import interlock.admission.reconciler as admission_room
import interlock.control.forgetting as forgetting
import interlock.execution.folding as folding
import interlock.execution.launching as launching
import interlock.execution.reconciler as execution_room
from interlock.admission.claims.claim import COUNT, ClaimView, Holder
from interlock.admission.claims.proof import Jobs
from interlock.admission.decide import decide_claim, decide_job
from interlock.admission.lines import Place
from interlock.admission.view import JobView, RecordView
from interlock.control.informer import Informer
from interlock.control.queue import Item, WorkQueue
from interlock.control.runtime import TaskStop
from interlock.execution.decide import Plan, plan
from interlock.execution.view import ExecutionView
from interlock.forecast.rehearsal.simulated_machine import Machine
from interlock.resources.actions import (
    Action,
    Decision,
    DeleteResource,
    LaunchTask,
    RecordExecution,
    RecordStatus,
    RemoveFinalizer,
)
from interlock.resources.cluster import Namespace
from interlock.resources.job import JOB_FINALIZER, Job, JobSpec, LockRequest, Parallelism, Retries
from interlock.resources.lock import Lock, LockStatus
from interlock.resources.metadata import Key, Metadata, Resource
from interlock.resources.process import ProcessSpec
from interlock.resources.tasks import (
    EndedTask,
    ExecutionStatus,
    JobResult,
    ReportState,
    TaskOrder,
    TaskReport,
    TaskResult,
    TaskState,
    TaskStatus,
)
from interlock.resources.transitions import has_ended
from interlock.store import rules
from interlock.store.contract import Event
from interlock.store.sqlite import restoring
from interlock.testing.simulation.faults import CALM
from interlock.testing.simulation.restore_world import RestoreWorld
from interlock.testing.simulation.script import (
    Act,
    BackUpStore,
    CreateJob,
    DeleteJob,
    KillJob,
    LoseKeeper,
    PutBackStore,
    ReleaseJob,
    Step,
    forgery,
)
from interlock.testing.simulation.world import RivalWorld, World

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]

#: So many worlds are tried for one bug.
MOST_WORLDS = 120


def _busy(number: int) -> CreateJob:
    """A Job among many that want one lock, run long, ignore SIGTERM, fail and are tried again."""
    spec = JobSpec(
        process=ProcessSpec(command=("work", "40", "exits=1", "deaf", "slow=8")),
        locks=(LockRequest(key="db", limit=1 + number % 2),),
        parallelism=Parallelism(count=6),
        retries=Retries(limit=4),
    )
    # Names run against the order of creation, so that the one is not taken for the other.
    return CreateJob(name=f"job-{9 - number}", spec=spec)


ACTS: tuple[Act, ...] = (
    *map(_busy, range(5)),
    ReleaseJob("job-9"),
    LoseKeeper(),
    DeleteJob("job-9"),
    LoseKeeper(),
    DeleteJob("job-8"),
    LoseKeeper(),
    KillJob("job-7"),
    *map(_busy, range(5, 8)),
    LoseKeeper(),
    forgery("db"),
)
#: A busy day, for bugs that need a crowd: nothing fails but what is in the script.
BUSY = tuple(Step(20.0 * at, act) for at, act in enumerate(ACTS, 1))


def _long(name: str) -> CreateJob:
    """A Job that goes on while everybody who knows of it is restored, and goes slowly."""
    process = ProcessSpec(command=("work", "900", "deaf", "slow=8"))
    return CreateJob(name=name, spec=JobSpec(process=process, locks=(LockRequest(key="net"),)))


#: The same without lost keepers, put back twice to where nearly all of them waited in line; what
#: runs then is known to nobody, and somebody else wants its lock.
RESTORES = tuple(
    sorted(
        (
            *(step for step in BUSY if step.act != LoseKeeper()),
            Step(45.0, BackUpStore()),
            Step(50.0, _long("unknown")),
            Step(190.0, PutBackStore()),
            Step(195.0, _long("known")),
            Step(330.0, PutBackStore()),
        ),
        key=lambda step: step.at,
    )
)


# Locks


def limit_is_ignored(patch: Patch) -> None:
    patch.setattr(ClaimView, "is_free", property(lambda _: True))


def limit_is_off_by_one(patch: Patch) -> None:
    def is_free(self: ClaimView) -> bool:
        return self.grant is not None or self.held.get(COUNT, 0) <= self.limits[COUNT]

    patch.setattr(ClaimView, "is_free", property(is_free))


def _drop_holders_when(patch: Patch, done: Callable[[Job], bool]) -> None:
    really = proof.is_done

    def is_done(holder: Holder, key: Key, jobs: Jobs) -> bool:
        job = jobs.get(key)
        is_ours = job is not None and job.metadata.uid == holder.uid
        return really(holder, key, jobs) or (is_ours and job is not None and done(job))

    patch.setattr(proof, "is_done", is_done)


def deleting_frees_the_lock(patch: Patch) -> None:
    _drop_holders_when(patch, lambda job: job.is_going)


def unknown_frees_the_lock(patch: Patch) -> None:
    _drop_holders_when(patch, lambda job: job.status.phase == "Unknown")


def stopping_frees_the_lock(patch: Patch) -> None:
    _drop_holders_when(patch, lambda job: job.status.execution.stopping_for is not None)


def backoff_frees_the_lock(patch: Patch) -> None:
    _drop_holders_when(patch, lambda job: job.status.phase == "RetryBackoff")


def not_seen_is_taken_for_gone(patch: Patch) -> None:
    really = proof.is_done

    def is_done(holder: Holder, key: Key, jobs: Jobs) -> bool:
        return jobs.get(key) is None or really(holder, key, jobs)

    patch.setattr(proof, "is_done", is_done)


def nobody_ever_leaves(patch: Patch) -> None:
    patch.setattr(proof, "is_done", lambda *_: False)


def one_lock_of_several_is_enough(patch: Patch) -> None:
    def planted(view: JobView, now: datetime) -> Decision:
        granted = tuple(claim for claim in view.claims if claim.grant is not None)
        return decide_job(replace(view, claims=granted or view.claims), now)

    patch.setattr(admission_room, "decide_job", planted)


def _with_place(patch: Patch, place_of: Callable[[Job], Place]) -> None:
    patch.setattr(lines, "place_of", place_of)
    patch.setattr(candidates, "place_of", place_of)
    patch.setattr(admission_room, "place_of", place_of)


def last_comes_first(patch: Patch) -> None:
    really = lines.place_of

    def place_of(job: Job) -> Place:
        place = really(job)
        return place._replace(sequence=-place.sequence)

    _with_place(patch, place_of)


def priority_is_ignored(patch: Patch) -> None:
    really = lines.place_of
    _with_place(patch, lambda job: really(job)._replace(rank=0))


def order_is_by_name(patch: Patch) -> None:
    really = lines.place_of
    _with_place(patch, lambda job: really(job)._replace(sequence=0))


def _with_tokens(patch: Patch, token: Callable[[RecordView], int]) -> None:
    def planted(view: RecordView, now: datetime) -> Decision:
        decision = decide_claim(view, now)
        actions = tuple(_retold(action, view, token(view)) for action in decision.actions)
        return replace(decision, actions=actions)

    patch.setattr(admission_room, "decide_claim", planted)


def _retold(action: Action, view: RecordView, token: int) -> Action:
    if not isinstance(action, RecordStatus):
        return action
    assert isinstance(action.status, LockStatus)
    known = view.record.status.holders if isinstance(view.record, Lock) else ()
    holders = tuple(h if h in known else replace(h, token=token) for h in action.status.holders)
    return replace(action, status=replace(action.status, holders=holders, last_token=token))


def tokens_stay_the_same(patch: Patch) -> None:
    _with_tokens(patch, lambda _: 1)


def tokens_begin_anew_with_the_record(patch: Patch) -> None:
    def token(view: RecordView) -> int:
        return view.record.status.last_token + 1 if isinstance(view.record, Lock) else 1

    _with_tokens(patch, token)
    patch.setattr(locks, "IDLE_LOCK_KEPT", timedelta(seconds=1))


def a_status_lets_a_job_in(patch: Patch) -> None:
    patch.setattr(ExecutionView, "may_launch", property(lambda _: True))


def a_release_is_for_whatever_comes_later(patch: Patch) -> None:
    attempts = frozenset(f"{task}-{attempt}" for task in range(10) for attempt in range(10))
    decide = import_module("interlock.execution.decide")
    patch.setattr(decide, "released_attempts", lambda _: attempts)


# Tasks


def _with_plan(patch: Patch, change: Callable[[ExecutionView, Plan, datetime], Plan]) -> None:
    def planted(view: ExecutionView, now: datetime) -> Plan:
        return change(view, plan(view, now), now)

    patch.setattr(execution_room, "plan", planted)


def _with_actions(patch: Patch, change: Callable[[tuple[Action, ...]], Sequence[Action]]) -> None:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        actions = tuple(change(found.decision.actions))
        return found._replace(decision=replace(found.decision, actions=actions))

    _with_plan(patch, changed)


def launched_before_it_is_recorded(patch: Patch) -> None:
    _with_actions(
        patch, lambda actions: sorted(actions, key=lambda each: not isinstance(each, LaunchTask))
    )


def launched_without_being_recorded(patch: Patch) -> None:
    def change(actions: tuple[Action, ...]) -> Sequence[Action]:
        if not any(isinstance(action, LaunchTask) for action in actions):
            return actions
        return [action for action in actions if not isinstance(action, RecordExecution)]

    _with_actions(patch, change)


def never_told_to_forget(patch: Patch) -> None:
    _with_actions(patch, lambda actions: [a for a in actions if type(a).__name__ != "ForgetTask"])


def never_told_to_stop(patch: Patch) -> None:
    _with_actions(patch, lambda actions: [a for a in actions if type(a).__name__ != "StopTask"])


def _ended(status: ExecutionStatus, now: datetime) -> ExecutionStatus:
    return replace(status, active=(), retrying=(), ended_at=now, result=JobResult.KILLED)


def told_to_stop_counts_as_gone(patch: Patch) -> None:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        job = view.job
        if job is None or has_ended(job) or job.status.execution.stopping_for is None:
            return found
        over = RecordExecution(job, _ended(job.status.execution, now))
        return found._replace(decision=Decision((over,)))

    _with_plan(patch, changed)


def deleted_at_once(patch: Patch) -> None:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        job = view.job
        if job is None or not job.is_going or JOB_FINALIZER not in job.metadata.finalizers:
            return found
        return found._replace(decision=Decision((RemoveFinalizer(job, JOB_FINALIZER),)))

    _with_plan(patch, changed)


def ends_are_rewritten(patch: Patch) -> None:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        job = view.job
        if job is None or job.status.execution.result is None or job.is_going:
            return found
        again = RecordExecution(job, replace(job.status.execution, ended_at=now))
        return found._replace(decision=Decision((again,)))

    _with_plan(patch, changed)


def running_jobs_are_cleaned_up(patch: Patch) -> None:
    def changed(view: ExecutionView, found: Plan, now: datetime) -> Plan:
        job = view.job
        if job is None or job.is_going or job.spec.ttl_after_finished is None:
            return found
        return found._replace(decision=Decision((DeleteResource(job),)))

    _with_plan(patch, changed)


Observe = Callable[[TaskStatus, TaskReport | None, bool, datetime], TaskStatus | EndedTask]


def _observing(patch: Patch, change: Callable[[Observe], Observe]) -> None:
    patch.setattr(folding, "observe", change(folding.observe))


def _failed(task: TaskStatus, now: datetime) -> EndedTask:
    return EndedTask(
        name=task.name,
        index=task.index,
        attempt=task.attempt,
        result=TaskResult.FAILED,
        ended_at=now,
    )


def a_missing_report_is_taken_for_the_end(patch: Patch) -> None:
    def change(really: Observe) -> Observe:
        def observe(
            task: TaskStatus, report: TaskReport | None, complete: bool, now: datetime
        ) -> TaskStatus | EndedTask:
            return _failed(task, now) if report is None else really(task, report, complete, now)

        return observe

    _observing(patch, change)


def unknown_is_taken_for_failed(patch: Patch) -> None:
    def change(really: Observe) -> Observe:
        def observe(
            task: TaskStatus, report: TaskReport | None, complete: bool, now: datetime
        ) -> TaskStatus | EndedTask:
            if report is not None and report.state is ReportState.UNKNOWN:
                return _failed(task, now)
            return really(task, report, complete, now)

        return observe

    _observing(patch, change)


def killing_is_taken_for_killed(patch: Patch) -> None:
    def change(really: Observe) -> Observe:
        def observe(
            task: TaskStatus, report: TaskReport | None, complete: bool, now: datetime
        ) -> TaskStatus | EndedTask:
            if task.state is TaskState.KILLING:
                return _failed(task, now)
            return really(task, report, complete, now)

        return observe

    _observing(patch, change)


def every_exit_is_a_success(patch: Patch) -> None:
    patch.setattr(folding, "result_of", lambda *_: TaskResult.SUCCEEDED)


def done_tasks_are_tried_again(patch: Patch) -> None:
    def never_tried(status: ExecutionStatus) -> Iterator[int]:
        active = {task.index for task in status.active}
        return (index for index in range(status.total) if index not in active)

    patch.setattr(launching, "_never_tried", never_tried)


def every_attempt_is_kept(patch: Patch) -> None:
    patch.setattr(folding, "KEPT_ENDED", 10_000)


def only_the_newest_ends_are_kept(patch: Patch) -> None:
    patch.setattr(folding, "KEPT_ENDED", 1)
    patch.setattr(folding, "newest", lambda _, execution, most: execution.ended[-most:])


def the_machine_forgets_what_it_forgot(patch: Patch) -> None:
    # Told at once: a plane that is late by a second is rare.
    patch.setattr(forgetting, "LATER_S", 0.0)
    patch.setattr(Machine, "was_forgotten", lambda *_: False)


def a_start_that_hangs_holds_up_the_keeper(patch: Patch) -> None:
    """It looks for what a definition names in its own loop, and does nothing else meanwhile."""
    start, stop = Machine._start, Machine.stop

    def start_alone(self: Machine, order: TaskOrder) -> None:
        if self._hanging - {order.id}:
            self._later(1.0, self._start, order)
        else:
            start(self, order)

    def stop_later(self: Machine, stops: Sequence[TaskStop]) -> None:
        if self._hanging:
            self._later(1.0, self.stop, stops)
        else:
            stop(self, stops)

    patch.setattr(Machine, "_start", start_alone)
    patch.setattr(Machine, "stop", stop_later)


def unheard_of_is_taken_for_gone(patch: Patch) -> None:
    def strays_of(self: Any, key: Key, job: Job | None) -> tuple[Any, ...]:
        uids = [uid for uid in self._strays[key] if job is None or job.metadata.uid != uid]
        return tuple(report for uid in uids for report in self._reports.of(uid).values())

    patch.setattr(execution_room.ExecutionReconciler, "_strays_of", strays_of)


def bad_definitions_are_let_in(patch: Patch) -> None:
    patch.setattr(import_module("interlock.admission.decide"), "problems_of_spec", lambda _: ())


# The loop and the store


def versions_are_not_compared(patch: Patch) -> None:
    patch.setattr(rules, "check_version", lambda *_, **__: None)


def specs_are_touched(patch: Patch) -> None:
    really = rules.with_ties

    def touched(stored: Resource, given: Resource) -> Resource:
        made = really(stored, given)
        if not isinstance(made, Job):
            return made
        return replace(made, spec=replace(made.spec, title="touched"))

    patch.setattr(rules, "with_ties", touched)


def moments_are_forgotten(patch: Patch) -> None:
    really = WorkQueue.done

    def done(self: WorkQueue, item: Item, wake_at: datetime | None = None) -> None:
        really(self, item)

    patch.setattr(WorkQueue, "done", done)


def failures_are_not_tried_again(patch: Patch) -> None:
    def retry(self: WorkQueue, item: Item, cause: str = "") -> None:
        self._leave_work(item)

    patch.setattr(WorkQueue, "retry", retry)
    patch.setattr(WorkQueue, "retry_now", retry)


def some_events_are_not_heard(patch: Patch) -> None:
    really = Informer._hear
    heard = [0]

    def hear(self: Informer[Any], batch: Sequence[Event]) -> None:
        heard[0] += 1
        if heard[0] % 10:
            really(self, batch)
        else:
            self._cache.settle(batch[-1].version)

    patch.setattr(Informer, "_hear", hear)


def terms_go_on_listening(patch: Patch) -> None:
    really = WorkQueue.close

    def close(self: WorkQueue) -> None:
        self._stop_listening = lambda: None
        really(self)

    patch.setattr(WorkQueue, "close", close)


# Restores


def versions_go_back_with_the_backup(patch: Patch) -> None:
    patch.setattr(restoring, "version_after", lambda known, _: known)


def versions_go_on_by_a_thousand(patch: Patch) -> None:
    """A jump that another restore of the same backup makes again, into the same numbers."""
    patch.setattr(restoring, "version_after", lambda known, _: known + 1000)


def restored_locks_keep_their_versions(patch: Patch) -> None:
    """The next write is lifted, and the token of the next grant is not."""

    def renumbered(held: Any, version: int) -> Iterator[Resource]:
        yield from sorted(held, key=lambda resource: resource.version)
        yield rules.with_version(Namespace(metadata=Metadata(name="last")), version)

    patch.setattr(restoring, "renumbered", renumbered)


def nobody_waits_for_what_a_restored_store_does_not_know(patch: Patch) -> None:
    async def clear_away(*_: object) -> None:
        return

    patch.setattr(import_module("interlock.plane"), "clear_away", clear_away)


def how_forgotten_attempts_ended_is_lost(patch: Patch) -> None:
    """They are launched again under their names, as if they had never been."""
    patch.setattr(Machine, "was_forgotten", lambda *_: False)


BUGS: list[tuple[Plant, type[World], str]] = [
    (terms_go_on_listening, World, "TermsLeaveNothing"),
    (limit_is_ignored, World, "NeverTwice"),
    (limit_is_off_by_one, World, "NeverTwice"),
    (deleting_frees_the_lock, World, "NeverTwice"),
    (unknown_frees_the_lock, World, "NeverTwice"),
    (stopping_frees_the_lock, World, "NeverTwice"),
    (backoff_frees_the_lock, World, "NeverTwice"),
    (not_seen_is_taken_for_gone, RivalWorld, "NeverTwice"),
    (nobody_ever_leaves, World, "Settles"),
    (one_lock_of_several_is_enough, World, "NeverTwice"),
    (last_comes_first, World, "InOrder"),
    (priority_is_ignored, World, "InOrder"),
    (order_is_by_name, World, "InOrder"),
    (tokens_stay_the_same, World, "TokensRise"),
    (tokens_begin_anew_with_the_record, World, "TokensRise"),
    (a_status_lets_a_job_in, World, "NeverTwice"),
    (a_release_is_for_whatever_comes_later, World, "TrueEnds"),
    (launched_before_it_is_recorded, World, "RecordedFirst"),
    (launched_without_being_recorded, World, "RecordedFirst"),
    (never_told_to_forget, World, "Settles"),
    (never_told_to_stop, World, "Settles"),
    (told_to_stop_counts_as_gone, World, "NeverTwice"),
    (deleted_at_once, World, "NeverTwice"),
    (ends_are_rewritten, World, "LegalMoves"),
    (running_jobs_are_cleaned_up, World, "NeverLost"),
    (a_missing_report_is_taken_for_the_end, World, "NeverTwice"),
    (unknown_is_taken_for_failed, World, "TrueEnds"),
    (killing_is_taken_for_killed, World, "TrueEnds"),
    (every_exit_is_a_success, World, "TrueEnds"),
    (done_tasks_are_tried_again, World, "RecordedFirst"),
    (every_attempt_is_kept, World, "StatusBounded"),
    (only_the_newest_ends_are_kept, World, "StatusBounded"),
    (the_machine_forgets_what_it_forgot, RivalWorld, "RecordedFirst"),
    (a_start_that_hangs_holds_up_the_keeper, World, "Settles"),
    (unheard_of_is_taken_for_gone, RivalWorld, "StopsForCause"),
    (bad_definitions_are_let_in, World, "Settles"),
    (versions_are_not_compared, RivalWorld, "NeverTwice"),
    (specs_are_touched, World, "NeverLost"),
    (moments_are_forgotten, World, "Settles"),
    (failures_are_not_tried_again, World, "Settles"),
    (some_events_are_not_heard, World, "Settles"),
    (versions_go_back_with_the_backup, RestoreWorld, "Settles"),
    (versions_go_back_with_the_backup, RestoreWorld, "TokensRise"),
    (versions_go_on_by_a_thousand, RestoreWorld, "TokensRise"),
    (restored_locks_keep_their_versions, RestoreWorld, "TokensRise"),
    (nobody_waits_for_what_a_restored_store_does_not_know, RestoreWorld, "NeverTwice"),
    (how_forgotten_attempts_ended_is_lost, RestoreWorld, "StartsOnce"),
]


@pytest.mark.parametrize(("plant", "world", "promise"), BUGS, ids=[bug[0].__name__ for bug in BUGS])
def test_a_planted_bug_is_caught(
    plant: Plant, world: type[World], promise: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    broken: dict[str, int] = {}
    for seed in range(MOST_WORLDS):
        # Every other world is the busy one, with other luck each time.
        busy = RESTORES if world is RestoreWorld else BUSY
        outcome = (world(seed, busy, CALM) if seed % 2 else world(seed)).run()
        if outcome.broken is not None:
            broken.setdefault(outcome.broken.promise, seed)
        if promise in broken:
            return

    pytest.fail(f"{promise} was not broken; broken were {broken}")
