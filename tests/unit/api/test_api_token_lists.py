"""Lists of named tokens: what is taken, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.api.callers import Access
from interlock.api.security import Token, TokenFileError
from interlock.api.token_lists import read_token_list

SECRET, OTHER = "ann-0123456789abcdef", "bob-0123456789abcdef"


def write(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text)
    return file


def problems(tmp_path: Path, text: str) -> list[str]:
    """What is wrong with a list, a problem a line."""
    file = write(tmp_path / "tokens.yaml", text)
    with pytest.raises(TokenFileError) as refused:
        read_token_list(file)
    told = str(refused.value).removeprefix(f"{file}: ")
    assert SECRET not in told
    return [line.strip() for line in told.splitlines()]


def test_a_list_says_who_may_do_what(tmp_path: Path) -> None:
    write(tmp_path / "bob.token", f"# for bob\n{OTHER}\n")
    text = f"""
    - name: ann@example.org
      token: {SECRET}
      rights: [read, operate]
      paths: [domains/acme, /]
    - name: worker-1
      tokenFile: bob.token
      rights: [worker]
    """
    expected = (
        Token(
            SECRET.encode(),
            "ann@example.org",
            frozenset({Access.READ, Access.OPERATE}),
            frozenset({"domains/acme", "/"}),
        ),
        Token(OTHER.encode(), "worker-1", frozenset({Access.WORKER})),
    )
    assert read_token_list(write(tmp_path / "tokens.yaml", text)) == expected


def test_a_list_may_be_json_and_a_name_have_several_tokens(tmp_path: Path) -> None:
    rows = [{"name": "ann", "token": token, "rights": ["admin"]} for token in (SECRET, OTHER)]
    tokens = read_token_list(write(tmp_path / "tokens.json", json.dumps(rows)))
    assert [token.caller.name for token in tokens] == ["ann", "ann"]
    assert all(token.caller.may(Access.ADMIN) for token in tokens)


GOOD = f"name: ann, token: {SECRET}"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (f"token: {SECRET}, rights: [read]", "tokens[0].name: is required"),
        (f"{GOOD}", "tokens[0].rights: is required"),
        (f"{GOOD}, rights: []", "tokens[0].rights: expected 1 to 4 rights"),
        (
            f"{GOOD}, rights: [reed]",
            "tokens[0].rights[0]: expected one of read, operate, admin, worker",
        ),
        (f"{GOOD}, rights: read", "tokens[0].rights: expected a list, found text"),
        (f"{GOOD}, rights: [read], path: [a]", "tokens[0].path: unknown field"),
        (
            f"{GOOD}, rights: [read], paths: [a//b]",
            "tokens[0].paths[0]: expected the path of a target",
        ),
        (
            f"{GOOD}, rights: [read], paths: [/a]",
            "tokens[0].paths[0]: expected the path of a target",
        ),
        (f"{GOOD}, rights: [worker, read]", "tokens[0].rights: expected worker alone"),
        (f"{GOOD}, rights: [admin], paths: [a]", "tokens[0].paths: says nothing beside admin"),
        (f"name: a b, token: {SECRET}, rights: [read]", "tokens[0].name: expected letters, digits"),
        (
            "name: ann, token: short, rights: [read]",
            "tokens[0].token: expected at least 16 characters",
        ),
        ("name: ann, token: 12345678901234567, rights: [read]", "tokens[0].token: expected text"),
        (
            f"name: ann, token: '{SECRET} x', rights: [read]",
            "tokens[0].token: expected at least 16",
        ),
        ("name: ann, rights: [read]", "tokens[0]: expected exactly one of token and tokenFile"),
        (f"{GOOD}, tokenFile: x, rights: [read]", "tokens[0]: expected exactly one of token and"),
        ("name: ann, tokenFile: none, rights: [read]", "tokens[0].tokenFile: "),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, entry: str, expected: str) -> None:
    (told,) = problems(tmp_path, f"# who may ask\n- {{{entry}}}\n")
    assert told.startswith(f"line 2: {expected}")


def test_every_problem_is_told(tmp_path: Path) -> None:
    text = f"- {{{GOOD}, rights: [read]}}\n- {{name: bob, token: {SECRET}, rights: [worker, read]}}"
    assert problems(tmp_path, text) == [
        "line 2: tokens[1].rights: expected worker alone: a worker's token can do nothing else",
        "line 2: tokens[1].token: one token is given twice, for ann and bob",
    ]


@pytest.mark.parametrize("text", ["", "ann", "{}", "[]", "- 1", "[", "- {}\n---\n- {}"])
def test_what_is_no_list_of_tokens(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text)


def test_what_others_can_read_is_no_secret(tmp_path: Path) -> None:
    token = write(tmp_path / "ann.token", SECRET)
    text = "- {name: ann, tokenFile: ann.token, rights: [read]}"
    file = write(tmp_path / "tokens.yaml", text)
    assert len(read_token_list(file)) == 1
    token.chmod(0o644)
    assert problems(tmp_path, text)[0].startswith("line 1: tokens[0].tokenFile: ")
    token.chmod(0o600)
    file.chmod(0o640)
    with pytest.raises(TokenFileError, match="no secret"):
        read_token_list(file)
