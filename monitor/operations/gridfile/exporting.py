"""Export the grid to a file: all series expanded and sorted, so that two exports can be compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from monitor.core.yamlfile.reading import resolve_scalar
from monitor.operations.gridfile.definition import Definition, GridDefinition
from monitor.operations.gridfile.format import VERSION
from monitor.operations.gridfile.planning import to_entry
from monitor.operations.gridfile.problems import NOUNS

_WIDTH = 110
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]
    """Writes YAML without aliases, and quotes each text that ``reading`` would resolve to another type."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    plain = resolve_scalar(text) == text and text.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def to_yaml(grid: GridDefinition) -> str:
    """Return *grid* as a grid file in its normal form: sorted by name, without defaults and macros."""
    content: dict[str, Any] = {}
    for noun in NOUNS:
        definitions: Mapping[str, Definition] = getattr(grid, noun)
        if definitions:
            content[noun] = {name: to_entry(noun, definitions[name]) for name in sorted(definitions)}
    return f"version: {VERSION}\n{dump(content) if content else ''}"


def dump(content: dict[str, Any]) -> str:
    dumped: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )
    return dumped


def save(content: str, file: Path) -> None:
    """Replace the content of *file* atomically; keep its permissions."""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o666 & ~_umask()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
