"""A backup restores into an empty database with everything it held, and overwrites nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, connections

from monitor.core.db import server_version
from monitor.core.db.timescale_extension import create, extension
from monitor.depot.samples.read import history
from monitor.models import Metric, RawReport, Run, Series
from monitor.operations.backup import manifest, pg_tools
from monitor.operations.backup.create import DUMP, BackupError, back_up
from monitor.operations.backup.manifest import ManifestError
from monitor.operations.backup.restore import RestoreError, create_database, restore
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.depot import databases
from tests.rollups import roll_all

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def day(circle: Series, noon: datetime) -> datetime:
    """Store a day of hourly Circle runs and its rollups; return the end of the day."""
    reports = [circle_report(noon + n * HOUR, ring_seconds=1.0 + n) for n in range(24)]
    ingest_all([wire.to_json(report) for report in reports])
    roll_all()
    return noon + 24 * HOUR


@pytest.fixture
def other_database() -> Iterator[str]:
    """Return the name of a database that does not exist yet; drop it afterwards."""
    before = dict(connection.settings_dict)
    name = f"{before['NAME']}_other_database"
    yield name
    connections.close_all()
    connection.settings_dict.update(before)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def use_database(name: str) -> None:
    connections.close_all()
    connection.settings_dict["NAME"] = name


def depot_contents() -> list[object]:
    """Return the day's values, raw reports and runs."""
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    points = [(point.time, point.known_at, point.value) for point in history(ring)]
    bodies = [report.body for report in RawReport.objects.order_by("slot")]
    return [points, bodies, list(Run.objects.order_by("slot").values())]


def edit_manifest(backup: Path, **fields: object) -> None:
    file = backup / manifest.FILE
    before = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**before, **fields}), encoding="utf-8")


@pytest.mark.usefixtures("depot_engine")
def test_a_backup_restores_into_an_empty_database_and_gives_the_same_answers(
    day: datetime, other_database: str, tmp_path: Path
) -> None:
    before = depot_contents()
    written = back_up(tmp_path / "backup", day, jobs=2)
    assert written.samples == {"2026-03": 24 * 8}
    assert written.rows["monitor_rawreport"] == written.rows["monitor_run"] == 24
    use_database(other_database)
    create_database()
    assert restore(tmp_path / "backup", jobs=2) == written
    assert depot_contents() == before
    assert written.ledger["missing"] + written.ledger["doubled"] == 0
    with pytest.raises(RestoreError, match="is not empty: it has"):
        restore(tmp_path / "backup")


@pytest.fixture
def timescale_backup(day: datetime, tmp_path: Path) -> Iterator[Path]:
    """Back up a depot on TimescaleDB."""
    with databases.copy():
        call_command("depot", "migrate-to-timescale", stdout=io.StringIO(), stderr=io.StringIO())
        back_up(tmp_path / "backup", day)
        yield tmp_path / "backup"


def test_a_backup_restores_where_the_template_installed_timescaledb(
    timescale_backup: Path, other_database: str
) -> None:
    use_database(other_database)
    create_database()
    create()
    assert restore(timescale_backup).timescaledb == extension().installed


def test_a_backup_of_another_timescaledb_version_is_refused(
    timescale_backup: Path, other_database: str
) -> None:
    edit_manifest(timescale_backup, timescaledb="2.20.99")
    use_database(other_database)
    create_database()
    with pytest.raises(RestoreError, match=r"needs TimescaleDB 2\.20\.99, and this server has 2\."):
        restore(timescale_backup)
    assert extension().installed is None


@pytest.fixture
def truncated_backup(day: datetime, other_database: str, tmp_path: Path) -> None:
    """Make a backup whose files are truncated, and an empty database."""
    back_up(tmp_path / "backup", day)
    for packed in (tmp_path / "backup" / DUMP).glob("*.gz"):
        packed.write_bytes(packed.read_bytes()[:-9])
    use_database(other_database)
    create_database()


@pytest.mark.usefixtures("truncated_backup")
def test_one_job_restores_all_or_nothing(tmp_path: Path) -> None:
    if manifest.read(tmp_path / "backup").timescaledb is not None:
        pytest.skip("dumps of TimescaleDB are not restored in one transaction")
    for _ in range(2):  # the second attempt finds the database empty
        with pytest.raises(pg_tools.DumpError):
            restore(tmp_path / "backup")


@pytest.mark.usefixtures("truncated_backup")
def test_a_failed_parallel_restore_says_that_a_part_is_left(other_database: str, tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match=f"{other_database} may hold a part of the backup: drop it first"):
        restore(tmp_path / "backup", jobs=2)


def test_a_backup_never_overwrites_a_directory(day: datetime, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    with pytest.raises(BackupError, match="backup exists already"):
        back_up(tmp_path / "backup", day)
    with pytest.raises(BackupError, match="no directory"):
        back_up(tmp_path / "nowhere" / "backup", day)


def test_an_unwritable_target_is_reported_in_one_line(day: datetime, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"cannot write .*: \[Errno 36\]"):
        back_up(tmp_path / ("x" * 300), day)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Install a pg_dump that records its arguments and fails."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "pg_dump").write_text(
        '#!/bin/sh\ncase "$1" in --version) echo "pg_dump (PostgreSQL) 99.1"; exit;; esac\n'
        f'echo "$@" > {directory}/called; echo "$PGPASSWORD" > {directory}/password\n'
        'echo "pg_dump: error: no more room" >&2; exit 1\n',
        encoding="utf-8",
    )
    (directory / "pg_dump").chmod(0o755)
    return directory


def test_a_backup_that_fails_leaves_nothing(day: datetime, tmp_path: Path, programs: Path) -> None:
    with pytest.raises(
        pg_tools.DumpError, match=r"pg_dump on \S+ ended with 1: pg_dump: error: no more room"
    ):
        back_up(tmp_path / "backup", day, directories=[programs])
    assert not [path for path in tmp_path.iterdir() if "backup" in path.name]


def test_the_password_is_not_on_the_command_line(day: datetime, tmp_path: Path, programs: Path) -> None:
    before = connection.settings_dict["PASSWORD"]
    connection.settings_dict["PASSWORD"] = "open-sesame"
    try:
        with pytest.raises(pg_tools.DumpError):
            back_up(tmp_path / "backup", day, directories=[programs])
    finally:
        connection.settings_dict["PASSWORD"] = before
    assert "open-sesame" not in (programs / "called").read_text(encoding="utf-8")
    assert (programs / "password").read_text(encoding="utf-8") == "open-sesame\n"


def test_a_program_older_than_the_server_is_not_used(programs: Path) -> None:
    with pytest.raises(pg_tools.DumpError, match=r"pg_dump of PostgreSQL 100 or newer.*pg_dump \(99\)"):
        pg_tools.find("pg_dump", least=100, directories=[programs])
    assert pg_tools.find("pg_dump", least=server_version.major()).major >= server_version.major()


def test_a_directory_without_a_readable_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="is no backup"):
        restore(tmp_path)
    (tmp_path / manifest.FILE).write_text(json.dumps({"version": 2}), encoding="utf-8")
    with pytest.raises(ManifestError, match="expected a backup of version 1, got version 2"):
        restore(tmp_path)


def test_a_restore_that_lacks_rows_is_detected(day: datetime, other_database: str, tmp_path: Path) -> None:
    back_up(tmp_path / "backup", day)
    rows = manifest.read(tmp_path / "backup").rows
    edit_manifest(tmp_path / "backup", rows={**rows, "monitor_run": rows["monitor_run"] + 1})
    use_database(other_database)
    create_database()
    with pytest.raises(RestoreError, match="rows of monitor_run: expected 25, got 24"):
        restore(tmp_path / "backup")
