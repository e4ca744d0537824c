"""Reload on SIGHUP: tokens, certificate, logs."""

from __future__ import annotations

import logging
from typing import Protocol

from interlock.api.app import ApiApp
from interlock.api.security import Security, TokenFileError
from interlock.modes.server_log import ServerLog
from interlock.modes.serving import Certificate
from interlock.modes.settings import EmbeddedSettings, SettingsError, tokens_of
from interlock.private_files import NotPrivateError
from interlock.resources.words import plural

logger = logging.getLogger("interlock.server")


class HasLogs(Protocol):
    """What writes logs of its own."""

    def reopen_logs(self) -> None:
        """Go on in new files where logs were moved away."""
        ...


class Reloading:
    """Each part is taken up alone: what cannot be used stays as it was, and is told in the log."""

    def __init__(
        self,
        settings: EmbeddedSettings,
        security: Security,
        certificate: Certificate | None,
        log: ServerLog,
        app: ApiApp,
        others: HasLogs | None,
    ) -> None:
        self._settings = settings
        self._security = security
        self._certificate = certificate
        self._log = log
        self._app = app
        self._others = others

    def read_again(self) -> None:
        """Take everything up anew."""
        try:
            self._log.reopen()
        except (OSError, NotPrivateError) as error:
            logger.warning("the log cannot be opened again, and goes on as before: %s", error)
        if self._others is not None:
            self._others.reopen_logs()
        read = ["the logs"]
        if self._security.tokens and self._read_tokens():
            read.append(plural(len(self._security.tokens), "token"))
        if self._certificate is not None and self._read_certificate(self._certificate):
            read.append("the certificate")
        logger.info("read again, as SIGHUP asks for: %s", ", ".join(read))

    def _read_tokens(self) -> bool:
        try:
            self._security.tokens = tokens_of(self._settings)
        except TokenFileError as error:
            logger.warning("the tokens of before stay: %s", error)
            return False
        self._app.expel(lambda request: not self._security.knows(request))
        return True

    def _read_certificate(self, certificate: Certificate) -> bool:
        try:
            certificate.read(always=True)
        except SettingsError as error:
            logger.warning("the certificate of before stays: %s", error)
            return False
        return True
