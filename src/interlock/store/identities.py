"""Identity source: where new uids and the endings of generated names come from."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from random import Random

#: What Kubernetes uses for generated names: no vowels, so no words; nothing to mistake.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
#: So many random bytes are fetched at a time.
_FETCHED = 4096


def _uuid4(data: bytes) -> str:
    # Putting the text together here takes a third of the time of going through uuid.UUID.
    text = data.hex()
    variant = "89ab"[data[8] >> 6]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


class _Randomness:
    """Random bytes, fetched many at a time: each call to the kernel lets other threads in between.

    Every piece is given out once. Threads may share it, for taking the next piece of a list is one
    step; a process that was forked begins with fresh bytes, or it would repeat its parent's.
    """

    def __init__(self) -> None:
        self.forget()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Give out nothing of what was fetched."""
        self._pieces: Iterator[bytes] = iter(())

    def take(self) -> bytes:
        """Sixteen bytes that nobody has seen."""
        while (piece := next(self._pieces, None)) is None:
            data = os.urandom(_FETCHED)
            self._pieces = iter([data[at : at + 16] for at in range(0, _FETCHED, 16)])
        return piece


_RANDOMNESS = _Randomness()


class RandomIdentities:
    """Identities that nobody can guess."""

    def uid(self) -> str:
        """A random UUID."""
        return _uuid4(_RANDOMNESS.take())

    def suffix(self) -> str:
        """Five random characters."""
        letters = len(_LETTERS)
        number = int.from_bytes(_RANDOMNESS.take(), "big")
        picked = []
        for _ in range(_SUFFIX_LENGTH):
            number, at = divmod(number, letters)
            picked.append(_LETTERS[at])
        return "".join(picked)


class SeededIdentities:
    """Identities that come out the same for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def uid(self) -> str:
        """A UUID drawn from the seed."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Five characters drawn from the seed."""
        return "".join(self._random.choices(_LETTERS, k=_SUFFIX_LENGTH))
