"""The OpenAPI v2 document in protobuf, which kubectl before 1.27 asks for and nothing else.

The messages are those of gnostic's `openapi.v2.Document`; only what our own document uses is
written. A number in a table is the field's number in its message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interlock.resources.codec import encode as encode_json

_Writer = Callable[[Any], bytes]


def _varint(value: int) -> bytes:
    written = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _int(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _any(value: object) -> bytes:
    """`Any`: a value as YAML, of which JSON is a part."""
    return _text(2, encode_json(value).decode())


def _named(items: Iterable[tuple[str, bytes]], number: int = 1) -> bytes:
    """Repeated pairs of a name and a message."""
    return b"".join(_bytes(number, _text(1, name) + _bytes(2, value)) for name, value in items)


def _extensions(document: Mapping[str, Any], number: int) -> bytes:
    found = ((name, _any(value)) for name, value in document.items() if name.startswith("x-"))
    return _named(found, number)


#: Fields of a schema that are text, whole numbers, true or false, and other numbers.
_SCHEMA_TEXT = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_SCHEMA_INT = {
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "maxProperties": 17,
    "minProperties": 18,
}
_SCHEMA_BOOL = {"exclusiveMaximum": 8, "exclusiveMinimum": 10, "uniqueItems": 16, "readOnly": 27}
_SCHEMA_DOUBLE = {"multipleOf": 6, "maximum": 7, "minimum": 9}


def _schema(schema: Mapping[str, Any]) -> bytes:
    parts = [
        *(_text(number, schema[name]) for name, number in _SCHEMA_TEXT.items() if name in schema),
        *(_int(number, schema[name]) for name, number in _SCHEMA_INT.items() if name in schema),
        *(_int(number, schema[name]) for name, number in _SCHEMA_BOOL.items() if name in schema),
        *(
            _double(number, schema[name])
            for name, number in _SCHEMA_DOUBLE.items()
            if name in schema
        ),
        *(_text(19, name) for name in schema.get("required", ())),
        *(_bytes(20, _any(value)) for value in schema.get("enum", ())),
        *(_bytes(24, _schema(part)) for part in schema.get("allOf", ())),
    ]
    if "default" in schema:
        parts.append(_bytes(5, _any(schema["default"])))
    if "additionalProperties" in schema:
        parts.append(_bytes(21, _additional(schema["additionalProperties"])))
    if "type" in schema:
        parts.append(_bytes(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_bytes(23, _bytes(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_bytes(25, _schemas(schema["properties"])))
    return b"".join(parts) + _extensions(schema, 31)


def _additional(value: Mapping[str, Any] | bool) -> bytes:
    return _int(2, int(value)) if isinstance(value, bool) else _bytes(1, _schema(value))


def _schemas(schemas: Mapping[str, Any]) -> bytes:
    return _named((name, _schema(schema)) for name, schema in schemas.items())


#: Where parameters of a place are kept, and the numbers of their fields.
_PLACES = {
    "query": (3, {"in": 2, "description": 3, "name": 4, "type": 6}),
    "path": (4, {"in": 2, "description": 3, "name": 4, "type": 5}),
}


def _parameter(parameter: Mapping[str, Any]) -> bytes:
    if parameter["in"] == "body":
        texts = {"description": 1, "name": 2, "in": 3}
        body = b"".join(_text(n, parameter[name]) for name, n in texts.items() if name in parameter)
        body += _int(4, int(parameter.get("required", False)))
        return _bytes(1, _bytes(1, body + _bytes(5, _schema(parameter["schema"]))))
    number, texts = _PLACES[parameter["in"]]
    written = b"".join(_text(n, parameter[name]) for name, n in texts.items() if name in parameter)
    written += _int(1, int(parameter.get("required", False)))
    return _bytes(1, _bytes(2, _bytes(number, written)))


def _operation(operation: Mapping[str, Any]) -> bytes:
    parts = [_text(1, tag) for tag in operation.get("tags", ())]
    if "description" in operation:
        parts.append(_text(3, operation["description"]))
    parts.append(_text(5, operation["operationId"]))
    parts += [_text(6, media) for media in operation.get("produces", ())]
    parts += [_text(7, media) for media in operation.get("consumes", ())]
    parts += [_bytes(8, _parameter(given)) for given in operation.get("parameters", ())]
    parts.append(_bytes(9, _responses(operation["responses"])))
    return b"".join(parts) + _extensions(operation, 13)


def _responses(responses: Mapping[str, Any]) -> bytes:
    return _named((code, _bytes(1, _response(response))) for code, response in responses.items())


def _response(response: Mapping[str, Any]) -> bytes:
    written = _text(1, response["description"])
    if "schema" in response:
        written += _bytes(2, _bytes(1, _schema(response["schema"])))
    return written


_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path_item(item: Mapping[str, Any]) -> bytes:
    written = b"".join(
        _bytes(number, _operation(item[method]))
        for method, number in _METHODS.items()
        if method in item
    )
    return written + b"".join(_bytes(9, _parameter(given)) for given in item.get("parameters", ()))


def encode_document(document: Mapping[str, Any]) -> bytes:
    """An OpenAPI v2 document as clients want it in protobuf."""
    info = document["info"]
    paths = _named(((path, _path_item(item)) for path, item in document["paths"].items()), 2)
    return (
        _text(1, document["swagger"])
        + _bytes(2, _text(1, info["title"]) + _text(2, info["version"]))
        + _bytes(8, paths)
        + _bytes(9, _schemas(document["definitions"]))
    )
