"""What a Job printed: standard output and standard error together.

Without --task and --attempt it is the newest attempt of the Job's first task; of a Job that has
more tasks this is said. With --follow it is every task, and every further attempt, until the Job
ends. On a cluster it is what the pods printed, as long as they are there; where an attempt has
several, each line begins with its pod.
Of a ControlledJob or a JobConfig it is what its newest Job printed.

  interlock logs migrate
  interlock logs controlledjob/pricing-engine --follow
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from interlock.client.errors import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_FOUND,
    OK,
    TIMED_OUT,
    CommandError,
    UnreachableError,
)
from interlock.client.kinds import CONTROLLED_JOBS, JOB_CONFIGS, JOBS, parse_name
from interlock.client.outcomes import execution_of, task_count
from interlock.modes.cli.flags import add_namespace, number_from, seconds
from interlock.modes.cli.not_found import found
from interlock.modes.cli.output.task_output import LogStream, excerpt_of
from interlock.modes.cli.session import Session


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("name", metavar="JOB | KIND/NAME", help="the Job's name, or a schedule as KIND/NAME")
    add("-f", "--follow", action="store_true", help="go on as it prints more, until it ends")
    add("--task", metavar="N", type=number_from(0), help="which task (0)")
    add("--step", metavar="NAME", default="", help="of an operation: which step (the first)")
    add("--undo", action="store_true", help="of an operation: what undid the step")
    add("--attempt", metavar="N", type=number_from(1), help="which attempt, from 1 (the newest)")
    add("--round", metavar="N", type=number_from(1),
        help="of which round, from 1 (the newest); each requeue begins one")  # fmt: skip
    add("--since", metavar="TIME", type=seconds, help="only what is newer than this: 5m")
    add("--tail", metavar="N", type=number_from(0), help="only the last lines")
    add("-c", "--container", metavar="NAME", default="",
        help="on a cluster: which container of the pod (main, or the first)")  # fmt: skip
    add_namespace(parser)


def run(session: Session, args: argparse.Namespace) -> int:
    """Hand the bytes on as they come."""
    name = _job_of(session, args.name)
    if args.step or args.undo:
        args.task = _task_of(session, args, name)
    if args.round is not None and args.attempt is None:
        args.attempt = 1
    if args.follow and args.attempt is None:
        return _follow(session, args, name)
    excerpt = excerpt_of(session, args, _first_attempt(session, args, name))
    with found(session, JOBS, name, verb="logs"):
        sources = list(session.reports.log(session.namespace, name, excerpt))
    if args.task is None:
        _tell_of_others(session, name)
    for source, answer in sources:
        stream = LogStream(answer, f"{source}| " if len(sources) > 1 else "")
        while not stream.done:
            stream.receive()
        if stream.is_cut:
            raise UnreachableError("the server went away in the middle")
    return 0


def _first_attempt(session: Session, args: argparse.Namespace, name: str) -> int:
    """The number of the first attempt in the round that is meant."""
    if args.attempt is None:
        return 0
    from interlock.resources.tasks import first_attempt

    if args.round is not None:
        return first_attempt(args.round - 1)
    with found(session, JOBS, name, verb="logs"):
        job = session.api.get(JOBS, session.namespace, name)
    return first_attempt(execution_of(job).get("round", 0))


def _task_of(session: Session, args: argparse.Namespace, name: str) -> int:
    """The task that runs, or undoes, a step of an operation."""
    from interlock.resources.operation import ELABORATE, ELABORATION, run_task, undo_task

    if args.task is not None:
        raise CommandError("--task and --step say the same: give one", code=BAD_INPUT)
    with found(session, JOBS, name, verb="logs"):
        job = session.api.get(JOBS, session.namespace, name)
    steps = _step_names(job)
    is_request = "python" in job["spec"]
    if is_request and args.step == ELABORATE and ELABORATE not in steps:
        return ELABORATION
    if not steps:
        hint = f"of what makes its steps: --step {ELABORATE}" if is_request else ""
        raise CommandError(f"job/{name} has no steps", hint=hint, code=BAD_INPUT)
    step = args.step or steps[0]
    if step not in steps:
        known = f"its steps are {', '.join(steps)}"
        raise CommandError(f"job/{name} has no step {step!r}", hint=known, code=NOT_FOUND)
    at = steps.index(step)
    return undo_task(at) if args.undo else run_task(at)


def _step_names(job: dict[str, Any]) -> list[str]:
    """The names of the steps of an operation, also of one that is over and pruned of them."""
    operation = execution_of(job).get("operation") or {}
    if names := operation.get("stepNames"):
        return list(names)
    return [step["name"] for step in job["spec"].get("steps") or operation.get("elaborated") or ()]


def _job_of(session: Session, word: str) -> str:
    """The Job that is meant: itself, or the newest of a schedule."""
    kind, name = parse_name(word, JOBS, CONTROLLED_JOBS, JOB_CONFIGS)
    if kind is JOBS:
        return name
    from interlock.resources.schedule import CONFIG_LABEL, CONTROLLED_LABEL

    label = CONTROLLED_LABEL if kind is CONTROLLED_JOBS else CONFIG_LABEL
    with found(session, kind, name):
        session.api.get(kind, session.namespace, name)
    pages = session.api.pages(JOBS, session.namespace, labels=f"{label}={name}")
    jobs = [job["metadata"] for page in pages for job in page["items"]]
    if not jobs:
        raise CommandError(
            f"{kind.singular}/{name} has no Job",
            hint=f"interlock why {kind.singular}/{name} tells when it starts",
            code=NOT_FOUND,
        )
    # Of those of one second the one with the highest number.
    newest = max(jobs, key=lambda one: (one["creationTimestamp"], len(one["name"]), one["name"]))
    print(f"job/{newest['name']}", file=sys.stderr)
    return str(newest["name"])


def _tell_of_others(session: Session, name: str) -> None:
    """Say that this is one task of many, and which one to read when the Job failed."""
    job = session.api.get(JOBS, session.namespace, name)
    total = int(execution_of(job).get("total") or 1)
    if total == 1:
        return
    if steps := _step_names(job):
        told = f"this is step {steps[0]} of {', '.join(steps)}"
        print(f"{told}; of another: interlock logs {name} --step NAME", file=sys.stderr)
        return
    print(
        f"this is task 0 of {total} (0 to {total - 1}); of another: interlock logs {name} --task N",
        file=sys.stderr,
    )
    for label, text in session.reports.why(session.namespace, name).get("details") or ():
        if label == "log":
            print(f"what it failed for: {text}", file=sys.stderr)


def _follow(session: Session, args: argparse.Namespace, name: str) -> int:
    """Stay until the Job ends, also while it has not started yet. Its outcome is not ours."""
    from interlock.modes.cli.following import Follower

    if args.task:
        with found(session, JOBS, name, verb="logs"):
            job = session.api.get(JOBS, session.namespace, name)
        if not args.step and args.task >= (total := task_count(job)):
            raise CommandError(
                f"job/{name} has no task {args.task}: its tasks are 0 to {total - 1}",
                code=NOT_FOUND,
            )
    follower = Follower(session, [name], shows_output=True, quiet=True)
    follower.only_task = args.task
    follower.excerpt = excerpt_of(session, args)
    code = follower.run()
    return code if code in (INTERRUPTED, TIMED_OUT) else OK
