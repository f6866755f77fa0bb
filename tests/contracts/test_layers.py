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


@pytest.mark.parametrize("package", ["probes", "reporters", "forecasting"])
def test_a_django_import_below_the_service_breaks_the_layers(copy: Path, package: str) -> None:
    (copy / package / "added.py").write_text("import django\n")
    linted = run_python(copy, "-c", LINT)
    assert linted.returncode != 0
    assert f"{package}.added" in linted.stdout


def test_the_client_that_imports_ours_breaks_the_layers(copy: Path) -> None:
    (copy / "client" / "gridcast_client" / "added.py").write_text("from reporters import report\n")
    assert run_python(copy, "-c", LINT).returncode != 0


def test_a_page_that_imports_sql_code_breaks_the_layers(copy: Path) -> None:
    (copy / "monitor" / "pages" / "added.py").write_text("from monitor.db import binary\n")
    assert run_python(copy, "-c", LINT).returncode != 0
