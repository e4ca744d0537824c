"""Following Jobs until they ended: lines of progress, and what they print."""

from __future__ import annotations

import selectors
import sys
from time import monotonic
from typing import Any

from interlock.client.errors import (
    INTERRUPTED,
    NOT_FOUND,
    OK,
    TIMED_OUT,
    UNREACHABLE,
    AnswerError,
    CommandError,
)
from interlock.client.kinds import JOBS
from interlock.client.outcomes import (
    attempts_of,
    execution_of,
    exit_code,
    fences_told,
    has_ended,
    has_started,
    is_ready,
    last_line,
    phase_of,
    waits_of,
    waits_told,
    way_out,
)
from interlock.client.reports import Excerpt
from interlock.client.watching import Feed
from interlock.modes.cli.main import tell
from interlock.modes.cli.not_found import other_verb
from interlock.modes.cli.output.formats import Terminal
from interlock.modes.cli.output.task_output import LogStream
from interlock.modes.cli.session import Session

#: How many tasks are shown at once while they print.
MOST_STREAMS = 64
#: After a Job's end, its output is waited for as long as it keeps coming within this time.
_QUIET_S = 20.0


class Follower:
    """Watches Jobs to their end and says how they get there, in one thread."""

    def __init__(
        self,
        session: Session,
        names: list[str],
        *,
        goal: str = "ended",
        timeout_s: float | None = None,
        shows_output: bool = False,
        progress: Terminal | None = None,
        quiet: bool = False,
    ) -> None:
        self._session = session
        self._names = list(dict.fromkeys(names))
        self._goal = goal
        self._deadline = monotonic() + timeout_s if timeout_s is not None else None
        self._shows_output = shows_output
        self._progress = progress or session.terminal
        #: No lines of progress, and of what is over only the newest attempts are shown.
        self._quiet = quiet
        #: Only the output of this task; None means of all.
        self.only_task: int | None = None
        #: Which part of each log; the task and the attempt are chosen here.
        self.excerpt = Excerpt()
        self._width = max(map(len, self._names))
        self._told: dict[str, str] = {}
        #: By Job, task, attempt, and the source where an attempt has several.
        self._streams: dict[tuple[str, int, int], dict[str, LogStream]] = {}
        self._troubles: set[str] = set()
        #: The Jobs as they last were, by name.
        self.jobs: dict[str, dict[str, Any]] = {}
        self._gone: set[str] = set()

    def run(self) -> int:
        """Stay until every Job has got there; the code of the first that did not do well."""
        fields = f"metadata.name={self._names[0]}" if len(self._names) == 1 else ""
        feed = Feed(self._session.api, JOBS, self._session.namespace, fields=fields)
        try:
            self._note(feed.start())
            self._check_all_found()
            while not self._all_there():
                if not self._step(feed):
                    return self._give_up()
            self._drain()
        except KeyboardInterrupt:
            self._leave_alone()
            return INTERRUPTED
        finally:
            feed.close()
            for stream in self._all_streams():
                stream.close()
        return next((code for code in map(self._code, self._names) if code != OK), OK)

    def _check_all_found(self) -> None:
        for name in self._names:
            if name not in self.jobs:
                hint = other_verb(self._session, name, "wait")
                raise CommandError(f"there is no job {name}", hint=hint, code=NOT_FOUND)

    def _all_there(self) -> bool:
        return all(self._is_there(name) for name in self._names)

    def _is_there(self, name: str) -> bool:
        job = self.jobs[name]
        return self._has_reached(job) or has_ended(job) or name in self._gone

    def _has_reached(self, job: dict[str, Any]) -> bool:
        """Whether a Job has come to what is waited for on its way to the end."""
        if self._goal == "ready":
            return is_ready(job)
        return self._goal == "started" and has_started(job)

    def _code(self, name: str) -> int:
        job = self.jobs[name]
        if self._has_reached(job):
            return OK
        return exit_code(job) if has_ended(job) else NOT_FOUND

    def _step(self, feed: Feed) -> bool:
        """Take in whatever comes next; False when the time is over."""
        for source in self._ready([feed, *self._open_streams()]):
            if isinstance(source, Feed):
                self._note(source.receive())
            else:
                source.receive()
        return self._deadline is None or monotonic() < self._deadline

    def _all_streams(self) -> list[LogStream]:
        return [stream for sources in self._streams.values() for stream in sources.values()]

    def _open_streams(self) -> list[LogStream]:
        return [stream for stream in self._all_streams() if not stream.done]

    def _ready(self, sources: list[Feed | LogStream], limit_s: float | None = None) -> list[Any]:
        here = [source for source in sources if source.answer.waiting]
        if here:
            return here
        left = None if self._deadline is None else max(0.0, self._deadline - monotonic())
        waits = [one for one in (left, limit_s) if one is not None]
        with selectors.DefaultSelector() as selector:
            for source in sources:
                selector.register(source.answer.fileno(), selectors.EVENT_READ, source)
            found = selector.select(min(waits) if waits else None)
        return [key.data for key, _ in found]

    def _drain(self) -> None:
        """Show what ended Jobs printed last."""
        while streams := self._open_streams():
            ready = self._ready(list(streams), _QUIET_S)
            if not ready:
                for stream in streams:
                    stream.close()
                return
            for stream in ready:
                stream.receive()

    def _note(self, changes: list[tuple[str, dict[str, Any]]]) -> None:
        for type, job in changes:
            name = job["metadata"]["name"]
            if name not in self._names:
                continue
            self.jobs[name] = job
            self._gone.discard(name)
            if type == "DELETED":
                self._gone.add(name)
            if self._shows_output:
                self._open_logs(name, job)
            self._tell(name, job)

    def _open_logs(self, name: str, job: dict[str, Any]) -> None:
        many = execution_of(job).get("total", 1) > 1
        attempts = attempts_of(job)
        if self._quiet and not self._streams:
            attempts = list(dict(attempts).items())
        for task, attempt in attempts:
            if self.only_task not in (None, task):
                continue
            if len(self._open_streams()) >= MOST_STREAMS:
                continue
            many = many and self.only_task is None
            mark = (
                f"{task}| " if many else "| " if self._progress.is_tty and not self._quiet else ""
            )
            self._open_log(name, task, attempt, mark)

    def _open_log(self, name: str, task: int, attempt: int, mark: str) -> None:
        """Follow the output of an attempt, from every source that there is by now."""
        held = self._streams.setdefault((name, task, attempt), {})
        if held and "batchJob" not in self.jobs[name]["spec"]:
            return
        excerpt = self.excerpt.of(task, attempt)
        try:
            for source, answer in self._session.reports.log(
                self._session.namespace, name, excerpt, held
            ):
                held[source] = LogStream(answer, mark)
        except CommandError as error:
            # Not there yet, mostly: it is tried again when the Job changes.
            if error.code == UNREACHABLE and error.message not in self._troubles:
                self._troubles.add(error.message)
                tell(error)

    def _tell(self, name: str, job: dict[str, Any]) -> None:
        line = self._line(name, job)
        if not line or self._told.get(name) == line:
            return
        self._told[name] = line
        if has_ended(job):
            # The last words of the Job come before the line that says how it ended.
            self._drain()
        if not self._quiet:
            self._progress.print(f"{name:<{self._width}}  {self._painted(job, line)}")

    def _painted(self, job: dict[str, Any], line: str) -> str:
        word, _, rest = line.partition(" ")
        return f"{self._progress.mood(phase_of(job), word)} {rest}".rstrip()

    def _line(self, name: str, job: dict[str, Any]) -> str:
        if has_ended(job):
            return last_line(job)
        if name in self._gone:
            return "deleted before it ended"
        phase = phase_of(job)
        if phase == "Queued":
            return self._waiting(name, job)
        if phase in ("RetryBackoff", "Retrying"):
            return f"retrying  {_last_failure(job)}"
        if phase == "Unknown":
            return f"unknown   what became of it cannot be proven; see: interlock why {name}"
        if phase == "Stuck":
            return f"stuck     nobody acts but a person; see: interlock op show {name}"
        if phase == "Reverting":
            return "undoing   what it did"
        if phase in ("Killing", "Terminating"):
            return "stopping"
        return f"started   {fences_told(job)}".rstrip() if has_started(job) else ""

    def _waiting(self, name: str, job: dict[str, Any]) -> str:
        if not waits_of(job):
            still = self._session.reports.standstill(self._session.namespace)
            return f"waiting   {still}" if still else ""
        try:
            why = self._session.reports.why(self._session.namespace, name)
            detail = "; ".join(filter(None, (wait.get("message") for wait in why["waits"])))
        except (AnswerError, KeyError, TypeError):
            detail = ""
        return f"waiting   {detail or waits_told(job)}"

    def _give_up(self) -> int:
        late = [name for name in self._names if not self._is_there(name)]
        for name in late:
            phase = phase_of(self.jobs[name])
            has_not = "is not ready" if self._goal == "ready" else f"has not {self._goal}"
            print(f"{name} {has_not} in time: it is {phase}", file=sys.stderr)
            if out := way_out(self.jobs[name]):
                print(f"  {out}", file=sys.stderr)
        return TIMED_OUT if late else OK

    def _leave_alone(self) -> None:
        left = " ".join(name for name in self._names if not has_ended(self.jobs.get(name, {})))
        if left:
            print(f"\n{left} goes on; stop it with: interlock stop {left}", file=sys.stderr)


def _last_failure(job: dict[str, Any]) -> str:
    execution = execution_of(job)
    failed = [one for one in execution.get("ended") or [] if one.get("result") != "Succeeded"]
    if not failed:
        return ""
    last = failed[-1]
    if last.get("message"):
        return str(last["message"])
    code, signal = last.get("exitCode"), last.get("signal")
    whose = f"task {last['index']}, " if execution.get("total", 1) > 1 else ""
    attempt = f"{whose}attempt {last['attempt'] + 1} ended with "
    return attempt + (f"signal {signal}" if signal else f"exit code {code}")


def follow(session: Session, names: list[str], args: Any) -> int:
    """Stay with Jobs as the flags of `run` and `retry` ask, and print them for programs."""
    as_data = bool(getattr(args, "output", ""))
    aside = args.follow or as_data
    follower = Follower(
        session,
        names,
        timeout_s=args.wait_timeout,
        shows_output=args.follow,
        progress=Terminal(sys.stderr) if aside else session.terminal,
    )
    code = follower.run()
    if as_data and code != INTERRUPTED:
        jobs = [follower.jobs[name] for name in names]
        session.terminal.data(jobs[0] if len(jobs) == 1 else jobs, args.output)
    return code
