"""What may be typed for a server, and what of it is refused before anything is touched."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from interlock.api.security import Token
from interlock.modes.settings import (
    EmbeddedSettings,
    Listen,
    SettingsError,
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
