"""The grid as a file again: every series written out, in one order, so that two exports can be compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from monitor.gridfile.definition import Definition, Grid
from monitor.gridfile.format import VERSION
from monitor.gridfile.planning import written
from monitor.gridfile.problems import NOUNS
from monitor.gridfile.reading import resolved

_WIDTH = 110
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]
    """Writes what ``reading`` reads: a text that would be read as something else is in quotes; no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    plain = resolved(text) == text and text.isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def text(grid: Grid) -> str:
    """*grid* as a grid file in its normal form: sorted by name, without defaults and macros."""
    content: dict[str, Any] = {}
    for noun in NOUNS:
        definitions: Mapping[str, Definition] = getattr(grid, noun)
        if definitions:
            content[noun] = {name: written(noun, definitions[name]) for name in sorted(definitions)}
    return f"version: {VERSION}\n{_dumped(content) if content else ''}"


def _dumped(content: dict[str, Any]) -> str:
    dumped: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDTH
    )
    return dumped


def save(content: str, file: Path) -> None:
    """Make *file* hold *content*, all of it or, if that fails, what it held before."""
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o666 & ~_umask()
    descriptor, beside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(beside).replace(file)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
