"""The registry of verbs. Only this table is read for `interlock --help`."""

from __future__ import annotations


class Verb:
    """A word to type, and the module that does it."""

    __slots__ = ("group", "name", "summary", "takes_command")

    def __init__(self, group: str, name: str, summary: str, *, takes_command: bool = False) -> None:
        self.group = group
        self.name = name
        self.summary = summary
        #: Everything after `--` is a command to run.
        self.takes_command = takes_command

    @property
    def module(self) -> str:
        """Where `arguments(parser)` and `run(session, args)` of the verb are."""
        # A module cannot have the name of a word of Python.
        name = "import_" if self.name == "import" else self.name
        return f"interlock.modes.cli.verbs.{name}"


_RUN, _SEE, _STEER, _SCHEDULE, _DEFINE, _SERVE = (
    "Run and wait",
    "Look",
    "Steer Jobs",
    "Steer schedules",
    "Definitions",
    "The server and this program",
)

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(_RUN, "run", "run a command as a Job, or a JobConfig on demand", takes_command=True),
        Verb(_RUN, "wait", "wait until Jobs ended, or started"),
        Verb(_RUN, "logs", "what a Job printed"),
        Verb(_SEE, "get", "list resources, or show some by name"),
        Verb(_SEE, "describe", "everything about one resource"),
        Verb(_SEE, "watch", "changes as they happen"),
        Verb(_SEE, "why", "why something is (not) running, and what would change it"),
        Verb(_SEE, "top", "a live view of Jobs and locks"),
        Verb(_SEE, "locks", "who holds and who waits for each lock"),
        Verb(_SEE, "queues", "of each queue what of its quota is used, and how many wait"),
        Verb(_SEE, "queue", "who holds the quota of a queue, who waits, and why"),
        Verb(_SEE, "slots", "the slots of test beds: who is in which, and who waits"),
        Verb(_SEE, "next", "what will start, stop, run and be skipped, and why"),
        Verb(_SEE, "timeline", "windows, runs and skips as a picture"),
        Verb(_SEE, "history", "what was decided, and for which reason"),
        Verb(_STEER, "kill", "end Jobs at once (SIGKILL)"),
        Verb(_STEER, "stop", "end Jobs gracefully (SIGTERM, then SIGKILL after the grace period)"),
        Verb(_STEER, "suspend", "hold back Jobs, JobConfigs and ControlledJobs"),
        Verb(_STEER, "resume", "let what was suspended go on"),
        Verb(_STEER, "requeue", "put Jobs back: stopped, everything given back, waiting again"),
        Verb(_STEER, "op", "operations: show them, and decide about those that are stuck"),
        Verb(_STEER, "sweep", "have operations looked at that were left alone for too long"),
        Verb(_STEER, "retry", "run a Job again, as a new Job"),
        Verb(_STEER, "release", "end a Job whose fate cannot be proven, and free its locks"),
        Verb(_SCHEDULE, "enable", "switch the schedules of a JobConfig on"),
        Verb(_SCHEDULE, "disable", "switch the schedules of a JobConfig off"),
        Verb(_SCHEDULE, "start", "start a ControlledJob by hand"),
        Verb(_SCHEDULE, "restart", "stop the Job of a ControlledJob, and start the next"),
        Verb(_SCHEDULE, "skip", "leave out a start of a ControlledJob"),
        Verb(_SCHEDULE, "extend", "let a ControlledJob run longer, once"),
        Verb(_SCHEDULE, "hold", "let nothing of a ControlledJob run until a moment"),
        Verb(_DEFINE, "apply", "create or change what files define"),
        Verb(_DEFINE, "diff", "what apply would change"),
        Verb(_DEFINE, "plan", "the coming days with a change beside those without it"),
        Verb(_DEFINE, "simulate", "play a scenario on simulated time"),
        Verb(_DEFINE, "check", "validate files without a server"),
        Verb(_DEFINE, "import", "crontabs, CronJobs and others as definitions of ours"),
        Verb(_DEFINE, "delete", "delete resources"),
        Verb(_SERVE, "up", "start the server"),
        Verb(_SERVE, "worker", "run the steps of operations written in Python"),
        Verb(_SERVE, "controller", "start the controller of a Kubernetes cluster"),
        Verb(_SERVE, "backup", "copy the server's whole state into a file"),
        Verb(_SERVE, "restore", "put a backup into a data directory"),
        Verb(_SERVE, "manifests", "what a Kubernetes cluster needs, for kubectl apply"),
        Verb(_SERVE, "move", "move queued Jobs from a server to a cluster"),
        Verb(_SERVE, "version", "the version of this program and of the server"),
        Verb(_SERVE, "completion", "completion for bash, zsh or fish"),
    )
}


def overview() -> str:
    """The text of `interlock --help`."""
    lines = [
        "Interlock runs jobs when told, only when allowed, and never twice.",
        "",
        "usage: interlock VERB [ARGUMENT...]",
    ]
    group = ""
    for verb in VERBS.values():
        if verb.group != group:
            group = verb.group
            lines += ["", f"{group}:"]
        lines.append(f"  {verb.name:<11} {verb.summary}")
    lines += [
        "",
        "`interlock VERB --help` tells more about a verb.",
        "Which server: --context, --kubeconfig (a cluster) or --server; INTERLOCK_SERVER;",
        "./.interlock/server.json; KUBECONFIG (a cluster); else http://127.0.0.1:8470.",
    ]
    return "\n".join(lines) + "\n"
