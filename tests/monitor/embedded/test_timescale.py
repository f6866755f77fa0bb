"""TimescaleDB in our own PostgreSQL: looked for where the environment says, and loaded from there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.embedded import PreparationFailed
from monitor.embedded.binaries import PostgresPrograms
from monitor.embedded.postgres import PostgreSQL
from monitor.embedded.servers import EmbeddedServer, needed_servers
from monitor.embedded.timescale import FILES, VARIABLE

from .conftest import ask, supervised

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
has_files = pytest.mark.skipif(
    not os.environ.get(VARIABLE), reason=f"needs TimescaleDB for PostgreSQL 18: set {VARIABLE}"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with files of the names that are looked for, and nothing in them."""
    tmp_path.chmod(0o755)
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def postgres(var: Path, files: Path | str) -> EmbeddedServer:
    named = {VARIABLE: str(files), "REDIS_URL": "redis://elsewhere"}
    return needed_servers(var, named, durable=False)["DATABASE_URL"]


@pytest.mark.parametrize("name", FILES)
def test_a_directory_without_its_files_is_refused_with_what_was_looked_for(
    var: Path, files: Path, name: str
) -> None:
    (files / name).unlink()
    with pytest.raises(PreparationFailed, match=f"there is no {files / name}"):
        postgres(var, files)


@only_root
def test_files_that_the_server_cannot_read_are_refused(var: Path, files: Path) -> None:
    files.chmod(0o700)
    with pytest.raises(PreparationFailed, match=f"runs as the user \\d+ here and cannot read {files}"):
        postgres(var, files)


def test_a_postgresql_that_looks_for_extensions_in_its_own_directories_only_is_refused(
    var: Path, files: Path, tmp_path: Path
) -> None:
    programs = PostgresPrograms(tmp_path)
    programs.postgres.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.4'\n")
    programs.postgres.chmod(0o755)
    with pytest.raises(PreparationFailed, match="expected PostgreSQL 18 or newer"):
        PostgreSQL(var, programs=programs, timescaledb=files)


@has_files
def test_what_the_environment_names_is_loaded_and_tells_nobody_about_it(var: Path) -> None:
    server = postgres(var, os.environ[VARIABLE])
    with supervised(var, server.service()):
        ask(server.url, "CREATE EXTENSION timescaledb")
        ask(server.url, "CREATE TABLE measured (time timestamptz NOT NULL)")
        ask(server.url, "SELECT create_hypertable('measured', by_range('time'))")
        assert ask(server.url, "SHOW timescaledb.telemetry_level") == [("off",)]
