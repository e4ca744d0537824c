"""Manifests: YAML or JSON, one or more documents, with the line of every field.

Only plain data is taken: no tags, no keys that are not text, no key twice, and no more
data than a file of its size could honestly hold. Words are read as `kubectl` reads them (yes and
no are true and false), except that dates stay the text they are.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import yaml

from interlock.errors import InterlockError
from interlock.findings import child, shortened
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import API_VERSION

MAX_BYTES = 10 << 20
#: Values in one file, each use of an alias counted in full.
MAX_VALUES = 500_000
MAX_DEPTH = 50

_TAG = "tag:yaml.org,2002:"
_TEXT = frozenset({f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value"})
_TRUE = frozenset({"yes", "true", "on"})
_FALSE = frozenset({"no", "false", "off"})
_WHOLE = re.compile(r"[-+]?(?:0b[01]+|0x[0-9a-fA-F]+|0o?[0-7]+|0|[1-9][0-9]*)")
_MERGE = f"{_TAG}merge"
_ITEM = re.compile(r"items\[([0-9]+)\]\.?(.*)", re.DOTALL)
_LAST_PART = re.compile(r"\.[^.\[\]]*$|\[[^\[\]]*\]$")


class ManifestError(InterlockError):
    """A file cannot be read as data."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {message}" if line else message)
        self.message = message
        #: Counted from 1; 0 when the whole file is meant.
        self.line = line
        #: The documents before the place where it cannot be read.
        self.before: tuple[Document, ...] = ()


class Document(NamedTuple):
    """One resource as it was written."""

    data: dict[str, Any]
    #: The line of every field, counted from 1, by its path: `spec.locks[0].key`.
    lines: Mapping[str, int]

    def line_of(self, path: str) -> int:
        """The line of a field, or of the nearest one around it when it is not there."""
        while path and path not in self.lines:
            path = _LAST_PART.sub("", path) if _LAST_PART.search(path) else ""
        return self.lines.get(path, 0)


def read_manifests(source: bytes | str, *, most: int = MAX_VALUES) -> tuple[Document, ...]:
    """Read every document of a file; empty ones are passed over, lists are taken apart.

    A document that names its kind and no apiVersion gets the one of that kind. What takes the
    time is bounded while it is read: after `most` values nothing more is looked at.

    Raises:
        ManifestError: The file is not YAML or JSON, or holds what no resource can be made of.
    """
    text = _text(source)
    found: list[Document] = []
    try:
        for data, lines in _documents(text, most):
            if data is None:
                continue
            if not isinstance(data, dict):
                raise ManifestError("expected an object with a kind", lines.get("", 0))
            found.extend(_taken_apart(Document(data, lines)))
    except ManifestError as error:
        error.before = _complete(found)
        raise
    return _complete(found)


def read_data(source: bytes | str, *, most: int = MAX_VALUES) -> tuple[Any, Mapping[str, int]]:
    """Read a file of one document, whatever is in it, and the line of every field.

    Raises:
        ManifestError: The file is not YAML or JSON, or holds several documents.
    """
    found = tuple(islice(_documents(_text(source), most), 2))
    if len(found) > 1:
        raise ManifestError("expected one document", found[1][1].get("", 0))
    return found[0] if found else (None, {"": 1})


def _complete(found: list[Document]) -> tuple[Document, ...]:
    return tuple(Document(_with_version(one.data), one.lines) for one in found)


def _text(source: bytes | str) -> str:
    if len(source) > MAX_BYTES:
        raise ManifestError(f"the file is larger than {MAX_BYTES} bytes")
    if isinstance(source, str):
        return source
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise ManifestError("the file is not UTF-8", line) from error


def _documents(text: str, most: int) -> Iterator[tuple[Any, dict[str, int]]]:
    reader = _Reader(text, most)
    try:
        first = reader.next_document()
    except _NotYamlError:
        # JSON has a few spellings (\ud83d\ude00, tabs) that YAML does not know.
        if not text.lstrip().startswith("{"):
            raise
        yield _json(text, most), {"": 1}
        return
    while first is not None:
        yield first
        first = reader.next_document()


class _NotYamlError(ManifestError):
    """A file is not YAML; it may yet be JSON."""


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Which tag a bare word has, by how it begins; as YAML 1.1 has it.
_IMPLICIT: Mapping[str, Sequence[tuple[str, re.Pattern[str]]]] = (
    yaml.SafeLoader.yaml_implicit_resolvers
)
#: Lines that begin like a directive. YAML needs none of them; many take time without end.
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_MOST_DIRECTIVES = 100
#: How long the paths of all fields may be together; fields beyond it have the line of what is
#: around them.
_MOST_NAMES = 20 << 20


def _json(text: str, most: int) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        _check_size(value, most)
        return value
    except json.JSONDecodeError as error:
        raise ManifestError(f"not JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise ManifestError("nested too deeply") from error
    except ValueError as error:
        raise ManifestError(f"not JSON: {shortened(str(error))}") from error


def _check_size(value: Any, most: int) -> None:
    """Refuse what is too large or too deep; the work ends where the bound is met."""
    left = most
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        left -= len(level)
        if left < 0:
            raise _too_many(most)
        level = [
            inner
            for held in level
            if isinstance(held, dict | list)
            for inner in (held.values() if isinstance(held, dict) else held)
        ]
        if not level:
            return
    raise ManifestError(f"nested deeper than {MAX_DEPTH} levels")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ManifestError(f"{shortened(twice)} is given twice")
    return made


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


class _Kept(NamedTuple):
    """A value that an anchor names: as it is used again, it is counted again."""

    value: Any
    #: How many values it holds, itself counted.
    size: int
    #: How many levels of nesting.
    height: int


class _Reader:
    """Turns the events of a file into plain data, one document after the other, in one pass.

    The work is bounded by `most`: every value counts, and every use of an alias as much as what
    it stands for, although nothing is copied. What stands for a value several times is one object.
    """

    def __init__(self, text: str, most: int) -> None:
        if (
            sum(1 for _ in islice(_DIRECTIVE.finditer(text), _MOST_DIRECTIVES + 1))
            > _MOST_DIRECTIVES
        ):
            raise ManifestError(f"more than {_MOST_DIRECTIVES} lines begin with %")
        self._most = most
        self._used = 0
        self._left = _MOST_NAMES
        self._lines: dict[str, int] = {}
        self._anchors: dict[str, _Kept] = {}
        try:
            self._next: Callable[[], Any] = _LOADER(text).get_event
        except (yaml.YAMLError, ValueError) as error:
            raise _NotYamlError(f"not YAML: {shortened(str(error))}") from error

    def next_document(self) -> tuple[Any, dict[str, int]] | None:
        """The next document and the lines of its fields; None after the last."""
        try:
            while not isinstance(event := self._next(), yaml.DocumentStartEvent):
                if event is None or isinstance(event, yaml.StreamEndEvent):
                    return None
            first = self._next()
            self._lines = {"": first.start_mark.line + 1}
            self._anchors = {}
            value, _ = self._value(first, "", 0)
            self._next()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = shortened(str(error.problem or error.context))
            line = mark.line + 1 if mark else 0
            raise _NotYamlError(f"not YAML: {message}", line) from error
        except (yaml.YAMLError, ValueError) as error:
            raise _NotYamlError(f"not YAML: {shortened(str(error))}") from error
        return value, self._lines

    def _value(self, event: Any, path: str, depth: int) -> tuple[Any, int]:
        """The value that begins with an event, and how many levels it has."""
        self._used += 1
        if self._used > self._most:
            raise _too_many(self._most, event.start_mark.line + 1)
        if isinstance(event, yaml.ScalarEvent):
            value, height = _scalar(event), 0
        elif isinstance(event, yaml.AliasEvent):
            return self._again(event, depth)
        else:
            if depth >= MAX_DEPTH:
                raise _error(event, f"nested deeper than {MAX_DEPTH} levels")
            begun = self._used
            if isinstance(event, yaml.MappingStartEvent):
                _check_tag(event, f"{_TAG}map")
                value, height = self._map(path, depth)
            else:
                _check_tag(event, f"{_TAG}seq")
                value, height = self._list(path, depth)
            if event.anchor:
                self._anchors[event.anchor] = _Kept(value, self._used - begun + 1, height)
            return value, height
        if event.anchor:
            self._anchors[event.anchor] = _Kept(value, 1, 0)
        return value, height

    def _again(self, event: Any, depth: int) -> tuple[Any, int]:
        kept = self._anchors.get(event.anchor)
        if kept is None:
            raise _error(event, f"found undefined alias {shortened(event.anchor)}")
        self._used += kept.size - 1
        if self._used > self._most:
            raise _too_many(self._most, event.start_mark.line + 1)
        if depth + kept.height > MAX_DEPTH:
            raise _error(event, f"nested deeper than {MAX_DEPTH} levels")
        return kept.value, kept.height

    def _map(self, path: str, depth: int) -> tuple[dict[str, Any], int]:
        made: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        height = 0
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            if isinstance(key, yaml.ScalarEvent) and _tag(key) == _MERGE:
                event = self._next()
                source, inner = self._value(event, path, depth + 1)
                merged = _merged(event, source) | merged
            else:
                name = self._name(key)
                if name in made:
                    raise _error(key, f"{shortened(name)} is given twice")
                here = child(path, name)
                self._note(here, key)
                made[name], inner = self._value(self._next(), here, depth + 1)
            height = max(height, inner)
        return merged | made if merged else made, height + 1

    def _list(self, path: str, depth: int) -> tuple[list[Any], int]:
        made: list[Any] = []
        height = 0
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            here = child(path, len(made))
            self._note(here, event)
            value, inner = self._value(event, here, depth + 1)
            made.append(value)
            height = max(height, inner)
        return made, height + 1

    def _note(self, path: str, event: Any) -> None:
        """Remember where a field is, unless the names of fields are far longer than the file."""
        self._left -= len(path)
        if self._left > 0:
            self._lines[path] = event.start_mark.line + 1

    def _name(self, key: Any) -> str:
        if isinstance(key, yaml.AliasEvent):
            kept = self._anchors.get(str(key.anchor))
            if kept is not None and isinstance(kept.value, str):
                return kept.value
        if not isinstance(key, yaml.ScalarEvent):
            raise _error(key, "a key is text")
        tag = _tag(key)
        # YAML reads a bare y, on or no as true or false; as a key the word itself is meant.
        if tag not in _TEXT and tag != f"{_TAG}bool":
            raise _error(key, f'a key is text: write "{shortened(key.value)}" in quotes')
        if key.anchor:
            self._anchors[key.anchor] = _Kept(key.value, 1, 0)
        return str(key.value)


def _merged(event: Any, source: Any) -> dict[str, Any]:
    """What `<<` brings in; of several, the first wins."""
    made: dict[str, Any] = {}
    for one in source if isinstance(source, list) else [source]:
        if not isinstance(one, dict):
            raise _error(event, "<< takes an object, or a list of them")
        made = one | made
    return made


def _tag(event: Any) -> str:
    """What a scalar is: as it says, or as its text reads when it is bare."""
    given: str | None = event.tag
    if given is not None and given != "!":
        return given
    if event.implicit[0]:
        text: str = event.value
        for tag, pattern in _IMPLICIT.get(text[:1], ()):
            if pattern.match(text):
                return tag
    return f"{_TAG}str"


def _check_tag(event: Any, expected: str) -> None:
    if event.tag not in (None, "!", expected):
        raise _error(event, f"tags such as {shortened(event.tag)} are not taken")


def _scalar(event: Any) -> Any:
    text: str = event.value
    if event.tag is None and not event.implicit[0]:
        return text  # Most words of large files are in quotes, or numbers; both are told quickly.
    if text.isdigit() and text.isascii() and text[0] != "0" and len(text) < 20 and not event.tag:
        return int(text)
    tag = _tag(event)
    if tag in _TEXT:
        return text
    if tag == f"{_TAG}null":
        return None
    if tag == f"{_TAG}bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if tag == f"{_TAG}int":
        return _whole(event, text.replace("_", ""))
    if tag == f"{_TAG}float":
        return _number(event, text.replace("_", ""))
    raise _error(event, f"tags such as {shortened(tag)} are not taken")


def _whole(event: Any, text: str) -> int | str:
    if not _WHOLE.fullmatch(text):
        # 12:30 is a number to base sixty to YAML 1.1, and text to everybody else.
        return str(event.value)
    if len(text) > 100:
        raise _error(event, "a number of too many digits")
    digits = text.lstrip("+-")
    base = 8 if re.fullmatch(r"0[0-7]+", digits) else 0
    value = int(digits, base)
    return -value if text.startswith("-") else value


def _number(event: Any, text: str) -> float | str:
    if ":" in text:
        return str(event.value)
    try:
        value = float(text)
    except ValueError:
        raise _error(event, f"{shortened(text)} is no number that JSON knows") from None
    return value


def _error(event: Any, message: str) -> ManifestError:
    return ManifestError(message, event.start_mark.line + 1)


def _too_many(most: int, line: int = 0) -> ManifestError:
    return ManifestError(f"more than {most} values", line)


def _taken_apart(document: Document) -> Iterator[Document]:
    """The resources of a `kind: List`, as `kubectl get -o yaml` writes it."""
    items = document.data.get("items")
    if document.data.get("kind") != "List" or not isinstance(items, list):
        yield document
        return
    lines: dict[int, dict[str, int]] = {}
    for path, line in document.lines.items():
        if found := _ITEM.fullmatch(path):
            lines.setdefault(int(found[1]), {})[found[2]] = line
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            message = "expected an object with a kind"
            raise ManifestError(message, document.line_of(f"items[{at}]"))
        yield Document(item, lines.get(at, {}))


def _with_version(data: dict[str, Any]) -> dict[str, Any]:
    if "apiVersion" in data or not isinstance(kind := data.get("kind"), str):
        return data
    version = KINDS[kind].api_version if kind in KINDS else API_VERSION
    return {"apiVersion": version, **data}
