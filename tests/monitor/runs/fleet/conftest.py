"""The reporter's archive, and a reporter with two series."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.models import Reporter
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from reporters.remote import archive
from tests.monitor.runs.fleet.agents import remote_reporter


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("archive") / "gridcast-reporter.pyz"
    archive.write(file, archive.build())
    return file


@pytest.fixture
def reporter(transactional_db: None, tmp_path: Path) -> Reporter:
    """A reporter with two series, which run on request."""
    reporter = remote_reporter()
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    resource = ResourceConfig("ncsa-login", "ncsa", str(scratch))
    bound = {"target": ["ncsa-login"]}
    define(
        [resource],
        [
            SeriesDefinition("noop-ncsa", "noop", bound, reporter="ncsa"),
            SeriesDefinition("login-ncsa", "login", bound, reporter="ncsa"),
        ],
    )
    return reporter
