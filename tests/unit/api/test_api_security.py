"""Who gets in: names, pages and tokens."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from interlock.api.answers import Answer
from interlock.api.requests import Request, Send
from interlock.api.routing import OnPath, Route
from interlock.api.security import Security, Token, TokenFileError, is_loopback, read_tokens
from interlock.testing.asking import JOB, JOBS, Asker, asking, in_time, scope_of

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8470", 200),
        ("127.0.0.1", 200),
        ("127.1.2.3:1", 200),
        ("localhost:8470", 200),
        ("LOCALHOST", 200),
        ("[::1]:8470", 200),
        ("evil.example:8470", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8470", 403),
        ("10.0.0.1:8470", 403),
        ("evil@127.0.0.1.example", 403),
        ("[::1", 403),
        ("", 403),
        ("\xff", 403),
    ],
)
def test_on_loopback_only_its_own_names_are_answered(host: str, status: int) -> None:
    assert asking(Asker())("GET", JOBS, headers={"host": host}).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8470", 200),
        ("http://127.0.0.1:9999", 403),
        ("http://localhost:8470", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("tokens", [(), (Token(TOKEN.encode()),)])
def test_pages_of_other_sites_are_refused(
    origin: str, status: int, tokens: tuple[Token, ...]
) -> None:
    ask = asking(Asker(security=Security(loopback=True, tokens=tokens)))
    headers = {"origin": origin, "authorization": f"Bearer {TOKEN}"}
    assert ask("GET", JOBS, headers=headers).status == status


@pytest.mark.parametrize(
    ("method", "site", "more", "status"),
    [
        ("POST", "cross-site", {}, 403),
        ("POST", "same-site", {}, 403),
        ("DELETE", "cross-site", {}, 403),
        ("POST", "cross-site", {"origin": "http://127.0.0.1:8470"}, 201),
        ("POST", "same-origin", {}, 201),
        ("POST", "none", {}, 201),
        ("GET", "cross-site", {}, 200),
    ],
)
def test_what_a_foreign_page_sends_without_saying_so_is_refused(
    method: str, site: str, more: dict[str, str], status: int
) -> None:
    headers = {"sec-fetch-site": site, "content-type": "application/json", **more}
    assert asking(Asker())(method, JOBS, JOB, headers).status == status


def test_a_request_names_one_host() -> None:
    scope = scope_of("GET", JOBS, headers={"host": "evil.example"})
    scope["headers"].append((b"host", b"127.0.0.1:8470"))
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    in_time(Asker().app(scope, receive, send))

    assert sent[0]["status"] == 400


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        ("Bearer another-token-123", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 401),
        ("Bearer \xff\xfe", 401),
        ("", 401),
    ],
)
def test_elsewhere_a_token_lets_in(authorization: str, status: int) -> None:
    tokens = (Token(TOKEN.encode()), Token(b"another-token-123", "bob"))
    ask = asking(Asker(security=Security(loopback=False, tokens=tokens)))
    headers = {"host": "jobs.example", "authorization": authorization}
    answer = ask("GET", JOBS, headers=headers)
    assert answer.status == status
    if status == 401:
        assert answer.json["reason"] == "Unauthorized"
        assert answer.header("www-authenticate") == "Bearer"


def test_health_needs_no_token_and_metrics_do() -> None:
    ask = asking(Asker(security=Security(loopback=False, tokens=(Token(TOKEN.encode()),))))
    assert [ask("GET", path).status for path in ("/healthz", "/livez", "/readyz")] == [200] * 3
    assert ask("GET", "/metrics").status == 401


def test_routes_of_others_are_behind_the_same_door() -> None:
    reached: list[str] = []

    async def serve(request: Request, send: Send) -> Answer:
        reached.append(request.match.parts["name"])
        return Answer(200, b"")

    right = OnPath("get")
    route = Route(method="GET", path="/others/{name}", right=right, serve=serve)
    ask = asking(Asker(routes=(route,)))
    assert ask("GET", "/others/x", headers={"host": "evil.example"}).status == 403
    assert ask("GET", "/others/x").status == 200
    assert ask("GET", "/others").status == 404
    assert ask("GET", "/others/x/y").status == 404
    refused = ask("POST", "/others/x")
    assert (refused.status, refused.header("allow")) == (405, "GET")
    assert reached == ["x"]


def test_tokens_are_never_logged_or_shown(caplog: pytest.LogCaptureFixture) -> None:
    asker = Asker(security=Security(loopback=False, tokens=(Token(TOKEN.encode()),)))

    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    asker.store.get = fail  # type: ignore[assignment, method-assign]
    with caplog.at_level(logging.DEBUG):
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert asking(asker)("GET", f"{JOBS}/x", headers=headers).status == 500
    assert caplog.records
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(Security(tokens=(Token(TOKEN.encode()),)))


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"# who may ask\n{TOKEN}\n\nann@example.org: second-token-of-many\n")
    assert read_tokens(file) == (
        Token(TOKEN.encode()),
        Token(b"second-token-of-many", "ann@example.org"),
    )
    twice = f"ann:{TOKEN}\nbob:{TOKEN}\n"
    for bad in ("", "# nothing\n", "short\n", "bob:short\n", f"a b:{TOKEN}\n", twice):
        file.write_text(bad)
        with pytest.raises(TokenFileError) as refused:
            read_tokens(file)
        assert TOKEN not in str(refused.value)
    with pytest.raises(TokenFileError):
        read_tokens(tmp_path / "missing")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.1.2.3", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_which_addresses_are_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
