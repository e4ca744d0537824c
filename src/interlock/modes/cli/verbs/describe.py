"""Everything about one resource: its definition, its state, what it waits for, what was decided."""

from __future__ import annotations

import argparse
from typing import Any

from interlock.client.errors import BAD_INPUT, AnswerError, CommandError
from interlock.client.kinds import (
    CONTROLLED_JOBS,
    JOB_CONFIGS,
    JOBS,
    Kind,
    parse_names,
)
from interlock.client.moments import between, day_and_time, server_now
from interlock.client.outcomes import has_ended, last_line, phase_of
from interlock.modes.cli.flags import add_namespace, add_output
from interlock.modes.cli.output.formats import to_yaml
from interlock.modes.cli.session import Session
from interlock.modes.cli.verbs.history import line_of
from interlock.modes.cli.verbs.why import told as why_told
from interlock.modes.cli.verbs.why import why_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="KIND NAME... | KIND/NAME...", nargs="+", help="which")
    add_namespace(parser)
    add_output(parser, "json", "yaml", "jsonpath")


def run(session: Session, args: argparse.Namespace) -> int:
    """Gather all there is about each, and print it."""
    names = parse_names(args.what)
    if not all(name for _, name in names):
        raise CommandError("which one?", hint="interlock describe job/NAME", code=BAD_INPUT)
    gathered = [_gather(session, kind, name) for kind, name in names]
    if args.output:
        session.terminal.data(gathered[0] if len(gathered) == 1 else gathered, args.output)
        return 0
    for number, about in enumerate(gathered):
        if number:
            session.terminal.print()
        for line in _lines(session, about):
            session.terminal.print(line)
    return 0


def _gather(session: Session, kind: Kind, name: str) -> dict[str, Any]:
    about: dict[str, Any] = {"object": session.api.get(kind, session.namespace, name)}
    place = session.namespace if kind.namespaced else ""
    key = {"kind": kind.name, "namespace": place, "name": name}
    # What cannot be told beside the resource itself is left out.
    try:
        if kind in (JOBS, JOB_CONFIGS, CONTROLLED_JOBS):
            about["why"] = why_of(session, kind, name)
        about["history"] = session.reports.history(key, 10, None)["items"]
    except AnswerError:
        pass
    return about


def _lines(session: Session, about: dict[str, Any]) -> list[str]:
    item = about["object"]
    lines = _head(item)
    if item.get("kind") == JOBS.name:
        lines += _job(session, item, about.get("why"))
    elif about.get("why"):
        lines += _why(session, about["why"])
    if item.get("kind") != JOBS.name and item.get("status"):
        lines += ["Status:", *_indented(to_yaml(item["status"]))]
    lines += ["Spec:", *_indented(to_yaml(item.get("spec") or {}))]
    if about.get("history"):
        lines += ["History:", *(f"  {line_of(one, named=False)}" for one in about["history"])]
    return lines


def _head(item: dict[str, Any]) -> list[str]:
    metadata = item["metadata"]
    owners = metadata.get("ownerReferences") or []
    pairs = [
        ("Name", metadata["name"]),
        ("Namespace", metadata.get("namespace")),
        ("Kind", item.get("kind")),
        ("Labels", _pairs(metadata.get("labels"))),
        ("Annotations", _pairs(_plain(metadata.get("annotations")))),
        ("Owners", ", ".join(f"{one['kind']}/{one['name']}" for one in owners)),
        ("Created", _created(metadata)),
        ("Deleting", day_and_time(metadata.get("deletionTimestamp"))),
        ("Version", f"{metadata.get('resourceVersion')} (generation {metadata.get('generation')})"),
    ]  # fmt: skip
    return [f"{name + ':':<13} {value}" for name, value in pairs if value]


def _job(session: Session, job: dict[str, Any], why: dict[str, Any] | None) -> list[str]:
    status = job.get("status") or {}
    execution = status.get("execution") or {}
    lines = [f"{'Phase:':<13} {session.terminal.mood(phase_of(job))}"]
    if has_ended(job):
        lines.append(f"{'Outcome:':<13} {last_line(job)}")
    elif why and why.get("waits"):
        lines += _why(session, why)
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodsReady":
            lines.append(f"{'Ready:':<13} {_readiness(condition)}")
    grants = (status.get("admission") or {}).get("grants") or []
    if grants:
        told = ", ".join(f"{grant['key']} (token {grant['token']})" for grant in grants)
        lines.append(f"{'Locks:':<13} {told}")
    if trouble := status.get("trouble"):
        lines.append(f"{'Trouble:':<13} {trouble['room']}: {trouble['message']}")
    attempts = [*(execution.get("ended") or []), *(execution.get("active") or [])]
    if attempts:
        headers = ("NAME", "STATE", "EXIT", "TOOK", "MESSAGE")
        rows = [_attempt(attempt) for attempt in attempts]
        lines += ["Tasks:", *(f"  {line}" for line in session.terminal.lines(headers, rows))]
    return lines


def _readiness(condition: dict[str, Any]) -> str:
    told = f"{condition['status']} ({condition['reason']}): {condition.get('message', '')}"
    return f"{told}, since {day_and_time(condition['lastTransitionTime'])}"


def _why(session: Session, why: dict[str, Any]) -> list[str]:
    told = why_told(why, server_now(session.api))
    return ["Why:", *(f"  {line}".rstrip() for line in told)]


def _attempt(attempt: dict[str, Any]) -> list[str]:
    signal, code = attempt.get("signal"), attempt.get("exitCode")
    return [
        attempt["name"],
        str(attempt.get("result") or attempt.get("state")),
        f"signal {signal}" if signal else "-" if code is None else str(code),
        between(attempt.get("startedAt"), attempt.get("endedAt")) or "-",
        attempt.get("message") or attempt.get("stopCause") or "",
    ]


def _plain(annotations: dict[str, str] | None) -> dict[str, str]:
    """Without kubectl's copy of the whole definition, which the spec shows already."""
    return {k: v for k, v in (annotations or {}).items() if not k.endswith("configuration")}


def _created(metadata: dict[str, Any]) -> str:
    who = (metadata.get("annotations") or {}).get("interlock.dev/creator")
    at = day_and_time(metadata.get("creationTimestamp"))
    return f"{at} by {who}" if who else at


def _pairs(values: dict[str, str] | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in (values or {}).items())


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.rstrip().split("\n")]
