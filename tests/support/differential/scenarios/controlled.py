"""ControlledJobs: what is started and stopped, and what a person says about it."""

from __future__ import annotations

from support.differential.scenario import Exits, Object, Waits
from support.differential.schedule_play import OPEN, SHUT, Holds, SchedulePlay


def window(play: SchedulePlay) -> None:
    """One Job runs in the window, and is stopped when it closes."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.tell_controlled("e")
    play.change("ControlledJob", "e", events=SHUT)
    play.until_job("e#1", "Killed")
    play.until("ControlledJob", "e", "is at rest", _is_idle)
    play.tell_controlled("e")
    play.tell_jobs()


def suspended(play: SchedulePlay) -> None:
    """Suspended nothing runs; resumed the window goes on."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.verb("suspend", "controlledjob/@e")
    play.until_job("e#1", "Killed")
    play.verb("resume", "controlledjob/@e")
    play.until_running("e#2")
    _end(play)


def stopped_by_user(play: SchedulePlay) -> None:
    """What a person stopped stays so in this window, until a person starts it."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.verb("stop", "@e")
    play.until_job("e#1", "Killed")
    play.until("ControlledJob", "e", "was stopped by a person", _came_to("StoppedByUser"))
    play.tell_controlled("e")
    play.verb("start", "@e")
    play.until_running("e#2")
    _end(play)


def restart(play: SchedulePlay) -> None:
    """A person has a new one take its place."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.verb("restart", "@e")
    play.until_job("e#1", "Killed")
    play.until_running("e#2")
    _end(play)


def hold(play: SchedulePlay) -> None:
    """On hold nothing runs; the hold is taken back."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.verb("hold", "@e", "--until", "2090-01-05", "--reason", "rest")
    play.until_job("e#1", "Killed")
    play.until("ControlledJob", "e", "is at rest", _is_idle)
    play.tell_controlled("e")
    play.verb("hold", "@e", "--cancel")
    play.until_running("e#2")
    _end(play)


def skip(play: SchedulePlay) -> None:
    """A window that is left out is not there, until the exception is taken back."""
    exception = {"action": "Skip", "from": "2000-01-01T00:00:00Z", "until": "2090-01-01T00:00:00Z"}
    play.controlled("e", Waits(), overrides=[exception])
    play.until("ControlledJob", "e", "was looked at", lambda status: "conditions" in status)
    play.tell_controlled("e")
    play.verb("skip", "@e", "--cancel")
    play.until_running("e#1")
    _end(play)


def recreate(play: SchedulePlay) -> None:
    """A new template takes over under Recreate."""
    play.controlled("e", Waits(), restartStrategy={"specChangePolicy": "Recreate"})
    play.until_running("e#1")
    play.change("ControlledJob", "e", jobTemplate={"spec": {"title": "new"}})
    play.until_job("e#1", "Killed")
    play.until_running("e#2")
    _end(play)


def ignore(play: SchedulePlay) -> None:
    """A new template waits for the next window under Ignore."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.change("ControlledJob", "e", jobTemplate={"spec": {"title": "new"}})
    play.until("ControlledJob", "e", "is out of date", _says("OutOfDate"))
    _end(play)


def finished(play: SchedulePlay) -> None:
    """What is done is done, even when its Job is removed."""
    play.controlled("e", Exits(0))
    play.until_job("e#1", "Succeeded")
    play.until("ControlledJob", "e", "is finished", _came_to("Finished"))
    play.delete_job("e#1")
    _end(play)


def failed(play: SchedulePlay) -> None:
    """What failed stays so until the template is mended."""
    play.controlled("e", Exits(3), restartStrategy={"specChangePolicy": "Recreate"})
    play.until_job("e#1", "Failed")
    play.until("ControlledJob", "e", "has failed", _came_to("Failed"))
    play.tell_controlled("e")
    play.change("ControlledJob", "e", jobTemplate={"spec": {"title": "mended"}})
    play.until_job("e#2", "Failed")
    play.until("ControlledJob", "e", "has failed", _came_to("Failed"))
    _end(play)


def removed(play: SchedulePlay) -> None:
    """What a person removes is made again."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.delete_job("e#1")
    play.until_running("e#2")
    _end(play)


def too_late(play: SchedulePlay) -> None:
    """A window whose start is long past is left alone when it says so."""
    play.controlled("e", Waits(), startBy="1m")
    play.until("ControlledJob", "e", "is too late", _says("StartingDeadlineExceeded"))
    play.tell_controlled("e")
    play.until_jobs(0)


def outside(play: SchedulePlay) -> None:
    """Outside a window a person may start it; what is done by then counts for a window that is
    opened around it.
    """
    play.controlled("e", Waits(), events=SHUT)
    play.until("ControlledJob", "e", "was looked at", lambda status: "conditions" in status)
    play.verb("start", "@e")
    play.until_running("e#1")
    play.let_go("e#1")
    play.change("ControlledJob", "e", events=OPEN)
    play.until("ControlledJob", "e", "is finished", _came_to("Finished"))
    _end(play)


def outage(play: SchedulePlay) -> None:
    """Nobody looks while the window closes: the Job is stopped all the same, later."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    with play.outage(1):
        pass
    play.change("ControlledJob", "e", events=SHUT)
    play.until_job("e#1", "Killed")
    _end(play)


def deleted(play: SchedulePlay) -> None:
    """Its Job goes with it."""
    play.controlled("e", Waits())
    play.until_running("e#1")
    play.delete("ControlledJob", "e")
    play.until_jobs(0)


def _end(play: SchedulePlay) -> None:
    """Stop all there is, and tell what came of it."""
    play.change("ControlledJob", "e", suspend=True)
    play.until("ControlledJob", "e", "is suspended, at rest", _is_suspended)
    play.tell_controlled("e")
    play.tell_jobs()


def _is_idle(status: Object) -> bool:
    return not status.get("active") and not status.get("shouldBeRunning")


def _is_suspended(status: Object) -> bool:
    return _is_idle(status) and bool(status.get("isSuspended"))


def _came_to(outcome: str) -> Holds:
    return lambda status: (status.get("window") or {}).get("outcome") == outcome


def _says(condition: str) -> Holds:
    return lambda status: (
        condition
        in [each["type"] for each in status.get("conditions", ()) if each["status"] == "True"]
    )


CONTROLLED = (
    window,
    suspended,
    stopped_by_user,
    restart,
    hold,
    skip,
    recreate,
    ignore,
    finished,
    failed,
    removed,
    too_late,
    outside,
    outage,
    deleted,
)
