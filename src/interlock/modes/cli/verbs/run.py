"""Run a command as a Job, or a JobConfig on demand.

The command comes after `--`, and no shell reads it. With --wait or --follow the exit code is
the command's own; without, the Job's name is printed and the command goes on by itself. A Job
that is refused at once, because a lock is taken and it must not wait, ends with 75.

On a cluster it runs in a pod, whose image --image names.

  interlock run -- echo hello
  interlock run --context production --image busybox -- echo hello
  interlock run --lock db=1 --retries 3 --follow -- ./migrate.sh
  interlock run --queue training --resources gpu=1,memory=2Gi -- ./train.sh

With the name of a JobConfig, a Job is made of its template; options that are not given have
their defaults. Days and times are read on the clock of the config's schedules.

  interlock run nightly-report --option region=apac --follow
  interlock run nightly-report --at "tomorrow 06:00"

A --substitution is the value of any variable, ${option.region} or ${job.name}, for this one
Job: it wins over options, and over the substitutions of the template.

  interlock run nightly-report --substitution option.region=lab --follow
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from interlock.client.errors import BAD_INPUT, AnswerError, CommandError
from interlock.client.kinds import JOBS, is_kind
from interlock.modes.cli.creating import create_job, told_as_made
from interlock.modes.cli.flags import (
    add_namespace,
    add_output,
    add_waiting,
    duration,
    is_number,
    number_from,
    pair,
    seconds,
    whole_number,
)
from interlock.modes.cli.input.person import person
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POLICIES = ("Enqueue", "Forbid", "Allow", "Replace")
#: The flags that say what a command's Job is like; a JobConfig has a template for that.
OF_COMMANDS = (
    "image", "lock", "when-taken", "retries", "retry-delay", "timeout", "grace-period", "env",
    "working-dir", "stdin", "count", "priority", "queue", "resources", "test-bed", "slot", "title",
    "label", "ttl", "suspend",
)  # fmt: skip
OF_CONFIGS = ("option", "at", "after", "policy")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("config", metavar="CONFIG", nargs="?", default="", help="the JobConfig to run")
    add("-O", "--option", metavar="NAME=VALUE", action="append", default=[], type=pair,
        help="of a JobConfig: the value of an option; may be repeated")  # fmt: skip
    add("--substitution", metavar="NAME=VALUE", action="append", default=[], type=pair,
        help="what ${NAME} stands for, such as option.region=lab; may be repeated")  # fmt: skip
    add("--at", metavar="WHEN", help="of a JobConfig: start then: 19:00, 2026-11-20, monday 06:00")
    add("--after", metavar="TIME", type=seconds, help="of a JobConfig: start so much later: 90m")
    add("--policy", metavar="POLICY", type=_policy,
        help="of a JobConfig: in place of its own: Enqueue, Forbid, Allow, Replace")  # fmt: skip
    add("--image", metavar="IMAGE", default="", help="on a cluster: what the pod is made of")
    add("--name", metavar="NAME", help="the Job's name (run- or CONFIG- and five characters)")
    add("--lock", metavar="KEY[=LIMIT]", action="append", default=[], type=_lock,
        help="a lock it needs, held by at most LIMIT Jobs (1); may be repeated")  # fmt: skip
    add("--when-taken", metavar="POLICY", type=_policy,
        help="when a lock is taken: Enqueue (wait), Forbid, Allow, Replace (Enqueue)")  # fmt: skip
    add("--retries", metavar="N", type=number_from(0), help="further attempts after a failure")
    add("--retry-delay", metavar="TIME", type=duration, help="from one attempt to the next")
    add("--timeout", metavar="TIME", type=duration, help="stop it when it runs longer: 90s, 5m")
    add("--grace-period", metavar="TIME", type=duration, help="from SIGTERM to SIGKILL (30s)")
    add("--env", metavar="NAME=VALUE", action="append", default=[], type=pair,
        help="an environment variable; may be repeated")  # fmt: skip
    add("--working-dir", metavar="DIR", help="where it runs (here, for a server on this machine)")
    add("--stdin", action="store_true", help="hand the standard input on to it")
    add(
        "--count", metavar="N", type=number_from(1), help="so many tasks; ${task.index} tells which"
    )
    add("--priority", metavar="N", type=whole_number, help="higher goes first (0)")
    add("--queue", metavar="QUEUE", help="the queue in whose quota it has to find room")
    add("--resources", metavar="NAME=AMOUNT,...", action="append", default=[], type=_resources,
        help="what each task takes of it: gpu=1,memory=2Gi,cpu=500m")  # fmt: skip
    add("--test-bed", metavar="BED", help="the test bed whose slots its tasks run in, one each")
    add("--slot", metavar="NODE/NUMBER", action="append", default=[],
        help="this slot of it and no other; may be repeated")  # fmt: skip
    add("--title", metavar="TEXT", help="a line for people")
    add("-l", "--label", metavar="NAME=VALUE", action="append", default=[], type=pair,
        help="a label; may be repeated")  # fmt: skip
    add("--ttl", metavar="TIME", type=duration, help="delete the Job so long after its end")
    add("--suspend", action="store_true", help="create it held back; `resume` lets it go")
    add_waiting(parser)
    add_namespace(parser)
    add_output(parser, "json", "yaml", "name", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Create the Job, and stay with it if asked."""
    _check_flags(args)
    told = ""
    if args.config:
        from interlock.modes.cli.on_demand import run_config

        job, told = run_config(session, args)
    else:
        _check_place(session, args)
        local = session.target.is_local and not args.image
        try:
            job = create_job(session, job_from(args, local=local))
        except AnswerError as error:
            from interlock.modes.cli.input.run_refusals import in_flags

            raise in_flags(error) from None
    if args.wait or args.follow:
        from interlock.modes.cli.following import follow

        return follow(session, [job["metadata"]["name"]], args)
    return told_as_made(session, args, [job], told)


def _check_flags(args: argparse.Namespace) -> None:
    """Refuse what does not go together: a config and a command, or flags of the other."""
    if args.config and args.command:
        raise CommandError(
            f"either the JobConfig {args.config!r} or a command, not both",
            hint="a command comes wholly after --: interlock run -- echo hello",
            code=BAD_INPUT,
        )
    if not args.config and not args.command:
        raise CommandError(
            "which command?",
            hint="put it after --: interlock run -- echo hello; or name a JobConfig",
            code=BAD_INPUT,
        )
    args.resources = [one for given in args.resources for one in given]
    for flag in ("substitution", "env", "label", "resources"):
        _check_once(flag, getattr(args, flag))
    if args.wait_timeout is not None and not args.wait and not args.follow:
        raise CommandError(
            "--wait-timeout is for --wait and --follow",
            hint="to stop the Job itself when it runs longer, give --timeout",
            code=BAD_INPUT,
        )
    if args.config and "/" in args.config and not is_kind(args.config.partition("/")[0]):
        raise CommandError(
            "a command comes after --",
            hint=f"did you mean: {args.typed.as_command}",
            code=BAD_INPUT,
        )
    flags, whose = (OF_COMMANDS, "command") if args.config else (OF_CONFIGS, "JobConfig")
    for flag in flags:
        if getattr(args, flag.replace("-", "_")) not in (None, "", [], False):
            raise CommandError(
                f"--{flag} is for a {whose}",
                hint=_template_hint(args) if args.config else "`interlock run --help` tells more",
                code=BAD_INPUT,
            )


def _template_hint(args: argparse.Namespace) -> str:
    of_config = f"what jobconfig/{args.config} runs, and how, is in its spec.template"
    return f"{of_config}; or, if {args.config} is a command: {args.typed.as_command}"


def _check_once(flag: str, given: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise CommandError(
                f"--{flag} {name} is given more than once",
                hint="it has one value: give one of them",
                code=BAD_INPUT,
            )


def _check_place(session: Session, args: argparse.Namespace) -> None:
    """Refuse what the server cannot run: processes and pods each have their place."""
    if session.on_cluster and not args.image:
        raise CommandError(
            "a cluster runs pods, not processes of a machine",
            hint="name the pod's image: interlock run --image IMAGE -- COMMAND",
            code=BAD_INPUT,
        )
    if args.image and not session.on_cluster:
        raise CommandError(
            f"--image is for a cluster: {session.target.url} runs processes on its own machine",
            hint="leave it out, or name a cluster with --context",
            code=BAD_INPUT,
        )
    if args.image and args.stdin:
        raise CommandError(
            "a pod has no standard input to be given",
            hint="hand the text to it in --env, or put it into the image",
            code=BAD_INPUT,
        )


def job_from(args: argparse.Namespace, *, local: bool) -> dict[str, Any]:
    """The definition that the flags describe."""
    what = {"pod": _pod(args)} if args.image else {"process": _process(args, local=local)}
    metadata: dict[str, Any] = {"name": args.name} if args.name else {"generateName": "run-"}
    if args.label:
        metadata["labels"] = dict(args.label)
    metadata["annotations"] = {"interlock.dev/creator": person()}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": metadata,
        "spec": {**what, **_rules(args)},
    }


def _process(args: argparse.Namespace, *, local: bool) -> dict[str, Any]:
    process: dict[str, Any] = {"command": args.command}
    directory = args.working_dir or ("." if local else "")
    if directory:
        process["workingDir"] = str(Path(directory).absolute()) if local else directory
    if args.env:
        process["env"] = dict(args.env)
    if args.stdin:
        process["stdin"] = _standard_input()
    return process


def _pod(args: argparse.Namespace) -> dict[str, Any]:
    from interlock.client.pod_template import pod_of

    return pod_of(args.image, args.command, env=dict(args.env), working_dir=args.working_dir or "")


def _rules(args: argparse.Namespace) -> dict[str, Any]:
    retries = {"limit": args.retries, "delay": args.retry_delay}
    rules = {
        "locks": [lock | {"whenTaken": args.when_taken or POLICIES[0]} for lock in args.lock],
        "retries": {name: value for name, value in retries.items() if value is not None},
        "timeout": args.timeout,
        "gracePeriod": args.grace_period,
        "parallelism": {"count": args.count} if args.count else None,
        "priority": args.priority,
        "queue": args.queue,
        "resources": dict(args.resources),
        "slots": {
            name: value for name, value in (("testBed", args.test_bed), ("ids", args.slot)) if value
        },
        "title": args.title,
        "ttlAfterFinished": args.ttl,
        "suspend": args.suspend or None,
        "substitutions": dict(args.substitution),
    }
    return {name: value for name, value in rules.items() if value not in (None, [], {})}


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise CommandError("the standard input is not text", code=BAD_INPUT) from None


def _lock(text: str) -> dict[str, Any]:
    key, found, limit = text.rpartition("=")
    if not found:
        return {"key": text}
    if not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY or KEY=LIMIT")
    if not is_number(limit) or int(limit) < 1:
        told = (
            f"{text!r}: the limit is how many Jobs may hold {key} at once: a whole number from 1 up"
        )
        raise argparse.ArgumentTypeError(told)
    return {"key": key, "limit": int(limit)}


def _resources(text: str) -> list[tuple[str, int | str]]:
    """Names with amounts; what an amount is the server knows."""
    found = []
    for part in text.split(","):
        name, sign, amount = part.partition("=")
        if not (sign and name and amount):
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form NAME=AMOUNT")
        found.append((name, int(amount) if is_number(amount) else amount))
    return found


def _policy(text: str) -> str:
    known = {policy.lower(): policy for policy in POLICIES}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(POLICIES)}")
    return known[text.lower()]
