"""Read YAML into nodes that know their places. Nothing is constructed, and everything is bounded.

The parser's events are composed here, so that no file, however deep or however often it repeats itself, costs
more than the limits below. Plain words are read as in YAML 1.2: ``no`` and ``on`` are words, dates are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from monitor.gridfile.problems import InvalidGridFile, Path, Place, Problem, shown

MAX_BYTES = 5_000_000
MAX_NODES = 500_000  # each counted as often as it is repeated by an alias
MAX_DEPTH = 20
MAX_DIGITS = 18  # of a whole number: more does not fit 64 bits

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNREADABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True)  # there are many
class Node:
    """A value at its *place*: a list of nodes, a mapping of names to nodes, or a scalar.

    *size* counts the values in it, *height* how deep they are nested; *keys* are the places of a mapping's
    names.
    """

    place: Place
    value: Any
    size: int = 1
    height: int = 1
    keys: Mapping[str, Place] | None = None

    def plain(self) -> Any:
        """The value without places, as JSON has it."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def locate(self, path: Path) -> Place:
        """Where *path* is: its key, or the item of a list; of what is not there, what it would be in."""
        node, place = self, self.place
        for part in path:
            if isinstance(node.value, dict) and part in node.value:
                place, node = (node.keys or {})[str(part)], node.value[part]
            elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                place = node.place
            else:
                break
        return place


def read(content: bytes, name: str) -> tuple[Node, list[Problem]]:
    """The document in *content*, and what is wrong with it that did not keep it from being read.

    Raises:
        InvalidGridFile: it is too large, no text or no YAML, or repeats or nests without measure.
    """
    text = _decoded(content, name)
    composer = _Composer()
    try:
        return composer.document(yaml.parse(text, Loader=_PARSER)), composer.problems
    except _CannotGoOn as stop:
        raise InvalidGridFile(name, [*composer.problems, stop.problem]) from None
    except yaml.MarkedYAMLError as error:
        raise InvalidGridFile(name, [*composer.problems, _syntax(error, text)]) from None


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MAX_BYTES:
        raise InvalidGridFile(name, [Problem(Place(), "", f"it is larger than {MAX_BYTES:,} bytes")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place_in(content[: error.start].decode("utf-8"))
        why = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise InvalidGridFile(name, [Problem(place, "", why)]) from None
    unreadable = _UNREADABLE.search(text)
    if unreadable:
        why = f"character U+{ord(unreadable[0]):04X} is none of a text"
        raise InvalidGridFile(name, [Problem(_place_in(text[: unreadable.start()]), "", why)])
    return text


def _place_in(before: str) -> Place:
    return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _syntax(error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place()
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return Problem(place, "", "a tab in front; YAML is indented with spaces")
    context = f"{error.context}, " if error.context else ""
    return Problem(place, "", f"not YAML: {context}{error.problem}")


class _CannotGoOn(Exception):
    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(place, "", message)


class _Composer:
    """Makes nodes of events; what can be passed over is noted in *problems*."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._anchors: dict[str, Node | None] = {}  # None: it has begun, and not ended
        self._nodes = 0

    def document(self, events: Iterator[Any]) -> Node:
        """The first document; a second is a problem."""
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise _CannotGoOn(_place(event), "a second document begins; a grid file is one")
            if isinstance(event, yaml.NodeEvent):
                root = self._node(event, events, 1)
        if root is None:
            raise _CannotGoOn(Place(), 'it is empty; expected "version: 1" and what the grid has')
        return root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        place = _place(event)
        node = self._alias(event, place) if isinstance(event, yaml.AliasEvent) else None
        if depth + (node.height if node else 1) - 1 > MAX_DEPTH:
            raise _CannotGoOn(place, f"nested more than {MAX_DEPTH} deep")
        if node is not None:
            return node
        self._count(1, place)
        if event.tag is not None:
            self._note(place, f"tag {shown(event.tag)} is not read; write plain values")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node = self._composed(event, events, depth, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _composed(self, event: Any, events: Iterator[Any], depth: int, place: Place) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Node(place, self._scalar(event, place))
        if isinstance(event, yaml.SequenceStartEvent):
            items = [self._node(one, events, depth + 1) for one in _until(events, yaml.SequenceEndEvent)]
            return Node(place, items, *_measure(items))
        return self._mapping(events, depth, place)

    def _mapping(self, events: Iterator[Any], depth: int, place: Place) -> Node:
        nodes: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        for key in _until(events, yaml.MappingEndEvent):
            name, at = self._key(key), _place(key)
            node = self._node(next(events), events, depth + 1)
            if name in nodes:
                self._note(at, f"key {shown(name)} is here twice; first in line {keys[name].line}")
                continue
            nodes[name], keys[name] = node, at
        return Node(place, nodes, *_measure(nodes.values()), keys)

    def _key(self, event: Any) -> str:
        """The text of a key as it is written: a site may be called "no", or "2005"."""
        place = _place(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _CannotGoOn(place, "expected a name as key, got a list, a mapping or an alias")
        self._count(1, place)
        if event.tag is not None or event.anchor is not None:
            self._note(place, f"key {shown(event.value)}: a key has no tag and no anchor")
        return str(event.value)

    def _alias(self, event: Any, place: Place) -> Node:
        name = shown(f"*{event.anchor}")
        if event.anchor not in self._anchors:
            raise _CannotGoOn(place, f"alias {name} names nothing that was before it")
        node = self._anchors[event.anchor]
        if node is None:
            raise _CannotGoOn(place, f"alias {name} is inside of what it names: a cycle")
        self._count(node.size, place)
        return node

    def _scalar(self, event: Any, place: Place) -> Any:
        text = str(event.value)
        if _UNREADABLE.search(text):  # by an escape in quotes
            self._note(place, f"{shown(text)} has a character that is none of a text")
        return resolved(text) if event.implicit[0] else text  # what is in quotes is a text

    def _count(self, size: int, place: Place) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            raise _CannotGoOn(place, f"more than {MAX_NODES:,} values, aliases written out")

    def _note(self, place: Place, message: str) -> None:
        self.problems.append(Problem(place, "", message))


def resolved(text: str) -> Any:
    """What a plain word means: a number, true, false, nothing, or itself, as what is too large."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _WHOLE.fullmatch(text):
        return int(text) if len(text.lstrip("+-")) <= MAX_DIGITS else text
    if _FRACTION.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text


def _measure(nodes: Collection[Node]) -> tuple[int, int]:
    """Size and height of what holds *nodes*."""
    return 1 + sum(node.size for node in nodes), 1 + max((node.height for node in nodes), default=0)


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


def _until(events: Iterator[Any], end: type[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event
