"""Manifests: what people hand over as a mapping, a resource or a file, as data to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from interlock.client.errors import CommandError
from interlock.client.kinds import JOBS, Kind, kind_named
from interlock.resources.codec import to_builtins
from interlock.resources.door.manifests import ManifestError, read_manifests
from interlock.resources.metadata import Resource
from interlock.sdk.errors import BadInput, error_of

#: A mapping such as `yaml.safe_load` gives, a resource of ours, or a file with one document.
Manifest: TypeAlias = Mapping[str, Any] | Resource | Path | str


def data_of(manifest: object) -> dict[str, Any]:
    """The manifest as data.

    Raises:
        BadInput: It is none.
    """
    match manifest:
        case Resource():
            made: dict[str, Any] = to_builtins(manifest)
            return {name: part for name, part in made.items() if name != "status"}
        case Path() | str():
            return _read(Path(manifest))
        case Mapping():
            return dict(manifest)
        case _:  # Who does not check types hands over anything.
            found = type(manifest).__name__
            raise BadInput(f"a manifest is a mapping, a resource or a file, not {found}")


def _read(path: Path) -> dict[str, Any]:
    try:
        documents = read_manifests(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except ManifestError as error:
        raise BadInput(f"{path}: {error}") from None
    if len(documents) != 1:
        raise BadInput(f"{path}: expected one document, found {len(documents)}")
    data = documents[0].data
    if not isinstance(data, Mapping):
        raise BadInput(f"{path}: expected an object, found {type(data).__name__}")
    return dict(data)


def job_of(manifest: Manifest, namespace: str) -> dict[str, Any]:
    """A Job to be made: what a manifest need not say about it is filled in."""
    data = data_of(manifest)
    kind = data.get("kind", JOBS.name)
    if kind != JOBS.name:
        raise BadInput(f"kind: expected {JOBS.name}, found {kind!r}", hint="apply takes any kind")
    return {"apiVersion": JOBS.api_version, "kind": JOBS.name, **placed(data, namespace)}


def placed(data: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The manifest in its namespace, without a status, which is not for clients to write."""
    metadata = data.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise BadInput(f"metadata: expected an object, found {type(metadata).__name__}")
    rest = {name: part for name, part in data.items() if name != "status"}
    return {**rest, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


def kind_for(word: str | Kind) -> Kind:
    """The kind that a word means: `Job`, `jobs`, `jc`.

    Raises:
        BadInput: It is none.
    """
    if isinstance(word, Kind):
        return word
    try:
        return kind_named(word)
    except CommandError as error:
        raise error_of(error) from None
