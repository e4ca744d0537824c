"""Keys and certificates: made, read and bundled. `cryptography` is imported on first use.

The library is dear to import, so it is when the first of these is called.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from interlock.kube.webhook.renewal import (
    AUTHORITY_LASTS,
    BACKDATED,
    CERTIFICATE_LASTS,
    Holding,
    Span,
    Step,
)

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_END = "-----END CERTIFICATE-----\n"


class Pair(Struct, frozen=True):
    """A certificate and its key, as PEM."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Pair(...)"


class Kept(Struct, frozen=True, kw_only=True):
    """Everything that the replicas share."""

    #: The certificates of all authorities that are to be trusted, the newest first.
    authorities: tuple[str, ...]
    #: The key of the newest.
    authority_key: str
    #: What to serve with.
    serving: Pair

    def __repr__(self) -> str:
        return f"Kept(authorities={len(self.authorities)})"

    @property
    def bundle(self) -> str:
        """What whoever talks to us is to trust."""
        return "".join(self.authorities)


def split_bundle(bundle: str) -> tuple[str, ...]:
    """The certificates that are in one text."""
    return tuple(part + _END for part in bundle.split(_END)[:-1])


def make_authority(now: datetime) -> Pair:
    """An authority of its own, which vouches for nothing but what it signs itself."""
    from cryptography import x509

    key = _make_key()
    name = _name(f"interlock authority {now:%Y-%m-%d}")
    subject = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    span = Span(now - BACKDATED, now + AUTHORITY_LASTS)
    made = _begin(name, name, key, span)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    made = made.add_extension(_usage(signs_certificates=True), critical=True)
    return _finish(made.add_extension(subject, critical=False), key, key)


def make_certificate(authority: Pair, names: Iterable[str], now: datetime) -> Pair:
    """A certificate for a server of these names and addresses, signed by the authority."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    signer, signer_key = _read(authority.certificate), _read_key(authority.key)
    key = _make_key()
    ends_at = min(now + CERTIFICATE_LASTS, signer.not_valid_after_utc)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key())
    span = Span(now - BACKDATED, ends_at)
    made = _begin(_name("interlock"), signer.subject, key, span)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    made = made.add_extension(_usage(signs_certificates=False), critical=True)
    serves = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    made = made.add_extension(serves, critical=False)
    spoken_for = x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])
    made = made.add_extension(spoken_for, critical=False)
    return _finish(made.add_extension(identifier, critical=False), key, signer_key)


def describe(kept: Kept) -> Holding | None:
    """What there is, if it can be read and fits together."""
    from cryptography import x509

    try:
        newest, serving = _read(kept.authorities[0]), _read(kept.serving.certificate)
        signer = next(one for one in map(_read, kept.authorities) if _signed(one, serving))
        pairs = ((newest, kept.authority_key), (serving, kept.serving.key))
        if any(one.public_key() != _read_key(key).public_key() for one, key in pairs):
            return None
        told = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, IndexError, StopIteration, x509.ExtensionNotFound):
        return None
    return Holding(
        authority=_span(newest),
        signer=_span(signer),
        certificate=_span(serving),
        names=frozenset(str(name.value) for name in told),
    )


def take(step: Step, kept: Kept | None, names: Iterable[str], now: datetime) -> Kept:
    """Take a step from what there is; with nothing there, the only step is everything."""
    if step is Step.EVERYTHING or kept is None:
        authority = make_authority(now)
        return Kept(
            authorities=(authority.certificate,),
            authority_key=authority.key,
            serving=make_certificate(authority, names, now),
        )
    current = Pair(kept.authorities[0], kept.authority_key)
    serving = make_certificate(current, names, now)
    signers = _signers(kept)
    if step is Step.AUTHORITY:
        following = make_authority(now)
        trusted, key = (following.certificate, current.certificate, *signers), following.key
    else:
        trusted, key = (current.certificate, *signers), current.key
    return Kept(authorities=tuple(dict.fromkeys(trusted)), authority_key=key, serving=serving)


def _signers(kept: Kept) -> tuple[str, ...]:
    """The authority that signed what others may still serve with."""
    serving = _read(kept.serving.certificate)
    return tuple(one for one in kept.authorities if _signed(_read(one), serving))


def _make_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, span: Span
) -> x509.CertificateBuilder:
    from cryptography import x509

    made = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return made.not_valid_before(span.begins_at).not_valid_after(span.ends_at)


def _finish(
    made: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> Pair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    signed = made.sign(signer, hashes.SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(signed.public_bytes(Encoding.PEM).decode(), secret.decode())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _read(certificate: str) -> x509.Certificate:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate.encode())


def _read_key(key: str) -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    read = load_pem_private_key(key.encode(), password=None)
    if not isinstance(read, ec.EllipticCurvePrivateKey):
        raise TypeError("expected a key on an elliptic curve")
    return read


def _signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _span(certificate: x509.Certificate) -> Span:
    return Span(certificate.not_valid_before_utc, certificate.not_valid_after_utc)
