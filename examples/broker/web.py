"""The broker's web service: ten calls that are answered at once, and done by workers.

Start it with `python web.py --port 8000`. Who asks is the name before the colon of HTTP basic
authentication; a real broker checks the rest. A client of version 2 gets 202 with the address of
the job's status; one that says `Accept: application/json; version=1` waits for the result, as it
always did.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import uvicorn

import broker
from interlock import AsyncClient
from interlock.errors import InterlockError
from interlock.sdk.errors import OperationFailed, OperationStuck, Refused, StillRunning, Unreachable

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

#: Clients of the old version wait so long; then they are told that the job goes on.
OLD_CLIENTS_WAIT_S = 30.0
#: A body may have so many bytes.
MOST = 65_536


class Answer(NamedTuple):
    """What a user gets."""

    status: int
    body: Any
    headers: Mapping[str, str] = {}


class RefusalError(Exception):
    """What a user gets instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Call:
    """One of the ten: a method and a path, and the operation that it asks for."""

    def __init__(self, method: str, path: str, operation: Any, **defaults: Any) -> None:
        self.method = method
        self.path = re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))
        self.operation = operation
        #: Arguments that need not be given.
        self.defaults = defaults


DOMAIN = "/domains/{domain}"
APPLICATIONS = f"{DOMAIN}/applications"
APPLICATION = f"{APPLICATIONS}/{{application}}"
CARTRIDGE = f"{APPLICATION}/cartridges/{{cartridge}}"

CALLS = (
    Call("PUT", DOMAIN, broker.update_domain),
    Call("POST", "/user/keys", broker.add_key),
    Call("PUT", "/user/keys/{key}", broker.update_key),
    Call("DELETE", "/user/keys/{key}", broker.delete_key),
    Call("POST", APPLICATIONS, broker.create_application, size="small"),
    Call("DELETE", APPLICATION, broker.delete_application),
    Call("POST", f"{APPLICATION}/events", broker.application_event),
    Call("POST", f"{APPLICATION}/cartridges", broker.add_cartridge),
    Call("DELETE", CARTRIDGE, broker.remove_cartridge),
    Call("POST", f"{CARTRIDGE}/events", broker.cartridge_event),
)


class Broker:
    """The ASGI application."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http", "it is started without lifespan and web sockets"
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        try:
            user = user_of(headers)
            body = await read_body(receive)
            answer = await self._answer(scope["method"], scope["path"], user, headers, body)
        except RefusalError as refusal:
            answer = Answer(refusal.status, {"error": str(refusal)})
        except Refused as refused:
            answer = Answer(refused.status, {"error": refused.message})
        except Unreachable:
            answer = Answer(503, {"error": "ask again later"}, {"retry-after": "5"})
        data = msgspec.json.encode(answer.body) + b"\n"
        told = {"content-type": "application/json", "content-length": str(len(data))}
        lines = [
            (name.encode(), text.encode()) for name, text in {**told, **answer.headers}.items()
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": lines})
        await send({"type": "http.response.body", "body": data})

    async def _answer(
        self, method: str, path: str, user: str, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> Answer:
        if method == "GET" and (found := re.fullmatch("/jobs/([0-9a-f-]{36})(/steps)?", path)):
            return await self._status(found[1], user, steps=bool(found[2]))
        for call in CALLS:
            if call.method == method and (found := call.path.fullmatch(path)):
                args = {"fail": {}, **call.defaults, **body, **found.groupdict()}
                if path.startswith("/user/"):
                    args["user"] = user
                return await self._ask(call, user, headers, args)
        raise RefusalError(404, f"there is no {method} {path}")

    async def _status(self, job: str, user: str, *, steps: bool) -> Answer:
        """How a job is going; that of somebody else is none at all."""
        handle = await self._client.job(job)
        if handle.status.owner_login != user:
            raise RefusalError(404, f"there is no job {job}")
        return Answer(200, await handle.steps() if steps else handle.status)

    async def _ask(
        self, call: Call, user: str, headers: Mapping[str, str], args: Mapping[str, Any]
    ) -> Answer:
        try:
            request = broker.app.request(call.operation.options(owner=user), **args)
        except InterlockError as error:
            raise RefusalError(400, str(error)) from error
        # Whoever sends the same request again with the same key gets the same job.
        key = headers.get("idempotency-key")
        handle = await self._client.submit(
            request, idempotency_key=f"{user}-{key}" if key else None
        )
        where = {"location": f"/jobs/{handle.id}"}
        if "version=1" not in headers.get("accept", ""):
            return Answer(202, {"job": f"/jobs/{handle.id}"}, {**where, "retry-after": "1"})
        try:
            return Answer(200, {"result": await handle.result(OLD_CLIENTS_WAIT_S)}, where)
        except StillRunning:
            return Answer(504, {"error": f"job {handle.id} goes on"}, where)
        except (OperationFailed, OperationStuck) as error:
            return Answer(500, {"error": error.record.error}, where)


def user_of(headers: Mapping[str, str]) -> str:
    """Who asks."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    try:
        user = base64.b64decode(given, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        user = ""
    if scheme.lower() != "basic" or not re.fullmatch("[a-z0-9-]{1,40}", user):
        raise RefusalError(401, "say who you are: Authorization: Basic USER:PASSWORD")
    return user


async def read_body(receive: Receive) -> Mapping[str, Any]:
    """What a request says, as JSON."""
    data, more = b"", True
    while more:
        message = await receive()
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if len(data) > MOST:
            raise RefusalError(413, f"the body is longer than {MOST} bytes")
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise RefusalError(400, f"the body is to be an object of JSON: {error}") from error


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    service = Broker(AsyncClient())
    uvicorn.run(service, port=given.port, lifespan="off", ws="none", access_log=False)


if __name__ == "__main__":
    main()
