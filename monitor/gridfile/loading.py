"""A grid file, read and checked: everything that is wrong with it is told at once."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from monitor.gridfile import checking, parsing, reading
from monitor.gridfile.checking import Names
from monitor.gridfile.definition import Grid
from monitor.gridfile.parsing import Found
from monitor.gridfile.problems import InvalidGridFile, Problem, said
from monitor.gridfile.reading import MAX_BYTES, Node

STDIN = "-"


@dataclass(frozen=True)
class Outside:
    """What a file may refer to that is in the depot alone: names of reporters and of groups of users.

    None: no depot is asked, all are taken to be there.
    """

    reporters: Collection[str] | None = None
    groups: Collection[str] | None = None


def load(file: str, outside: Outside) -> Grid:
    """The grid that *file*, a path or ``-`` for standard input, describes, its macros written out.

    Raises:
        InvalidGridFile: with everything that is wrong with it.
        OSError: it cannot be read.
    """
    return parse(_content(file), "<stdin>" if file == STDIN else file, outside)


def parse(content: bytes, name: str, outside: Outside) -> Grid:
    """The grid that *content*, of a file called *name*, describes. Raises InvalidGridFile."""
    root, problems = reading.read(content, name)
    if not isinstance(root.value, dict):
        expected = Problem(root.place, "", 'expected names and values, beginning with "version: 1"')
        raise InvalidGridFile(name, [*problems, expected])
    file, found = parsing.parse(root.plain())
    grid, more = checking.check(file, _names(root, found, outside))
    found += [one for one in more if not _is_told(one, found)]
    problems += [Problem(root.locate(path), said(path), message) for path, message in found]
    if problems:
        raise InvalidGridFile(name, problems)
    return grid


def _content(file: str) -> bytes:
    """No more than it takes to see that it is too much."""
    if file == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _is_told(one: Found, found: Collection[Found]) -> bool:
    """Whether what *one* says is only what became of something that *found* has already."""
    path = one[0]
    return len(path) > 2 and any(path[: len(told)] == told[: len(path)] for told, _ in found if len(told) > 2)


def _names(root: Node, found: Collection[Found], outside: Outside) -> Names:
    """What the file names, sound or not: an error in a resource is not one in each series bound to it.

    Where a section itself is in error, nobody knows what is in it.
    """
    if any(len(path) == 1 and path != ("version",) for path, _ in found):
        return Names(None, None, None, outside.reporters, outside.groups, has_all_series=False)
    sites, resources, suites = (list(_below(root, section)) for section in ("sites", "resources", "suites"))
    has_all_series = not any(path[0] == "series" for path, _ in found)
    return Names(sites, resources, suites, outside.reporters, outside.groups, has_all_series)


def _below(root: Node, section: str) -> Iterator[str]:
    node = root.value.get(section)
    if node is not None and isinstance(node.value, dict):
        yield from node.value
