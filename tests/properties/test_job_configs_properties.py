"""Whatever the looks, crashes, edits and rivals: every due time is accounted for exactly once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.resources.actions import Decision
from interlock.resources.admission import AdmissionPhase
from interlock.resources.job import WhenTaken
from interlock.resources.job_config import CatchUp, CatchUpPolicy, Concurrency, JobConfig
from interlock.resources.schedule import HistoryLimits, scheduled_at
from interlock.resources.transitions import has_ended, is_admitted
from interlock.resources.values.durations import Duration
from interlock.schedules.configs.reading import digest_of
from interlock.testing.builders import T0
from interlock.testing.config_builders import a_job_config, a_schedule, a_template
from support.config_desk import ConfigDesk, Plane

#: Cron lines with the length of their period, so that what is due is known without reading them.
LINES = {"*/20 * * * * * *": 20, "* * * * *": 60, "*/2 * * * *": 120, "*/5 * * * *": 300}

PAUSES = [0, 1, 20, 59, 60, 61, 119, 300, 301, 1000, 4000]
BACKWARDS = [-1, -45, -600]

CATCH_UPS = [
    CatchUp(),
    CatchUp(at_most=1),
    CatchUp(at_most=0),
    CatchUp(at_most=3, not_older_than=Duration(minutes=2)),
    CatchUp(policy=CatchUpPolicy.ONLY_NEWEST),
    CatchUp(policy=CatchUpPolicy.SKIP_ALL),
    CatchUp(policy=CatchUpPolicy.SKIP_ALL, missed_after=Duration(seconds=1)),
    CatchUp(at_most=0, missed_after=Duration(minutes=5)),
    CatchUp(not_older_than=Duration(seconds=1), missed_after=Duration(seconds=20)),
]
CONCURRENCIES = [
    Concurrency(policy=WhenTaken.ALLOW),
    Concurrency(policy=WhenTaken.FORBID),
    Concurrency(policy=WhenTaken.FORBID, max_concurrency=2),
    Concurrency(policy=WhenTaken.ENQUEUE, max_queued=2),
    Concurrency(policy=WhenTaken.REPLACE),
]

Step = Callable[["World"], None]


class World:
    """A config with two control planes that both believe they lead, and everybody else."""

    def __init__(self, config: JobConfig) -> None:
        self.desk = ConfigDesk(config, at=T0 + timedelta(seconds=4))
        self.planes = (self.desk.a_plane(), self.desk.a_plane())
        self.pending: dict[Plane, Decision] = {}
        self.known = self.desk.config()
        #: When each due time was let in, and who was written down for it.
        self.started: dict[datetime, str] = {}
        self.written: dict[datetime, str] = {}

    @property
    def now(self) -> datetime:
        return self.desk.clock.now()

    # What the planes do

    def look(self, number: int) -> None:
        plane = self.planes[number]
        self.pending[plane] = plane.look("report", self.now)

    def apply(self, number: int, most: int | None) -> None:
        plane = self.planes[number]
        decision = self.pending.pop(plane, Decision())
        for at in range(len(decision.actions[:most])):
            # One by one: a crash, a rival or a person may come between any two of them.
            if not plane.apply(Decision(decision.actions[at : at + 1])):
                break
            self.check_books()

    # What the others do

    def edit_line(self, line: str) -> None:
        self.desk.edit(schedules=(a_schedule(line),))
        self._edited()

    def suspend(self, is_suspended: bool) -> None:
        self.desk.edit(suspend=is_suspended)
        self._edited()

    def _edited(self) -> None:
        self.known = self.desk.config()

    def admit(self, nth: int) -> None:
        """Let in one that is written down: the admission room lets in no other."""
        books = {each.uid for each in self.desk.config().status.books.expected}
        waiting = [
            job
            for job in self.desk.jobs.values()
            if job.metadata.uid in books
            and job.status.admission.phase is AdmissionPhase.WAITING
            and not job.is_going
        ]
        if waiting:
            job = waiting[nth % len(waiting)]
            due = scheduled_at(job)
            assert due is not None
            assert due not in self.started, "run twice"
            self.started[due] = job.metadata.uid
            self.desk.admit(job.metadata.name)

    def end(self, nth: int) -> None:
        running = [j for j in self.desk.jobs.values() if is_admitted(j) and not has_ended(j)]
        if running:
            self.desk.end(running[nth % len(running)].metadata.name)

    def remove(self, nth: int) -> None:
        """A person deletes a Job that does not run, or one that is over goes."""
        idle = [j for j in self.desk.jobs.values() if not is_admitted(j) or has_ended(j)]
        if idle:
            self.desk.remove(idle[nth % len(idle)].metadata.name)

    # What must hold

    def check_books(self) -> None:
        """Hold each write of the books against what was due in the time that it accounts for."""
        before, after = self.known, self.desk.config()
        self.known = after
        was, now = before.status.books, after.status.books
        if was.accounted_to is not None:
            assert now.accounted_to is not None
            assert now.accounted_to >= was.accounted_to, "the books go back"
        known = {each.uid for each in was.expected}
        new = [each for each in now.expected if each.uid not in known]
        skips = after.status.skipped - before.status.skipped
        if was.schedule_hash and was.schedule_hash != now.schedule_hash:
            assert not new, "an edit fires something"
            return
        begin = was.accounted_to or was.since or after.metadata.creation_timestamp
        assert begin is not None
        due = due_between(after, begin, now.accounted_to or begin)
        for each in new:
            assert each.scheduled_at in due
            assert each.scheduled_at not in self.written, "two Jobs for one due time"
            self.written[each.scheduled_at] = each.uid
        if was.schedule_hash or after.metadata.generation == 1:
            assert len(new) + skips == len(due), "not accounted for exactly once"

    def check_settled(self) -> None:
        """With nothing more happening, all that was due is accounted for and nothing is left."""
        self.desk.plane = self.desk.a_plane()
        self.known = self.desk.config()
        for _ in range(50):
            decision = self.desk.look()
            self.check_books()
            if not decision.actions:
                break
            for name, job in self.desk.jobs.items():
                if job.is_going and not is_admitted(job):
                    self.desk.let_go(name)
            self.desk.at(self.now + timedelta(milliseconds=100))
        config = self.desk.config()
        books = config.status.books
        last = books.accounted_to or books.since
        assert last is not None
        assert not due_between(config, last, self.now), "left over"
        assert not decision.actions
        coming = due_between(config, max(self.now, last), max(self.now, last) + timedelta(hours=1))
        assert config.status.next_schedule == min(coming, default=None)
        in_books = {each.uid for each in books.expected}
        for job in self.desk.jobs.values():
            if not is_admitted(job) and not has_ended(job) and not job.is_going:
                due = scheduled_at(job)
                assert due is not None
                assert job.metadata.uid in in_books or due > self.now, "a stray is left"


def due_between(config: JobConfig, begin: datetime, end: datetime) -> set[datetime]:
    """What is due after `begin` and until `end`, by counting minutes."""
    if config.spec.suspend:
        return set()
    period = LINES[config.spec.schedules[0].cron.lines[0]]
    first = int(begin.timestamp()) // period + 1
    last = int(end.timestamp()) // period
    return {datetime.fromtimestamp(n * period, T0.tzinfo) for n in range(first, last + 1)}


def steps(pauses: list[int]) -> st.SearchStrategy[Step]:
    planes, nth = st.integers(0, 1), st.integers(0, 3)

    def pause(seconds: int) -> Step:
        return lambda world: world.desk.at(world.now + timedelta(seconds=seconds))

    def hear(number: int) -> Step:
        return lambda world: world.planes[number].hear()

    def act(number: int, most: int | None) -> Step:
        def run(world: World) -> None:
            world.planes[number].hear()
            world.look(number)
            world.apply(number, most)

        return run

    most = st.sampled_from([None, None, 0, 1, 2])
    return st.one_of(
        st.builds(pause, st.sampled_from(pauses)),
        st.builds(hear, planes),
        st.builds(lambda n: lambda world: world.look(n), planes),
        st.builds(lambda n, m: lambda world: world.apply(n, m), planes, most),
        st.builds(act, planes, most),
        st.builds(act, planes, most),
        st.builds(lambda line: lambda world: world.edit_line(line), st.sampled_from(list(LINES))),
        st.builds(lambda s: lambda world: world.suspend(s), st.booleans()),
        st.builds(lambda: lambda world: world.desk.edit(template=a_template("false"))),
        st.builds(lambda n: lambda world: world.admit(n), nth),
        st.builds(lambda n: lambda world: world.end(n), nth),
        st.builds(lambda n: lambda world: world.remove(n), nth),
    )


CONFIGS = st.builds(
    lambda line, catch_up, concurrency: a_job_config(
        "report",
        a_schedule(line),
        catch_up=catch_up,
        concurrency=concurrency,
        history=HistoryLimits(succeeded=1, failed=1),
    ),
    st.sampled_from(list(LINES)),
    st.sampled_from(CATCH_UPS),
    st.sampled_from(CONCURRENCIES),
)


@settings(max_examples=300, deadline=None)
@given(config=CONFIGS, taken=st.lists(steps(PAUSES), max_size=40))
def test_every_due_time_is_accounted_for_exactly_once(config: JobConfig, taken: list[Step]) -> None:
    """Two rivals with old views, crashes between any two writes, edits and deletions."""
    world = World(config)
    for step in taken:
        step(world)
    world.check_settled()


@given(
    line=st.sampled_from([*LINES, "* * * * * * *"]),
    catch_up=st.sampled_from(CATCH_UPS),
    outage=st.sampled_from([1, 2, 19, 20, 21, 59, 60, 61, 300, 301, 1000]),
    late=st.sampled_from([0.0, 0.001, 0.999]),
)
def test_what_was_missed_is_run_by_the_policy_and_what_is_on_time_in_any_case(
    line: str, catch_up: CatchUp, outage: int, late: float
) -> None:
    """One rule for every line, of seconds or of minutes."""
    period = LINES.get(line, 1)
    allow = Concurrency(policy=WhenTaken.ALLOW, max_queued=2000)
    config = a_job_config("report", a_schedule(line), catch_up=catch_up, concurrency=allow)
    desk = ConfigDesk(config, at=T0)
    desk.settle()

    now = T0 + timedelta(seconds=outage + late)
    desk.settle_at(now)

    found = [T0 + timedelta(seconds=n) for n in range(period, outage + 1, period)]
    runs = {at for job in desk.jobs.values() if (at := scheduled_at(job)) is not None}
    newest = found[-1] if found else T0
    on_time = {newest} & set(found) if now - newest < catch_up.missed_after else set()
    missed = [at for at in found if at not in on_time]
    young = [at for at in missed if now - at <= catch_up.not_older_than]
    if catch_up.policy is CatchUpPolicy.SKIP_ALL or not catch_up.at_most:
        assert runs == on_time
    elif catch_up.policy is CatchUpPolicy.ONLY_NEWEST:
        assert runs == (on_time or set(young[-1:]))
    else:
        # The one on time is the newest of those that atMost counts.
        assert runs == {*[*young, *on_time][: catch_up.at_most]}
    assert desk.config().status.skipped == len(found) - len(runs)


@settings(max_examples=150, deadline=None)
@given(config=CONFIGS, taken=st.lists(steps([*PAUSES, *BACKWARDS]), max_size=40))
def test_a_clock_that_goes_back_makes_nothing_run_twice(
    config: JobConfig, taken: list[Step]
) -> None:
    world = World(config)
    for step in taken:
        step(world)
    world.check_settled()


@settings(max_examples=150, deadline=None)
@given(
    config=CONFIGS,
    taken=st.lists(steps(PAUSES), max_size=20),
    line=st.sampled_from(list(LINES)),
    late=st.sampled_from(PAUSES),
)
def test_nothing_from_before_an_edit_fires(
    config: JobConfig, taken: list[Step], line: str, late: int
) -> None:
    world = World(config)
    for step in taken:
        step(world)
    was = world.desk.config()
    world.desk.edit(suspend=False, schedules=(a_schedule(line),))
    world.known = now = world.desk.config()
    edited_at = world.now
    # One that was undone before anybody looked leaves no trace, and is none.
    is_other = was.status.books.schedule_hash != digest_of(now)
    written = dict(world.written)

    world.desk.at(world.now + timedelta(seconds=late))
    world.check_settled()

    if is_other and was.status.books.schedule_hash:
        new = set(world.written) - set(written)
        assert all(at > edited_at for at in new)
