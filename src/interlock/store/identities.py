"""Where new uids and the endings of generated names come from."""

from __future__ import annotations

import os
import uuid
from random import Random

#: What Kubernetes uses for generated names: no vowels, so no words; nothing to mistake.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5


def _uuid4(data: bytes) -> str:
    # Putting the text together here takes a third of the time of going through uuid.UUID.
    text = data.hex()
    variant = "89ab"[data[8] >> 6]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


class RandomIdentities:
    """Identities that nobody can guess."""

    def uid(self) -> str:
        """A random UUID."""
        return _uuid4(os.urandom(16))

    def suffix(self) -> str:
        """Five random characters."""
        letters = len(_LETTERS)
        number = int.from_bytes(os.urandom(8), "big")
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
