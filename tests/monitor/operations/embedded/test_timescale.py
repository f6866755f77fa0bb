"""TimescaleDB in the embedded PostgreSQL, loaded from the directory that the environment gives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.operations.embedded import PreparationFailed
from monitor.operations.embedded.binaries import PostgresPrograms
from monitor.operations.embedded.postgres import PostgreSQL
from monitor.operations.embedded.servers import EmbeddedServer, needed_servers
from monitor.operations.embedded.timescale import FILES, VARIABLE

from .conftest import execute, supervised

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="requires root")
has_files = pytest.mark.skipif(
    not os.environ.get(VARIABLE), reason=f"needs TimescaleDB for PostgreSQL 18: set {VARIABLE}"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory with empty files of the expected names."""
    tmp_path.chmod(0o755)
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def postgres(var: Path, files: Path | str) -> EmbeddedServer:
    environment = {VARIABLE: str(files), "REDIS_URL": "redis://elsewhere"}
    return needed_servers(var, environment, durable=False)["DATABASE_URL"]


@pytest.mark.parametrize("name", FILES)
def test_the_error_about_a_missing_file_names_it(var: Path, files: Path, name: str) -> None:
    (files / name).unlink()
    with pytest.raises(PreparationFailed, match=f"{files / name} does not exist"):
        postgres(var, files)


@only_root
def test_files_that_the_server_cannot_read_are_refused(var: Path, files: Path) -> None:
    files.chmod(0o700)
    with pytest.raises(PreparationFailed, match=f"runs as user \\d+ and cannot read {files}"):
        postgres(var, files)


def test_a_postgresql_without_extension_control_path_is_refused(
    var: Path, files: Path, tmp_path: Path
) -> None:
    programs = PostgresPrograms(tmp_path)
    programs.postgres.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.4'\n")
    programs.postgres.chmod(0o755)
    with pytest.raises(PreparationFailed, match="expected PostgreSQL 18 or newer"):
        PostgreSQL(var, programs=programs, timescaledb=files)


@has_files
def test_the_extension_is_loaded_without_telemetry(var: Path) -> None:
    server = postgres(var, os.environ[VARIABLE])
    with supervised(var, server.service()):
        execute(server.url, "CREATE EXTENSION timescaledb")
        execute(server.url, "CREATE TABLE measured (time timestamptz NOT NULL)")
        execute(server.url, "SELECT create_hypertable('measured', by_range('time'))")
        assert execute(server.url, "SHOW timescaledb.telemetry_level") == [("off",)]
