"""Reading manifests of other systems: every field has its type, and none is passed over in silence.

A field that nobody asked for is told at the end, because it meant something to somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from interlock.findings import child, shortened, type_of
from interlock.importing.drafts import BadSourceError, Draft, Flaw
from interlock.importing.unrendered import in_kind, in_object, in_text
from interlock.resources.door.manifests import Document, ManifestError, read_manifests

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

    def whole(self, name: str) -> int | None:
        """A whole number, which may be negative; None when it is not given."""
        found: int | None = self._typed(name, int, "a whole number")
        if isinstance(found, bool):
            raise self._wrong(child(self.path, name), "a whole number", found)
        return found

    def one_of(self, name: str, *choices: str) -> str | None:
        """One of some words; None when it is not given."""
        found = self.text(name)
        if found in (None, "", *choices):
            return found or None
        words = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise self.wrong(name, f'expected {words}, found "{shortened(found or "")}"')

    def wrong(self, name: str, message: str) -> BadSourceError:
        """The refusal of the object for what a field of it says."""
        place = child(self.path, name)
        return BadSourceError([Flaw(self.line_of(name), f"{place}: {message}")])

    def flag(self, name: str) -> bool:
        """True or false; false when it is not given."""
        return bool(self._typed(name, bool, "true or false"))

    def raw(self, name: str) -> Any:
        """Whatever is there."""
        self._asked.add(name)
        return self.data.get(name)

    def is_written(self, name: str) -> bool:
        """Whether a field is in the file, and was not put there by reading it."""
        return name in self.data and (name in self._document.lines or not self._document.lines)

    def pass_over(self, *names: str) -> None:
        """Take note that these fields are there, and mean nothing here."""
        self._asked.update(names)

    def require(self, name: str, found: object) -> None:
        """Refuse the object when a field is missing that makes the object what it is."""
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


def take_each(
    draft: Draft,
    source: bytes,
    kind: str,
    api_versions: Sequence[str],
    take: Callable[[Draft, Fields], None],
) -> None:
    """Take every object of a kind in a file of manifests; a bad one costs no other.

    Raises:
        BadSourceError: It is no such file, or has no such object that makes sense.
    """
    wanted: list[Fields] = []
    others: list[Fields] = []
    for one in objects_in(draft, source, kind):
        is_wanted = one.raw("kind") == kind and one.raw("apiVersion") in api_versions
        (wanted if is_wanted else others).append(one)
    expected = f"{kind} ({' or '.join(api_versions)})"
    if not wanted and not draft.has_flaws:
        raise BadSourceError([no_such(others, expected, kind)])
    for one in wanted:
        draft.attempt(partial(take_one, draft, one, kind, take))
    draft.settle()
    for one in others:
        hint = in_kind(one.raw("kind"), kind)
        why = hint or f"it is {kind_of(one)} and no {expected}"
        draft.leave_out(one.line_of(), title_of(one), why)


def take_one(draft: Draft, one: Fields, kind: str, take: Callable[[Draft, Fields], None]) -> None:
    """Take one object; what is wrong with it is told with its name."""
    hint = in_object(one.data, kind)
    try:
        take(draft, one)
    except BadSourceError as error:
        flaws = error.flaws
    else:
        if not hint:
            return
        flaws = (Flaw(one.line_of(), ""),)
    raise BadSourceError(
        Flaw(flaw.line, "; ".join(filter(None, (flaw.message, hint))), title_of(one))
        for flaw in flaws
    )


def title_of(one: Fields) -> str:
    """What an object calls itself."""
    metadata = one.raw("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{one.raw('kind')} {name if isinstance(name, str) and name else '(no name)'}"


def kind_of(one: Fields) -> str:
    """The kind and the version of an object, as the file says them."""
    version = one.raw("apiVersion")
    told = f"({version})" if one.is_written("apiVersion") else "without apiVersion"
    return f"{one.raw('kind')} {told}"


def no_such(others: list[Fields], expected: str, kind: str) -> Flaw:
    """What is wrong with a file that has other objects than the expected ones."""
    found = ", ".join(sorted({kind_of(one) for one in others})) or "nothing"
    hints = dict.fromkeys(in_kind(one.raw("kind"), kind) for one in others)
    message = "; ".join(filter(None, (f"expected a {expected}, found {found}", *hints)))
    return Flaw(others[0].line_of() if others else 1, message)


def objects_in(draft: Draft, source: bytes, kind: str, *kinds: str) -> Iterator[Fields]:
    """The objects of a file, which should be of some kinds; lists of those are taken apart.

    Raises:
        BadSourceError: It is no file of manifests.
    """
    try:
        documents = read_manifests(source)
    except ManifestError as error:
        hint = in_text(source.decode(errors="replace"), kind)
        message = "; ".join(filter(None, (error.message, hint)))
        raise BadSourceError([Flaw(error.line, message)]) from None
    for document in documents:
        for one in _taken_apart(draft, document, (kind, *kinds)):
            yield Fields(draft, one, "", one.data)


def _taken_apart(draft: Draft, document: Document, kinds: Sequence[str]) -> Iterator[Document]:
    """The objects of a list as the API writes it: in a CronJobList they leave out their kind."""
    items = document.data.get("items")
    listed = str(document.data.get("kind"))
    kind = listed.removesuffix("List")
    if kind == listed or kind not in kinds or not isinstance(items, list):
        yield document
        return
    lines: dict[int, dict[str, int]] = {}
    for path, line in document.lines.items():
        if found := _ITEM.fullmatch(path):
            lines.setdefault(int(found[1]), {})[found[2]] = line
    head = {"apiVersion": document.data.get("apiVersion"), "kind": kind}
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            message = f"expected an object, found {type_of(item)}"
            draft.flaw(Flaw(document.line_of(f"items[{at}]"), message, f"items[{at}]"))
            continue
        yield Document({**head, **item}, {"apiVersion": 0, **lines.get(at, {})})
