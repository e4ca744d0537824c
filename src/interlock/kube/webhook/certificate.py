"""The certificate that all replicas serve with, kept in a Secret and trusted by the API server.

Whoever looks first and finds nothing makes everything; the write is a compare-and-set, so all
replicas end up with the same. A running server goes on with the new certificate by itself: it
is put into the TLS context that the server already uses.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock.control.clock import Clock
from interlock.errors import AlreadyExistsError, ConflictError, NotFoundError
from interlock.kube.client.api_client import Call, Client, path_of
from interlock.kube.webhook.renewal import Step, decide
from interlock.kube.webhook.signing import Kept, Pair, describe, split_bundle, take
from interlock.resources.metadata import Key

#: How often a look is repeated because others write the same Secret.
TRIES = 8
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
#: What the Secret holds, by the names that tools know.
_BUNDLE, _SIGNING_KEY, _SERVING, _SERVING_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
_CONFIGURATIONS = {
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
}

Document = dict[str, Any]


class Place(Struct, frozen=True, kw_only=True):
    """Where the certificate is kept, who it is for, and who is told to trust it."""

    namespace: str
    secret: str
    #: The name of the webhook configurations.
    configuration: str
    #: Names and addresses that the certificate speaks for.
    names: frozenset[str]


class ServingCertificate:
    """Keeps the certificate good, and `context` serving with it."""

    def __init__(self, client: Client, clock: Clock, place: Place) -> None:
        self._client = client
        self._clock = clock
        self._place = place
        self._key = Key("Secret", place.namespace, place.secret)
        self._kept: Kept | None = None
        #: For servers; there is no certificate in it before the first look.
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    @property
    def bundle(self) -> str:
        """What whoever talks to us is to trust; empty before the first look."""
        return self._kept.bundle if self._kept else ""

    async def look(self) -> None:
        """Read what is kept, renew it when it is time, and serve with it.

        Raises:
            InterlockError: The Secret cannot be read or written.
        """
        for left in reversed(range(TRIES)):
            try:
                kept = await self._look_once()
            except (AlreadyExistsError, ConflictError, NotFoundError):
                # Another replica was faster, and what it wrote is as good; or it was deleted.
                if not left:
                    raise
                continue
            self._use(kept)
            return

    async def _look_once(self) -> Kept:
        found = await self._read()
        kept = _kept_in(found) if found is not None else None
        now = self._clock.now()
        step = decide(describe(kept) if kept else None, self._place.names, now)
        if step is Step.NOTHING:
            assert kept is not None
            return kept
        made = take(step, kept, self._place.names, now)
        await self._write(found, made)
        return made

    async def _read(self) -> Document | None:
        try:
            body = await self._client.send(Call(method="GET", path=self._path(), key=self._key))
        except NotFoundError:
            return None
        found: Document = json.loads(body)
        return found

    async def _write(self, found: Document | None, kept: Kept) -> None:
        data = {name: _encoded(text) for name, text in _texts(kept).items()}
        if found is None:
            metadata = {"name": self._key.name, "namespace": self._key.namespace}
            made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
            made["type"] = "kubernetes.io/tls"
            path = path_of("", "v1", "secrets", namespace=self._key.namespace)
            await self._send("POST", path, made)
        else:
            # It carries the version that was read: a newer one is not overwritten.
            await self._send("PUT", self._path(), found | {"data": data})

    async def _send(self, method: str, path: str, body: Document) -> None:
        await self._client.send(
            Call(method=method, path=path, key=self._key, body=json.dumps(body).encode())
        )

    def _path(self) -> str:
        return path_of("", "v1", "secrets", namespace=self._key.namespace, name=self._key.name)

    def _use(self, kept: Kept) -> None:
        if self._kept is None or self._kept.serving != kept.serving:
            load_pair(self.context, kept.serving)
        self._kept = kept

    async def publish(self) -> None:
        """Have the API server trust us; nothing is written when it does already.

        Configurations that are not installed are left alone.

        Raises:
            InterlockError: They cannot be read or written.
        """
        for kind, plural in _CONFIGURATIONS.items():
            key = Key(kind, "", self._place.configuration)
            path = path_of("admissionregistration.k8s.io", "v1", plural, name=key.name)
            try:
                found = json.loads(await self._client.send(Call(method="GET", path=path, key=key)))
            except NotFoundError:
                continue
            if patch := trusting(found, self.bundle):
                body = json.dumps(patch).encode()
                await self._client.send(
                    Call(method="PATCH", path=path, key=key, body=body, media=STRATEGIC_PATCH)
                )


def trusting(configuration: Document, bundle: str) -> Document | None:
    """The patch with which every webhook of a configuration trusts the bundle; None if all do."""
    wanted = _encoded(bundle)
    hooks = configuration.get("webhooks") or ()
    changed = [
        {"name": hook["name"], "clientConfig": {"caBundle": wanted}}
        for hook in hooks
        if hook["clientConfig"].get("caBundle") != wanted
    ]
    return {"webhooks": changed} if changed else None


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Serve with this certificate from the next connection on.

    The TLS library reads files only; these are there for a moment, and for nobody else.
    """
    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_text(pair.key + pair.certificate, "utf-8")
        context.load_cert_chain(path)


def service_names(service: str, namespace: str) -> frozenset[str]:
    """The names under which a service is reached in a cluster, and this machine from itself."""
    inside = (service, f"{service}.{namespace}", f"{service}.{namespace}.svc")
    return frozenset((*inside, f"{inside[-1]}.cluster.local", "localhost", "127.0.0.1"))


def _texts(kept: Kept) -> dict[str, str]:
    return {
        _BUNDLE: kept.bundle,
        _SIGNING_KEY: kept.authority_key,
        _SERVING: kept.serving.certificate,
        _SERVING_KEY: kept.serving.key,
    }


def _kept_in(secret: Document) -> Kept | None:
    """What a Secret holds, if it is all there."""
    data: Document = secret.get("data") or {}
    try:
        texts = {
            name: base64.b64decode(data[name], validate=True).decode("ascii")
            for name in (_BUNDLE, _SIGNING_KEY, _SERVING, _SERVING_KEY)
        }
    except (KeyError, ValueError):
        return None
    serving = Pair(texts[_SERVING], texts[_SERVING_KEY])
    authorities = split_bundle(texts[_BUNDLE])
    return Kept(authorities=authorities, authority_key=texts[_SIGNING_KEY], serving=serving)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
