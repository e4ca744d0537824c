"""Copy the server's whole state into a file, while it serves.

The file is complete when the command ends well; before, it does not exist. Put it back
with `interlock restore`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from interlock.modes.cli.errors import BAD_INPUT, FAILED, CommandError, UnreachableError
from interlock.modes.cli.flags import add_output
from interlock.modes.cli.session import Session
from interlock.modes.cli.wire import Answer


def arguments(parser: argparse.ArgumentParser) -> None:
    """What can be typed."""
    parser.add_argument("file", metavar="FILE", help="where to; - for the standard output")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    add_output(parser, "json")


def run(session: Session, args: argparse.Namespace) -> int:
    """Stream the copy into a file beside, then give it its name."""
    if args.file == "-":
        with contextlib.closing(session.api.stream("POST", "/admin/backup")) as answer:
            for part in answer.parts():
                sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        return 0
    file = Path(args.file)
    if file.exists() and not args.force:
        raise CommandError(f"{file} exists", hint="replace it with --force", code=BAD_INPUT)
    with contextlib.closing(session.api.stream("POST", "/admin/backup")) as answer:
        size = _write_whole(file, answer)
    if args.output:
        session.terminal.data({"file": str(file), "bytes": size}, "json")
    else:
        session.terminal.print(f"{file} written, {_size(size)}")
    return 0


def _write_whole(file: Path, answer: Answer) -> int:
    part_file = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part_file.open("wb") as out:
            for part in answer.parts():
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
