"""The missing `--`: a command that was typed without it, the commonest slip there is."""

from __future__ import annotations

from interlock.client.errors import BAD_INPUT, CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Mapping

#: Flags of ours that have a meaning beside the name of a JobConfig.
_BESIDE_A_NAME = ("-O", "-n", "-o", "-h")


def first_word(argv: list[str], flags: Mapping[str, Action]) -> int:
    """Where the first word stands that is neither a flag nor the value of one."""
    place = 0
    while place < len(argv) and argv[place].startswith("-") and argv[place] != "-":
        flag, has_value, _ = argv[place].partition("=")
        known = flags.get(flag)
        place += 2 if known is not None and known.nargs is None and not has_value else 1
    return min(place, len(argv))


class Typed:
    """What was typed after a verb, before any dashes."""

    def __init__(self, verb: str, argv: list[str], place: int) -> None:
        self._verb = verb
        self._flags = argv[:place] + argv[place + 1 :]
        self._word = argv[place : place + 1]

    @property
    def as_command(self) -> str:
        """The command line, if its one word is a command, and all flags are ours."""
        return with_dashes(self._verb, self._flags + self._word, len(self._flags))


def with_dashes(verb: str, argv: list[str], place: int) -> str:
    """The command line as it was meant, ready to be typed."""
    from shlex import join

    return join(["interlock", verb, *argv[:place], "--", *argv[place:]])


def without_dashes(
    verb: str, argv: list[str], flags: Mapping[str, Action], refusal: CommandError
) -> CommandError:
    """The refusal of a command line, in better words when it holds a command without dashes.

    A flag that is nearly one of ours, or one whose value is wrong, stays what it is.
    """
    place = first_word(argv, flags)
    after = argv[place + 1 :]
    if "--" in argv or place == len(argv) or refusal.hint.startswith("did you mean"):
        return refusal
    is_unknown = "unrecognized arguments: " in refusal.message
    has_short = any(
        word.startswith("-") and not word.startswith(("--", *_BESIDE_A_NAME)) for word in after
    )
    if not is_unknown and not has_short:
        return refusal
    return CommandError(
        f"interlock {verb}: a command comes after --",
        hint=f"did you mean: {with_dashes(verb, argv, place)}",
        code=BAD_INPUT,
    )
