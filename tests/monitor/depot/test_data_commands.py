"""``manage.py depot backup | restore | retain | reparse``: their output and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.core.db import partitions
from monitor.models import Correction, RawReport, Sample, Series
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report

pytestmark = pytest.mark.django_db(transaction=True)


def depot(*arguments: str | Path) -> str:
    output = StringIO()
    call_command("depot", *map(str, arguments), stdout=output, stderr=StringIO())
    return output.getvalue()


@pytest.fixture
def months(circle: Series, noon: datetime) -> Iterator[datetime]:
    """Store a Circle run of 90 days ago and one of today; return the time now."""
    now = timezone.now().replace(microsecond=0)
    reports = [circle_report(now - timedelta(days=age, hours=1)) for age in (90, 0)]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    yield now
    partitions.create_for([noon])  # retention dropped the partition that other tests use


def test_reports_of_an_older_parser_version_are_reparsed(months: datetime) -> None:
    RawReport.objects.update(parsed_by=0)
    Sample.objects.filter(metric__name="total.seconds").update(value=1.0)
    output = "2 reports {} again; samples: 2 changed, 0 added, 0 removed\n"
    assert depot("reparse", "--dry-run") == output.format("would be parsed")
    assert not Correction.objects.exists()
    assert depot("reparse", "--series", "circle", "--since", "2020-01-01T00:00Z") == output.format("parsed")
    assert Correction.objects.count() == 2
    assert depot("reparse").startswith("0 reports")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reparse", "--series", "square"], "there is no series 'square'"),
        (["reparse", "--since", "yesterday"], "--since: expected a time such as 2026-03-01T00:00Z"),
        (["restore", "/nowhere"], "/nowhere is no backup: cannot read its manifest.json"),
        (["backup", "/nowhere/backup"], "there is no directory /nowhere"),
    ],
)
def test_a_command_that_fails_says_why(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        depot(*arguments)


def test_backup_prints_the_counts_of_the_backup(months: datetime, tmp_path: Path) -> None:
    output = depot("backup", tmp_path / "backup")
    assert output.startswith(f"{tmp_path / 'backup'}: 2 runs, 2 reports and 16 samples as of ")
    with pytest.raises(CommandError, match="is not empty"):
        depot("restore", tmp_path / "backup")
