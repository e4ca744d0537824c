"""Run the whole test suite on all cores, as `make test` and CI do.

Tests wait for processes and disks more than they compute, so there are more workers than cores.
Files stay together: a server that a file's tests share is started once.
"""

from __future__ import annotations

import os
import sys

import pytest

from interlock.testing.kube.binaries import HELP, find


def main() -> int:
    """Run pytest with what was given on the command line, or everything."""
    workers = max(4, 2 * (os.cpu_count() or 2))
    code = pytest.main(["-n", str(workers), "--dist", "loadfile", "-q", *sys.argv[1:]])
    if find() is None:
        print(f"THE KUBERNETES TIER DID NOT RUN: {HELP}", flush=True)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
