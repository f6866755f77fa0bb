"""A full disk: reports are refused while only the reserve is left, none is lost or stored in part, and they
are accepted again when there is space."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client
from django.utils import timezone
from psycopg import sql
from pytest_django.plugin import DjangoDbBlocker

from monitor import health
from monitor.core.env import parse_database_url
from monitor.models import ApiToken, Heartbeat, RawReport, Reporter, Run, Sample
from monitor.models.reporter import HOME
from monitor.models.token import REPORT
from monitor.operations.embedded.throwaway import throwaway
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.disk_guard import RETRY_SECONDS, DepotFull, gauge
from monitor.runs.ingest.service import ingest_all
from monitor.runs.ledger import heartbeats
from monitor.runs.worker import deliver_spool
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.databases import in_postgres, using_settings
from tests.monitor.builders import circle_report

MIB = 1024**2
DISK_BYTES, RESERVE_BYTES = 96 * MIB, 16 * MIB
MINUTE = timedelta(minutes=1)
METRICS = 8


class Disk:
    """A small disk with a file that can fill it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ballast = directory / "ballast"

    def fill(self, leave_bytes: int) -> None:
        """Fill the disk in pieces, as the server writes at the same time."""
        taken = 0
        with self._ballast.open("wb") as ballast, contextlib.suppress(OSError):
            while (more := min(self._free_bytes() - leave_bytes, MIB)) > 0:
                os.posix_fallocate(ballast.fileno(), taken, more)
                taken += more
        gauge.reset()

    def _free_bytes(self) -> int:
        disk = os.statvfs(self.directory)
        return disk.f_bavail * disk.f_frsize

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)
        gauge.reset()


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Mount a small disk in memory."""
    directory = Path(tempfile.mkdtemp(prefix="gridcast-disk-"))
    size = f"size={DISK_BYTES}"
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", size, "tmpfs", directory],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no program mount")
    if mounted.returncode:
        pytest.skip(f"only root may mount a small disk: {mounted.stderr.strip()}")
    try:
        directory.chmod(0o755)
        yield Disk(directory)
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def empty_depot(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Migrate a depot on a server of its own, and yield its URL.

    Sessions share buffers: on the server of the tests, another test that evicts a page of the full disk
    would fail.
    """
    directory = tmp_path_factory.mktemp("server")
    directory.chmod(0o755)  # as root, PostgreSQL runs as another user
    with throwaway(directory / "var", {"REDIS_URL": "unused"}) as servers:
        url = servers["DATABASE_URL"]
        with django_db_blocker.unblock(), using_settings(parse_database_url(url)):
            call_command("migrate", verbosity=0)
        yield url


@pytest.fixture
def depot_on_it(
    disk: Disk, empty_depot: str, transactional_db: None, settings: LazySettings
) -> Iterator[Disk]:
    """Copy the empty depot to that disk; its write-ahead log stays where it was."""
    with using_settings(parse_database_url(empty_depot)):
        with connection.cursor() as cursor:
            cursor.execute("SHOW data_directory")
            (data,) = cursor.fetchone()
        place = disk.directory / "data"
        place.mkdir()
        os.chown(place, Path(data).stat().st_uid, -1)
        original, name = sql.Identifier(str(connection.settings_dict["NAME"])), sql.Identifier("small")
        connections.close_all()
        in_postgres("CREATE TABLESPACE small LOCATION {}", sql.Literal(str(place)))
        in_postgres("CREATE DATABASE {} TEMPLATE {} TABLESPACE small", name, original)
        settings.GRIDCAST_DEPOT_DIRECTORY = disk.directory
        settings.GRIDCAST_DEPOT_RESERVE_BYTES = RESERVE_BYTES
        gauge.reset()
        try:
            with using_settings({"NAME": "small"}):
                yield disk
        finally:
            disk.free()  # DROP DATABASE writes a checkpoint; a failed one leaves unwritable pages behind
            in_postgres("DROP DATABASE {} WITH (FORCE)", name)
            in_postgres("DROP TABLESPACE small")
            gauge.reset()


@pytest.fixture
def small(depot_on_it: Disk, tmp_path: Path, settings: LazySettings) -> Disk:
    """Define Circle in a depot on a small disk."""
    settings.VAR_DIR = tmp_path
    define(
        [ResourceConfig(name, f"site-of-{name}", str(tmp_path)) for name in ("here", "there")],
        [SeriesDefinition("circle", "circle", {"ring": ["here", "there"]}, {"file_bytes": 1000})],
    )
    return depot_on_it


def bodies(start: datetime, count: int) -> list[bytes]:
    return [wire.to_json(circle_report(start + number * MINUTE)) for number in range(count)]


def send_on(start: datetime, sent: list[list[bytes]]) -> None:
    """Ingest batches of a hundred without end; add each to *sent* before."""
    while True:
        sent.append(bodies(start + 100 * len(sent) * MINUTE, 100))
        assert all(receipt.accepted for receipt in ingest_all(sent[-1]))


def reporter() -> Client:
    user = User.objects.create_user("reporter")
    user.user_permissions.add(Permission.objects.get(codename="add_rawreport"))
    token = ApiToken.objects.issue(user, "program", [REPORT], Reporter.objects.get(name=HOME))
    return Client(headers={"authorization": f"Bearer {token}"})


def test_reports_are_refused_at_the_reserve_and_accepted_again_with_space(
    small: Disk, noon: datetime
) -> None:
    client, (body,) = reporter(), bodies(noon, 1)
    small.fill(leave_bytes=RESERVE_BYTES // 2)
    answer = client.post("/api/v1/reports", body, "application/json")
    assert (answer.status_code, answer["Retry-After"]) == (507, str(RETRY_SECONDS))
    assert answer.json()["code"] == "depot_full"
    assert not Run.objects.exists()
    heartbeats.record("beat", timezone.now())  # the ledger may use the reserve
    assert Heartbeat.objects.filter(name="beat").exists()
    assert any("Reports are refused" in problem.text for problem in health.problems(timezone.now()))
    small.free()
    assert client.post("/api/v1/reports", body, "application/json").status_code == 200
    assert not [problem for problem in health.problems(timezone.now()) if problem.component == "depot"]


def test_the_home_reporter_keeps_reports_until_there_is_space(small: Disk, noon: datetime) -> None:
    small.fill(leave_bytes=RESERVE_BYTES // 2)
    report = circle_report(noon)
    deliver_spool.spool_report(report)
    assert deliver_spool.deliver() == 0
    assert deliver_spool.spooled_among([report.run]) == {report.run}
    small.free()
    assert deliver_spool.deliver() == 1
    assert RawReport.objects.count() == 1


@pytest.mark.nightly
def test_a_completely_full_disk_loses_no_report_and_stores_none_in_part(
    small: Disk, noon: datetime, settings: LazySettings
) -> None:
    settings.GRIDCAST_DEPOT_RESERVE_BYTES = -1
    settings.GRIDCAST_DEPOT_DIRECTORY = None  # only PostgreSQL knows the free space
    small.fill(leave_bytes=MIB)
    sent: list[list[bytes]] = []
    with pytest.raises(DepotFull, match="the disk of the depot is full"):
        send_on(noon, sent)
    small.free()  # a query may have to write pages of other transactions before it can read
    stored = Run.objects.count()
    assert stored == 100 * (len(sent) - 1)
    assert RawReport.objects.count() == stored
    assert Sample.objects.count() == stored * METRICS
    assert [(receipt.accepted, receipt.duplicate) for receipt in ingest_all(sent[-1])] == [
        (True, False)
    ] * 100
    assert Sample.objects.count() == (stored + 100) * METRICS
