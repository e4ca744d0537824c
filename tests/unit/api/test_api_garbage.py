"""Whatever a client sends, the answer is a refusal or a success, never a failure of ours."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.testing.asking import JOB, JOBS, Asker, in_time

METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
PIECES = st.sampled_from(
    [
        "apis",
        "api",
        "interlock.dev",
        "v1alpha1",
        "v1",
        "namespaces",
        "default",
        "jobs",
        "locks",
        "hello",
        "status",
        "",
        "..",
        "openapi",
        "v2",
        "v3",
        "%00",
        "leases",
        "watch",
        "*",
        "ü",
    ]
)
PATHS = st.one_of(
    st.lists(PIECES, max_size=8).map(lambda pieces: "/" + "/".join(pieces)),
    st.sampled_from([JOBS, f"{JOBS}/hello", f"{JOBS}/hello/status", "/version", "/openapi/v2"]),
    st.text(max_size=60).map(lambda text: "/" + text.replace("?", "")),
)
NAMES = st.sampled_from(
    [
        "limit",
        "continue",
        "labelSelector",
        "fieldSelector",
        "resourceVersion",
        "dryRun",
        "resourceVersionMatch",
        "fieldValidation",
        "propagationPolicy",
        "includeObject",
        "pretty",
    ]
)
VALUES = st.one_of(
    st.sampled_from(["", "0", "1", "-1", "All", "Strict", "Exact", "a=b", "a in (b,c)", "a in ("]),
    st.text(string.printable, max_size=20),
)
QUERIES = st.lists(st.tuples(NAMES, VALUES), max_size=4).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)
_KEYS = st.sampled_from(
    [
        "kind",
        "apiVersion",
        "metadata",
        "spec",
        "name",
        "namespace",
        "labels",
        "process",
        "command",
        "op",
        "path",
        "value",
        "finalizers",
        "ownerReferences",
        "status",
        "phase",
        "x",
        "preconditions",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.one_of(st.just(None), st.binary(max_size=80), JSON)
MEDIA = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "",
        "text/html",
        ";;=",
        "application/json-patch+json",
        "application/apply-patch+yaml",
        "ÿ",
    ]
)
ACCEPTS = st.one_of(
    st.sampled_from(
        [
            "",
            "*/*",
            "application/json",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            ",,;=",
            "a;b",
            "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList",
        ]
    ),
    st.text(max_size=30),
)
HEADERS = st.fixed_dictionaries(
    {"content-type": MEDIA, "accept": ACCEPTS},
    optional={
        "host": st.text(max_size=20),
        "origin": st.text(max_size=20),
        "content-length": st.text(max_size=12),
        "authorization": st.text(max_size=20),
    },
)


def _is_good(status: int, body: bytes) -> bool:
    # 504 is how Kubernetes answers a version of the future; no other 5xx is a client's doing.
    return 200 <= status < 500 or (status == 504 and b"Too large resource version" in body)


@settings(max_examples=400, deadline=None)
@given(
    requests=st.lists(st.tuples(METHODS, PATHS, QUERIES, BODIES, HEADERS), min_size=1, max_size=4)
)
@example(requests=[("GET", JOBS, "watch=0&limit=" + "9" * 40, None, {})])
@example(requests=[("POST", JOBS, "", b"[" * 100_000, {})])
@example(requests=[("POST", JOBS, "", b'{"a":' * 50_000, {"content-type": "application/yaml"})])
@example(
    requests=[
        (
            "PATCH",
            f"{JOBS}/hello",
            "",
            b"[" * 100_000,
            {"content-type": "application/merge-patch+json"},
        )
    ]
)
@example(
    requests=[
        (
            "PATCH",
            f"{JOBS}/hello",
            "",
            b'{"spec":null}',
            {"content-type": "application/merge-patch+json"},
        )
    ]
)
@example(
    requests=[
        (
            "PATCH",
            f"{JOBS}/hello",
            "",
            b'{"metadata":null}',
            {"content-type": "application/merge-patch+json"},
        )
    ]
)
@example(requests=[("DELETE", f"{JOBS}/hello", "", b'{"dryRun":["All"]}', {})])
@example(requests=[("POST", JOBS, "", b'{"kind":"Job","metadata":{"name":"\\ud800"}}', {})])
def test_garbage_is_refused_and_harms_nobody(
    requests: list[tuple[str, str, str, Any, Any]],
) -> None:
    async def story() -> None:
        asker = Asker()
        await asker.ask("POST", JOBS, JOB)
        for method, path, query, body, headers in requests:
            answer = await asker.ask(method, f"{path}?{query}", body, headers)
            assert _is_good(answer.status, answer.body), (answer.status, answer.body)
        assert (await asker.ask("GET", JOBS)).status == 200

    in_time(story())
