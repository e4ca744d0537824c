"""A live view of Jobs and locks. Leave it with q or Ctrl-C.

When the output is not a terminal, the view is printed once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from interlock.client.errors import UnreachableError
from interlock.client.moments import parse_moment, server_now
from interlock.modes.cli.flags import add_namespace, add_output, seconds
from interlock.modes.cli.session import Session
from interlock.modes.cli.verbs.locks import rows_of as lock_rows
from interlock.resources.values.durations import told_length

_ACTIVE = (
    "Running,Unknown,Stuck,Reverting,Killing,Evicting,Terminating,RetryBackoff,Retrying,Pending,"
    "Starting"
)
_OVER = "Succeeded,Failed,Killed,Refused,FinishedUnknown"
#: How many Jobs of each sort are asked for.
_SHOWN = 100

View = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval", metavar="TIME", type=seconds, default=1.0, help="how often (1s)"
    )
    parser.add_argument("--once", action="store_true", help="print it once, also on a terminal")
    add_namespace(parser, every=True)
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Show until told to stop; once when nobody sees it change."""
    if args.output:
        session.terminal.data(read_view(session), "json")
        return 0
    if args.once or not session.terminal.is_tty:
        for line in lines_of(session, read_view(session), 10_000):
            session.terminal.print(line)
        return 0
    with _full_screen(session):
        while True:
            _draw(session)
            if _pressed(args.interval) in ("q", "Q"):
                return 0


def read_view(session: Session) -> View:
    """Everything the view shows, asked for at about the same time."""
    queries: tuple[dict[str, object], ...] = (
        {"state": _ACTIVE, "limit": _SHOWN, "sort": "created"},
        {"state": "Queued", "limit": _SHOWN, "sort": "created"},
        {"state": _OVER, "limit": 10, "sort": "-created"},
    )
    pages, locks = session.reports.overview(session.namespace_or_all, *queries)
    active, waiting, over = (
        {"items": page["items"], "more": bool(page.get("next"))} for page in pages
    )
    held = [lock for lock in locks if lock["holders"]]
    return {"active": active, "waiting": waiting, "over": over, "locks": held}


def lines_of(session: Session, view: View, height: int) -> list[str]:
    """The view as lines, at most so many; what runs is shown before what waits."""
    now = server_now(session.api)
    terminal = session.terminal
    lines = [
        f"{session.target.url}   active {_count(view['active'])}"
        f"   waiting {_count(view['waiting'])}   locks held {len(view['locks'])}"
    ]
    headers = ["JOB", "STATE", "TASKS", "TIME", "WHAT"]
    rows = [_row(job, now) for part in ("active", "waiting", "over") for job in view[part]["items"]]
    if rows:
        lines += ["", *terminal.lines(headers, rows)]
    locks = [row for lock in view["locks"] for row in lock_rows(lock, now)]
    if locks:
        names = ["LOCK", "LIMIT", "HOLDER", "TOKEN", "SINCE", "PHASE", "WAITING"]
        table = ["", *terminal.lines(names, locks)]
        room = max(height - min(len(table), height // 3), 3)
        lines = [*lines[:room], *table]
    return lines[:height]


def _count(part: dict[str, Any]) -> str:
    return f"{len(part['items'])}{'+' if part['more'] else ''}"


def _row(job: dict[str, Any], now: datetime) -> list[str]:
    tasks = job["tasks"]
    start, end = job.get("startedAt") or job.get("createdAt"), parse_moment(job.get("endedAt"))
    since, until = parse_moment(start), end or now
    took = told_length((until - since).total_seconds()) if since else "-"
    what = job.get("message") or ", ".join(job.get("waits") or []) or job.get("title") or ""
    total = tasks["total"] or "-"
    return [job["name"], job["phase"], f"{tasks['succeeded']}/{total}", took, what]


def _draw(session: Session) -> None:
    size = shutil.get_terminal_size()
    try:
        lines = lines_of(session, read_view(session), size.lines - 1)
    except UnreachableError as error:
        lines = [error.message, error.hint]
    shown = [line if "\x1b" in line else line[: size.columns] for line in lines]
    session.terminal.stream.write(
        "\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in shown) + "\x1b[J"
    )
    session.terminal.stream.flush()


@contextlib.contextmanager
def _full_screen(session: Session) -> Iterator[None]:
    """The other screen, without a cursor and without line wrap; all is put back at the end."""
    out = session.terminal.stream
    out.write("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")
    with _keys():
        try:
            yield
        finally:
            out.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
            out.flush()


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Single keys instead of lines, where there is a keyboard."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed(interval_s: float) -> str:
    """The key that was pressed within the time; empty when none was."""
    keyboard = [sys.stdin] if sys.stdin.isatty() else []
    ready, _, _ = select.select(keyboard, [], [], interval_s)
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") if ready else ""
