"""Bodies in Kubernetes' own protobuf, as far as kubectl sends them: `kubectl create namespace`.

An envelope (`k8s\\0`, then `runtime.Unknown`) holds the kind and the object. Of the object only
the metadata is read, for a Namespace has nothing else to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.api.answers import RefusedError, bad_request

_MAGIC = b"k8s\x00"
#: Fields of ObjectMeta, by number: those that are text, and those that are maps of text.
_TEXTS = {1: "name", 2: "generateName", 5: "uid", 6: "resourceVersion"}
_MAPS = {11: "labels", 12: "annotations"}
_FINALIZERS = 14


def read_namespace(data: bytes) -> dict[str, Any]:
    """A Namespace.

    Raises:
        RefusedError: It is something else, or broken.
    """
    if not data.startswith(_MAGIC):
        raise bad_request("the body does not begin as protobuf of Kubernetes does")
    try:
        envelope = dict(_fields(data[len(_MAGIC) :]))
        kind = dict(_fields(envelope.get(1, b"")))
        if kind.get(2) != b"Namespace":
            raise RefusedError(415, "only a Namespace is accepted as protobuf; send JSON")
        content = dict(_fields(envelope.get(2, b"")))
        metadata = _metadata(content.get(1, b""))
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise bad_request("the body is not valid protobuf") from error
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _metadata(message: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _fields(message):
        if number in _TEXTS and value:
            found[_TEXTS[number]] = value.decode()
        elif number in _MAPS:
            pair = dict(_fields(value))
            found.setdefault(_MAPS[number], {})[pair.get(1, b"").decode()] = pair.get(
                2, b""
            ).decode()
        elif number == _FINALIZERS:
            found.setdefault("finalizers", []).append(value.decode())
    return found


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that hold bytes; numbers are passed over."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        match tag & 7:
            case 0:
                _, place = _varint(message, place)
            case 1:
                place += 8
            case 2:
                size, place = _varint(message, place)
                if place + size > len(message):
                    raise ValueError("a field is longer than its message")
                yield tag >> 3, message[place : place + size]
                place += size
            case 5:
                place += 4
            case _:
                raise ValueError("an unknown wire type")


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number is too long")
