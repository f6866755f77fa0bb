"""The embedded PostgreSQL: start, stop, kill, deep and closed directories, as root and as another user."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from monitor.operations.embedded import NotOurs, PreparationFailed, ProgramNotFound, places
from monitor.operations.embedded.binaries import PostgresPrograms, postgres_programs, valkey_program
from monitor.operations.embedded.clean import clean
from monitor.operations.embedded.postgres import PostgreSQL
from monitor.operations.supervisor import read_status
from tests.ordinary_user import NOBODY, environment_for_nobody, only_root, python_for_nobody
from tests.waiting import eventually

from .conftest import execute, supervised

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def used_var(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory with data, for tests that leave them as they are: creating data takes a second."""
    directory = tmp_path_factory.mktemp("used") / "var"
    PostgreSQL(directory, durable=False).prepare()
    yield directory
    clean(directory)


def test_a_second_start_continues_with_the_data_of_the_first(used_var: Path) -> None:
    server = PostgreSQL(used_var, durable=False)
    with supervised(used_var, server.service()):
        execute(server.url, "CREATE TABLE written AS SELECT 42 AS answer")
    second = PostgreSQL(used_var, durable=False)
    with supervised(used_var, second.service()):
        assert execute(second.url, "SELECT answer FROM written") == [(42,)]


def test_after_a_kill_with_open_sessions_it_restarts_with_the_committed_data(var: Path) -> None:
    server = PostgreSQL(var)
    with (
        supervised(var, server.service()) as supervisor,
        contextlib.closing(psycopg.connect(server.url)) as session,
    ):
        execute(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
        session.execute("SELECT 1")
        status = read_status(var / "run" / "supervisor.json")
        assert status is not None
        os.kill(status.services["postgres"].pid or 0, signal.SIGKILL)
        assert eventually(lambda: answer_of(server)) == [(42,)]
        supervisor.wait_until_up(0)
    assert "database system was not properly shut down" in (var / "log" / "postgres.log").read_text()


def answer_of(server: PostgreSQL) -> list[tuple[object, ...]]:
    """Return the stored row; nothing while the server is down."""
    try:
        return execute(server.url, "SELECT answer FROM kept")
    except psycopg.OperationalError:
        return []


@pytest.mark.nightly
def test_incomplete_data_are_replaced(var: Path) -> None:
    first = PostgreSQL(var, durable=False)
    first.prepare()
    data = (var / "postgres").resolve()
    draft = data.with_name("postgres.draft")
    data.rename(draft)
    (draft / "PG_VERSION").unlink()
    server = PostgreSQL(var, durable=False)
    with supervised(var, server.service()):
        assert execute(server.url, "SELECT current_database()") == [("gridcast",)]
    assert not draft.exists()


@pytest.mark.nightly
def test_a_pid_file_with_the_pid_of_another_process_does_not_prevent_the_start(used_var: Path) -> None:
    server = PostgreSQL(used_var, durable=False)
    server.prepare()
    (used_var / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{used_var}\n0\n5432\n")
    with supervised(used_var, server.service()):
        assert execute(server.url, "SELECT 1") == [(1,)]


@pytest.mark.nightly
def test_the_state_directory_may_be_longer_than_a_socket_path(tmp_path: Path) -> None:
    var = tmp_path / ("deep" * 20) / ("er" * 30) / "var"
    server = PostgreSQL(var, durable=False)
    try:
        with supervised(var, server.service()):
            assert execute(server.url, "SELECT 1") == [(1,)]
    finally:
        clean(var)


def test_it_listens_only_on_a_socket_in_a_private_directory(used_var: Path) -> None:
    server = PostgreSQL(used_var, durable=False)
    with supervised(used_var, server.service()):
        assert execute(server.url, "SHOW listen_addresses") == [("",)]
        sockets = places.socket_directory(used_var) / "postgres"
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        assert execute(server.url, "SHOW unix_socket_directories") == [(str(sockets),)]
        assert execute(server.url, "SHOW fsync") == [("off",)]


@only_root
def test_in_a_closed_directory_root_keeps_the_data_elsewhere_and_clean_removes_them(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    var = tmp_path / "var"
    server = PostgreSQL(var, durable=False)
    with supervised(var, server.service()):
        data = (var / "postgres").resolve()
        assert data.is_relative_to(places.RELOCATED)
        assert data.stat().st_uid != 0
        assert execute(server.url, "SELECT 1") == [(1,)]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700  # the permissions were not widened
    clean(var)
    assert not data.parent.exists()
    assert not places.socket_directory(var).exists()
    assert not var.exists()


@only_root
@pytest.mark.nightly
def test_a_copied_checkout_does_not_share_the_data_of_the_original(tmp_path: Path, var: Path) -> None:
    tmp_path.chmod(0o700)
    PostgreSQL(var, durable=False).prepare()
    original = (var / "postgres").resolve()
    copy = tmp_path / "copy"
    shutil.copytree(var, copy, symlinks=True)
    PostgreSQL(copy, durable=False).prepare()
    assert (copy / "postgres").resolve() != original
    clean(copy)
    assert original.is_dir()


@only_root
@pytest.mark.nightly
def test_programs_that_the_servers_user_cannot_reach_are_copied(tmp_path: Path, var: Path) -> None:
    installed = postgres_programs()
    if installed.package is None:
        pytest.skip("every user can reach the distribution's programs")
    closed = tmp_path / "closed"
    for tree in (installed.package, installed.package.with_name(f"{installed.package.name}.libs")):
        shutil.copytree(tree, closed / tree.name)
    closed.chmod(0o700)
    package = closed / installed.package.name
    programs = PostgresPrograms(package / installed.directory.relative_to(installed.package), package)
    server = PostgreSQL(var, durable=False, programs=programs)
    with supervised(var, server.service()):
        assert execute(server.url, "SELECT 1") == [(1,)]
    assert server.service().argv[0].startswith(str(places.RELOCATED))


AS_ORDINARY_USER = """
    import os, shutil, sys
    from pathlib import Path
    from monitor.operations.embedded import places
    from monitor.operations.embedded.postgres import PostgreSQL
    from monitor.operations.supervisor import Supervisor, read_status
    var = Path(sys.argv[1])
    server = PostgreSQL(var, durable=False)
    status_file = var / "run" / "supervisor.json"
    with Supervisor([server.service()], status_file=status_file, log_dir=var).running(up_within_seconds=300):
        assert server.ready()
        pid = read_status(status_file).services["postgres"].pid
        print(os.stat(f"/proc/{pid}").st_uid, (var / "postgres").is_symlink())
    shutil.rmtree(places.socket_directory(var))
"""


@only_root
def test_an_ordinary_user_runs_it_under_the_same_account() -> None:
    with tempfile.TemporaryDirectory(prefix="gridcast-test-", dir=places.SOCKETS) as home:
        os.chown(home, NOBODY, NOBODY)
        done = subprocess.run(
            [python_for_nobody(), "-c", textwrap.dedent(AS_ORDINARY_USER), str(Path(home) / "var")],
            cwd=ROOT,
            env=environment_for_nobody(),
            capture_output=True,
            text=True,
            check=False,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
    assert done.stdout.split() == [str(NOBODY), "False"], done.stderr


def test_data_of_another_major_version_are_refused_with_both_versions(used_var: Path) -> None:
    server = PostgreSQL(used_var, durable=False)
    version = used_var / "postgres" / "PG_VERSION"
    before = version.read_text()
    version.write_text("9\n")
    try:
        with pytest.raises(
            PreparationFailed,
            match=r"created by PostgreSQL 9, but the programs here are postgres \(PostgreSQL\) \d+",
        ):
            server.prepare()
    finally:
        version.write_text(before)


def test_a_directory_without_a_database_is_not_overwritten(used_var: Path) -> None:
    server = PostgreSQL(used_var, durable=False)
    version = (used_var / "postgres").resolve() / "PG_VERSION"
    elsewhere = version.rename(used_var / "PG_VERSION")
    try:
        with pytest.raises(PreparationFailed, match="is not a database; move it away"):
            server.prepare()
        assert (version.parent / "base").is_dir()
    finally:
        elsewhere.rename(version)


def test_a_symlink_in_place_of_the_socket_directory_is_refused(var: Path, tmp_path: Path) -> None:
    server = PostgreSQL(var, durable=False)
    planted = places.socket_directory(var)
    planted.symlink_to(tmp_path)
    try:
        with pytest.raises(NotOurs, match="not a directory that only this user can write to"):
            server.prepare()
    finally:
        planted.unlink()


def test_a_socket_directory_that_others_can_write_to_is_refused(var: Path) -> None:
    server = PostgreSQL(var, durable=False)
    opened = places.socket_directory(var)
    opened.mkdir()
    opened.chmod(0o777)
    with pytest.raises(NotOurs, match="drwxrwxrwx"):
        server.prepare()


def test_the_error_without_programs_names_the_packages_and_variables() -> None:
    missing = PostgresPrograms(Path("/nonexistent"))
    with pytest.raises(ProgramNotFound, match=r"package postgresql .* DATABASE_URL="):
        postgres_programs([missing])
    with pytest.raises(ProgramNotFound, match=r"package valkey-server .* REDIS_URL="):
        valkey_program([Path("/nonexistent")])
