"""Operations: Jobs with steps. Show them, and decide about those that are stuck.

list       those that are not over: state, step, retries, target
show       one: what was done, what failed, what comes next
retry      go forward again where it is stuck, with all retries
roll-back  undo what was done; a stuck rollback is tried again
resolve    say what a stuck one came to: it is over, and its target is free
remove     delete a stuck one, whatever it left behind

interlock op show create-shop
interlock op retry create-shop --reason "the name server is back"
interlock op resolve create-shop --as failed --reason "cleaned up by hand"
"""

from __future__ import annotations

import argparse

from interlock.client.errors import BAD_INPUT, OK, AnswerError, CommandError
from interlock.client.kinds import JOBS, job_name
from interlock.client.moments import day_and_time, server_now
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.main import tell
from interlock.modes.cli.operations import (
    headers,
    is_operation,
    operation_of,
    read_operations,
    rows,
)
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: So many of those that wait are named.
_MOST_BEHIND = 3
_SHOWS = ("list", "show")
#: What is typed, and the command that it is.
_ORDERS = {
    "retry": "go-forward",
    "roll-back": "roll-back",
    "resolve": "resolve",
    "remove": "let-go",
}
_STATES = {
    "Waits": "waits",
    "Running": "runs",
    "Done": "done",
    "Failed": "failed",
    "ToUndo": "to undo",
    "Undoing": "undoing",
    "UndoFailed": "undo failed",
    "Undone": "undone",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take what to do, the Jobs and the reason."""
    add = parser.add_argument
    add("action", metavar="ACTION", choices=(*_SHOWS, *_ORDERS), help="one of those above")
    add("names", metavar="JOB", nargs="*", help="a Job's name; may be several")
    add("--as", dest="outcome", choices=("succeeded", "failed"), help="resolve: what it came to")
    add("--reason", metavar="TEXT", default="", help="why, for people to read")
    add_namespace(parser)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Show operations, or give an order about each."""
    if args.action == "list":
        return _list(session, args)
    if not args.names:
        raise CommandError(
            f"op {args.action}: expected the name of a Job", hint="interlock op list",
            code=BAD_INPUT,
        )  # fmt: skip
    if args.action == "show":
        return _show_all(session, args)
    if not args.reason.strip():
        raise CommandError("--reason is missing", hint="say why, for people", code=BAD_INPUT)
    if args.action == "resolve" and args.outcome is None:
        raise CommandError("--as is missing", hint="--as succeeded or --as failed", code=BAD_INPUT)
    from interlock.modes.cli.ordering import order_each

    how = {"reason": args.reason}
    if args.action == "resolve":
        how["outcome"] = args.outcome
    names = [(JOBS, job_name(word, verb="op")) for word in args.names]
    code = order_each(session, args, names, _ORDERS[args.action], how)
    if args.action == "remove" and code == OK:
        for kind, name in names:
            _delete(session, kind.path(session.namespace, name))
    return code


def _delete(session: Session, path: str) -> None:
    """Delete one that may have waited for nothing but the order, and be gone."""
    try:
        session.api.call("DELETE", path)
    except AnswerError as error:
        if error.status != 404:
            raise


def _list(session: Session, args: argparse.Namespace) -> int:
    jobs = read_operations(session, session.namespace, also_ended=False)
    if args.output:
        session.terminal.data({"apiVersion": "v1", "kind": "List", "items": jobs}, "json")
        return OK
    if not jobs:
        session.terminal.print("no operation is under way or waits")
        return OK
    session.terminal.table(headers(), rows(jobs, server_now(session.api)))
    return OK


def _show_all(session: Session, args: argparse.Namespace) -> int:
    code, shown = OK, []
    for word in args.names:
        name = job_name(word, verb="op")
        try:
            job = session.api.get(JOBS, session.namespace, name)
            if not is_operation(job):
                raise CommandError(
                    f"job/{name} is no operation: it has no steps",
                    hint=f"interlock describe job {name}",
                    code=BAD_INPUT,
                )
        except CommandError as error:
            tell(error)
            code = code or error.code
            continue
        shown.append(job)
        if not args.output:
            _show(session, job, name)
    if args.output:
        session.terminal.data(shown[0] if len(args.names) == 1 and shown else shown, "json")
    return code


def _show(session: Session, job: dict[str, Any], name: str) -> None:
    terminal, spec = session.terminal, job["spec"]
    target = (spec.get("target") or {}).get("path")
    who = (job["metadata"].get("annotations") or {}).get("interlock.dev/creator")
    headline = [name, spec.get("title", "")]
    headline += [f"for {target}" if target else "", f"by {who}" if who else ""]
    terminal.print("   ".join(part for part in headline if part))
    answer = session.reports.why(session.namespace, name)
    terminal.print(str(answer.get("summary", "")))
    for wait in answer.get("waits") or []:
        terminal.print(f"  {wait.get('message') or wait.get('reason')}")
    operation = operation_of(job)
    steps = operation.get("steps") or []
    if steps:
        terminal.print()
        terminal.table(("STEP", "STATE", "TRIED", "SINCE", "TOLD"), [_step(one) for one in steps])
    if operation.get("stuckAt"):
        terminal.print()
        orders = f"interlock op retry | roll-back | resolve | remove {name} --reason ..."
        terminal.print(f"nobody acts but you:  {orders}")
    elif operation.get("state") == "complete":
        terminal.print(f"complete({operation.get('completionState')})")
        if operation.get("result"):
            terminal.print(f"result: {operation['result']}")
    if target and (told := _behind(session, name, target)):
        terminal.print(told)


def _behind(session: Session, name: str, target: str) -> str:
    """Which operations wait until this one is over; empty when it holds up none."""
    for lock in session.reports.locks(session.namespace):
        if lock.get("key") != f"target/{target}":
            continue
        waiters = lock.get("waiters") or []
        if waiters and any(one.get("job") == name for one in lock.get("holders") or []):
            number = lock.get("waiting", len(waiters))
            who = ", ".join(waiters[:_MOST_BEHIND])
            more = ", ..." if number > _MOST_BEHIND else ""
            wait = "operation waits" if number == 1 else "operations wait"
            return f"then      {number} {wait} behind it for {target} ({who}{more})"
    return ""


def _step(step: dict[str, Any]) -> tuple[str, ...]:
    state = step.get("state", "Waits")
    tried = step.get("undos", 0) if state in ("Undoing", "UndoFailed") else step.get("runs", 0)
    began = step.get("startedAt")
    return (
        step["name"],
        _STATES.get(state, state),
        str(tried) if tried else "",
        day_and_time(began) if began else "",
        step.get("message") or step.get("result") or "",
    )
