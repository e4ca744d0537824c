"""List resources, or show some by name.

Several kinds are written with commas, single resources as KIND/NAME.

  interlock get jobs
  interlock get job/nightly -o yaml
  interlock get jobs -A -l team=ops --field-selector status.phase=Running
  interlock get operations --target domains/acme

Operations are the Jobs with steps: their state, step, retries, share done, target and age.
"""

from __future__ import annotations

import argparse

from interlock.client.api import TABLE
from interlock.client.errors import BAD_INPUT, OK, AnswerError, CommandError
from interlock.client.kinds import Kind, parse_names
from interlock.modes.cli.flags import FORMATS, add_namespace, add_output, add_selectors
from interlock.modes.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What is typed for operations, which are no kind of their own.
_OPERATIONS = frozenset({"operations", "operation", "ops"})


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="KIND [NAME...] | KIND/NAME...", nargs="*", help="which")
    parser.add_argument("-w", "--watch", action="store_true", help="go on with every change")
    parser.add_argument("--no-headers", action="store_true", help="rows alone")
    add_selectors(parser)
    parser.add_argument(
        "--target", metavar="PATH", default="",
        help="of operations: only on this target, or on one below it",
    )  # fmt: skip
    add_namespace(parser, every=True)
    add_output(parser, *FORMATS)


def run(session: Session, args: argparse.Namespace) -> int:
    """Ask for each kind, and print."""
    if args.what and args.what[0] in _OPERATIONS:
        return _show_operations(session, args)
    if args.target:
        raise CommandError(
            "--target is for operations", hint="interlock get operations", code=BAD_INPUT
        )
    if args.watch:
        from interlock.modes.cli.verbs import watch

        args.limit = None
        return watch.run(session, args)
    names = parse_names(args.what)
    if args.output in ("", "wide", "name"):
        return _show_tables(session, args, names)
    items, code = _read_items(session, args, names)
    one = len(names) == 1 and names[0][1]
    if code == OK or items:
        whole = {"apiVersion": "v1", "kind": "List", "items": items}
        session.terminal.data(items[0] if one else whole, args.output)
    return code


def _show_operations(session: Session, args: argparse.Namespace) -> int:
    from interlock.client.kinds import JOBS
    from interlock.client.moments import server_now
    from interlock.modes.cli import operations

    if args.watch or len(args.what) > 1:
        raise CommandError(
            "get operations lists them: it takes no names and no --watch",
            hint="interlock op show NAME, or interlock get jobs --watch",
            code=BAD_INPUT,
        )
    place = session.namespace_or_all
    jobs = operations.read_operations(
        session, place, target=args.target, labels=args.selector, fields=args.field_selector
    )
    wide, namespaces = args.output == "wide", args.all_namespaces
    if args.output == "name":
        for job in jobs:
            session.terminal.print(f"{JOBS.singular}/{job['metadata']['name']}")
    elif args.output and not wide:
        whole = {"apiVersion": "v1", "kind": "List", "items": jobs}
        session.terminal.data(whole, args.output)
    elif jobs:
        shown = operations.rows(jobs, server_now(session.api), wide=wide, namespaces=namespaces)
        headers = operations.headers(wide=wide, namespaces=namespaces)
        session.terminal.table(() if args.no_headers else headers, shown)
    else:
        _say_nothing_found(session)
    return OK


def _read_items(
    session: Session, args: argparse.Namespace, names: list[tuple[Kind, str]]
) -> tuple[list[dict[str, Any]], int]:
    items, code = [], OK
    for kind, name in names:
        try:
            if name:
                items.append(session.api.get(kind, session.namespace, name))
                continue
            pages = session.api.pages(
                kind, session.namespace_or_all, labels=args.selector, fields=args.field_selector
            )
            head = {"apiVersion": kind.api_version, "kind": kind.name}
            items += [head | item for page in pages for item in page["items"]]
        except AnswerError as error:
            code = _told(error, code)
    return items, code


def _show_tables(session: Session, args: argparse.Namespace, names: list[tuple[Kind, str]]) -> int:
    by_kind: dict[str, tuple[Kind, list[str]]] = {}
    for kind, name in names:
        by_kind.setdefault(kind.plural, (kind, []))[1].append(name)
    code, shown = OK, 0
    for kind, wanted in by_kind.values():
        tables, code = _read_tables(session, args, kind, wanted, code)
        if args.output == "name":
            _print_names(session, kind, tables)
        elif any(table.get("rows") for table in tables):
            if shown:
                session.terminal.print()
            _print_table(session, args, kind, tables, prefix=len(by_kind) > 1)
            shown += 1
    if not shown and code == OK and args.output != "name":
        _say_nothing_found(session)
    return code


def _read_tables(
    session: Session, args: argparse.Namespace, kind: Kind, wanted: list[str], code: int
) -> tuple[list[dict[str, Any]], int]:
    tables: list[dict[str, Any]] = []
    # Behind a context may be a server of ours too, which tells the same: not worth a question.
    is_own = args.output != "name" and kind.is_ours and session.target.by_context
    more = {"includeObject": "Object"} if is_own else {}
    for name in wanted:
        try:
            if name:
                path = kind.path(session.namespace, name)
                tables.append(session.api.call("GET", path, more, accept=TABLE))
            else:
                tables += session.api.pages(
                    kind,
                    session.namespace_or_all,
                    labels=args.selector,
                    fields=args.field_selector,
                    accept=TABLE,
                    more=more,
                )
        except AnswerError as error:
            code = _told(error, code)
    if is_own:
        from interlock.client.cluster.tables import with_own_cells
        from interlock.client.moments import server_now

        now = server_now(session.api)
        tables = [with_own_cells(kind, table, now) for table in tables]
    return tables, code


def _print_table(
    session: Session,
    args: argparse.Namespace,
    kind: Kind,
    tables: list[dict[str, Any]],
    *,
    prefix: bool,
) -> None:
    from interlock.modes.cli.output.kubernetes_table import columns_of, headers_of, rows_of

    namespaces = args.all_namespaces and kind.namespaced
    first = next(table for table in tables if table.get("columnDefinitions"))
    columns = columns_of(first, wide=args.output == "wide")
    rows = [row for table in tables for row in table.get("rows") or []]
    cells = rows_of(rows, columns, namespaces=namespaces)
    if prefix:
        for row in cells:
            place = 1 if namespaces else 0
            row[place] = f"{kind.singular}/{row[place]}"
    headers = [] if args.no_headers else headers_of(first, columns, namespaces=namespaces)
    session.terminal.table(headers, cells)


def _print_names(session: Session, kind: Kind, tables: list[dict[str, Any]]) -> None:
    for table in tables:
        for row in table.get("rows") or []:
            session.terminal.stream.write(f"{kind.singular}/{row['object']['metadata']['name']}\n")
    session.terminal.stream.flush()


def _say_nothing_found(session: Session) -> None:
    import sys

    place = session.namespace_or_all
    where = f" in namespace {place}" if place else ""
    print(f"nothing found{where}", file=sys.stderr)


def _told(error: AnswerError, code: int) -> int:
    from interlock.modes.cli.main import tell

    tell(error)
    return code or error.code
