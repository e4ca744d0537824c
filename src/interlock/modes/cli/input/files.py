"""Files that people name: read, or refused with what is wrong with them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from interlock.client.errors import BAD_INPUT, CommandError, did_you_mean
from interlock.resources.door.manifests import MAX_BYTES

#: What files with definitions end in.
ENDINGS = (".yaml", ".yml", ".json")


def read_file(name: str) -> bytes:
    """What a file says; `-` is the standard input. No more is read than a file may hold.

    Raises:
        CommandError: It cannot be read, or is too large.
    """
    if name == "-":
        text = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        try:
            with Path(name).open("rb") as file:
                text = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise unreadable(name, error) from None
    if len(text) > MAX_BYTES:
        shown = "the standard input" if name == "-" else name
        raise CommandError(f"{shown} is larger than {MAX_BYTES} bytes", code=BAD_INPUT)
    return text


def unreadable(name: str, error: OSError) -> CommandError:
    """What to say of a file that cannot be read; one that is there is not suggested."""
    hint = ""
    if isinstance(error, FileNotFoundError):
        hint = _meant(Path(name))
    return CommandError(f"cannot read {name}: {error.strerror}", hint=hint, code=BAD_INPUT)


def _meant(path: Path) -> str:
    """A file beside it that is named nearly so."""
    try:
        beside = [one.name for one in path.parent.iterdir()]
    except OSError:
        return ""
    near = did_you_mean(path.name, beside)
    return (
        near.replace("`", f"`{path.with_name('')}/", 1) if near and path.parent != Path() else near
    )


def files_in(name: str, *, recursive: bool) -> Iterator[str | CommandError]:
    """The file, or the files with definitions in a directory, in order of their names.

    What cannot be looked at comes as an error, among the others.
    """
    try:
        mode = os.stat(name).st_mode if name != "-" else 0  # noqa: PTH116 - the same for `-`
    except OSError as error:
        yield unreadable(name, error)
        return
    if not stat.S_ISDIR(mode):
        yield name
        return
    failed: list[OSError] = []
    found: list[Path] = []
    for place, below, files in os.walk(name, onerror=failed.append):
        inside = (Path(place) / file for file in files)
        found += (file for file in inside if file.suffix in ENDINGS and _may_be_read(file))
        if not recursive:
            below.clear()
    yield from (unreadable(str(Path(error.filename)), error) for error in failed)
    yield from map(str, sorted(found))


def _may_be_read(file: Path) -> bool:
    """Whether it is a file, as far as that can be seen; what it is not, reading it will tell."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return True


def nothing_in(names: list[str], *, recursive: bool) -> CommandError:
    """What to say when nothing is defined in what was named."""
    hint = ""
    directories = [name for name in names if name != "-" and Path(name).is_dir()]
    if directories:
        below = [one for name in directories for one in files_in(name, recursive=True)]
        at_hand = [one for name in directories for one in files_in(name, recursive=recursive)]
        if not below:
            hint = f"no file in it ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        elif not at_hand:
            hint = "-R reads what is below a directory too"
    shown = ", ".join("the standard input" if name == "-" else name for name in names)
    return CommandError(f"nothing is defined in {shown}", hint=hint, code=BAD_INPUT)
