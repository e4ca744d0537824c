"""The reference page of the command line, written from the parsers themselves."""

from __future__ import annotations

import argparse
from importlib import import_module

from interlock.client.errors import MEANINGS
from interlock.modes.cli.flags import Parser, parser_for
from interlock.modes.cli.registry import VERBS, Verb

_CONNECTION = "which server"
_START = """\
# The command line

`interlock VERB [ARGUMENT...]`. Flags and names may come in any order. Answers go to the standard
output, errors to the standard error with what to do about them. On a terminal there is colour,
unless `NO_COLOR` is set; elsewhere the text is plain. `-o json` is there for programs.
An empty word, such as a variable of a script that has no value, is refused: it never means all.

This page is written from the program: `make docs`.

## Which server

The first of these that is there counts:

1. `--context` and `--kubeconfig`: a cluster. Without `--kubeconfig` the context is looked for in
   the files of `KUBECONFIG`, or in `~/.kube/config`.
2. `--server`, or `INTERLOCK_SERVER`: a server of our own, at that address.
3. `server.json` in the data directory (`INTERLOCK_DATA`, or `.interlock` here), which a running
   server writes.
4. `KUBECONFIG`: the cluster of its current context. Several files are read as one, as kubectl
   does.
5. In a pod: the cluster it is in, as its service account.
6. `http://127.0.0.1:8470`.

The namespace is that of `-n`, else the context's, else `default`.

## On a cluster

Every verb works through the API server; the controller need not be reachable. `why`, `locks` and
`top` work their answers out from the Jobs, Locks and the leader's Lease that are stored, and `why`
says when no controller leads. `logs` reads the logs of pods, as long as those are there. `history`
reads Events, which a cluster keeps for about an hour. `backup` writes the objects as a manifest.
`up` and `restore` are for a server of our own alone, `sweep` for one or a controller (`--server`).

## Flags of the connection

These flags are the same for every verb, and may also stand before it:

"""
_CODES = """\
## Exit codes

`wait`, and `run` and `retry` with `--wait` or `--follow`, end as the Job ended: with 0 when it
succeeded; when a Job of one task failed, with the task's own exit code, or 128 and the number of
the signal that ended it; with 1 when a Job of several tasks failed, or a Job was written off. Of
several Jobs the first that did not do well counts.

| code | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    first = parser_for(VERBS["get"], import_module(VERBS["get"].module))
    parts = [_START + _flags(first, connection=True), _CODES + _codes()]
    group = ""
    for verb in VERBS.values():
        if verb.group != group:
            group = verb.group
            parts.append(f"## {group}\n")
        parts.append(_verb(verb))
    return "\n".join(parts)


def _codes() -> str:
    return "".join(f"| {code} | {meaning} |\n" for code, meaning in MEANINGS.items())


def _verb(verb: Verb) -> str:
    parser = parser_for(verb, import_module(verb.module))
    about, *rest = (parser.description or "").split("\n\n")
    text = "\n\n".join([about, *map(_fenced, rest)])
    flags = _flags(parser, connection=False)
    return f"### {verb.name}\n\n`{_usage(verb, parser)}`\n\n{text}\n" + (
        f"\n{flags}" if flags else ""
    )


def _fenced(paragraph: str) -> str:
    """Indented lines are commands."""
    if not paragraph.startswith("  "):
        return paragraph
    lines = "\n".join(line.removeprefix("  ") for line in paragraph.rstrip().split("\n"))
    return f"```console\n{lines}\n```"


def _usage(verb: Verb, parser: Parser) -> str:
    words = [_placeholder(a) for a in parser._get_positional_actions()]
    return " ".join(
        [
            f"interlock {verb.name}",
            "[FLAG...]",
            *words,
            *["[-- COMMAND [ARG...]]"] * verb.takes_command,
        ]
    )


def _placeholder(action: argparse.Action) -> str:
    shown = "|".join(map(str, action.choices)) if action.choices else str(action.metavar)
    if "[" in shown or "|" in shown:
        return shown
    return {"+": f"{shown}...", "*": f"[{shown}...]", "?": f"[{shown}]"}.get(
        str(action.nargs), shown
    )


def _flags(parser: Parser, *, connection: bool) -> str:
    """A table of the flags: those of the connection, or all others."""
    rows = [
        f"| {_written(action)} | {_cell(str(action.help))} |\n"
        for group in parser._action_groups
        for action in group._group_actions
        if action.option_strings and (group.title == _CONNECTION) is connection
    ]
    return "| flag | meaning |\n|---|---|\n" + "".join(rows) if rows else ""


def _written(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0 and not isinstance(action, argparse.BooleanOptionalAction):
        value = " " + (
            "|".join(map(str, action.choices)) if action.choices else str(action.metavar)
        )
    return ", ".join(f"`{_cell(option + value)}`" for option in action.option_strings)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
