"""A new plug-in is one file: the contract suite finds it, the layers are linted. Tested on a copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "probes",
    "reporters",
    "forecasting",
    "monitor",
    "tests",
    "templates",
    "pyproject.toml",
    "manage.py",
)
LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's files."""
    directory = tmp_path_factory.mktemp("house")
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=unwanted)
        else:
            shutil.copy(source, directory / name)
    return directory


@pytest.fixture
def copy(house: Path) -> Iterator[Path]:
    """The copy; files that a test adds are removed after it."""
    before = set(house.rglob("*.py"))
    yield house
    for planted in set(house.rglob("*.py")) - before:
        planted.unlink()


def run(directory: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    without_xdist = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, *argv], cwd=directory, capture_output=True, text=True, check=False, env=without_xdist
    )


def recipe(heading: str) -> str:
    """The first Python code under *heading* of CONTRIBUTING.md."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition(heading)[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    return code[1]


def test_the_probe_of_the_recipe_passes_the_contract_suite_by_itself(copy: Path) -> None:
    (copy / "probes" / "knock.py").write_text(recipe("## Add a probe"))
    tested = run(
        copy, "-m", "pytest", "tests/contracts/test_probes.py", "-k", "knock", "-q", "-p", "no:xdist"
    )
    assert tested.returncode == 0, tested.stdout
    assert "6 passed" in tested.stdout


def test_a_new_probe_can_be_chosen_for_a_series_without_a_migration(copy: Path) -> None:
    (copy / "probes" / "knock.py").write_text(recipe("## Add a probe"))
    listed = run(
        copy,
        "manage.py",
        "shell",
        "--no-imports",
        "-c",
        "from monitor.admin import probe_choices; print(probe_choices())",
    )
    assert "('knock', 'knock')" in listed.stdout, listed.stderr
    unchanged = run(copy, "manage.py", "makemigrations", "--check", "--dry-run")
    assert unchanged.returncode == 0, unchanged.stdout


def test_the_source_keeps_its_layers(copy: Path) -> None:
    linted = run(copy, "-c", LINT)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("package", ["probes", "reporters", "forecasting"])
def test_a_django_import_below_the_service_breaks_the_layers(copy: Path, package: str) -> None:
    (copy / package / "planted.py").write_text("import django\n")
    linted = run(copy, "-c", LINT)
    assert linted.returncode != 0
    assert f"{package}.planted" in linted.stdout


def test_a_page_that_runs_sql_of_its_own_breaks_the_layers(copy: Path) -> None:
    (copy / "monitor" / "pages" / "planted.py").write_text("from monitor.db import binary\n")
    assert run(copy, "-c", LINT).returncode != 0
