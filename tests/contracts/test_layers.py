"""import-linter accepts the source, and refuses an import that breaks its layers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.source_copy import copy_source, run_python

LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("source")
    copy_source(directory)
    return directory


@pytest.fixture
def copy(source: Path) -> Iterator[Path]:
    """Yield the copy of the source; remove the files that a test adds."""
    before = set(source.rglob("*.py"))
    yield source
    for added in set(source.rglob("*.py")) - before:
        added.unlink()


def test_the_source_keeps_its_layers(copy: Path) -> None:
    linted = run_python(copy, "-c", LINT)
    assert linted.returncode == 0, linted.stdout


def test_each_import_that_breaks_the_layers_is_named(copy: Path) -> None:
    broken = {
        "probes": "import django",
        "reporters": "import django",
        "forecasting": "import django",
        "client/gridcast_client": "from reporters import report",
        "monitor/web/pages": "from monitor.core.db import binary",
    }
    for folder, line in broken.items():
        (copy / folder / "added.py").write_text(f"{line}\n")
    linted = run_python(copy, "-c", LINT)
    assert linted.returncode != 0
    for folder, line in broken.items():
        importer = f"{folder.removeprefix('client/').replace('/', '.')}.added"
        imported = line.replace("from ", "").replace(" import ", ".").removeprefix("import ")
        assert f"{importer} -> {imported}" in linted.stdout
