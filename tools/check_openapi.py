"""Hold a running server against its own OpenAPI documents, with schemathesis and all its checks.

schemathesis is no dependency: it is put into a place of its own, build/schemathesis, once. What is
asked is the same every time (--seed). Exit code 0 means that nothing was found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

from interlock.testing.clients import Client
from interlock.testing.serving import Server

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build" / "schemathesis"
#: Chains of requests (stateful) take long, and are asked for by name.
PHASES = "examples,coverage,fuzzing"
WANTED = ("schemathesis==4.32.5", "openapi-spec-validator==0.9.0")


def program(name: str) -> str:
    """A program of schemathesis' own place, which is made when it is not there."""
    if not (PLACE / ".ready").exists():
        venv.create(PLACE, clear=True, with_pip=True)
        pip = [str(PLACE / "bin" / "python"), "-m", "pip", "install", "--quiet", *WANTED]
        subprocess.run(pip, check=True)
        (PLACE / ".ready").touch()
    return str(PLACE / "bin" / name)


def read(url: str) -> bytes:
    """What is at an address."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        data: bytes = answer.read()
        return data


def check(
    url: str,
    place: str,
    directory: Path,
    *,
    examples: int,
    seed: int,
    phases: str,
    paths: str = "",
) -> bool:
    """Hold the server against one document; returns whether all is well."""
    file = directory / f"{place.replace('/', '-')}.json"
    file.write_bytes(read(f"{url}{place}"))
    print(f"== {place}", flush=True)
    valid = subprocess.run([program("openapi-spec-validator"), str(file)], check=False)
    if place == "/openapi/v2":
        return valid.returncode == 0  # The same operations, in an older language.
    command = [
        program("schemathesis"), "--config-file", str(ROOT / "tools" / "schemathesis.toml"),
        "run", str(file), "--url", url, "--checks", "all", "--max-examples", str(examples),
        "--seed", str(seed), "--request-timeout", "60", "--exclude-path", "/jobs/stream",
        "--phases", phases, "--continue-on-failure",
    ]  # fmt: skip
    command += ["--include-path-regex", paths] if paths else []
    hooks = {"SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(ROOT / "tools")}
    done = subprocess.run(command, check=False, env={**os.environ, **hooks}, cwd=directory)
    return valid.returncode == done.returncode == 0


def main() -> int:
    """Check every document of a server that runs for the while."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20, help="inputs for each operation")
    parser.add_argument("--seed", type=int, default=1, help="what the inputs are drawn from")
    parser.add_argument("--only", default="", help="only documents with this in their path")
    parser.add_argument(
        "--phases", default=PHASES, help="what is done, as schemathesis calls it (stateful: chains)"
    )
    parser.add_argument(
        "--paths", default="", help="only paths that this fits: a document of many kinds in parts"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, Server(Path(place) / "data") as server:
        client = Client(server.url)
        client.create("hello", process={"command": ["echo", "hello"]})
        client.phase("hello", "Succeeded")
        index = json.loads(read(f"{server.url}/openapi/v3"))["paths"]
        wanted = [*(entry["serverRelativeURL"] for entry in index.values()), "/openapi/v2"]
        wanted = [one.partition("?")[0] for one in wanted if given.only in one]
        failed = [
            one
            for one in wanted
            if not check(
                server.url,
                one,
                Path(place),
                examples=given.examples,
                seed=given.seed,
                phases=given.phases,
                paths=given.paths,
            )
        ]
    print(f"found something: {', '.join(failed)}" if failed else "nothing was found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
