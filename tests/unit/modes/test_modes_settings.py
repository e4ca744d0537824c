"""What may be typed for a server, and what of it is refused before anything is touched."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from interlock.api.callers import Access
from interlock.api.security import Token, TokenFileError
from interlock.modes.settings import (
    EmbeddedSettings,
    Listen,
    SettingsError,
    Sweeping,
    read_listen,
    read_settings,
    security_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8470", Listen("127.0.0.1", 8470)),
        ("localhost:0", Listen("localhost", 0)),
        ("[::1]:80", Listen("::1", 80)),
        ("::1:80", Listen("::1", 80)),
    ],
)
def test_addresses(text: str, expected: Listen) -> None:
    assert read_listen(text) == expected


@pytest.mark.parametrize("text", ["", ":", "host", "host:", ":1", "h:-1", "h:65536", "h:x", "h:²"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(SettingsError):
        read_listen(text)


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(Listen("::1", 80)) == "[::1]:80"
    assert str(Listen("127.0.0.1", 80)) == "127.0.0.1:80"


def test_what_was_not_typed_is_as_usual() -> None:
    typed = Namespace(data=None, listen=None, tls_cert=None, tls_key=None, examples=False)
    assert read_settings(typed) == EmbeddedSettings()
    typed = Namespace(data="x", listen="h:1", token_file="t", tls_cert="c", tls_key="k")
    assert read_settings(typed) == EmbeddedSettings(
        data=Path("x"),
        listen="h:1",
        token_file=Path("t"),
        tls_cert=Path("c"),
        tls_key=Path("k"),
    )


def test_who_may_ask(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    assert security_of(EmbeddedSettings()).loopback
    with pytest.raises(SettingsError):
        security_of(EmbeddedSettings(listen="0.0.0.0:1"))
    opened = security_of(EmbeddedSettings(listen="0.0.0.0:1", token_file=token))
    assert not opened.loopback
    assert opened.tokens == (Token(b"0123456789abcdef"),)
    with pytest.raises(SettingsError):
        security_of(EmbeddedSettings(tls_key=token))


def test_named_tokens_let_in_beside_those_that_may_do_everything(tmp_path: Path) -> None:
    token, named = tmp_path / "token", tmp_path / "tokens.json"
    token.write_text("ann:0123456789abcdef\n")
    named.write_text('[{"name": "bob", "token": "fedcba9876543210", "rights": ["read"]}]')
    for file in (token, named):
        file.chmod(0o600)
    opened = security_of(EmbeddedSettings(listen="0.0.0.0:1", tokens=named))
    assert [one.caller.may(Access.ADMIN) for one in opened.tokens] == [False]
    both = EmbeddedSettings(token_file=token, tokens=named)
    rights = {one.name: one.caller.may(Access.ADMIN) for one in security_of(both).tokens}
    assert rights == {"ann": True, "bob": False}
    with pytest.raises(SettingsError, match="--tokens asks for one"):
        security_of(EmbeddedSettings(tokens=named, any_local_user=True))
    token.write_text("bob:fedcba9876543210\n")
    with pytest.raises(TokenFileError, match="given twice"):
        security_of(both)


def test_when_operations_are_swept() -> None:
    assert read_settings(Namespace()).sweeping == Sweeping(every_s=600, older_than_s=600)
    typed = Namespace(sweep_every=0.0, sweep_older_than=5.0)
    assert read_settings(typed).sweeping == Sweeping(every_s=0, older_than_s=5)
