"""The API client: the server's answers as dictionaries, its refusals as errors."""

from __future__ import annotations

import json
import select
import sys

from interlock.client.errors import (
    BAD_INPUT,
    CONFLICT,
    FAILED,
    FORBIDDEN,
    NOT_FOUND,
    UNREACHABLE,
    AnswerError,
    UnreachableError,
)
from interlock.client.http_client import Answer, Wire, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from interlock.client.kinds import Kind
    from interlock.client.target import Target

#: How many resources are asked for at a time.
PAGE = 1000
#: How often a busy server is asked, and how long it may put us off each time.
_TRIES = 10
_LONGEST_PAUSE_S = 5
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
#: The cause of a refusal that tells how another user of the machine gets in.
_OTHER_USER = "OtherUser"
#: What an API server says about paths that nothing is served at.
_NO_SUCH_KIND = "404 page not found"
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
        #: Whether what the server wants people to know is printed.
        self.warns = True
        self._warned: set[str] = set()
        #: Whether the proof of who we are was found out anew since the server last believed it.
        self._is_renewed = False

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
        data = self.fetch(method, path, query, body, accept=accept, content_type=content_type)
        return json.loads(data) if data.strip() else {}

    def fetch(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: object = None,
        *,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> bytes:
        """Ask, and read the answer as it was sent."""
        headers = {"Accept": accept}
        content = b""
        if body is not None:
            content = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = content_type
        for tries_left in reversed(range(_TRIES)):
            answer = self._wire.request(method, path + query_of(query), headers, content)
            data = self._read(answer)
            if answer.status < 300 or not self._may_help(answer, tries_left):
                break
        self._heed(answer)
        if answer.status >= 300:
            raise refusal_of(self._target, answer.status, data)
        return data

    def stream(
        self, method: str, path: str, query: Mapping[str, object] | None = None,
        *, accept: str = "application/json",
    ) -> Answer:  # fmt: skip
        """Ask for an answer that is read as it comes."""
        for tries_left in reversed(range(_TRIES)):
            answer = self._wire.stream(method, path + query_of(query), {"Accept": accept}, b"")
            if answer.status < 300:
                break
            data = self._read(answer)
            if not self._may_help(answer, tries_left):
                raise refusal_of(self._target, answer.status, data)
        self._heed(answer)
        return answer

    def _may_help(self, answer: Answer, tries_left: int) -> bool:
        """Whether to ask again: with a fresh proof of who we are, or when the server said to.

        Either way the server did nothing, so that nothing is done twice.
        """
        if answer.status == 401 and not self._is_renewed:
            self._is_renewed = True
            self._wire.close()
            return self._target.renew()
        pause = answer.headers.get("retry-after", "")
        if answer.status != 429 or not tries_left or not pause.isdigit():
            return False
        select.select([], [], [], min(int(pause), _LONGEST_PAUSE_S))
        return True

    def _heed(self, answer: Answer) -> None:
        """Take in what comes beside every answer: the server's clock, and its warnings."""
        self.date = answer.headers.get("date", "") or self.date
        self._is_renewed = answer.status == 401
        # A server of our own says what the check of the files has said already.
        for warning in answer.warnings if self._target.by_context and self.warns else ():
            # 299 - "the text"
            text = warning.split(" ", 2)[-1].removeprefix('"').removesuffix('"')
            text = text.replace('\\"', '"').replace("\\\\", "\\")
            if text not in self._warned:
                self._warned.add(text)
                print(f"warning: {text}", file=sys.stderr)

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
        more: Mapping[str, object] = {},
    ) -> Iterator[dict[str, Any]]:
        """A list, or a table, part by part."""
        query: dict[str, object] = {
            **more,
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


def refusal_of(target: Target, status: int, data: bytes) -> AnswerError:
    """The refusal that an answer is, with what to do about it."""
    try:
        body = json.loads(data)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    text = data.decode(errors="replace").strip().partition("\n")[0][:200]
    told = str(body.get("message") or body.get("detail") or body.get("error") or text)
    if text == _NO_SUCH_KIND:
        error = AnswerError(status, body, "the cluster does not know Interlock's kinds", NOT_FOUND)
        error.hint = "install them: interlock manifests --only crds | kubectl apply -f -"
        return error
    code = _CODES.get(status, UNREACHABLE if status >= 500 else FAILED)
    error = AnswerError(status, body, told or f"the server answered {status}", code)
    error.hint = _HINTS.get(status, "")
    if status == 401 and target.by_context:
        error.hint = target.hint
    elif status in (401, 403) and target.note:
        error.hint = "; ".join(filter(None, (error.hint, target.note)))
    details = body.get("details")
    if status == 404 and isinstance(details, dict) and details.get("kind") == "namespaces":
        made = f"{{kind: Namespace, metadata: {{name: {details.get('name')}}}}}"
        error.hint = f"make it with: echo '{made}' | interlock apply -f -"
    if status == 404 and target.base and "requested resource" in told:
        error.hint = f"the address ends in {target.base}: leave that out?"
    for cause in error.causes:
        if cause.get("reason") == _OTHER_USER:
            error.hint = cause.get("message", "")
    return error


def _dry(dry_run: bool) -> dict[str, object]:
    query: dict[str, object] = {"fieldManager": "interlock", "fieldValidation": "Strict"}
    if dry_run:
        query["dryRun"] = "All"
    return query


def query_of(query: Mapping[str, object] | None) -> str:
    """The query with what is empty left out."""
    pairs = [
        f"{quote(name)}={quote(str(value))}"
        for name, value in (query or {}).items()
        if value is not None and value != ""
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""
