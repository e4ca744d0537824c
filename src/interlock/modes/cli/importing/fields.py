"""Reading manifests of other systems: every field has its type, and none is passed over in silence.

A field that nobody asked for is told at the end, because it meant something to somebody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from interlock.modes.cli.importing.drafts import BadSourceError, Draft, Flaw
from interlock.resources.manifests import Document, ManifestError, read_manifests
from interlock.resources.suggestions import child, type_of

_ITEM = re.compile(r"items\[([0-9]+)\]\.?(.*)", re.DOTALL)


class Fields:
    """An object of a manifest, and where it stands."""

    def __init__(self, draft: Draft, document: Document, path: str, data: dict[str, Any]) -> None:
        self.draft = draft
        self.data = data
        self.path = path
        self._document = document
        self._asked: set[str] = set()

    def line_of(self, name: str = "") -> int:
        """The line of a field, or of the object itself."""
        return self._document.line_of(child(self.path, name) if name else self.path)

    def within(self, name: str) -> Fields:
        """An object within; an empty one when it is not given."""
        return Fields(self.draft, self._document, child(self.path, name), self.mapping(name))

    def each(self, name: str) -> Iterator[Fields]:
        """The objects of a list within."""
        for at, item in enumerate(self.items(name)):
            path = child(child(self.path, name), at)
            if not isinstance(item, dict):
                raise self._wrong(path, "an object", item)
            yield Fields(self.draft, self._document, path, item)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object within, as it is."""
        return self._typed(name, dict, "an object") or {}

    def items(self, name: str) -> list[Any]:
        """A list within, as it is."""
        return self._typed(name, list, "a list") or []

    def text(self, name: str) -> str | None:
        """A text; None when it is not given."""
        found: str | None = self._typed(name, str, "text")
        return found

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        found = self.items(name)
        for at, item in enumerate(found):
            if not isinstance(item, str):
                raise self._wrong(child(child(self.path, name), at), "text", item)
        return found

    def number(self, name: str) -> int | None:
        """A whole number that is not negative; None when it is not given."""
        found: int | None = self._typed(name, int, "a whole number")
        if isinstance(found, bool) or (found is not None and found < 0):
            raise self._wrong(child(self.path, name), "a whole number from 0 up", found)
        return found

    def flag(self, name: str) -> bool:
        """True or false; false when it is not given."""
        return bool(self._typed(name, bool, "true or false"))

    def raw(self, name: str) -> Any:
        """Whatever is there."""
        self._asked.add(name)
        return self.data.get(name)

    def pass_over(self, *names: str) -> None:
        """Take note that these fields are there, and mean nothing here."""
        self._asked.update(names)

    def require(self, name: str, found: object) -> None:
        """Refuse the file when a field is missing that makes the object what it is."""
        if not found:
            place = child(self.path, name)
            raise BadSourceError([Flaw(self.line_of(), f"{place} is required")])

    def note(self, name: str, what: str, why: str, instead: str) -> None:
        """Write down that a field does not carry over."""
        where = child(self.path, name) if name else self.path
        self.draft.note(self.line_of(name), where, what, why, instead)

    def tell_rest(self, why: str = "Interlock has nothing like it") -> None:
        """Write down every field that nobody asked for."""
        for name, value in self.data.items():
            if name not in self._asked and value not in (None, "", [], {}):
                self.note(name, "is not carried over", why, "it is left out")

    def _typed(self, name: str, cls: type, expected: str) -> Any:
        value = self.raw(name)
        if value is None or isinstance(value, cls):
            return value
        raise self._wrong(child(self.path, name), expected, value)

    def _wrong(self, path: str, expected: str, value: object) -> BadSourceError:
        message = f"{path}: expected {expected}, found {type_of(value)}"
        return BadSourceError([Flaw(self._document.line_of(path), message)])


def definitions(
    draft: Draft, source: bytes, kind: str, api_versions: Iterable[str]
) -> Iterator[Fields]:
    """Every object of a kind in a file of manifests; others are told.

    Raises:
        BadSourceError: It is no such file, or has no such object.
    """
    found = [
        Fields(draft, document, "", document.data)
        for read in _read(source)
        for document in _taken_apart(read, kind)
    ]
    versions = tuple(api_versions)
    wanted = [one for one in found if _is(one, kind, versions)]
    if not wanted:
        there = ", ".join(sorted({str(one.raw("kind")) for one in found})) or "nothing"
        message = f"expected a {kind} ({' or '.join(versions)}), found {there}"
        raise BadSourceError([Flaw(found[0].line_of() if found else 1, message)])
    for one in found:
        if one in wanted:
            yield one
        else:
            metadata = one.raw("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            title = f"{one.raw('kind')} {name or '(no name)'}"
            draft.leave_out(one.line_of(), title, f"it is no {kind} ({' or '.join(versions)})")


def _is(one: Fields, kind: str, versions: tuple[str, ...]) -> bool:
    return one.raw("kind") == kind and one.raw("apiVersion") in versions


def _read(source: bytes) -> tuple[Document, ...]:
    try:
        return read_manifests(source)
    except ManifestError as error:
        raise BadSourceError([Flaw(error.line, error.message)]) from None


def _taken_apart(document: Document, kind: str) -> Iterator[Document]:
    """The objects of a list as the API writes it: in a CronJobList they leave out their kind."""
    items = document.data.get("items")
    if document.data.get("kind") != f"{kind}List" or not isinstance(items, list):
        yield document
        return
    lines: dict[int, dict[str, int]] = {}
    for path, line in document.lines.items():
        if found := _ITEM.fullmatch(path):
            lines.setdefault(int(found[1]), {})[found[2]] = line
    head = {"apiVersion": document.data.get("apiVersion"), "kind": kind}
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            place = document.line_of(f"items[{at}]")
            raise BadSourceError([Flaw(place, f"items[{at}]: expected an object")])
        yield Document({**head, **item}, lines.get(at, {}))
