"""Where `interlock` starts: find the verb, parse its flags, run it, and end with its code."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from interlock.client.errors import (
    BAD_INPUT,
    DEFECT,
    FAILED,
    INTERRUPTED,
    CommandError,
    did_you_mean,
)
from interlock.modes.cli.registry import VERBS, Verb, overview

#: Flags that may stand before the verb and have a value.
_WITH_VALUE = frozenset(
    ("-n", "--namespace", "--server", "--token-file", "--ca-file", "--context", "--kubeconfig")
)


def run() -> int:
    """The whole program. No error reaches a user as a traceback."""
    # What a terminal or a file cannot take is written in another way, and is no defect.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_the_rest()  # The reader has seen enough (`| head`).
        return 141
    except Exception as error:
        if os.environ.get("INTERLOCK_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.strerror:
            # What the machine refuses is no defect: a file that is closed to us, a full disk.
            path = f"{error.filename}: " if isinstance(error.filename, str) else ""
            tell(CommandError(f"{path}{error.strerror}"))
            _drop_the_rest()
            return FAILED
        hint = "a defect of this program: INTERLOCK_TRACEBACK=1 shows where it is"
        tell(CommandError(f"{type(error).__name__}: {error}", hint=hint))
        return DEFECT


def _drop_the_rest() -> None:
    """What is still buffered must not be tried again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: list[str]) -> int:
    """Carry out one command line; returns the exit code."""
    try:
        return _dispatch(argv)
    except CommandError as error:
        tell(error)
        return error.code


def tell(error: CommandError) -> None:
    """Say what is wrong, and what to do about it; an error without words was told already."""
    if error.message:
        print(f"error: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {error.hint}", file=sys.stderr)


def _dispatch(argv: list[str]) -> int:
    place = _place_of_verb(argv)
    before = argv[:place]
    if "-h" in before or "--help" in before or argv[place : place + 1] == ["help"]:
        return _help(argv[place + 1 : place + 2])
    if "--version" in before:
        argv, place = ["version", "--client"], 0
    elif place == len(argv):
        sys.stderr.write(overview())
        return BAD_INPUT
    word, after = argv[place], argv[place + 1 :]
    if word == "__complete":
        from interlock.modes.cli.completing import complete

        return complete(after)
    return _run_verb(verb_named(word), [*before, *after] if before != argv else after)


def _place_of_verb(argv: list[str]) -> int:
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        place += 2 if argv[place] in _WITH_VALUE else 1
    return min(place, len(argv))


def _help(words: list[str]) -> int:
    if words:
        return _run_verb(verb_named(words[0]), ["--help"])
    sys.stdout.write(overview())
    return 0


def verb_named(word: str) -> Verb:
    """The verb that was typed."""
    verb = VERBS.get(word)
    if verb is None:
        hint = did_you_mean(word, VERBS) or "`interlock --help` lists the verbs"
        raise CommandError(f"there is no verb {word!r}", hint=hint, code=BAD_INPUT)
    return verb


def _run_verb(verb: Verb, argv: list[str]) -> int:
    from importlib import import_module

    from interlock.modes.cli.flags import parse
    from interlock.modes.cli.session import Session

    module = import_module(verb.module)
    args = parse(verb, module, argv)
    if args is None:
        return 0
    session = Session(args)
    try:
        code: int = module.run(session, args)
        return code
    finally:
        session.close()
