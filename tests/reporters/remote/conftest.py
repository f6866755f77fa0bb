"""The reporter's archive, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reporters.remote import archive


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("archive") / "gridcast-reporter.pyz"
    archive.write(file, archive.build())
    return file
