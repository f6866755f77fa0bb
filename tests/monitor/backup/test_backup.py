"""What was backed up is there again, in an empty database, and nothing else is ever touched."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, connections

from monitor.backup import manifest, pg_tools
from monitor.backup.create import DUMP, BackupError, back_up
from monitor.backup.manifest import ManifestError
from monitor.backup.restore import RestoreError, create_database, restore
from monitor.db import server_version
from monitor.db.timescale_extension import create, extension
from monitor.depot.rollups import worker
from monitor.depot.samples.read import history
from monitor.ingest.service import ingest_all
from monitor.models import Metric, RawReport, Run, Series
from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.monitor.depot import databases

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def day(circle: Series, noon: datetime) -> datetime:
    """A day of Circle, hour by hour, rolled up; when it is over."""
    reports = [circle_report(noon + n * HOUR, ring_seconds=1.0 + n) for n in range(24)]
    ingest_all([wire.to_json(one) for one in reports])
    worker.roll_all()
    return noon + 24 * HOUR


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The name of a database that is not there yet, which the depot is in from now on."""
    before = dict(connection.settings_dict)
    name = f"{before['NAME']}_elsewhere"
    yield name
    connections.close_all()
    connection.settings_dict.update(before)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def go(name: str) -> None:
    connections.close_all()
    connection.settings_dict["NAME"] = name


def answers() -> list[object]:
    """What the depot says of the day."""
    ring = Metric.objects.get(name="stage.transfer_ring.seconds")
    points = [(point.time, point.known_at, point.value) for point in history(ring)]
    bodies = [report.body for report in RawReport.objects.order_by("slot")]
    return [points, bodies, list(Run.objects.order_by("slot").values())]


def change(backup: Path, **told: object) -> None:
    """Have its manifest tell something else."""
    file = backup / manifest.FILE
    before = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**before, **told}), encoding="utf-8")


@pytest.mark.usefixtures("depot_engine")
def test_a_backup_is_restored_into_an_empty_database_and_answers_as_before(
    day: datetime, elsewhere: str, tmp_path: Path
) -> None:
    before = answers()
    made = back_up(tmp_path / "backup", day, jobs=2)
    assert made.samples == {"2026-03": 24 * 8}
    assert made.rows["monitor_rawreport"] == made.rows["monitor_run"] == 24
    go(elsewhere)
    create_database()
    assert restore(tmp_path / "backup", jobs=2) == made
    assert answers() == before
    assert made.ledger["missing"] + made.ledger["doubled"] == 0
    with pytest.raises(RestoreError, match="is not empty: it has"):
        restore(tmp_path / "backup")


@pytest.fixture
def of_timescale(day: datetime, tmp_path: Path) -> Iterator[Path]:
    """A backup of a depot with TimescaleDB."""
    with databases.copy():
        call_command("depot", "migrate-to-timescale", stdout=io.StringIO(), stderr=io.StringIO())
        back_up(tmp_path / "backup", day)
        yield tmp_path / "backup"


def test_a_database_may_have_timescaledb_from_its_template(of_timescale: Path, elsewhere: str) -> None:
    go(elsewhere)
    create_database()
    create()
    assert restore(of_timescale).timescaledb == extension().installed


def test_a_backup_of_another_timescaledb_is_refused(of_timescale: Path, elsewhere: str) -> None:
    change(of_timescale, timescaledb="2.20.99")
    go(elsewhere)
    create_database()
    with pytest.raises(RestoreError, match=r"is of TimescaleDB 2\.20\.99, and here it is 2\."):
        restore(of_timescale)
    assert extension().installed is None


@pytest.fixture
def cut_short(day: datetime, elsewhere: str, tmp_path: Path) -> None:
    """A backup whose end is missing, and an empty database."""
    back_up(tmp_path / "backup", day)
    for packed in (tmp_path / "backup" / DUMP).glob("*.gz"):
        packed.write_bytes(packed.read_bytes()[:-9])
    go(elsewhere)
    create_database()


@pytest.mark.usefixtures("cut_short")
def test_one_job_restores_all_or_nothing(tmp_path: Path) -> None:
    if manifest.read(tmp_path / "backup").timescaledb is not None:
        pytest.skip("not so with TimescaleDB, whose dumps are restored piece by piece")
    for _ in range(2):  # the second time as if there had been no first
        with pytest.raises(pg_tools.DumpError):
            restore(tmp_path / "backup")


@pytest.mark.usefixtures("cut_short")
def test_a_part_that_is_left_behind_is_said(elsewhere: str, tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match=f"A part of it may be in the database {elsewhere}: drop it first"):
        restore(tmp_path / "backup", jobs=2)


def test_what_is_there_is_never_overwritten(day: datetime, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    with pytest.raises(BackupError, match="backup is there already"):
        back_up(tmp_path / "backup", day)
    with pytest.raises(BackupError, match="no directory"):
        back_up(tmp_path / "nowhere" / "backup", day)


def test_a_place_that_cannot_be_looked_at_is_said_in_a_line(day: datetime, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match=r"cannot write .*: \[Errno 36\]"):
        back_up(tmp_path / ("x" * 300), day)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Where a pg_dump is that writes down how it was called, and fails."""
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
        back_up(tmp_path / "backup", day, programs=[programs])
    assert not [one for one in tmp_path.iterdir() if "backup" in one.name]


def test_no_password_is_on_a_command_line(day: datetime, tmp_path: Path, programs: Path) -> None:
    before = connection.settings_dict["PASSWORD"]
    connection.settings_dict["PASSWORD"] = "open-sesame"
    try:
        with pytest.raises(pg_tools.DumpError):
            back_up(tmp_path / "backup", day, programs=[programs])
    finally:
        connection.settings_dict["PASSWORD"] = before
    assert "open-sesame" not in (programs / "called").read_text(encoding="utf-8")
    assert (programs / "password").read_text(encoding="utf-8") == "open-sesame\n"


def test_a_program_that_is_older_than_the_server_is_not_used(programs: Path) -> None:
    with pytest.raises(pg_tools.DumpError, match=r"pg_dump of PostgreSQL 100 or newer.*pg_dump \(99\)"):
        pg_tools.find("pg_dump", least=100, directories=[programs])
    assert pg_tools.find("pg_dump", least=server_version.major()).major >= server_version.major()


def test_what_is_no_backup_is_not_restored(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="is no backup"):
        restore(tmp_path)
    (tmp_path / manifest.FILE).write_text(json.dumps({"version": 2}), encoding="utf-8")
    with pytest.raises(ManifestError, match="expected a backup of version 1, got version 2"):
        restore(tmp_path)


def test_a_backup_that_lacks_something_is_found_out(day: datetime, elsewhere: str, tmp_path: Path) -> None:
    back_up(tmp_path / "backup", day)
    rows = manifest.read(tmp_path / "backup").rows
    change(tmp_path / "backup", rows={**rows, "monitor_run": rows["monitor_run"] + 1})
    go(elsewhere)
    create_database()
    with pytest.raises(RestoreError, match="rows of monitor_run: expected 25, got 24"):
        restore(tmp_path / "backup")
