"""Shell completion: verbs, flags, kinds, and names that the server knows."""

from __future__ import annotations

from importlib import import_module

from interlock.modes.cli.registry import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

#: What a shell does itself.
FILES = "__files"
_JOB_VERBS = frozenset(
    ("wait", "logs", "kill", "stop", "suspend", "resume", "retry", "why", "history", "release")
)
_CONFIG_VERBS = frozenset(("run", "enable", "disable"))
_CONTROLLED_VERBS = frozenset(("start", "restart", "skip", "extend", "hold"))
#: Verbs that take the name of one thing, and of which kind that is.
_NAMED = {"queue": "queues", "slots": "testbeds"}
#: Flags whose value is a name, and of which kind.
_VALUES = {"--job": "jobs", "--queue": "queues", "--test-bed": "testbeds"}
_KIND_VERBS = frozenset(("get", "describe", "delete", "watch"))
_FILE_FLAGS = frozenset(
    (
        "-f",
        "--filename",
        "--token-file",
        "--from-token-file",
        "--ca-file",
        "--kubeconfig",
        "--tls-cert",
        "--tls-key",
    )
)


def complete(words: list[str]) -> int:
    """Print what the last word could become, one a line. An unreachable server knows no names."""
    for candidate in candidates(words or [""]):
        print(candidate)
    return 0


def candidates(words: list[str]) -> list[str]:
    """What the last of the words could become."""
    *before, last = words
    typed = [word for word in before if not word.startswith("-")]
    verb = next((VERBS[word] for word in typed if word in VERBS), None)
    if verb is None:
        return [name for name in VERBS if name.startswith(last)]
    if before[-1] in _FILE_FLAGS and not (before[-1] == "-f" and verb.name == "logs"):
        return [FILES]
    if last.startswith("-"):
        return [flag for flag in _flags(verb.name) if flag.startswith(last)]
    return [one for one in _words(verb.name, typed, before) if one.startswith(last)]


def _parser(verb: str) -> argparse.ArgumentParser:
    from interlock.modes.cli.flags import parser_for

    return parser_for(VERBS[verb], import_module(VERBS[verb].module))


def _flags(verb: str) -> list[str]:
    return sorted(_parser(verb)._option_string_actions)


def _words(verb: str, typed: list[str], before: list[str]) -> list[str]:
    action = _parser(verb)._option_string_actions.get(before[-1])
    if action is not None and action.nargs != 0:
        return [str(choice) for choice in action.choices or _values(before[-1], before)]
    if verb in _JOB_VERBS:
        return _names("jobs", before)
    given = typed[typed.index(verb) + 1 :]
    if verb in _CONFIG_VERBS or verb in _CONTROLLED_VERBS:
        kind = "jobconfigs" if verb in _CONFIG_VERBS else "controlledjobs"
        return [] if given else _names(kind, before)
    if verb in _NAMED:
        return [] if given else _names(_NAMED[verb], before)
    if verb in _KIND_VERBS:
        from interlock.client.kinds import KINDS

        return _names(given[0], before) if given else [kind.plural for kind in KINDS]
    if verb == "completion":
        return ["bash", "zsh", "fish"]
    return [FILES] if verb in ("backup", "restore") else []


def _values(flag: str, before: list[str]) -> list[str]:
    if flag in ("-n", "--namespace"):
        return _names("namespaces", [])
    if flag in ("-o", "--output"):
        return ["json", "yaml", "wide", "name"]
    if flag in _VALUES:
        return _names(_VALUES[flag], before)
    return []


def _names(kind: str, before: list[str]) -> list[str]:
    """The names of a kind in the namespace that was typed."""
    import argparse

    from interlock.client.api import TABLE
    from interlock.client.errors import CommandError
    from interlock.client.kinds import kind_named
    from interlock.modes.cli.flags import _add_connection, add_namespace
    from interlock.modes.cli.session import Session

    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    _add_connection(parser)
    add_namespace(parser, every=True)
    session = None
    try:
        args, _ = parser.parse_known_args(before)
        session = Session(args)
        path = kind_named(kind).path(session.namespace)
        rows = session.api.call("GET", path, {"limit": 500}, accept=TABLE).get("rows") or []
    except (CommandError, argparse.ArgumentError, SystemExit):
        return []
    finally:
        if session is not None:
            session.close()
    return [row["object"]["metadata"]["name"] for row in rows]
