"""Bodies in: JSON or YAML to plain values, within bounds that no input can break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from interlock.api.answers import bad_request
from interlock.resources.door.manifests import ManifestError, read_manifests

#: Deeper nesting is in no resource there is, and would only tire whoever walks it.
MAX_DEPTH = 64
#: YAML is dear to read. This is five times what a Job with 10,000 keys holds.
MAX_YAML_VALUES = 50_000
#: Bodies from this size on are read beside the event loop: others are answered meanwhile.
LARGE = 32 * 1024

T = TypeVar("T")
#: One at a time: bodies that take long must not take all of the machine either.
_BESIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bodies")


async def read_beside(size: int, read: Callable[[], T]) -> T:
    """Do what takes as long as a body is large; at once when it is small."""
    if size < LARGE:
        return read()
    return await asyncio.get_running_loop().run_in_executor(_BESIDE, read)


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
        RefusedError: It is not YAML, not one document, or more than a resource needs.
    """
    try:
        documents = read_manifests(data, most=MAX_YAML_VALUES)
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
