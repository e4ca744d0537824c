"""Worlds with schedules: people write down when things are due, and trouble comes in between."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from interlock.forecast.rehearsal.simulated_machine import Machine
from interlock.resources.controlled_job import ControlledJob
from interlock.resources.job_config import JobConfig
from interlock.store.watching import Change
from support.simulation.door import Door, WatchedJournal
from support.simulation.faults import CALM, FaultRates, FaultyStore, Weather, Wire
from support.simulation.judge import Judge
from support.simulation.people import People
from support.simulation.schedule_judging import SchedulePromise
from support.simulation.schedule_people import SchedulePeople
from support.simulation.schedule_promises import SCHEDULE_PROMISES
from support.simulation.schedule_script import GROUNDS, with_nights, write_schedule_script
from support.simulation.script import PLANES, Act, JumpClock, Outage, Step
from support.simulation.world import LONGEST_JUMP_S, World

#: After trouble is over schedules go on for so many pieces of so many seconds, and are looked at
#: after each. Before, a clock that was wrong may have put something off by as much.
CALM_PIECES = 6
CALM_PIECE_S = 97.0
FIRST_CALM_S = 130.0
#: Before this piece people make exceptions, which last for some of them.
EXCEPTIONS_AT = 1


class ScheduleWorld(World):
    """One seed's world with JobConfigs and ControlledJobs."""

    name = "ScheduleWorld"

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        drawn = Random(f"{seed}:schedules")
        zone, self.epoch = drawn.choice(GROUNDS)
        self._down_until = 0.0
        super().__init__(seed, script, rates)
        if script is None:
            written = write_schedule_script(drawn, zone, self.epoch)
            self.script = with_nights(written, Random(f"{seed}:nights"), zone, self.epoch)
        outages = sum(step.act.seconds for step in self.script if isinstance(step.act, Outage))
        self.truth.patience += outages + 60.0

    def committed(self, change: Change) -> None:
        """A write was committed; when a schedule was changed is remembered."""
        before, after = change.before, change.event.resource
        if isinstance(after, JobConfig | ControlledJob) and _schedule(before) != _schedule(after):
            self.truth.edited[after.metadata.uid] = self._now()
        super().committed(change)

    def _lay_ground(self) -> None:
        self._promises = [promise(self.truth) for promise in SCHEDULE_PROMISES]
        self.judge = Judge(self.truth, self._promises)
        luck = Random(f"{self.seed}:machine")
        self.machine = Machine(self.loop, luck, self.history, self.epoch)
        self.machine.started.append(self.judge.started)
        self.machine.ended.append(self.judge.ended)
        self.machine.stopped.append(self.judge.stopped)

    def _people(self) -> People:
        process = self.loop.start_process("user")
        self._user = process
        luck = Random(f"{self.seed}:people")
        wire = Wire(self.loop, process, self.store_process, Weather(CALM), luck, lambda _: None)
        self.journal = WatchedJournal(self.judge.deed)
        door = Door(self.store, self.journal, self._now, self.truth)
        self._schedulers = SchedulePeople(
            FaultyStore(door, wire, self.loop, self.truth),
            self.truth,
            self._now,
            past_the_door=FaultyStore(self.store, wire, self.loop, self.truth),
        )
        return self._schedulers

    def _shake(self, act: Act) -> bool:
        if isinstance(act, Outage):
            self._down_until = max(self._down_until, self.loop.time() + act.seconds)
            for number in range(PLANES):
                self.crash(number, "by an outage")
            return True
        return super()._shake(act)

    def _restart(self, number: int) -> None:
        left = self._down_until - self.loop.time()
        if left > 0:
            context = self.loop.world.context.copy()
            self.loop.call_later(left, self._restart, number, context=context)
            return
        super()._restart(number)

    def _settle(self) -> None:
        """Let schedules go on undisturbed for a while, then suspend them all and settle."""
        self._down_until = 0.0
        self._end_trouble()
        jumped = any(isinstance(step.act, JumpClock) for step in self.script)
        self.loop.run_until(self.loop.time() + (LONGEST_JUMP_S if jumped else FIRST_CALM_S))
        for piece in range(CALM_PIECES):
            if piece == EXCEPTIONS_AT:
                luck = Random(f"{self.seed}:exceptions")
                self.loop.spawn(self._user, self._schedulers.make_exceptions(luck))
            self.loop.run_until(self.loop.time() + CALM_PIECE_S)
            for promise in self._promises:
                if isinstance(promise, SchedulePromise):
                    promise.calm(self._now())
        self.loop.spawn(self._user, self._schedulers.put_to_rest())
        super()._settle()


#: Clocks of rivals differ by no more: two who go by different hours for ever, each telling the
#: other's status wrong, do no harm to what runs, but they never settle.
RIVALS_APART_S = 30.0


class RivalScheduleWorld(ScheduleWorld):
    """Both control planes believe that they lead: what is run once may not rest on the lease."""

    name = "RivalScheduleWorld"
    rivals = True

    def __init__(
        self, seed: int, script: tuple[Step, ...] | None = None, rates: FaultRates | None = None
    ) -> None:
        super().__init__(seed, script, rates)
        self.script = tuple(replace(step, act=_gently(step.act)) for step in self.script)


def _gently(act: Act) -> Act:
    if isinstance(act, JumpClock):
        seconds = max(-RIVALS_APART_S, min(act.seconds, RIVALS_APART_S))
        return replace(act, seconds=seconds)
    return act


def _schedule(resource: object) -> object:
    if isinstance(resource, JobConfig):
        return resource.spec.schedules, resource.spec.suspend
    return None
