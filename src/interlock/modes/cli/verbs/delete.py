"""Delete resources.

A running Job is stopped first: it is gone when its processes are proven gone, and an operation when
what it did is undone. The command waits for that unless --no-wait is given, and says what for when
that takes long, or takes a person.

  interlock delete job/a job/b
  interlock delete jobs -l team=ops
  interlock delete -f jobs.yaml
"""

from __future__ import annotations

import argparse
import sys
from time import monotonic
from typing import Any

from interlock.client.errors import (
    BAD_INPUT,
    OK,
    TIMED_OUT,
    AnswerError,
    CommandError,
)
from interlock.client.finalizing import Holdup, holdup_of
from interlock.client.kinds import Kind, kind_of, parse_names
from interlock.client.watching import Change, Feed
from interlock.modes.cli.flags import (
    add_files,
    add_namespace,
    add_output,
    add_selectors,
    seconds,
)
from interlock.modes.cli.main import tell
from interlock.modes.cli.session import Session

_Thing = tuple[Kind, str, str]
#: After this long it is said what is waited for.
_LONG_S = 3.0


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", metavar="KIND [NAME...] | KIND/NAME...", nargs="*", help="which")
    add_files(parser)
    add("--all", action="store_true", help="all of the kind in the namespace")
    add("--wait", action=argparse.BooleanOptionalAction, default=True, help="until they are gone")
    add("--timeout", metavar="TIME", type=seconds, help="wait at most this long: 60s, 5m")
    add("--cascade", choices=("background", "foreground", "orphan"), default="background",
        help="what belongs to them goes afterwards, goes first, or stays (background)")  # fmt: skip
    add("--ignore-not-found", action="store_true", help="what is not there is fine")
    add("--dry-run", action="store_true", help="only say what would be deleted")
    add_selectors(parser)
    add_namespace(parser, every=True)
    add_output(parser, "name", "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Delete each, then wait for all."""
    code, going, gone = OK, [], []
    for thing in _things(session, args):
        try:
            deleted = _delete(session, args, thing)
        except AnswerError as error:
            if not (error.status == 404 and args.ignore_not_found):
                tell(error)
                code = code or error.code
            continue
        gone.append(deleted)
        going.append((thing, _uid(deleted)))
        _say(session, args, thing)
    if args.output == "json":
        session.terminal.data({"apiVersion": "v1", "kind": "List", "items": gone}, "json")
    if args.wait and not args.dry_run and going:
        return _await(session, args, going) or code
    return code


def _things(session: Session, args: argparse.Namespace) -> list[_Thing]:
    if args.filename:
        from interlock.modes.cli.input.documents import read_named

        documents = [one.data for one in read_named(args.filename, recursive=args.recursive)]
        return [
            (kind_of(one), _namespace_in(session, one), str(one["metadata"]["name"]))
            for one in documents
        ]
    things: list[_Thing] = []
    for kind, name in parse_names(args.what):
        if name:
            things.append((kind, session.namespace, name))
            continue
        if not (args.all or args.selector or args.field_selector):
            raise CommandError(
                f"which {kind.plural}?", hint="give names, -l LABELS or --all", code=BAD_INPUT
            )
        things += _selected(session, args, kind)
    return things


def _selected(session: Session, args: argparse.Namespace, kind: Kind) -> list[_Thing]:
    pages = session.api.pages(
        kind, session.namespace_or_all, labels=args.selector, fields=args.field_selector
    )
    return [
        (kind, item["metadata"].get("namespace", ""), item["metadata"]["name"])
        for page in pages
        for item in page["items"]
    ]


def _namespace_in(session: Session, document: dict[str, Any]) -> str:
    return str((document.get("metadata") or {}).get("namespace") or session.namespace)


def _delete(session: Session, args: argparse.Namespace, thing: _Thing) -> dict[str, Any]:
    kind, namespace, name = thing
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": args.cascade.capitalize(),
    }
    if args.dry_run:
        # A cluster does not look at the query when there is a body: the word must be in here.
        options["dryRun"] = ["All"]
    answer: dict[str, Any] = session.api.call("DELETE", kind.path(namespace, name), None, options)
    return answer


def _uid(deleted: dict[str, Any]) -> str:
    """Which object it was: the server answers with the object, or with a Status about it."""
    told = deleted.get("details") if deleted.get("kind") == "Status" else deleted.get("metadata")
    return str((told or {}).get("uid") or "")


def _say(session: Session, args: argparse.Namespace, thing: _Thing) -> None:
    kind, _, name = thing
    if args.output == "name":
        session.terminal.print(f"{kind.singular}/{name}")
    elif not args.output:
        dry = " (dry run)" if args.dry_run else ""
        session.terminal.print(f"{kind.singular}/{name} deleted{dry}")


def _await(session: Session, args: argparse.Namespace, going: list[tuple[_Thing, str]]) -> int:
    deadline = monotonic() + args.timeout if args.timeout is not None else None
    for (kind, namespace, name), uid in going:
        leaving = _Leaving(session, kind, namespace, name, uid)
        if not leaving.is_over_by(deadline):
            print(f"{kind.singular}/{name} is not gone yet", file=sys.stderr)
            leaving.tell()
            return TIMED_OUT
    return OK


class _Leaving:
    """Watches one object until it is gone; another of the same name is not meant."""

    def __init__(self, session: Session, kind: Kind, namespace: str, name: str, uid: str) -> None:
        self._feed = Feed(session.api, kind, namespace, fields=f"metadata.name={name}")
        self._kind = kind
        self._name = name
        self._uid = uid
        #: What is there yet, by uid.
        self._there: dict[str, dict[str, Any]] = {}
        self._told: Holdup | None = None

    def is_over_by(self, deadline: float | None) -> bool:
        """Wait until it is gone; False when that is not so in time."""
        patience = monotonic() + _LONG_S
        try:
            self._note(self._feed.start())
            while self._is_there:
                now = monotonic()
                if deadline is not None and now >= deadline:
                    return False
                if now >= patience or self._holdup().is_for_people:
                    self.tell()
                ends = [end for end in (deadline, patience) if end is not None and end > now]
                self._note(self._feed.next(min(ends) - now if ends else None) or [])
            return True
        finally:
            self._feed.close()

    def tell(self) -> None:
        """Say what it waits for, unless that was said last."""
        holdup = self._holdup()
        if holdup == self._told:
            return
        self._told = holdup
        print(f"{self._kind.singular}/{self._name} is there yet: {holdup.told}", file=sys.stderr)
        if holdup.way_out:
            print(f"  {holdup.way_out}", file=sys.stderr)

    @property
    def _is_there(self) -> bool:
        return self._uid in self._there if self._uid else bool(self._there)

    def _holdup(self) -> Holdup:
        item = self._there[self._uid] if self._uid else next(iter(self._there.values()))
        return holdup_of(self._kind, item)

    def _note(self, changes: list[Change]) -> None:
        for type, item in changes:
            uid = item["metadata"]["uid"]
            if type == "DELETED":
                self._there.pop(uid, None)
            else:
                self._there[uid] = item
