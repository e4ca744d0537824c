"""Promises about ControlledJobs, whatever people, clocks, crashes and rivals do.

A real store, the real door and two control planes that see the store only when they are told to:
one that leads, and a rival that believes it does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.resources.actions import Decision
from interlock.resources.controlled_job import (
    ControlledJob,
    ControlledJobStatus,
    Override,
    OverrideAction,
    SpecChangePolicy,
    WindowOutcome,
)
from interlock.resources.job import Job, JobSpec
from interlock.resources.process import ProcessSpec
from interlock.resources.schedule import (
    SUSPEND_REASON_ANNOTATION,
    USER_STOP,
    ExpectedJob,
    JobTemplate,
    is_manual,
    is_of_schedule,
    scheduled_at,
)
from interlock.resources.transitions import has_ended, is_admitted
from interlock.schedules.controlled.decide import decide_controlled
from interlock.schedules.controlled.making import make_job
from interlock.schedules.controlled.plan import Standing, timetable_of
from interlock.schedules.controlled.runs import Fate, fate_of
from interlock.testing.controlled_builders import a_controlled, a_window, an_event, moment
from support.controlled_desk import NAME, ControlledDesk

T0 = moment("2026-03-28 08:00")
#: Windows that meet the limits: short and long, over midnight, a daily restart, a changing clock.
PLANS = (
    (a_window("09:00-17:00"),),
    (a_window("09:00-10:00"), a_window("11:00-12:00")),
    (a_window("22:00-02:30"),),
    (an_event("start", "09:00"), an_event("stop", "09:00")),
    (an_event("start", "09:00"), an_event("start", "10:00"), an_event("stop", "12:00")),
)
TEMPLATES = tuple(
    JobTemplate(spec=JobSpec(process=ProcessSpec(command=command)))
    for command in (("serve",), ("serve", "--new"), ())
)
HOURS = st.integers(-3, 30).map(lambda hours: timedelta(hours=hours / 2))

Act = Callable[["World"], object]


class World(ControlledDesk):
    """A desk that writes down what it sees, and a rival whose decisions come late."""

    def __init__(self, plan: int, policy: str) -> None:
        controlled = a_controlled(
            *PLANS[plan], policy=policy, zone="Europe/London", start_by="3h",
            created="2026-03-01 00:00",
        )  # fmt: skip
        super().__init__(controlled, at=T0)
        self.rival = self.a_plane()
        self.rival.hear()
        self.late: Decision | None = None
        #: Who was ever written down, and who was ever let in.
        self.written: set[str] = set()
        #: The number of everyone who was written down.
        self.numbers: dict[int, str] = {}
        #: Jobs that a person told to stop.
        self.stopped_by_hand: set[str] = set()
        #: Starts of windows that are done with: finished, or stopped by a person.
        self.done_with: set[datetime] = set()
        self.let_in: set[str] = set()
        #: Whether a person made a Job: then no window is done with that they may mean.
        self.is_begun_by_hand = False

    # What is drawn

    def pass_time(self, time: timedelta) -> None:
        """Time passes, or the clock is set back."""
        self.at(self.now + time)

    def look_and_crash(self, after: int) -> None:
        """Look, and die after so many writes."""
        self.plane.hear()
        decision = self.plane.look(self.now)
        self.plane.apply(decision, after)
        self.plane = self.a_plane()
        self.check()

    def rival_looks(self) -> None:
        """The rival decides by what it has heard, and is slow to act."""
        self.late = self.rival.look(self.now)

    def rival_acts(self) -> None:
        """What the rival decided reaches the store."""
        if self.late is not None:
            self.rival.apply(self.late)
            self.late = None
        self.check()

    def rival_hears(self) -> None:
        """The rival hears all there is."""
        self.rival.hear()

    def start_by_hand(self, hours_back: int) -> None:
        """A person makes a Job."""
        self.done_with.clear()
        self.is_begun_by_hand = True
        number = self.controlled.status.last_run_id + 1
        start = self.now - timedelta(hours=hours_back)
        job = make_job(self.controlled, start=start, number=number, stop=None, is_manual=True)
        if job.metadata.name not in self.jobs:
            self.put(job)

    def stop_by_hand(self) -> None:
        """A person stops what runs."""
        suitable = [job for job in self.jobs.values() if self._is_suitable(job)]
        for name in self.live:
            job = self.jobs[name]
            if job.is_going:
                continue
            self.stopped_by_hand.add(job.metadata.uid)
            self.revise(name, {SUSPEND_REASON_ANNOTATION: USER_STOP}, kill_at=self.now)
            start = scheduled_at(job)
            if suitable == [job] and start is not None:
                self.done_with.add(start)

    def pause_by_hand(self) -> None:
        """A person holds back whatever is not over, with the reason."""
        for name, job in self.jobs.items():
            if not has_ended(job) and not job.is_going:
                self.revise(name, {SUSPEND_REASON_ANNOTATION: USER_STOP}, suspend=True)

    def delete_all(self) -> None:
        """A person deletes the Jobs."""
        for name, job in self.jobs.items():
            if not job.is_going:
                self.delete(name)

    def end_one(self, result: str) -> None:
        """Work ends by itself."""
        for name in self.live[:1]:
            if self.jobs[name].status.execution.started_at is not None:
                self.end(name, result)

    def stick(self, is_stuck: bool) -> None:
        """Work does not stop when it is told to, or does again."""
        self.stubborn = set(self.jobs) if is_stuck else set()

    def override(self, action: OverrideAction, begin: timedelta, length: timedelta) -> None:
        """A person makes an exception."""
        one = Override(action=action, begin=self.now + begin, until=self.now + begin + abs(length))
        self.change(overrides=(*self.controlled.spec.overrides, one)[-3:])

    def change(self, **spec: Any) -> None:
        """A person changes when it is to run: windows may be others now."""
        self.done_with.clear()
        self.edit(**spec)

    def do_work(self) -> None:
        """The door and the work go on."""
        self.plane.admit(self.now)
        self.work()
        self.check()

    def _let_go(self, job: Job) -> None:
        """A Job goes in two steps, its end and then the object; whoever leads looks in between."""
        if job.is_going:
            self.look()
        super()._let_go(self.jobs.get(job.metadata.name, job))

    # What is promised

    def look(self) -> Decision:
        """Look with everything heard; what is made is noted."""
        self.plane.hear()
        decision = self.plane.look(self.now)
        assert decision.wake_at is None or decision.wake_at > self.now
        assert decision.actions or not decision.reason
        before = self.controlled
        self.plane.apply(decision)
        self._check_dropped(before, self.controlled)
        self.check()
        return decision

    def _check_dropped(self, before: ControlledJob, after: ControlledJob) -> None:
        """Exceptions that are removed make no difference any more."""
        if before.spec != after.spec:
            was, now = (timetable_of(each, {}).state_at(self.now) for each in (before, after))
            assert (was.is_inside, was.window) == (now.is_inside, now.window)

    def check(self) -> None:
        """Hold what is stored against the promises that always hold."""
        controlled = self.controlled
        for each in controlled.status.books.expected:
            self._check_number(each)
        for job in self.jobs.values():
            if is_admitted(job) and job.metadata.uid not in self.let_in:
                self._check_let_in(job)
        assert len(self.live) <= 1, "two run at once"
        self._check_records(controlled.status)

    def _check_number(self, expected: ExpectedJob) -> None:
        """Numbers of those who are written down are used once, and rise."""
        if expected.uid in self.written:
            return
        self.written.add(expected.uid)
        number = int(expected.name.rpartition("-")[2])
        assert number not in self.numbers, "a number is used twice"
        assert all(number > other for other in self.numbers), "numbers go back"
        self.numbers[number] = expected.uid

    def _check_let_in(self, job: Job) -> None:
        """Nobody runs who is not in the books, nor in a window that is done with."""
        self.let_in.add(job.metadata.uid)
        if is_of_schedule(job):
            assert job.metadata.uid in self.written, "runs and is not in the books"
        if not is_manual(job) and not self.is_begun_by_hand:
            assert scheduled_at(job) not in self.done_with, "runs though the window is done with"

    def _check_records(self, status: ControlledJobStatus) -> None:
        """The last start is one that was; nothing in the past is told to run."""
        records = [each for each in (status.window, *status.past_windows) if each is not None]
        starts = [each.start for each in records]
        assert len(set(starts)) == len(starts), "a window is told twice"
        assert status.last_scheduled_start_time in (*starts, None)
        assert all(each.outcome is not WindowOutcome.STARTED for each in status.past_windows)
        for each in records[:1]:
            if each.outcome in (WindowOutcome.FINISHED, WindowOutcome.STOPPED_BY_USER):
                self.done_with.add(each.start)

    def check_settled(self, decision: Decision) -> None:
        """Hold it against the promises about a world that is at rest."""
        controlled = self.controlled
        standing = timetable_of(controlled, {}).state_at(self.now)
        self._check_stops(standing)
        self._check_people()
        if standing.is_inside:
            self._check_inside(standing)
        assert decision.actions == ()
        assert decision.wake_at is None or decision.wake_at > self.now
        record = controlled.status.window
        is_patient = record is not None and record.outcome is WindowOutcome.STOPPED
        if not self.stubborn and not is_patient:
            assert decision.wake_at == standing.next_turn

    def _check_stops(self, standing: Standing) -> None:
        """At or after a stop, everyone who is for a time before it is told to stop, or is over."""
        for job in self.jobs.values():
            if has_ended(job) or job.is_going:
                continue
            is_told = fate_of(job, self.now) is not Fate.ALIVE
            nominal = scheduled_at(job)
            expired = standing.last_stop and nominal and nominal < standing.last_stop
            if standing.held or expired:
                assert is_told, "a stop was not kept"
            if standing.window is None and not is_manual(job):
                assert is_told, "it runs outside a window"
            if not is_told and standing.next_stop is not None:
                assert job.spec.kill_at is not None
                assert job.spec.kill_at <= standing.next_stop

    def _check_people(self) -> None:
        """What a person stopped is over or stopping, and nothing else runs in its stead."""
        for job in self.jobs.values():
            if job.metadata.uid in self.stopped_by_hand:
                assert fate_of(job, self.now) is not Fate.ALIVE

    def _check_inside(self, standing: Standing) -> None:
        """A suitable Job exists that may start, or the record says why there is none."""
        status = self.controlled.status
        record = status.window
        assert record is not None
        assert record.start == standing.start
        suitable = [job for job in self.jobs.values() if self._is_suitable(job)]
        if record.outcome is WindowOutcome.STARTED:
            assert suitable or any(job.is_going for job in self.jobs.values())
        else:
            assert not suitable
            assert record.outcome is not WindowOutcome.REMOVED_BY_USER or record.message
        if record.outcome is WindowOutcome.NEVER_STARTED:
            assert record.message
        assert len(suitable) <= 1
        for job in suitable:
            in_books = any(each.uid == job.metadata.uid for each in status.books.expected)
            assert is_admitted(job) or in_books or not is_of_schedule(job)

    def _is_suitable(self, job: Job) -> bool:
        return not has_ended(job) and fate_of(job, self.now) is Fate.ALIVE


def _parts(plan: tuple[object, ...]) -> dict[str, object]:
    spec = a_controlled(*plan).spec  # type: ignore[arg-type]
    return {"windows": spec.windows, "events": spec.events}


ACTS = st.one_of(
    HOURS.map(lambda time: lambda world: world.pass_time(time)),
    HOURS.map(lambda time: lambda world: world.pass_time(time)),
    st.just(lambda world: world.look()),
    st.just(lambda world: world.look()),
    st.just(lambda world: world.do_work()),
    st.just(lambda world: world.do_work()),
    st.just(lambda world: world.settle()),
    st.integers(0, 2).map(lambda after: lambda world: world.look_and_crash(after)),
    st.just(lambda world: world.rival_looks()),
    st.just(lambda world: world.rival_acts()),
    st.just(lambda world: world.rival_hears()),
    st.integers(0, 30).map(lambda hours: lambda world: world.start_by_hand(hours)),
    st.just(lambda world: world.stop_by_hand()),
    st.just(lambda world: world.pause_by_hand()),
    st.just(lambda world: world.delete_all()),
    st.sampled_from(["Succeeded", "Failed"]).map(lambda how: lambda world: world.end_one(how)),
    st.booleans().map(lambda is_stuck: lambda world: world.stick(is_stuck)),
    st.booleans().map(lambda suspend: lambda world: world.change(suspend=suspend)),
    st.sampled_from(TEMPLATES).map(lambda new: lambda world: world.edit(job_template=new)),
    st.sampled_from(PLANS).map(lambda plan: lambda world: world.change(**_parts(plan))),
    st.tuples(st.sampled_from(list(OverrideAction)), HOURS, HOURS).map(
        lambda drawn: lambda world: world.override(*drawn)
    ),
)


#: What comes last, so that it is seen what it leads to.
LAST: tuple[Act, ...] = (
    lambda world: world.pass_time(timedelta(hours=1)),
    lambda world: world.pass_time(timedelta(hours=9)),
    lambda world: world.change(suspend=True),
    lambda world: world.change(windows=(), events=()),
    lambda world: world.change(**_parts(PLANS[4])),
    lambda world: world.change(**_parts(PLANS[0])),
    lambda world: world.stop_by_hand(),
    lambda world: world.delete_all(),
)
#: Few acts that meet each other often: one window, somebody who is late, and somebody who crashes.
RACE: tuple[Act, ...] = (
    lambda world: world.settle(),
    lambda world: world.look(),
    lambda world: world.look_and_crash(1),
    lambda world: world.rival_hears(),
    lambda world: world.rival_looks(),
    lambda world: world.rival_acts(),
    lambda world: world.end_one("Succeeded"),
    lambda world: world.stop_by_hand(),
    lambda world: world.delete_all(),
    lambda world: world.do_work(),
)


@settings(max_examples=400)
@given(acts=st.lists(st.sampled_from(RACE), min_size=6, max_size=20))
def test_in_one_window_nobody_runs_twice_however_late_writes_land(acts: list[Act]) -> None:
    world = World(0, "Ignore")
    world.settle()
    world.at(T0 + timedelta(hours=2))
    world.rival_hears()
    world.rival_looks()
    for act in acts:
        act(world)
        world.check()
    world.check_settled(world.settle())


@settings(max_examples=250)
@given(
    plan=st.integers(0, len(PLANS) - 1),
    policy=st.sampled_from([each.value for each in SpecChangePolicy]),
    acts=st.lists(ACTS, min_size=1, max_size=25),
    last=st.sampled_from(LAST),
    is_begun=st.booleans(),
)
def test_windows_are_kept_whatever_people_clocks_crashes_and_rivals_do(
    plan: int, policy: str, acts: list[Act], last: Act, is_begun: bool
) -> None:
    world = World(plan, policy)
    if is_begun:
        world.settle_at(T0 + timedelta(hours=1, minutes=30))
    for act in acts:
        act(world)
        world.check()
    world.settle()
    last(world)
    world.check_settled(world.settle())


@settings(max_examples=60)
@given(
    plan=st.integers(0, len(PLANS) - 1),
    acts=st.lists(ACTS, min_size=1, max_size=15),
    looks=st.integers(1, 3),
)
def test_looking_again_changes_nothing_once_it_is_settled(
    plan: int, acts: list[Act], looks: int
) -> None:
    world = World(plan, "Ignore")
    for act in acts:
        act(world)
    settled = world.settle()
    before = world.controlled

    for _ in range(looks):
        assert world.look() == settled
    assert world.controlled == before


@settings(max_examples=60)
@given(
    plan=st.integers(0, len(PLANS) - 1),
    acts=st.lists(ACTS, min_size=1, max_size=15),
    seconds=st.integers(0, 3600),
)
def test_a_decision_depends_on_the_view_and_the_moment_alone(
    plan: int, acts: list[Act], seconds: int
) -> None:
    world = World(plan, "Recreate")
    for act in acts:
        act(world)
    world.plane.hear()
    controlled = world.plane.controlled.get(world.controlled.key)
    assert controlled is not None
    assert controlled.metadata.name == NAME
    now: datetime = world.now + timedelta(seconds=seconds)
    view = world.plane.side._view(controlled, now)
    other = replace(view, timetable=timetable_of(controlled, {}))

    assert decide_controlled(view, now) == decide_controlled(view, now)
    assert decide_controlled(other, now) == decide_controlled(view, now)
    # Nor does it matter what is remembered of Jobs that are over.
    assert decide_controlled(replace(view, over={}), now) == decide_controlled(view, now)
