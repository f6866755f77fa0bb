"""The client stands alone: its package, its only file, and the Python it needs."""

from __future__ import annotations

import ast
import importlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gridcast_client

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "client"
SOURCES = sorted([*CLIENT.rglob("*.py"), *(ROOT / "integrations").rglob("*.py")])


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_source_is_python_3_9_and_needs_nothing_else(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 9))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported <= sys.stdlib_module_names | {"gridcast_client"}


def test_the_package_is_what_its_source_says() -> None:
    package = tomllib.loads((CLIENT / "pyproject.toml").read_text())
    project = package["project"]
    assert (project["version"], project["dependencies"]) == (gridcast_client.__version__, [])
    assert project["requires-python"] == ">=3.9"
    module, _, function = project["scripts"]["gridcast"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert package["tool"]["setuptools"]["packages"] == ["gridcast_client"]
    assert (CLIENT / "gridcast_client" / "py.typed").exists()


def test_one_file_is_the_whole_library(tmp_path: Path) -> None:
    shutil.copy(CLIENT / "gridcast_client" / "__init__.py", tmp_path / "gridcast_client.py")
    program = "import gridcast_client; print(gridcast_client.Client('https://h.example', environ={}).url)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "https://h.example\n", done.stderr
