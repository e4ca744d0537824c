"""Token lists: named tokens with their rights, as `--tokens FILE` gives them, in YAML or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import json

from interlock.api.callers import Access
from interlock.api.security import MIN_TOKEN, NAME, NAME_WORDS, Token, TokenFileError
from interlock.errors import InvalidError, Problem
from interlock.findings import Findings, child
from interlock.private_files import NotPrivateError, read_secret, token_lines
from interlock.resources.door.manifests import Document, ManifestError, read_data
from interlock.resources.door.validation import read_noun
from interlock.resources.metadata import Noun
from interlock.resources.rules import ExactlyOne, Items, Matches, NounRule

MOST_TOKENS = 10_000
_Name = Annotated[str, Matches(NAME.pattern, f"expected {NAME_WORDS}", longest=128)]
_Path = Annotated[
    str,
    Matches(
        "/|[A-Za-z0-9._:-]+(/[A-Za-z0-9._:-]+)*",
        "expected the path of a target, such as domains/acme, or / for everything",
        longest=200,
    ),
]
#: These hold everywhere, or nowhere but at one place.
_WITHOUT_PATHS = frozenset({Access.ADMIN, Access.WORKER})


class NamedToken(Noun):
    """A token, whose it is, and what they may do."""

    RULES: ClassVar[tuple[NounRule, ...]] = (ExactlyOne("token", "token_file"),)

    #: Who shows it; one name may have several tokens.
    name: _Name
    rights: Annotated[tuple[Access, ...], Items(1, len(Access), "rights")]
    token: str | None = None
    #: A file with the token alone, from the directory of the list.
    token_file: str | None = None
    #: Targets whose Jobs they may see and order about beside their own: these and what is below.
    paths: Annotated[tuple[_Path, ...], Items(0, 1000, "paths")] = ()


class _List(Noun):
    tokens: Annotated[tuple[NamedToken, ...], Items(1, MOST_TOKENS, "tokens")]


def read_token_list(path: Path) -> tuple[Token, ...]:
    """The tokens of a list, with their names and rights.

    Raises:
        TokenFileError: The list cannot be used; every problem is told with its line.
    """
    data = _secret(path)
    try:
        document, lines = read_data(data)
    except ManifestError as error:
        raise TokenFileError(f"{path}: {error}") from error
    if not isinstance(document, list):
        hint = "such as: [{name: ann, tokenFile: ann.token, rights: [operate]}]"
        raise TokenFileError(f"{path}: expected a list of tokens", hint)
    found = Findings()
    tokens: list[Token] = []
    try:
        entries = read_noun(json.encode({"tokens": document}), _List, "tokens").tokens
    except InvalidError as error:
        raise _refused(path, error.problems, lines) from error
    for at, entry in enumerate(entries):
        _check(entry, f"tokens[{at}]", found)
        tokens.append(_token_of(entry, f"tokens[{at}]", path, found))
    _check_alike(tokens, found)
    if found.problems:
        raise _refused(path, found.problems, lines)
    return tuple(tokens)


def _check(entry: NamedToken, place: str, to: Findings) -> None:
    """What holds between its fields."""
    rights = frozenset(entry.rights)
    if Access.WORKER in rights and len(rights) > 1:
        to.add(
            child(place, "rights"),
            "expected worker alone: a worker's token can do nothing else",
        )
    if entry.paths and (without := sorted(rights & _WITHOUT_PATHS)):
        to.add(child(place, "paths"), f"says nothing beside {without[0]}: expected read or operate")


def _token_of(entry: NamedToken, place: str, path: Path, to: Findings) -> Token:
    if entry.token_file is not None:
        place = child(place, "tokenFile")
        secret = _of_file(path.parent / entry.token_file, place, to)
    else:
        place = child(place, "token")
        secret = (entry.token or "").encode()
    if secret is not None and not _is_good(secret):
        to.add(place, f"expected at least {MIN_TOKEN} characters, without spaces and colons")
    rights, paths = frozenset(entry.rights), frozenset(entry.paths)
    return Token(secret or b"", entry.name, rights, paths)


def _of_file(file: Path, place: str, to: Findings) -> bytes | None:
    try:
        lines = token_lines(_secret(file))
    except TokenFileError as error:
        to.add(place, str(error))
        return None
    if len(lines) != 1 or lines[0][0]:
        to.add(place, f"{file}: expected one line with a token and nothing else")
        return None
    return lines[0][1]


def _is_good(secret: bytes) -> bool:
    plain = secret.isascii() and secret.decode().isprintable()
    return plain and len(secret) >= MIN_TOKEN and not any(one in secret for one in b" :")


def check_unlike(tokens: tuple[Token, ...]) -> None:
    """Make sure that of the tokens of several files no two are one.

    Raises:
        TokenFileError: One is given twice.
    """
    found = Findings()
    _check_alike(tokens, found)
    if found.problems:
        raise TokenFileError(f"--tokens and --token-file: {found.problems[0].message}")


def _check_alike(tokens: Sequence[Token], to: Findings) -> None:
    first: dict[bytes, int] = {}
    for at, token in enumerate(tokens):
        if token.secret and (before := first.setdefault(token.secret, at)) != at:
            whose = f"{tokens[before].name or 'nobody'} and {token.name or 'nobody'}"
            to.add(f"tokens[{at}].token", f"one token is given twice, for {whose}")


def _secret(path: Path) -> bytes:
    try:
        return read_secret(path)
    except NotPrivateError as error:
        raise TokenFileError(error.message, error.hint) from error
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror}") from error


def _refused(path: Path, problems: Sequence[Problem], lines: Mapping[str, int]) -> TokenFileError:
    """Every problem with its line; what was found there is not told, for it may be a secret."""
    told = []
    for problem in problems:
        line = Document({}, lines).line_of(problem.path.removeprefix("tokens"))
        told.append(f"line {line}: {problem}")
    return TokenFileError(f"{path}: " + "\n  ".join(told))
