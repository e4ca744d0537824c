"""The server's answers as dictionaries, and its refusals as errors."""

from __future__ import annotations

import json

from interlock.modes.cli.errors import (
    BAD_INPUT,
    CONFLICT,
    FAILED,
    FORBIDDEN,
    NOT_FOUND,
    UNREACHABLE,
    AnswerError,
    UnreachableError,
)
from interlock.modes.cli.wire import Answer, Wire, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from interlock.modes.cli.kinds import Kind
    from interlock.modes.cli.target import Target

#: How many resources are asked for at a time.
PAGE = 1000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE_PATCH = "application/merge-patch+json"
_CODES = {
    400: BAD_INPUT,
    401: FORBIDDEN,
    403: FORBIDDEN,
    404: NOT_FOUND,
    405: BAD_INPUT,
    409: CONFLICT,
    410: CONFLICT,
    413: BAD_INPUT,
    415: BAD_INPUT,
    422: BAD_INPUT,
    429: UNREACHABLE,
    503: UNREACHABLE,
}
_HINTS = {
    401: "show a token with --token-file or INTERLOCK_TOKEN_FILE",
    429: "the server is busy: try again",
    503: "the server cannot serve now: try again",
}


class Api:
    """One server, asked in the Kubernetes way."""

    def __init__(self, target: Target) -> None:
        self._wire = Wire(target)
        self._target = target
        #: The server's clock when it last answered: "Mon, 05 Jan 2026 12:00:00 GMT".
        self.date = ""

    def close(self) -> None:
        """Let connections go."""
        self._wire.close()

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> Any:
        """Ask, and read the JSON of the answer."""
        headers = {"Accept": accept}
        content = b""
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        answer = self._wire.request(method, path + _query(query), headers, content)
        data = self._read(answer)
        self.date = answer.headers.get("date", "") or self.date
        if answer.status >= 300:
            raise self._refusal(answer.status, data)
        return json.loads(data) if data.strip() else {}

    def stream(
        self, method: str, path: str, query: Mapping[str, object] | None = None,
        *, accept: str = "application/json",
    ) -> Answer:  # fmt: skip
        """Ask for an answer that is read as it comes."""
        answer = self._wire.stream(method, path + _query(query), {"Accept": accept}, b"")
        self.date = answer.headers.get("date", "") or self.date
        if answer.status >= 300:
            data = self._read(answer)
            raise self._refusal(answer.status, data)
        return answer

    def _read(self, answer: Answer) -> bytes:
        try:
            data = answer.read()
        except OSError as error:
            answer.close()
            raise UnreachableError(
                f"lost the connection to {self._target.url} ({error})", hint=self._target.hint
            ) from None
        self._wire.keep(answer)
        return data

    def _refusal(self, status: int, data: bytes) -> AnswerError:
        try:
            body = json.loads(data)
        except ValueError:
            body = {}
        if not isinstance(body, dict):
            body = {}
        text = data.decode(errors="replace").strip().partition("\n")[0][:200]
        told = str(body.get("message") or body.get("detail") or body.get("error") or text)
        code = _CODES.get(status, UNREACHABLE if status >= 500 else FAILED)
        error = AnswerError(status, body, told or f"the server answered {status}", code)
        error.hint = _HINTS.get(status, "")
        return error

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        """One resource."""
        answer: dict[str, Any] = self.call("GET", kind.path(namespace, name))
        return answer

    def pages(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str = "",
        fields: str = "",
        accept: str = "application/json",
    ) -> Iterator[dict[str, Any]]:
        """A list, or a table, part by part."""
        query: dict[str, object] = {
            "limit": PAGE,
            "labelSelector": labels,
            "fieldSelector": fields,
            "continue": "",
        }
        while True:
            page = self.call("GET", kind.path(namespace), query, accept=accept)
            yield page
            query["continue"] = (page.get("metadata") or {}).get("continue") or ""
            if not query["continue"]:
                return

    def create(self, kind: Kind, namespace: str, body: object, *, dry_run: bool = False) -> Any:
        """Store a new resource."""
        return self.call("POST", kind.path(namespace), _dry(dry_run), body)

    def patch(
        self, kind: Kind, namespace: str, name: str, change: object, *, dry_run: bool = False
    ) -> Any:
        """Change a resource with a merge patch."""
        return self.call(
            "PATCH",
            kind.path(namespace, name),
            _dry(dry_run),
            change,
            content_type=MERGE_PATCH,
        )


def _dry(dry_run: bool) -> dict[str, object]:
    query: dict[str, object] = {"fieldManager": "interlock", "fieldValidation": "Strict"}
    if dry_run:
        query["dryRun"] = "All"
    return query


def _query(query: Mapping[str, object] | None) -> str:
    """The query with what is empty left out."""
    pairs = [
        f"{quote(name)}={quote(str(value))}"
        for name, value in (query or {}).items()
        if value is not None and value != ""
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""
