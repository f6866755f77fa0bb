"""A reporter runs where a site has nothing but an old Python."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(file for package in ("probes", "reporters") for file in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_source_is_python_3_9_and_needs_nothing_else(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 9))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names | {"probes", "reporters"}
