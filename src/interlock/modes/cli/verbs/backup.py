"""Copy the server's whole state into a file, while it serves.

The file is complete when the command ends well; before, it does not exist. Put it back
with `interlock restore`.

On a cluster it is a manifest of everything of Interlock's with its state, as it was at one version:
in YAML, or in JSON when the file's name ends so. It is a record to read, to compare, and to take
single definitions from; a cluster is restored from a backup of its etcd.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

from interlock.client.errors import BAD_INPUT, FAILED, CommandError, UnreachableError
from interlock.modes.cli.flags import add_output
from interlock.modes.cli.session import Session
from interlock.private_files import open_private


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to; - for the standard output")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", help="on a cluster: this namespace alone (all)"
    )
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Write the copy into a file beside, then give it its name."""
    file = Path(args.file)
    if args.file != "-":
        _check_place(file, force=args.force)
    if args.namespace and not session.on_cluster:
        told = "this server is copied as a whole: leave out --namespace"
        raise CommandError(told, code=BAD_INPUT)
    with contextlib.closing(_parts(session, args)) as parts:
        if args.file == "-":
            for part in parts:
                sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            return 0
        size = _write_whole(file, parts)
    if args.output:
        session.terminal.data({"file": str(file), "bytes": size}, "json")
    else:
        session.terminal.print(f"{file} written, {_size(size)}")
    return 0


def _check_place(file: Path, *, force: bool) -> None:
    """Refuse a place that cannot be written to before the server is asked for anything."""
    try:
        if file.is_dir():
            told = f"{file} is a directory"
            raise CommandError(told, hint=f"name a file: {file / 'backup'}", code=BAD_INPUT)
        if file.exists() and not force:
            raise CommandError(f"{file} exists", hint="replace it with --force", code=BAD_INPUT)
        if not file.parent.exists():
            told = f"cannot write {file}: there is no directory {file.parent}"
            raise CommandError(told, code=BAD_INPUT)
        if not file.parent.is_dir():
            told = f"cannot write {file}: {file.parent} is not a directory"
            raise CommandError(told, code=BAD_INPUT)
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}", code=BAD_INPUT) from None


def _parts(session: Session, args: argparse.Namespace) -> Generator[bytes]:
    """The copy, as it comes."""
    if session.on_cluster:
        from interlock.modes.cli.output.cluster_manifest import manifest_of

        yield from manifest_of(session.api, args.namespace, as_json=args.file.endswith(".json"))
        return
    with contextlib.closing(session.api.stream("POST", "/admin/backup")) as answer:
        yield from answer.parts()


def _write_whole(file: Path, parts: Iterator[bytes]) -> int:
    """Write the file as a whole, for its owner alone: Jobs may have secrets in them."""
    part_file = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with os.fdopen(open_private(part_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
            for part in parts:
                out.write(part)
            out.flush()
            os.fsync(out.fileno())
            size = out.tell()
        part_file.replace(file)
    except ConnectionError:
        raise UnreachableError("the server went away in the middle; nothing was kept") from None
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}", code=FAILED) from None
    finally:
        part_file.unlink(missing_ok=True)
    return size


def _size(count: int) -> str:
    return f"{count / 1048576:.1f} MiB" if count >= 1048576 else f"{count / 1024:.0f} KiB"
