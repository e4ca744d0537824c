"""The hash behind `H`: the same name always gets the same place, different names spread out."""

from __future__ import annotations

from struct import unpack_from

_WORD = (1 << 64) - 1
_PRIME_1 = 0x9E3779B185EBCA87
_PRIME_2 = 0xC2B2AE3D27D4EB4F
_PRIME_3 = 0x165667B19E3779F9
_PRIME_4 = 0x85EBCA77C2B2AE63
_PRIME_5 = 0x27D4EB2F165667C5


def place_of(identity: str, field: str, count: int) -> int:
    """The place of a name among `count` places, 0 first; every field has its own.

    The hash is read as a signed number, as Furiko does, so that a line that moves here from
    there keeps its times.
    """
    value = xxhash64(f"{identity}:{field}".encode("utf-8", "surrogatepass"))
    return (value - (1 << 64) if value >> 63 else value) % count


def xxhash64(data: bytes, seed: int = 0) -> int:
    """The 64-bit xxHash of some bytes, as published."""
    value, read = _stripes(data, seed)
    value = (value + len(data)) & _WORD
    while read + 8 <= len(data):
        value ^= _round(0, unpack_from("<Q", data, read)[0])
        value = (_rotated(value, 27) * _PRIME_1 + _PRIME_4) & _WORD
        read += 8
    if read + 4 <= len(data):
        value ^= unpack_from("<I", data, read)[0] * _PRIME_1 & _WORD
        value = (_rotated(value, 23) * _PRIME_2 + _PRIME_3) & _WORD
        read += 4
    for byte in data[read:]:
        value = _rotated(value ^ (byte * _PRIME_5 & _WORD), 11) * _PRIME_1 & _WORD
    return _stirred(value)


def _stripes(data: bytes, seed: int) -> tuple[int, int]:
    """The value after all whole stripes of 32 bytes, and how many bytes those were."""
    if len(data) < 32:
        return (seed + _PRIME_5) & _WORD, 0
    lanes = [
        (seed + _PRIME_1 + _PRIME_2) & _WORD,
        (seed + _PRIME_2) & _WORD,
        seed & _WORD,
        (seed - _PRIME_1) & _WORD,
    ]
    read = 0
    while read + 32 <= len(data):
        words = unpack_from("<4Q", data, read)
        lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
        read += 32
    value = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _WORD
    for lane in lanes:
        value = ((value ^ _round(0, lane)) * _PRIME_1 + _PRIME_4) & _WORD
    return value, read


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIME_2) & _WORD, 31) * _PRIME_1 & _WORD


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _WORD


def _stirred(value: int) -> int:
    value = (value ^ value >> 33) * _PRIME_2 & _WORD
    value = (value ^ value >> 29) * _PRIME_3 & _WORD
    return value ^ value >> 32
