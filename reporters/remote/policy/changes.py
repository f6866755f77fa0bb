"""Compare assignments for the approval of the site.

A change of ``windows`` needs no approval: a window only skips slots of approved series. Nor does a change of
``expected_seconds``: forecasts change with every run, and at most lengthen the wall-clock limit of a job.
Everything else does, also a field that this version of the reporter does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_OF_THE_DOCUMENT = ("format", "reporter", "version", "issued_at", "windows")
_OF_A_SERIES = ("name", "expected_seconds")
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


def changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> str:
    """Return what *new* changes, one line for each value; empty if nothing needs approval.

    Both are documents as in the protocol. Every text is quoted as in JSON, in ASCII: the server cannot write
    to the operator's terminal.
    """
    before, after = _parts(old or {}), _parts(new)
    lines: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        lines += _changed(name, before.get(name), after.get(name))
    return "\n".join(lines)


def _changed(name: str, old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> Iterator[str]:
    if new is None:
        yield f"- {name}"
    elif old is None:
        yield f"+ {name}"
        yield from (f"    {path}: {value}" for path, value in new.items())
    elif old != new:
        yield f"~ {name}"
        for path in sorted(old.keys() | new.keys()):
            if old.get(path) != new.get(path):
                yield f"    {path}: {old.get(path, 'not set')} -> {new.get(path, 'not set')}"


def _parts(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the values of each series, each resource and the rest, by path, as they are shown."""
    parts: dict[str, dict[str, str]] = {}
    rest = {name: value for name, value in document.items() if name not in _OF_THE_DOCUMENT}
    if isinstance(rest.get("series"), list):
        for series in rest.pop("series"):
            name, values = "series without a name", series
            if isinstance(series, Mapping):
                values = {key: value for key, value in series.items() if key not in _OF_A_SERIES}
                name = f"series {_named(series['name'])}" if "name" in series else name
            parts[_unused(name, parts)] = dict(_flat(values, ""))
    if isinstance(rest.get("resources"), Mapping):
        for name, resource in sorted(rest.pop("resources").items()):
            parts[f"resource {_named(name)}"] = dict(_flat(resource, ""))
    if rest:
        parts["reporter"] = dict(_flat(rest, ""))
    return parts


def _unused(name: str, parts: Mapping[str, object]) -> str:
    """Return *name*, numbered if another series has it: none may hide behind another."""
    number = 1
    unused = name
    while unused in parts:
        number += 1
        unused = f"{name} ({number})"
    return unused


def _flat(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each value in the objects below *value*."""
    if isinstance(value, Mapping) and value:
        for name in sorted(value):
            yield from _flat(value[name], f"{path}.{_named(name)}" if path else _named(name))
    else:
        yield path, json.dumps(value, ensure_ascii=True)


def _named(name: object) -> str:
    return name if isinstance(name, str) and _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=True)
