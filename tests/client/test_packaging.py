"""The client stands alone: its package, its only file, and the Python it needs."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gridcast_client
from gridcast_client import GridcastError
from gridcast_client.__main__ import parser as command_line

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "client"
SOURCES = sorted([*CLIENT.rglob("*.py"), *(ROOT / "integrations" / "slurm").rglob("*.py")])


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


# Documentation

GUIDE = (ROOT / "docs" / "client.md").read_text()
ROW = re.compile(r"^[ |`-]*-- (\w+) +(again|for good)?  ", re.MULTILINE)


def tree(text: str) -> dict[str, str]:
    """Return whether each error of the drawn tree says again; "" where its subclasses say so."""
    drawn = re.search(r"^ *GridcastError\n(.+\n)*", text, re.MULTILINE)
    assert drawn is not None
    return {name: verdict or "" for name, verdict in ROW.findall(drawn[0])}


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    assert gridcast_client.__doc__ is not None
    drawn = tree(gridcast_client.__doc__)
    assert tree(GUIDE) == drawn
    errors = {
        name: kind
        for name, kind in vars(gridcast_client).items()
        if isinstance(kind, type) and issubclass(kind, GridcastError) and kind is not GridcastError
    }
    assert drawn.keys() == errors.keys()
    for name, verdict in drawn.items():
        assert verdict in {"again" if errors[name].again else "for good", ""}


def test_every_command_of_the_guide_is_a_command_line() -> None:
    lines = re.findall(r"`(gridcast [a-z]+[^`]*)`", GUIDE)
    for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL):
        lines += [
            line.partition(" #")[0].partition(" >")[0]
            for line in block.splitlines()
            if line[:9] == "gridcast "
        ]
    assert len(lines) > 10
    for line in lines:
        words = line.replace("FORECAST", "1").replace("TIME", "1").replace("...", "x").split()[1:]
        own = words[: words.index("--")] if "--" in words else words
        command_line().parse_args([word.strip("'") for word in own])
