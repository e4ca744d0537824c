"""Identities of processes that were forked: none is given out twice."""

from __future__ import annotations

import subprocess
import sys

_FORKED = """
import os
from interlock.store.identities import RandomIdentities
identities = RandomIdentities()
print(identities.uid(), flush=True)
for _ in range(3):
    # One after another, so that what they print is not mixed up.
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    print(*(identities.uid() for _ in range(400)), flush=True)
    os._exit(0)
print(*(identities.uid() for _ in range(400)), flush=True)
"""


def test_a_forked_process_repeats_no_identity_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKED], check=True, capture_output=True, text=True
    )
    made = done.stdout.split()

    assert len(made) == 1 + 4 * 400
    assert len(set(made)) == len(made)
