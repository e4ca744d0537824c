"""JobConfigs: what is made, what is skipped and why.

Left out is what depends on how fast a stage is: how many Jobs a policy of Replace ends that is due
every second, what is found just after an edit (ScheduleChanged), and what needs an outage of a
minute and more (SkipAll, TooOld). The simulation plays those on a clock of its own.
"""

from __future__ import annotations

from support.differential.scenario import Exits, Waits
from support.differential.schedule_play import Holds, SchedulePlay

#: A stage that stands still for some seconds finds many due times at once: none is too many, or
#: that would be told as well.
_ALL: dict[str, object] = {"atMost": 100}


def forbid(play: SchedulePlay) -> None:
    """While one runs, what is due is skipped."""
    play.config("c", Waits(), concurrency={"policy": "Forbid"}, catchUp=_ALL)
    play.until_running("c#1")
    play.until("JobConfig", "c", "skips", lambda status: status.get("skipped"))
    _suspend(play)
    play.tell_skips("c")
    play.let_go("c#1")
    play.tell_jobs()


def forbid_two(play: SchedulePlay) -> None:
    """As many as may run do."""
    play.config("c", Waits(), concurrency={"policy": "Forbid", "maxConcurrency": 2})
    play.until_running("c#1")
    play.until_running("c#2")
    play.until("JobConfig", "c", "skips", lambda status: status.get("skipped"))
    _suspend(play)
    play.let_go("c#2")
    play.let_go("c#1")
    play.tell_jobs()


def queue_full(play: SchedulePlay) -> None:
    """One runs, one waits, and what is due beside them is skipped."""
    play.config("c", Waits(), concurrency={"policy": "Enqueue", "maxQueued": 1}, catchUp=_ALL)
    play.until_running("c#1")
    play.until("JobConfig", "c", "skips", lambda status: status.get("skipped"))
    _suspend(play)
    play.tell_skips("c")
    play.let_go("c#1")
    play.until_running("c#2")
    play.let_go("c#2")
    play.tell_jobs()


def allow(play: SchedulePlay) -> None:
    """Nobody waits for anybody."""
    play.config("c", Waits(), concurrency={"policy": "Allow"})
    play.until_running("c#1")
    play.until_running("c#2")
    _suspend(play)
    play.let_all_go()
    play.tell_crowd()


def resume(play: SchedulePlay) -> None:
    """Suspended it makes nothing but what is asked for; resumed it goes on."""
    play.config("c", Waits(), suspend=True, concurrency={"policy": "Forbid"})
    play.verb("run", "@c")
    play.until_running("c#1")
    play.let_go("c#1")
    play.verb("resume", "jobconfig/@c")
    play.until_running("c#2")
    play.verb("suspend", "jobconfig/@c")
    _until_disabled(play)
    play.let_go("c#2")
    play.tell_jobs()


def options(play: SchedulePlay) -> None:
    """Options are checked, and put where the template names them."""
    given = [
        {"name": "region", "type": "Select", "values": ["emea", "apac"], "default": "emea"},
        {"name": "day", "required": True},
        {"name": "dry", "type": "Bool", "format": "YesNo"},
    ]
    args = ("${option.region}", "${option.day}", "${option.dry}")
    play.config("c", Exits(0, args), schedules=[], options=given)
    play.verb("run", "@c", code=2)
    play.verb("run", "@c", "-O", "day=1", "-O", "region=mars", code=2)
    play.verb("run", "@c", "-O", "day=1", "-O", "region=apac", "-O", "dry=true")
    play.until_job("c#1", "Succeeded")
    play.tell_received("c#1")
    play.verb("run", "@c", "-O", "day=2")
    play.until_job("c#2", "Succeeded")
    play.tell_received("c#2")
    play.tell_jobs()


def option_missing(play: SchedulePlay) -> None:
    """A due time without the value of an option becomes no Job, and says why."""
    play.config("c", Exits(0), options=[{"name": "day", "required": True}], catchUp=_ALL)
    play.until("JobConfig", "c", "skips", lambda status: status.get("skipped"))
    _suspend(play)
    play.tell_skips("c")
    play.until_jobs(0)


def replace(play: SchedulePlay) -> None:
    """A new one takes the place of one that runs."""
    play.config("c", Waits(), schedules=[], concurrency={"policy": "Replace"})
    play.verb("run", "@c")
    play.until_running("c#1")
    play.verb("run", "@c")
    play.until_job("c#1", "Killed")
    play.until_running("c#2")
    play.let_go("c#2")
    play.tell_jobs()


def refused(play: SchedulePlay) -> None:
    """What is asked for while one runs that forbids it is refused."""
    play.config("c", Waits(), schedules=[], concurrency={"policy": "Forbid"})
    play.verb("run", "@c")
    play.until_running("c#1")
    play.verb("run", "@c", code=75)
    play.until_job("c#2", "Refused")
    play.let_go("c#1", 3)
    play.tell_jobs()


def more_at_once(play: SchedulePlay) -> None:
    """A limit that is raised lets in who waits."""
    play.config("c", Waits(), schedules=[])
    play.verb("run", "@c")
    play.until_running("c#1")
    play.verb("run", "@c")
    play.until_job("c#2", "Queued")
    play.change("JobConfig", "c", concurrency={"maxConcurrency": 2})
    play.until_running("c#2")
    play.let_go("c#1")
    play.let_go("c#2")
    play.tell_jobs()


def history(play: SchedulePlay) -> None:
    """Ended Jobs beyond the limits are removed, the oldest first."""
    play.config("c", Waits(), schedules=[], history={"succeeded": 1, "failed": 1})
    for number, code in enumerate((0, 0, 1, 1), 1):
        play.verb("run", "@c")
        play.until_running(f"c#{number}")
        play.let_go(f"c#{number}", code)
    play.until_jobs(2)
    play.tell_jobs()


def calendar(play: SchedulePlay) -> None:
    """A calendar that is not there, and then closes every day."""
    play.config("c", Exits(0), schedules=[_closed_on(play.own("days"))], catchUp=_ALL)
    play.until("JobConfig", "c", "misses its calendar", _skips("CalendarMissing"))
    play.calendar("days", "MON,TUE,WED,THU,FRI,SAT,SUN")
    play.until("JobConfig", "c", "keeps to its calendar", _skips("Calendar"))
    _suspend(play)
    play.tell_skips("c")
    play.until_jobs(0)


def only_newest(play: SchedulePlay) -> None:
    """After an outage the newest is run, and the others were missed."""
    policy = {"policy": "Allow"}
    play.config("c", Exits(0), concurrency=policy, catchUp={"policy": "OnlyNewest"})
    play.until("JobConfig", "c", "goes well", lambda status: "lastSuccess" in status)
    with play.outage(4):
        pass
    play.until("JobConfig", "c", "skips", _skips("Missed"))
    _suspend(play)
    play.tell_skips("c")


def too_many(play: SchedulePlay) -> None:
    """After an outage no more than some are run."""
    policy = {"policy": "Allow"}
    play.config("c", Exits(0), concurrency=policy, catchUp={"atMost": 2})
    play.until("JobConfig", "c", "goes well", lambda status: "lastSuccess" in status)
    with play.outage(6):
        pass
    play.until("JobConfig", "c", "skips", _skips("TooManyMissed"))
    _suspend(play)
    play.tell_skips("c")


def deleted(play: SchedulePlay) -> None:
    """Jobs go with their config, the one that runs too."""
    play.config("c", Waits(), concurrency={"policy": "Forbid"})
    play.until_running("c#1")
    play.delete("JobConfig", "c")
    play.until_jobs(0)


def _suspend(play: SchedulePlay) -> None:
    """Have no more Jobs made, and see that whoever makes them has heard of it."""
    play.change("JobConfig", "c", suspend=True)
    _until_disabled(play)


def _until_disabled(play: SchedulePlay) -> None:
    play.until("JobConfig", "c", "is disabled", lambda status: "nextSchedule" not in status)


def _closed_on(calendar: str) -> dict[str, object]:
    return {"cron": "* * * * * * *", "exclude": [calendar]}


def _skips(reason: str) -> Holds:
    return lambda status: reason in [skip["reason"] for skip in status.get("skips", ())]


CONFIGS = (
    forbid,
    forbid_two,
    queue_full,
    allow,
    resume,
    options,
    option_missing,
    replace,
    refused,
    more_at_once,
    history,
    calendar,
    only_newest,
    too_many,
    deleted,
)
