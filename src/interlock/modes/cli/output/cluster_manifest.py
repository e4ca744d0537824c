"""All our objects of a cluster as one manifest, as they were at one version."""

from __future__ import annotations

import json
from typing import Any

from interlock.client.api import PAGE, Api
from interlock.client.kinds import KINDS, Kind
from interlock.modes.cli.output.formats import to_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Who wrote which field: nothing that a record needs.
_NOISE = "managedFields"


def manifest_of(api: Api, namespace: str | None, *, as_json: bool) -> Iterator[bytes]:
    """The manifest, part by part."""
    objects = _objects(api, namespace)
    if not as_json:
        for item in objects:
            yield b"---\n" + to_yaml(item).encode()
        return
    yield b'{"apiVersion":"v1","kind":"List","items":['
    for number, item in enumerate(objects):
        yield (b",\n" if number else b"\n") + json.dumps(item, ensure_ascii=False).encode()
    yield b"\n]}\n"


def _objects(api: Api, namespace: str | None) -> Iterator[dict[str, Any]]:
    """All kinds of ours, each at the version that the first was listed at."""
    version = ""
    for kind in (one for one in KINDS if one.is_ours):
        for page in _pages(api, kind, namespace, version):
            version = version or str(page["metadata"]["resourceVersion"])
            for item in page["items"]:
                item["metadata"].pop(_NOISE, None)
                yield {"apiVersion": kind.api_version, "kind": kind.name, **item}


def _pages(api: Api, kind: Kind, namespace: str | None, version: str) -> Iterator[dict[str, Any]]:
    query: dict[str, object] = {"limit": PAGE}
    if version:
        query |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    while True:
        page = api.call("GET", kind.path(namespace), query)
        yield page
        following = page["metadata"].get("continue")
        if not following:
            return
        # A part that follows is of the version of the first, and must not name one.
        query = {"limit": PAGE, "continue": following}
