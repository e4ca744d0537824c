"""TLS connections, imported only for https."""

from __future__ import annotations

import contextlib
import socket
import ssl
import tempfile
from pathlib import Path

from interlock.client.errors import BAD_INPUT, CommandError, UnreachableError
from interlock.client.target import Target


def wrap(sock: socket.socket, target: Target, context: ssl.SSLContext) -> socket.socket:
    """Encrypt a connection as the target asks."""
    try:
        return context.wrap_socket(sock, server_hostname=target.tls_name or target.host)
    except OSError as error:
        raise refused_by(target, error) from None


def refused_by(target: Target, error: OSError) -> UnreachableError:
    """Why there is no TLS with the target."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return UnreachableError(
            f"{target.url} is not trusted: {error.verify_message}",
            hint=target.hint
            if target.by_context
            else "give the authority that signed its certificate with --ca-file",
        )
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        plain = target.url.replace("https://", "http://", 1)
        return UnreachableError(
            f"{target.url} does not speak https",
            hint=target.hint if target.by_context else f"perhaps it speaks http: {plain}",
        )
    return UnreachableError(f"no TLS with {target.url} ({error})")


#: How the library says that what came back is no TLS at all.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


def context_of(target: Target) -> ssl.SSLContext:
    """What to encrypt with; made before anything is sent, for its files may be bad."""
    try:
        context = ssl.create_default_context(
            cafile=target.ca_file or None, cadata=target.ca_data or None
        )
    except ssl.SSLError as error:
        told = f"no certificate can be read from {target.ca_file or target.source}"
        raise CommandError(f"{told}: expected PEM ({error.reason})", code=BAD_INPUT) from None
    except OSError as error:
        told = f"cannot read the certificate in {target.ca_file}: {error.strerror}"
        raise CommandError(told, code=BAD_INPUT) from None
    except ValueError as error:
        told = f"no certificate can be read from {target.ca_file or target.source}: {error}"
        raise CommandError(told, code=BAD_INPUT) from None
    try:
        if target.skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if target.cert_data:
            _load_pair(context, target.cert_data, target.key_data)
    except (OSError, ValueError) as error:
        raise CommandError(f"bad certificate or key: {error}", code=BAD_INPUT) from None
    return context


def _load_pair(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Load a certificate and key that are not in files; the library reads files alone."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".pem"))
        file.write(cert + b"\n" + key)
        file.flush()
        context.load_cert_chain(Path(file.name))
