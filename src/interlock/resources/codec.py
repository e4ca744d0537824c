"""The JSON codec of everything that is stored. Past this module everything has a type."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.resources.values.amounts import Amount
from interlock.resources.values.cron_lines import CronLines
from interlock.resources.values.durations import Duration, parse_duration
from interlock.resources.values.indexes import IndexSet


def encode_special(value: object) -> object:
    """Write the types that JSON does not know."""
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, IndexSet):
        return str(value)
    if isinstance(value, CronLines):
        return value.written
    if isinstance(value, Amount):
        return value.written
    raise NotImplementedError(type(value).__name__)


def decode_special(kind: type, value: Any) -> object:
    """Read the types that JSON does not know."""
    if kind is Duration:
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        return parse_duration(value)
    if kind is IndexSet:
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        return IndexSet.parse(value)
    if kind is CronLines:
        return CronLines.read(value)
    if kind is Amount:
        return Amount.read(value)
    raise NotImplementedError(kind.__name__)


_ENCODER = msgspec.json.Encoder(enc_hook=encode_special)


def encode(value: object) -> bytes:
    """JSON of a noun."""
    return _ENCODER.encode(value)


def decoder_for(kind: Any) -> msgspec.json.Decoder[Any]:
    """A decoder to keep: making one is dear, using it is cheap."""
    return msgspec.json.Decoder(kind, dec_hook=decode_special)


def to_builtins(value: object) -> Any:
    """The noun as dictionaries and lists, for patches and YAML."""
    return msgspec.to_builtins(value, enc_hook=encode_special)


def from_builtins(value: object, kind: Any) -> Any:
    """A noun from dictionaries and lists.

    Raises:
        msgspec.ValidationError: The first thing that does not fit.
    """
    return msgspec.convert(value, kind, dec_hook=decode_special)
