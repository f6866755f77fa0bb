"""/api/v1/failures/episodes: since when a series failed by which cause, and what ended it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Series
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.web.pages.builders import user

URL = "/api/v1/failures/episodes"


@pytest.fixture
def reports(circle: Series) -> list[wire.Report]:
    """Two runs that failed by a full disk, one that failed by an unknown cause, and one that passed."""
    now = timezone.now().replace(microsecond=0)
    full_disk = [failed_circle_report(now - timedelta(minutes=minutes)) for minutes in (5, 4)]
    unknown = failed_circle_report(now - timedelta(minutes=3), message="the cat ate the cable")
    reports = [*full_disk, unknown, circle_report(now - timedelta(minutes=1))]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    classify_runs(now)
    return reports


def test_episodes_come_newest_first_with_what_ended_them(
    admin_client: Client, reports: list[wire.Report]
) -> None:
    newest, oldest = admin_client.get(URL).json()["episodes"]
    assert (newest["signature"], newest["run_count"], newest["is_repaired"]) == ("unknown", 1, True)
    assert (oldest["series"], oldest["signature"], oldest["run_count"]) == ("circle", "disk-full", 2)
    assert (oldest["is_repaired"], oldest["seconds"], oldest["changes"]) == (False, 120, [])
    assert oldest["ended_at"] == newest["began_at"]


@pytest.mark.parametrize(
    ("query", "signatures"),
    [
        ({"signature": "disk-full"}, ["disk-full"]),
        ({"series": "circle", "limit": 1}, ["unknown"]),
        ({"series": "gather"}, []),
        ({"site": "site-of-here", "range": "90d"}, ["unknown", "disk-full"]),
        ({"site": "nowhere"}, []),
    ],
)
def test_a_query_chooses_episodes(
    admin_client: Client, reports: list[wire.Report], query: dict[str, str], signatures: list[str]
) -> None:
    assert [each["signature"] for each in admin_client.get(URL, query).json()["episodes"]] == signatures


def test_an_unknown_signature_is_named(admin_client: Client) -> None:
    answer = admin_client.get(URL, {"signature": "cat-flu"})
    assert answer.status_code == 404
    assert "there is no signature 'cat-flu'" in answer.json()["detail"]


def test_hidden_series_have_no_episodes(client: Client, circle: Series, reports: list[wire.Report]) -> None:
    circle.suite.viewers.add(Group.objects.create(name="others"))
    client.force_login(user("reader"))
    assert client.get(URL).json()["episodes"] == []
