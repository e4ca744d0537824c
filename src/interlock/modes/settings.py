"""What a person chooses when starting a server, checked before anything is touched."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock.api.security import Security, is_loopback, read_tokens
from interlock.resources.errors import InterlockError

DEFAULT_LISTEN = "127.0.0.1:8470"
DEFAULT_DATA = Path(".interlock")


class SettingsError(InterlockError):
    """A server cannot be started like this; the message says what to change."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Listen(Struct, frozen=True):
    """Where to listen; port 0 takes any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class EmbeddedSettings(Struct, frozen=True, kw_only=True):
    """How to run the embedded server."""

    data: Path = DEFAULT_DATA
    listen: str = DEFAULT_LISTEN
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Apply the examples when the store is empty.
    examples: bool = False


def read_settings(given: Namespace) -> EmbeddedSettings:
    """The settings that were typed; what was not typed is as usual."""
    wanted: dict[str, Any] = {}
    for name in ("data", "token_file", "tls_cert", "tls_key"):
        if value := getattr(given, name, None):
            wanted[name] = Path(value)
    if listen := getattr(given, "listen", None):
        wanted["listen"] = listen
    return EmbeddedSettings(**wanted, examples=bool(getattr(given, "examples", False)))


def read_listen(text: str) -> Listen:
    """Read HOST:PORT.

    Raises:
        SettingsError: It is not an address.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    usable = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65_536
    if not colon or not host or not usable:
        raise SettingsError(
            f"--listen {text}: expected HOST:PORT", f"for example --listen {DEFAULT_LISTEN}"
        )
    return Listen(host, int(port))


def security_of(settings: EmbeddedSettings) -> Security:
    """Who may ask a server with these settings.

    Raises:
        SettingsError: Others could reach it, and no token would stop them.
        TokenFileError: The token file cannot be used.
    """
    loopback = is_loopback(read_listen(settings.listen).host)
    if not loopback and settings.token_file is None:
        raise SettingsError(
            f"--listen {settings.listen} can be reached from other machines, so it needs a token",
            "give --token-file FILE, or listen on 127.0.0.1",
        )
    if (settings.tls_cert is None) is not (settings.tls_key is None):
        raise SettingsError("--tls-cert and --tls-key are given together or not at all")
    tokens = read_tokens(settings.token_file) if settings.token_file else ()
    return Security(loopback=loopback, tokens=tokens)
