"""Bodies in: JSON or YAML to plain values, within bounds that no input can break."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlock.api.answers import bad_request
from interlock.resources.manifests import ManifestError, read_manifests

#: Deeper nesting is in no resource there is, and would only tire whoever walks it.
MAX_DEPTH = 64


def read_json(data: bytes) -> Any:
    """Any JSON value.

    Raises:
        RefusedError: It is not JSON, or nested too deeply.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error
    _check_depth(value)
    return value


def read_yaml(data: bytes) -> Mapping[str, Any]:
    """One resource in YAML.

    Raises:
        RefusedError: It is not YAML, or not one document.
    """
    try:
        documents = read_manifests(data)
    except ManifestError as error:
        raise bad_request(f"the body is not valid YAML: {error}") from error
    if len(documents) != 1:
        raise bad_request(f"expected one document, found {len(documents)}")
    return documents[0].data


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for held in level:
            if isinstance(held, dict):
                below.extend(held.values())
            elif isinstance(held, list):
                below.extend(held)
        if not below:
            return
        level = below
    raise bad_request(f"the body is nested more than {MAX_DEPTH} levels deep")
