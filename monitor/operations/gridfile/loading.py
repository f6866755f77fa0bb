"""Read and check a grid file; report all its errors at once."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from monitor.core.yamlfile import reading
from monitor.core.yamlfile.problems import Fault, InvalidYamlFile, Problem
from monitor.core.yamlfile.reading import MAX_BYTES, Node
from monitor.operations.gridfile import checking, parsing
from monitor.operations.gridfile.checking import KnownNames
from monitor.operations.gridfile.definition import GridDefinition
from monitor.operations.gridfile.format import GridFile
from monitor.operations.gridfile.problems import describe_path

STDIN = "-"
_SECTIONS = '"version: 1" and the sections of the grid'


@dataclass(frozen=True)
class DepotNames:
    """Names that a file may use without defining them: reporters, by name with their sites, and user groups.

    None instead of names accepts every name, for checks without a depot. The site of a reporter that is not
    an agent is None. *windows* are maintenance windows of feeds and declarations, which a file must not
    define, by name with their sources.
    """

    reporters: Mapping[str, str | None] | None = None
    groups: Collection[str] | None = None
    windows: Mapping[str, str] = field(default_factory=dict)
    deleting: Collection[str] = ()


def load(file: str, depot_names: DepotNames) -> GridDefinition:
    """Return the grid in *file* (``-``: standard input), with macros expanded.

    *depot_names* are names that the file may refer to in addition to its own names.

    Raises:
        InvalidYamlFile: with all errors of the file.
        OSError: the file cannot be read.
    """
    return parse(_content(file), "<stdin>" if file == STDIN else file, depot_names)


def parse(content: bytes, name: str, depot_names: DepotNames) -> GridDefinition:
    """Return the grid in *content*, the content of the file *name*; other arguments as in ``load``.

    Raises:
        InvalidYamlFile: with all errors of the file.
    """
    root, problems = reading.read(content, name, expected=_SECTIONS)
    if not isinstance(root.value, dict):
        expected = Problem(root.position, "", 'expected a mapping that begins with "version: 1"')
        raise InvalidYamlFile(name, [*problems, expected])
    file, faults = parsing.parse(root.plain())
    grid, further_faults = checking.check(file, _known_names(root, file, faults, depot_names))
    faults += [fault for fault in further_faults if not is_consequence(fault, faults)]
    problems += [Problem(root.locate(path), describe_path(path), message) for path, message in faults]
    if problems:
        raise InvalidYamlFile(name, problems)
    return grid


def _content(file: str) -> bytes:
    """Return the content of *file*; of a file that exceeds the limit, return one byte more than the limit."""
    if file == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with Path(file).open("rb") as stream:
        return stream.read(MAX_BYTES + 1)


def is_consequence(fault: Fault, earlier: Collection[Fault]) -> bool:
    """Return whether *fault* may follow from an *earlier* fault: at the same path, above it or below it."""
    path, _ = fault
    return len(path) > 2 and any(
        path[: len(other)] == other[: len(path)] for other, _ in earlier if len(other) > 2
    )


def _known_names(
    root: Node, file: GridFile, faults: Collection[Fault], depot_names: DepotNames
) -> KnownNames:
    """Return all names that the file defines; names of invalid entries are included.

    A fault in a resource therefore causes no further faults in the series bound to the resource. If a whole
    section is invalid, its names are unknown, and references to them are not checked.
    """
    if any(len(path) == 1 and path != ("version",) for path, _ in faults):
        return KnownNames(
            None, None, None, None, depot_names.groups, depot_names.windows, has_all_series=False
        )
    sites, resources, suites = (list(_below(root, section)) for section in ("sites", "resources", "suites"))
    has_all_series = not any(path[0] == "series" for path, _ in faults)
    reporters = _reporters(root, file, depot_names)
    return KnownNames(
        sites,
        resources,
        suites,
        reporters,
        depot_names.groups,
        depot_names.windows,
        has_all_series,
        deleting=depot_names.deleting,
    )


def _reporters(root: Node, file: GridFile, depot_names: DepotNames) -> Mapping[str, str | None] | None:
    """Return the sites of all reporters by name; those of the file take precedence."""
    if depot_names.reporters is None:
        return None
    invalid = dict.fromkeys(_below(root, "reporters"))
    valid = {name: reporter.site for name, reporter in file.reporters.items()}
    return {**depot_names.reporters, **invalid, **valid}


def _below(root: Node, section: str) -> Iterator[str]:
    node = root.value.get(section)
    if node is not None and isinstance(node.value, dict):
        yield from node.value
