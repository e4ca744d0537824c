"""Names for what is imported: good ones, near what the source calls it, always the same ones."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from hashlib import sha256
from pathlib import PurePosixPath

_HASH = 5
#: Programs that run another program which is named after their own flags.
_WRAPPERS = frozenset(
    {
        *("chronic", "command", "env", "exec", "ionice", "nice", "nohup"),
        *("setsid", "sudo", "time", "timeout"),
    }
)
#: Programs that run a script.
_INTERPRETERS = re.compile(r"(?:ba|da|k|z|tc|c|fi)?sh|python[0-9.]*|perl|php[0-9.]*|ruby|node|java")
_ENDINGS = re.compile(r"\.(?:sh|bash|py|pl|php|rb|js|jar|cgi)$")
#: Words of a shell's own that stand before a command.
_KEYWORDS = ("(", "{", "!", "if", "then", "else", "elif", "while", "until", "do")
#: What only prepares or delays the work.
_BEFOREHAND = ("cd", "test", "[", "[[", ".", "source", "export", "sleep")
_SEPARATORS = re.compile(r"&&|\|\||;|\||&")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
#: A number, with or without a unit: what flags of wrappers take.
_AMOUNT = re.compile(r"-?[0-9.]+[smhd]?")


def fitting_name(wanted: str, longest: int) -> str:
    """The wanted name with what a name must not have replaced; too long a one ends in a hash."""
    name = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-") or "job"
    if len(name) <= longest:
        return name
    digest = sha256(wanted.encode()).hexdigest()[:_HASH]
    return f"{name[: longest - _HASH - 1].rstrip('-')}-{digest}"


def unused_name(name: str, longest: int, taken: Collection[str]) -> str:
    """The name itself, or with the lowest number from 2 on that makes it the only one."""
    if name not in taken:
        return name
    number = 2
    while (found := f"{name[: longest - len(str(number)) - 1].rstrip('-')}-{number}") in taken:
        number += 1
    return found


def name_of_command(command: str) -> str:
    """What a shell line is about: the program, or the script that it runs."""
    for piece in _SEPARATORS.split(command):
        words = _words(piece)
        while words and (_ASSIGNMENT.fullmatch(words[0]) or words[0] in _KEYWORDS):
            words = words[1:]
        if not words or words[0] in _BEFOREHAND or _is_delay(words):
            continue
        return _program(words)
    return "job"


def _is_delay(words: list[str]) -> bool:
    """Whether it is `perl -e 'sleep ...'`, which waits by lot."""
    return words[1:2] == ["-e"] and words[2:3] != [] and words[2].startswith("sleep")


def _words(piece: str) -> list[str]:
    try:
        return shlex.split(piece)
    except ValueError:
        # Quotes go over the end of the piece; the first words are good enough for a name.
        return piece.replace('"', " ").replace("'", " ").split()


def _wrapped(words: list[str]) -> list[str]:
    """What is left of a wrapper's arguments from the program on that it runs."""
    while words:
        if words[0] in ("-u", "-g", "--user", "--group"):
            words = words[1:]
        elif not (
            words[0].startswith("-")
            or _AMOUNT.fullmatch(words[0])
            or _ASSIGNMENT.fullmatch(words[0])
        ):
            break
        words = words[1:]
    return words


def _program(words: list[str]) -> str:
    base = PurePosixPath(words[0]).name
    rest = [word for word in words[1:] if not word.startswith("-")]
    if base in _WRAPPERS:
        wrapped = _wrapped(words[1:])
        return _program(wrapped) if wrapped else base
    if base == "flock" and len(rest) > 1:
        return _program(rest[1:])
    if _INTERPRETERS.fullmatch(base) and rest:
        if "-c" in words[1:3]:
            return name_of_command(rest[0])
        return _ENDINGS.sub("", PurePosixPath(rest[0]).name) or base
    return _ENDINGS.sub("", base) or "job"
