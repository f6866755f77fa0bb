"""Validate plain values with the models of the format."""

from __future__ import annotations

from typing import Any

from monitor.core.yamlfile.problems import Fault, Path
from monitor.core.yamlfile.validation import faults
from monitor.operations.gridfile.format import VERSION, GridFile

_MACROS = ("for", "mesh")


def parse(data: Any) -> tuple[GridFile, list[Fault]]:
    """Return the valid part of *data* as a file, and its faults.

    Invalid keys and entries without a required key are removed, so that the rest can be checked further.
    """
    file_faults = list(faults(GridFile, data))
    valid = data if isinstance(data, dict) else {}
    for path, _ in file_faults:
        valid = _without(valid, _removable(path))
    for path, _ in list(faults(GridFile, valid)):
        valid = _without(valid, path[:2])
    return GridFile.model_validate({**valid, "version": VERSION}), file_faults


def _removable(path: Path) -> Path:
    """Return the path to remove for a fault at *path*.

    For a fault inside a list, this is the path of the list; for a fault in a macro, the path of the entry.
    """
    if len(path) > 2 and path[2] in _MACROS:
        return path[:2]
    return path[: next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))]


def _without(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return *data* without the value at *path*."""
    if not path or path[0] not in data:
        return data
    remaining, key = dict(data), str(path[0])
    inner = remaining.pop(key)
    if len(path) > 1 and isinstance(inner, dict):
        remaining[key] = _without(inner, path[1:])
    return remaining
