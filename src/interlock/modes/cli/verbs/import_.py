"""Turn definitions of other systems into ours, with the same behaviour.

    interlock import crontab FILE        lines of cron: JobConfigs of processes
    interlock import cronjob FILE        Kubernetes CronJobs: JobConfigs of batch Jobs
    interlock import controlledjob FILE  batch.gresearch.co.uk ControlledJobs: ControlledJobs
    interlock import furiko FILE         execution.furiko.io JobConfigs: JobConfigs of pods
    interlock import kueue FILE          kueue.x-k8s.io ClusterQueues: Queues; batch Jobs: Jobs
    interlock import icalendar FILE      whole-day events: a Calendar
    interlock import cron FILE --dialect NAME
                                         lines of quartz, spring, aws or jenkins: JobConfigs

The definitions are printed as YAML, to be read, kept and applied; --apply stores them at once. What
does not carry over is told on the standard error: where it is, what, why, and what is done instead.
A definition that makes no sense or would be refused is left out and told, and the exit code is 1
then; it is 2 when nothing in the file makes sense.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from interlock.client.errors import BAD_INPUT, FAILED, OK, AnswerError, CommandError
from interlock.control.clock import SystemClock
from interlock.importing.drafts import BadSourceError, Draft, Note, Wishes
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.input.files import read_file
from interlock.modes.cli.session import Session

#: Distributions give people such numbers.
_FIRST_PERSON, _LAST_PERSON = 1000, 60_000
_SORTS = ("crontab", "cronjob", "controlledjob", "furiko", "kueue", "icalendar", "cron")
_DIALECTS = ("quartz", "spring", "aws", "jenkins")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sort", choices=_SORTS, metavar="SORT", help=" | ".join(_SORTS))
    parser.add_argument("file", metavar="FILE", help="the file, or - for the standard input")
    add_namespace(parser)
    parser.add_argument("--prefix", metavar="NAME", default="", help="put NAME- before every name")
    parser.add_argument(
        "--timezone", metavar="ZONE", type=_zone,
        help="the zone of lines that leave it to their machine (UTC)",
    )  # fmt: skip
    parser.add_argument(
        "--system", action=argparse.BooleanOptionalAction, default=None,
        help="crontab: with a column of users, as /etc/crontab has; or without",
    )  # fmt: skip
    parser.add_argument(
        "--dialect", choices=_DIALECTS, metavar="NAME",
        help=f"cron: who wrote the lines: {' | '.join(_DIALECTS)}",
    )  # fmt: skip
    parser.add_argument("--apply", action="store_true", help="store what was made")
    add_output(parser, "yaml", "json")


def _zone(text: str) -> str:
    from interlock.timing.flaws import UnreadableError
    from interlock.timing.zones import find_zone

    try:
        find_zone(text)
    except UnreadableError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def run(session: Session, args: argparse.Namespace) -> int:
    """Read the file, print or store what it became, and tell the rest."""
    if (args.sort == "cron") is not bool(args.dialect):
        hint = f"for example: interlock import cron {args.file} --dialect quartz"
        raise CommandError("cron and --dialect go together", hint=hint, code=BAD_INPUT)
    name = "standard input" if args.file == "-" else args.file
    wishes = Wishes(
        file=args.file,
        namespace=args.namespace,
        prefix=args.prefix,
        timezone=args.timezone,
        has_users=args.system,
        people=_people() if args.sort == "crontab" else frozenset(),
        dialect=args.dialect or "",
        now=SystemClock().now(),
    )
    draft = Draft(wishes)
    try:
        _importer(args.sort)(draft, read_file(args.file))
    except BadSourceError as error:
        for flaw in error.flaws[:-1]:
            print(f"error: {_place(name, flaw.line)}: {flaw.message}", file=sys.stderr)
        last = error.flaws[-1]
        raise CommandError(
            f"{_place(name, last.line)}: {last.message}",
            hint="nothing was imported",
            code=BAD_INPUT,
        ) from None
    code = _hand_over(session, args, draft)
    if args.output != "json":
        _tell(name, draft.notes)
    return code or (FAILED if draft.left_out else OK)


def _people() -> frozenset[str]:
    """Those who have an account on this machine, and not the accounts of programs."""
    import pwd

    return frozenset(
        one.pw_name for one in pwd.getpwall() if _FIRST_PERSON <= one.pw_uid < _LAST_PERSON
    )


def _importer(sort: str) -> Callable[[Draft, bytes], None]:
    match sort:
        case "crontab":
            from interlock.importing.crontab import import_crontab

            return import_crontab
        case "cronjob":
            from interlock.importing.cronjob import import_cronjobs

            return import_cronjobs
        case "controlledjob":
            from interlock.importing.controlledjob import import_controlled_jobs

            return import_controlled_jobs
        case "furiko":
            from interlock.importing.furiko import import_furiko

            return import_furiko
        case "kueue":
            from interlock.importing.kueue import import_kueue

            return import_kueue
        case "cron":
            from interlock.importing.cron_dialects import import_cron_lines

            return import_cron_lines
        case _:
            from interlock.importing.icalendar import import_icalendar

            return import_icalendar


def _hand_over(session: Session, args: argparse.Namespace, draft: Draft) -> int:
    """Store the objects, or print them; the report is beside them in JSON."""
    code, told = _apply(session, args, draft) if args.apply else (OK, [])
    if args.output == "json":
        whole: dict[str, Any] = {"objects": draft.objects, "report": report_of(draft.notes)}
        session.terminal.data(whole | ({"applied": told} if args.apply else {}), "json")
    elif args.apply:
        for line in told:
            session.terminal.print(line)
    else:
        from interlock.importing.printing import written

        if draft.objects:
            session.terminal.print(written(draft.objects).rstrip("\n"))
    return code


def _apply(session: Session, args: argparse.Namespace, draft: Draft) -> tuple[int, list[str]]:
    from interlock.modes.cli.applying import apply, wanted_from
    from interlock.modes.cli.input.documents import Given
    from interlock.modes.cli.main import tell
    from interlock.resources.door.manifests import Document

    code, told = OK, []
    given = [Given(args.file, Document(made, {})) for made in draft.objects]
    for wanted in wanted_from(session, given):
        try:
            word, _, _ = apply(session, wanted)
        except AnswerError as error:
            error.message = f"{wanted}: {error.message}"
            tell(error)
            code = code or error.code
            continue
        told.append(f"{wanted} {word}")
    return code, told


def _tell(name: str, notes: list[Note]) -> None:
    """The report: a line for each thing that is not as it was; what counts for all comes last."""
    for note in sorted(notes, key=lambda note: (not note.line, note.line)):
        place = _place(name, note.line)
        instead = f"; instead: {note.instead}" if note.instead else ""
        print(f"{place}: {note.where}: {note.what}: {note.why}{instead}", file=sys.stderr)


def _place(name: str, line: int) -> str:
    return f"{name}, line {line}" if line else name


def report_of(notes: list[Note]) -> list[dict[str, Any]]:
    """The report for programs."""
    return [note._asdict() for note in notes]
