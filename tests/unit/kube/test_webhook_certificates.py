"""Certificates are renewed in time, and whoever was told whom to trust is never surprised."""

from __future__ import annotations

import base64
import ssl
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from kube_fakes import a_client, a_status, run, serving
from msgspec.structs import replace

from interlock.control.clock import SystemClock
from interlock.kube.webhook.certificate import (
    Place,
    ServingCertificate,
    load_pair,
    service_names,
    trusting,
)
from interlock.kube.webhook.renewal import (
    AUTHORITY_LASTS,
    CERTIFICATE_LASTS,
    Holding,
    Span,
    Step,
    decide,
)
from interlock.kube.webhook.signing import Kept, describe, split_bundle, take

T0 = datetime(2026, 1, 5, 12, tzinfo=UTC)
NAMES = frozenset({"interlock.batch.svc", "127.0.0.1"})
DAY = timedelta(days=1)


def lasting(begins: datetime, days: int) -> Span:
    return Span(begins, begins + days * DAY)


#: An authority of 3,600 days and a certificate of 90, made at the same time.
FRESH = Holding(
    authority=lasting(T0, 3600),
    signer=lasting(T0, 3600),
    certificate=lasting(T0, 90),
    names=NAMES,
)
LATE = T0 + 2400 * DAY


@pytest.mark.parametrize(
    ("holding", "now", "expected"),
    [
        pytest.param(None, T0, Step.EVERYTHING, id="nothing there"),
        pytest.param(FRESH, T0, Step.NOTHING, id="just made"),
        pytest.param(FRESH, T0 + 60 * DAY - DAY / 24, Step.NOTHING, id="an hour early"),
        pytest.param(FRESH, T0 + 60 * DAY, Step.CERTIFICATE, id="two thirds over"),
        pytest.param(FRESH, T0 + 91 * DAY, Step.CERTIFICATE, id="run out, nobody was there"),
        pytest.param(FRESH, T0 - DAY, Step.EVERYTHING, id="from the future"),
        pytest.param(FRESH, LATE, Step.AUTHORITY, id="the authority comes first"),
        pytest.param(
            replace(FRESH, certificate=lasting(LATE, 90)), LATE, Step.AUTHORITY,
            id="it needs no reason",
        ),
        pytest.param(FRESH, T0 + 3601 * DAY, Step.EVERYTHING, id="asleep for ten years"),
        pytest.param(
            replace(FRESH, names=frozenset({"127.0.0.1"})), T0, Step.CERTIFICATE,
            id="another name is wanted",
        ),
        pytest.param(
            replace(FRESH, names=NAMES | {"more"}), T0, Step.NOTHING, id="more names do no harm"
        ),
        pytest.param(
            replace(FRESH, signer=lasting(T0 - 90 * DAY, 90)), T0, Step.CERTIFICATE,
            id="signed by somebody who is no more",
        ),
    ],
)  # fmt: skip
def test_what_is_made(holding: Holding | None, now: datetime, expected: Step) -> None:
    assert decide(holding, NAMES, now) is expected


def trusts(told: Kept, server: Kept) -> bool:
    """Whether somebody who was told to trust the one trusts what the other serves with."""
    client = ssl.create_default_context(cadata=told.bundle)
    # These certificates are of years to come.
    client.verify_flags |= ssl.VerifyFlags(0x200000)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, server.serving)
    try:
        return bool(shown_by(context, client))
    except ssl.SSLCertVerificationError:
        return False


class TestLife:
    def steps(self, days: int, every: int) -> list[tuple[datetime, Step, Kept]]:
        """What is made over the years, with a look every so many days."""
        kept: Kept | None = None
        holding: Holding | None = None
        found: list[tuple[datetime, Step, Kept]] = []
        for day in range(0, days, every):
            now = T0 + day * DAY
            step = decide(holding, NAMES, now)
            if step is not Step.NOTHING:
                kept = take(step, kept, NAMES, now)
                holding = describe(kept)
                found.append((now, step, kept))
            assert holding is not None
            assert holding.certificate.holds_at(now)
            assert holding.signer.holds_at(now)
        return found

    @pytest.mark.parametrize("every", [1, 7, 29])
    def test_nobody_is_ever_distrusted(self, every: int) -> None:
        """Whoever was told at the look before trusts what is served now, and the other way round:
        one replica renews, another has not looked yet, an API server has not heard yet."""
        life = self.steps(8000, every)

        for (_, _, before), (_, _, after) in pairwise(life):
            assert trusts(before, after)
            assert trusts(after, after)
            assert trusts(after, before)
        assert not trusts(life[0][2], life[-1][2])

    def test_each_is_replaced_at_two_thirds(self) -> None:
        made = Counter(step for _, step, _ in self.steps(7000, 1))

        assert made[Step.EVERYTHING] == 1
        assert made[Step.AUTHORITY] == 2
        assert made[Step.CERTIFICATE] in range(113, 117)

    def test_an_old_authority_is_forgotten(self) -> None:
        life = self.steps(8000, 1)

        counts = [len(kept.authorities) for _, _, kept in life]
        assert max(counts) == 2
        assert counts.count(1) > len(counts) * 0.9


class TestSigning:
    def test_what_is_made_fits_together_and_lasts(self) -> None:
        kept = take(Step.EVERYTHING, None, NAMES, T0)

        holding = describe(kept)
        assert holding is not None
        assert holding.names == NAMES
        assert holding.authority.ends_at == T0 + AUTHORITY_LASTS
        assert holding.certificate.ends_at == T0 + CERTIFICATE_LASTS
        assert split_bundle(kept.bundle) == kept.authorities

    @pytest.mark.parametrize(
        "change",
        [
            {"authorities": ()},
            {"authorities": ("nonsense",)},
            {"authority_key": ""},
            {"authority_key": "nonsense"},
        ],
    )
    def test_what_does_not_fit_is_nothing(self, change: dict[str, Any]) -> None:
        kept = take(Step.EVERYTHING, None, NAMES, T0)
        other = take(Step.EVERYTHING, None, NAMES, T0)

        assert describe(replace(kept, **change)) is None
        assert describe(replace(kept, serving=other.serving)) is None
        assert describe(replace(kept, authority_key=other.authority_key)) is None

    def test_a_service_is_known_by_all_its_names(self) -> None:
        assert {"interlock.batch.svc", "localhost", "127.0.0.1"} < service_names(
            "interlock", "batch"
        )


class TestTrusting:
    def a_configuration(self, *bundles: str) -> dict[str, Any]:
        hooks = [
            {"name": f"h{at}", "clientConfig": {"url": "https://x", "caBundle": bundle}}
            for at, bundle in enumerate(bundles)
        ]
        return {"webhooks": hooks}

    def test_nothing_is_written_when_all_trust_us(self) -> None:
        good = base64.b64encode(b"new").decode()

        assert trusting(self.a_configuration(good, good), "new") is None
        assert trusting({}, "new") is None

    def test_those_who_do_not_are_told(self) -> None:
        good = base64.b64encode(b"new").decode()

        patch = trusting(self.a_configuration("b2xk", good, ""), "new")

        assert patch is not None
        assert [hook["name"] for hook in patch["webhooks"]] == ["h0", "h2"]
        assert patch["webhooks"][0]["clientConfig"] == {"caBundle": good}


class FakeSecrets:
    """An API server that keeps one Secret, and lets others write between a read and a write."""

    def __init__(self) -> None:
        self.secret: dict[str, Any] | None = None
        self.version = 0
        self.writes = 0
        #: What another replica writes just before the next write arrives.
        self.faster: dict[str, Any] | None = None

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return self.answer(self.secret, 404, "NotFound")
        if self.faster is not None:
            self.put(self.faster)
            self.faster = None
        given = await request.json()
        if request.method == "POST" and self.secret is not None:
            return self.answer(None, 409, "AlreadyExists")
        if request.method == "PUT" and given["metadata"]["resourceVersion"] != str(self.version):
            return self.answer(None, 409, "Conflict")
        self.writes += 1
        self.put(given)
        return self.answer(self.secret, 200, "")

    def put(self, given: dict[str, Any]) -> None:
        self.version += 1
        metadata = given["metadata"] | {"resourceVersion": str(self.version)}
        self.secret = given | {"metadata": metadata}

    def answer(self, body: dict[str, Any] | None, code: int, reason: str) -> web.Response:
        if body is None:
            return web.json_response(a_status(code, reason, name="interlock-webhook"), status=code)
        return web.json_response(body)


PLACE = Place(namespace="batch", secret="interlock-webhook", configuration="x", names=NAMES)


class TestKeeping:
    def test_the_first_makes_all_and_the_second_takes_it(self) -> None:
        async def test() -> None:
            secrets = FakeSecrets()
            async with serving(secrets) as server, a_client(server.url) as client:
                one = ServingCertificate(client, SystemClock(), PLACE)
                two = ServingCertificate(client, SystemClock(), PLACE)
                assert one.bundle == ""
                for each in (one, two, one):
                    await each.look()

                assert secrets.writes == 1
                assert one.bundle == two.bundle
                assert set((secrets.secret or {})["data"]) == {
                    "ca.crt", "ca.key", "tls.crt", "tls.key"
                }  # fmt: skip

        run(test)

    @pytest.mark.parametrize("there", [False, True], ids=["nothing there", "something broken"])
    def test_who_is_slower_takes_what_the_faster_wrote(self, there: bool) -> None:
        async def test() -> None:
            other = FakeSecrets()
            async with serving(other) as server, a_client(server.url) as client:
                await ServingCertificate(client, SystemClock(), PLACE).look()
            secrets = FakeSecrets()
            if there:
                secrets.put({"metadata": {"name": "interlock-webhook"}, "data": {"tls.crt": "%"}})
            secrets.faster = other.secret
            async with serving(secrets) as server, a_client(server.url) as client:
                slow = ServingCertificate(client, SystemClock(), PLACE)
                await slow.look()

                assert secrets.writes == 0
                kept = base64.b64decode((secrets.secret or {})["data"]["ca.crt"]).decode()
                assert slow.bundle == kept

        run(test)

    def test_what_people_wrote_on_the_secret_stays(self) -> None:
        async def test() -> None:
            secrets = FakeSecrets()
            metadata = {"name": "interlock-webhook", "labels": {"a": "b"}}
            secrets.put({"metadata": metadata, "type": "Opaque"})
            async with serving(secrets) as server, a_client(server.url) as client:
                await ServingCertificate(client, SystemClock(), PLACE).look()

            assert secrets.secret is not None
            assert secrets.secret["metadata"]["labels"] == {"a": "b"}
            assert secrets.secret["type"] == "Opaque"

        run(test)

    def test_a_server_goes_on_with_the_new_certificate(self) -> None:
        """The same context answers with another certificate, and is trusted by its authority."""

        async def test() -> None:
            secrets = FakeSecrets()
            async with serving(secrets) as server, a_client(server.url) as client:
                kept = ServingCertificate(client, SystemClock(), PLACE)
                await kept.look()
                first = shown_by(kept.context, ssl.create_default_context(cadata=kept.bundle))
                assert secrets.secret is not None
                secrets.secret["data"] = {}
                await kept.look()
                second = shown_by(kept.context, ssl.create_default_context(cadata=kept.bundle))

            assert first != second
            assert secrets.writes == 2

        run(test)

    def test_keys_are_not_shown(self) -> None:
        async def test() -> None:
            secrets = FakeSecrets()
            async with serving(secrets) as server, a_client(server.url) as client:
                kept = ServingCertificate(client, SystemClock(), PLACE)
                await kept.look()

                assert "PRIVATE" not in repr(kept.__dict__)

        run(test)


def shown_by(context: ssl.SSLContext, trusting: ssl.SSLContext) -> bytes:
    """The certificate that a server with this context shows to that client."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server, server_hostname="interlock.batch.svc")
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = client.getpeercert(binary_form=True)
    assert shown is not None
    return shown
