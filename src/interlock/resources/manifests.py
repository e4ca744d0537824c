"""Files that people write: YAML or JSON, one or more documents, with the line of every field.

Only plain data is taken: no tags, no keys that are not text, no key twice, and no more
data than a file of its size could honestly hold. Words are read as `kubectl` reads them (yes and
no are true and false), except that dates stay the text they are.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from interlock.resources.errors import InterlockError
from interlock.resources.kinds import KINDS
from interlock.resources.metadata import API_VERSION
from interlock.resources.suggestions import child, shortened

MAX_BYTES = 10 << 20
#: Values in one file, each use of an alias counted in full.
MAX_VALUES = 1_000_000
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


def read_manifests(source: bytes | str) -> tuple[Document, ...]:
    """Read every document of a file; empty ones are passed over, lists are taken apart.

    A document that names its kind and no apiVersion gets the one of that kind.

    Raises:
        ManifestError: The file is not YAML or JSON, or holds what no resource can be made of.
    """
    text = _text(source)
    found: list[Document] = []
    for data, lines in _documents(text):
        if data is None:
            continue
        if not isinstance(data, dict):
            raise ManifestError("expected an object with a kind", lines.get("", 0))
        found.extend(_taken_apart(Document(data, lines)))
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


def _documents(text: str) -> Iterator[tuple[Any, dict[str, int]]]:
    nodes = _nodes(text)
    try:
        first = next(nodes, None)
    except ManifestError:
        # JSON has a few spellings (\ud83d\ude00, tabs) that YAML does not know.
        if not text.lstrip().startswith("{"):
            raise
        yield _json(text), {"": 1}
        return
    reader = _Reader()
    while first is not None:
        yield reader.read(first)
        first = next(nodes, None)


def _nodes(text: str) -> Iterator[Node]:
    try:
        _check_depth(text)
        yield from yaml.compose_all(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = shortened(str(error.problem or error.context))
        raise ManifestError(f"not YAML: {message}", mark.line + 1 if mark else 0) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError(f"not YAML: {shortened(str(error))}") from error


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check_depth(text: str) -> None:
    """Refuse deep nesting beforehand: composing calls itself, and C has no limit on that."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 0
                raise ManifestError(f"nested deeper than {MAX_DEPTH} levels", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ManifestError(f"not JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise ManifestError("nested too deeply") from error
    except ValueError as error:
        raise ManifestError(f"not JSON: {shortened(str(error))}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ManifestError(f"{shortened(twice)} is given twice")
    return made


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


class _Reader:
    """Turns the nodes of one file into plain data."""

    def __init__(self) -> None:
        self._left = MAX_VALUES
        self._lines: dict[str, int] = {}

    def read(self, node: Node) -> tuple[Any, dict[str, int]]:
        self._lines = {"": node.start_mark.line + 1}
        return self._value(node, "", 0), self._lines

    def _value(self, node: Node, path: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _error(node, f"the file holds more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise _error(node, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
            return self._map(node, path, depth)
        if isinstance(node, SequenceNode) and node.tag == f"{_TAG}seq":
            return self._list(node, path, depth)
        if isinstance(node, ScalarNode):
            return _scalar(node)
        raise _error(node, f"tags such as {shortened(node.tag)} are not taken")

    def _map(self, node: MappingNode, path: str, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                merged = self._merged(value, path, depth) | merged
        made: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            name = _name(key)
            if name in made:
                raise _error(key, f"{shortened(name)} is given twice")
            here = child(path, name)
            self._lines[here] = key.start_mark.line + 1
            made[name] = self._value(value, here, depth + 1)
        return merged | made

    def _merged(self, node: Node, path: str, depth: int) -> dict[str, Any]:
        """What `<<` brings in; of several, the first wins."""
        sources = node.value if isinstance(node, SequenceNode) else [node]
        made: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, MappingNode):
                raise _error(node, "<< takes an object, or a list of them")
            made = self._value(source, path, depth + 1) | made
        return made

    def _list(self, node: SequenceNode, path: str, depth: int) -> list[Any]:
        made = []
        for at, value in enumerate(node.value):
            here = child(path, at)
            self._lines[here] = value.start_mark.line + 1
            made.append(self._value(value, here, depth + 1))
        return made


def _name(key: Node) -> str:
    if not isinstance(key, ScalarNode):
        raise _error(key, "a key is text")
    if key.tag in _TEXT:
        return str(key.value)
    if key.tag == f"{_TAG}bool":
        # YAML reads a bare y, on or no as true or false; as a key the word itself is meant.
        return str(key.value)
    raise _error(key, f'a key is text: write "{shortened(key.value)}" in quotes')


def _scalar(node: ScalarNode) -> Any:
    text: str = node.value
    if node.tag in _TEXT:
        return text
    if node.tag == f"{_TAG}null":
        return None
    if node.tag == f"{_TAG}bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if node.tag == f"{_TAG}int":
        return _whole(node, text.replace("_", ""))
    if node.tag == f"{_TAG}float":
        return _number(node, text.replace("_", ""))
    raise _error(node, f"tags such as {shortened(node.tag)} are not taken")


def _whole(node: ScalarNode, text: str) -> int | str:
    if not _WHOLE.fullmatch(text):
        # 12:30 is a number to base sixty to YAML 1.1, and text to everybody else.
        return str(node.value)
    if len(text) > 100:
        raise _error(node, "a number of too many digits")
    digits = text.lstrip("+-")
    base = 8 if re.fullmatch(r"0[0-7]+", digits) else 0
    value = int(digits, base)
    return -value if text.startswith("-") else value


def _number(node: ScalarNode, text: str) -> float | str:
    if ":" in text:
        return str(node.value)
    try:
        value = float(text)
    except ValueError:
        raise _error(node, f"{shortened(text)} is no number that JSON knows") from None
    return value


def _error(node: Node, message: str) -> ManifestError:
    return ManifestError(message, node.start_mark.line + 1)


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
