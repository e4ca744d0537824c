"""The flags of a verb: those of its own, and those that verbs share."""

from __future__ import annotations

import argparse
import re

from interlock.client.errors import BAD_INPUT, CommandError, did_you_mean
from interlock.modes.cli.registry import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import NoReturn

FORMATS = ("json", "yaml", "wide", "name", "jsonpath")


_INVALID_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")
_QUOTED = re.compile(r"'([^']*)'")
#: Flags that may be given nothing: a line for people.
_MAY_BE_EMPTY = frozenset({"title", "reason"})


class HelpShown(Exception):  # noqa: N818 - it is no error
    """The help was asked for and printed: there is nothing else to do."""


class Parser(argparse.ArgumentParser):
    """argparse, with errors that say what to do."""

    @property
    def flags(self) -> Mapping[str, argparse.Action]:
        """The flags there are, by each of their spellings."""
        return self._option_string_actions

    @property
    def known(self) -> list[argparse.Action]:
        """Everything that can be typed."""
        return self._actions

    def error(self, message: str) -> NoReturn:
        """Refuse a command line."""
        hint = f"`{self.prog} --help` tells how to write it"
        if choice := _INVALID_CHOICE.search(message):
            hint = did_you_mean(choice[1], _QUOTED.findall(choice[2])) or hint
        if message.startswith("unrecognized arguments: "):
            word = message.partition(": ")[2].split()[0]
            near = did_you_mean(word.partition("=")[0], self.flags)
            hint = near or hint
        raise CommandError(f"{self.prog}: {message}", hint=hint, code=BAD_INPUT)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002
        """End after the help; the program ends in one place only."""
        raise HelpShown


def parser_for(verb: Verb, module: ModuleType) -> Parser:
    """The parser of one verb: the others are never built."""
    parser = Parser(
        prog=f"interlock {verb.name}",
        description=(module.__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    module.arguments(parser)
    if verb.takes_command:
        own = parser.format_usage().removeprefix("usage: ").rstrip()
        parser.usage = f"{own} [-- COMMAND [ARG...]]"
    _add_connection(parser)
    return parser


def parse(verb: Verb, module: ModuleType, argv: list[str]) -> argparse.Namespace | None:
    """What was typed after the verb; None when it was a call for help."""
    command: list[str] = []
    whole = argv
    if verb.takes_command and "--" in argv:
        cut = argv.index("--")
        argv, command = argv[:cut], argv[cut + 1 :]
    parser = parser_for(verb, module)
    try:
        args = _parsed(parser, argv)
    except HelpShown:
        return None
    except CommandError as error:
        if not verb.takes_command:
            raise
        from interlock.modes.cli.input.dashes import without_dashes

        raise without_dashes(verb.name, whole, parser.flags, error) from None
    _refuse_empty(parser, args)
    args.verb = verb.name
    if verb.takes_command:
        from interlock.modes.cli.input.dashes import Typed, first_word

        args.command = command
        args.typed = Typed(verb.name, argv, first_word(argv, parser.flags))
    return args


def _refuse_empty(parser: Parser, args: argparse.Namespace) -> None:
    """Refuse empty words: mostly a variable without a value, and never what was left out."""
    for action in parser.known:
        value = getattr(args, action.dest, None)
        is_empty = value == "" and action.default != ""
        if not is_empty and not (isinstance(value, list) and "" in value):
            continue
        if action.dest not in _MAY_BE_EMPTY:
            name = "/".join(action.option_strings) or str(action.metavar)
            raise CommandError(
                f"{parser.prog}: argument {name}: found an empty word",
                hint="has a variable no value? what is not wanted is left out altogether",
                code=BAD_INPUT,
            )


def _parsed(parser: Parser, argv: list[str]) -> argparse.Namespace:
    """Names and flags in any order. The quick way does not know that, and suffices mostly."""
    args, left = parser.parse_known_args(argv)
    return parser.parse_intermixed_args(argv) if left else args


def _add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which server")
    group.add_argument("--server", metavar="URL", help="its address; also INTERLOCK_SERVER")
    group.add_argument(
        "--token-file", metavar="FILE", help="the token to show; also INTERLOCK_TOKEN_FILE"
    )
    group.add_argument(
        "--ca-file", metavar="FILE", help="who signed its certificate; also INTERLOCK_CA_FILE"
    )
    group.add_argument(
        "--insecure-token", action="store_true",
        help="send a token over plain http to another machine; also INTERLOCK_INSECURE_TOKEN",
    )  # fmt: skip
    group.add_argument(
        "--context", metavar="NAME", help="a cluster: this context of the kubeconfig"
    )
    group.add_argument(
        "--kubeconfig", metavar="FILE",
        help="a cluster: this kubeconfig; also KUBECONFIG, when no server is named or runs here",
    )  # fmt: skip
    group.add_argument("-h", "--help", action="help", help="show this text")


def add_namespace(parser: argparse.ArgumentParser, *, every: bool = False) -> None:
    """The namespace a verb works in; with `every`, all of them."""
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="the namespace (the context's, or default)"
    )
    if every:
        parser.add_argument(
            "-A", "--all-namespaces", action="store_true", help="in every namespace"
        )


def add_output(parser: argparse.ArgumentParser, *formats: str) -> None:
    """How to print: for programs, or for people in more detail."""
    parser.add_argument(
        "-o", "--output", metavar="FORMAT", type=_format_among(formats), default="",
        help=" | ".join("jsonpath={...}" if one == "jsonpath" else one for one in formats),
    )  # fmt: skip


def _format_among(formats: tuple[str, ...]) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        name, found, _ = text.partition("=")
        if text and (name not in formats or (found and name != "jsonpath")):
            told = ", ".join(formats)
            near = did_you_mean(text, formats)
            raise argparse.ArgumentTypeError(f"{text!r} is none of {told}. {near}".rstrip())
        if text.startswith("jsonpath"):
            from interlock.modes.cli.output.jsonpath import check

            check(text.partition("=")[2])
        return text

    return chosen


def add_selectors(parser: argparse.ArgumentParser) -> None:
    """Which resources, by their labels and fields."""
    parser.add_argument(
        "-l", "--selector", metavar="LABELS", default="", help="only with these labels: a=b,c!=d"
    )
    parser.add_argument(
        "--field-selector", metavar="FIELDS", default="",
        help="only with these fields: status.phase=Running",
    )  # fmt: skip


def add_files(parser: argparse.ArgumentParser) -> None:
    """Files with definitions."""
    parser.add_argument(
        "-f", "--filename", metavar="FILE", action="append", default=[],
        help="a file, a directory, or - for the standard input; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "-R", "--recursive", action="store_true", help="what is below a directory too"
    )


def add_waiting(parser: argparse.ArgumentParser) -> None:
    """Stay until the Job has ended."""
    parser.add_argument("--wait", action="store_true", help="stay until it ended, exit as it did")
    parser.add_argument("--follow", action="store_true", help="--wait, and show what it prints")
    parser.add_argument(
        "--wait-timeout", metavar="TIME", type=seconds, help="stay at most this long"
    )


def add_sweeping(parser: argparse.ArgumentParser) -> None:
    """When a server looks for operations that nobody looks at."""
    parser.add_argument(
        "--sweep-every", metavar="TIME", type=seconds,
        help="how often to look for operations that were left alone (10m); 0 is never",
    )  # fmt: skip
    parser.add_argument(
        "--sweep-older-than", metavar="TIME", type=seconds,
        help="how long one is left alone beyond the delay that it waits for anyhow (10m)",
    )  # fmt: skip


def add_ending(parser: argparse.ArgumentParser) -> None:
    """The flags of a verb that ends Jobs."""
    wait = argparse.BooleanOptionalAction
    parser.add_argument("--wait", action=wait, default=False, help="stay until they ended (no)")
    parser.add_argument("--timeout", metavar="TIME", type=seconds, help="stay at most this long")
    add_namespace(parser)
    add_output(parser, "json")


def add_exception(parser: argparse.ArgumentParser) -> None:
    """The flags of a verb that makes an exception to a plan."""
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for people to read")
    parser.add_argument("--cancel", action="store_true", help="take it back")
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    add_namespace(parser)
    add_output(parser, "json")


def add_switching(parser: argparse.ArgumentParser) -> None:
    """What can be typed to a verb that switches schedules."""
    parser.add_argument("name", metavar="CONFIG", help="the JobConfig")
    parser.add_argument(
        "--schedule", metavar="N", type=number_from(0),
        help="only spec.schedules[N], counted from 0; without it, all of them",
    )  # fmt: skip
    add_namespace(parser)
    add_output(parser, "json")


def seconds(text: str) -> float:
    """A length of time as typed: 90, 90s, 5m, 1h30m."""
    units = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time such as 90s, 5m, 1h30m")
    return sum(float(number) * units[unit] for number, unit in parts)


def duration(text: str) -> str:
    """A length of time for a definition; a bare number means seconds."""
    seconds(text)
    return f"{text}s" if text.replace(".", "", 1).isdigit() else text


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, found, value = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def is_number(text: str) -> bool:
    """Whether it is a whole number in plain digits, of a length that makes sense."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def whole_number(text: str) -> int:
    """A whole number, also a negative one."""
    if not is_number(text.removeprefix("-")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def number_from(least: int) -> Callable[[str], int]:
    """A whole number that is not below the least."""

    def number(text: str) -> int:
        if not is_number(text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} up")
        return int(text)

    return number
