"""Read YAML into nodes with positions, with bounds on size and depth, and without constructing objects.

The module composes the events of the parser itself, so neither nesting nor repeated aliases exceed the limits
below. Plain scalars are resolved as in YAML 1.2: ``no`` and ``on`` are text, and so are dates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from monitor.core.yamlfile.problems import InvalidYamlFile, Path, Position, Problem, quoted

MAX_BYTES = 5_000_000
MAX_NODES = 500_000  # including every repetition by an alias
MAX_DEPTH = 20
MAX_DIGITS = 18  # of an integer: more digits exceed 64 bits

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_FORBIDDEN_CHARACTERS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True)  # a file has many
class Node:
    """A value and its *position*: a list of nodes, a mapping of names to nodes, or a scalar.

    Attributes:
        size: the number of nodes, including this node and all nodes inside it.
        height: the number of levels of nesting.
        keys: the positions of the names of a mapping.
    """

    position: Position
    value: Any
    size: int = 1
    height: int = 1
    keys: Mapping[str, Position] | None = None

    def plain(self) -> Any:
        """Return the value without positions, as in JSON."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def locate(self, path: Path) -> Position:
        """Return the position of *path*, or of its last part that exists."""
        node, position = self, self.position
        for part in path:
            if isinstance(node.value, dict) and part in node.value:
                position, node = (node.keys or {})[str(part)], node.value[part]
            elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                position = node.position
            else:
                break
        return position


def read(content: bytes, name: str, *, expected: str) -> tuple[Node, list[Problem]]:
    """Return the document in *content*, and the problems that did not prevent reading it.

    *expected* says in the error of an empty file what belongs into it.

    Raises:
        InvalidYamlFile: *content* is not YAML text, or exceeds a limit.
    """
    text = _decoded(content, name)
    composer = _Composer(expected)
    try:
        return composer.document(yaml.parse(text, Loader=_PARSER)), composer.problems
    except _FatalProblem as error:
        raise InvalidYamlFile(name, [*composer.problems, error.problem]) from None
    except yaml.MarkedYAMLError as error:
        raise InvalidYamlFile(name, [*composer.problems, _syntax(error, text)]) from None


def _decoded(content: bytes, name: str) -> str:
    if len(content) > MAX_BYTES:
        raise InvalidYamlFile(name, [Problem(Position(), "", f"the file is larger than {MAX_BYTES:,} bytes")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        position = _position_after(content[: error.start].decode("utf-8"))
        message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise InvalidYamlFile(name, [Problem(position, "", message)]) from None
    forbidden = _FORBIDDEN_CHARACTERS.search(text)
    if forbidden:
        message = f"character U+{ord(forbidden[0]):04X} is not allowed"
        raise InvalidYamlFile(name, [Problem(_position_after(text[: forbidden.start()]), "", message)])
    return text


def _position_after(before: str) -> Position:
    return Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _syntax(error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    position = Position(mark.line + 1, mark.column + 1) if mark else Position()
    lines = text.splitlines()
    line = lines[position.line - 1] if position.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return Problem(position, "", "a tab in the indentation; YAML requires spaces")
    context = f"{error.context}, " if error.context else ""
    return Problem(position, "", f"not YAML: {context}{error.problem}")


class _FatalProblem(Exception):
    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(position, "", message)


class _Composer:
    """Composes nodes from parser events.

    Errors that do not end the composition are collected in *problems*.
    """

    def __init__(self, expected: str) -> None:
        self.problems: list[Problem] = []
        self._expected = expected
        self._anchors: dict[str, Node | None] = {}  # None: the anchored node is still being composed
        self._nodes = 0

    def document(self, events: Iterator[Any]) -> Node:
        """Return the only document. Raises _FatalProblem for a second document or an empty file."""
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise _FatalProblem(_position(event), "a second document; expected only one")
            if isinstance(event, yaml.NodeEvent):
                root = self._node(event, events, 1)
        if root is None:
            raise _FatalProblem(Position(), f"the file is empty; expected {self._expected}")
        return root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        position = _position(event)
        node = self._alias(event, position) if isinstance(event, yaml.AliasEvent) else None
        if depth + (node.height if node else 1) - 1 > MAX_DEPTH:
            raise _FatalProblem(position, f"nested more than {MAX_DEPTH} deep")
        if node is not None:
            return node
        self._count(1, position)
        if event.tag is not None:
            self._add_problem(position, f"tag {quoted(event.tag)} is not supported; write plain values")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node = self._composed(event, events, depth, position)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _composed(self, event: Any, events: Iterator[Any], depth: int, position: Position) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return Node(position, self._scalar(event, position))
        if isinstance(event, yaml.SequenceStartEvent):
            starts = _until(events, yaml.SequenceEndEvent)
            items = [self._node(start, events, depth + 1) for start in starts]
            return Node(position, items, *_measure(items))
        return self._mapping(events, depth, position)

    def _mapping(self, events: Iterator[Any], depth: int, position: Position) -> Node:
        nodes: dict[str, Node] = {}
        keys: dict[str, Position] = {}
        for key in _until(events, yaml.MappingEndEvent):
            name, at = self._key(key), _position(key)
            node = self._node(next(events), events, depth + 1)
            if name in nodes:
                self._add_problem(at, f"key {quoted(name)} is defined twice; first in line {keys[name].line}")
                continue
            nodes[name], keys[name] = node, at
        return Node(position, nodes, *_measure(nodes.values()), keys)

    def _key(self, event: Any) -> str:
        """Return a key as text, without resolving it: "no" and "2005" are valid names of sites."""
        position = _position(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise _FatalProblem(position, "expected a name as key, got a list, a mapping or an alias")
        self._count(1, position)
        if event.tag is not None or event.anchor is not None:
            self._add_problem(
                position, f"key {quoted(event.value)}: tags and anchors of keys are not supported"
            )
        return str(event.value)

    def _alias(self, event: Any, position: Position) -> Node:
        name = quoted(f"*{event.anchor}")
        if event.anchor not in self._anchors:
            raise _FatalProblem(position, f"alias {name} refers to no anchor before it")
        node = self._anchors[event.anchor]
        if node is None:
            raise _FatalProblem(position, f"alias {name} is inside its own anchor: a cycle")
        self._count(node.size, position)
        return node

    def _scalar(self, event: Any, position: Position) -> Any:
        text = str(event.value)
        if _FORBIDDEN_CHARACTERS.search(text):  # from an escape sequence in quotes
            self._add_problem(position, f"{quoted(text)} contains a character that is not allowed")
        return resolve_scalar(text) if event.implicit[0] else text  # a quoted scalar is always text

    def _count(self, size: int, position: Position) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            raise _FatalProblem(position, f"more than {MAX_NODES:,} values after expansion of aliases")

    def _add_problem(self, position: Position, message: str) -> None:
        self.problems.append(Problem(position, "", message))


def resolve_scalar(text: str) -> Any:
    """Return the value of a plain scalar: a number, a boolean, None, or the text itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text.lstrip("+-")) <= MAX_DIGITS else text
    if _FRACTION.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else text
    return text


def _measure(nodes: Collection[Node]) -> tuple[int, int]:
    """Return size and height of a list or mapping that contains *nodes*."""
    return 1 + sum(node.size for node in nodes), 1 + max((node.height for node in nodes), default=0)


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _until(events: Iterator[Any], end: type[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event
