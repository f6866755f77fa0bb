"""/api/v1/failures: failed runs with causes, counts, and signatures."""

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

URL = "/api/v1/failures"


@pytest.fixture
def runs(circle: Series) -> list[wire.Report]:
    """A run that failed by a full disk, a newer one by an unknown cause, and one that passed."""
    now = timezone.now().replace(microsecond=0)
    reports = [
        failed_circle_report(now - timedelta(minutes=3)),
        failed_circle_report(now - timedelta(minutes=2), message="the cat ate the cable"),
        circle_report(now - timedelta(minutes=1)),
    ]
    receipts = ingest_all([wire.to_json(report) for report in reports])
    assert all(receipt.accepted for receipt in receipts)
    classify_runs(now)
    return reports


def test_failed_runs_come_newest_first_with_their_causes(
    admin_client: Client, runs: list[wire.Report]
) -> None:
    newest, older = admin_client.get(URL).json()["failures"]
    assert (newest["run"], newest["signature"]) == (str(runs[1].run), "unknown")
    assert older == {
        "run": str(runs[0].run),
        "series": "circle",
        "slot": older["slot"],
        "state": "failed",
        "stage": "transfer_ring",
        "failed_resource": "there",
        "reason": "transfer_ring at there failed: No space left on device",
        "signature": "disk-full",
    }


@pytest.mark.parametrize(
    ("query", "signatures"),
    [
        ({"signature": "disk-full"}, ["disk-full"]),
        ({"category": "storage"}, ["disk-full"]),
        ({"category": "user"}, []),
        ({"site": "site-of-here"}, ["unknown", "disk-full"]),
        ({"site": "nowhere"}, []),
        ({"series": "circle", "limit": 1}, ["unknown"]),
        ({"series": "gather"}, []),
        ({"end": "2000-01-01T00:00:00Z"}, []),
        ({"start": "2000-01-01T00:00:00Z"}, ["unknown", "disk-full"]),
    ],
)
def test_a_query_chooses_failures(
    admin_client: Client, runs: list[wire.Report], query: dict[str, str], signatures: list[str]
) -> None:
    assert [each["signature"] for each in admin_client.get(URL, query).json()["failures"]] == signatures


@pytest.mark.parametrize(
    "query",
    [
        {"category": "cat"},
        {"limit": 0},
        {"limit": 1001},
        {"start": "yesterday"},
        {"start": "2026-03-01T00:00:00"},
    ],
)
def test_an_invalid_query_is_refused(admin_client: Client, query: dict[str, str]) -> None:
    answer = admin_client.get(URL, query)
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"


def test_counts_have_rates_and_causes_by_interval(admin_client: Client, runs: list[wire.Report]) -> None:
    counts = admin_client.get(f"{URL}/counts", {"range": "30d"}).json()
    assert (counts["passed"], counts["failed"], counts["excused"]) == (1, 2, 0)
    assert counts["raw_success_rate"] == pytest.approx(1 / 3)
    assert counts["interval_seconds"] == 86400
    assert {cause["signature"]: sum(cause["by_interval"]) for cause in counts["causes"]} == {
        "disk-full": 1,
        "unknown": 1,
    }


def test_counts_have_mean_times(admin_client: Client, runs: list[wire.Report]) -> None:
    counts = admin_client.get(f"{URL}/counts").json()
    assert (counts["outages"], counts["mean_between_failures_seconds"]) == (0, None)
    assert (counts["repairs"], counts["mean_to_repair_seconds"]) == (1, 120)


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        ("series", [("circle", 1, 2, 120)]),
        ("site", [("site-of-there", 1, 2, None), ("site-of-here", 1, 0, None)]),
        (
            "path",
            [("site-of-here → site-of-there", 1, 2, None), ("site-of-there → site-of-here", 1, 2, None)],
        ),
    ],
)
def test_a_breakdown_has_rows(
    admin_client: Client, runs: list[wire.Report], by: str, rows: list[tuple[str, int, int, float | None]]
) -> None:
    answer = admin_client.get(f"{URL}/breakdown", {"by": by}).json()
    assert [
        (row["name"], row["passed"], row["failed"], row["mean_to_repair_seconds"]) for row in answer["rows"]
    ] == rows
    assert answer["more"] == 0
    assert answer["rows"][0]["raw_success_rate"] == pytest.approx(1 / 3)


def test_a_breakdown_by_stage_has_the_most_frequent_cause(
    admin_client: Client, runs: list[wire.Report]
) -> None:
    worst, *others = admin_client.get(f"{URL}/breakdown", {"by": "stage"}).json()["rows"]
    assert (worst["name"], worst["cause_runs"]) == ("transfer_ring", 1)
    assert worst["cause"] in {"disk-full", "unknown"}
    assert {row["adjusted_success_rate"] for row in others} == {1}


@pytest.mark.parametrize("query", [{}, {"by": "colour"}, {"by": "site", "range": "1y"}])
def test_an_invalid_breakdown_is_refused(admin_client: Client, query: dict[str, str]) -> None:
    assert admin_client.get(f"{URL}/breakdown", query).status_code == 422


def test_hours_have_runs_and_failed_runs(admin_client: Client, runs: list[wire.Report]) -> None:
    hours = admin_client.get(f"{URL}/by-hour").json()["hours"]
    assert (sum(each["run_count"] for each in hours), sum(each["failed"] for each in hours)) == (3, 2)
    assert {(each["weekday"], each["hour"]) for each in hours} == {
        (report.slot.isoweekday(), report.slot.hour) for report in runs
    }


def test_counts_without_runs_have_no_rates(admin_client: Client) -> None:
    counts = admin_client.get(f"{URL}/counts").json()
    assert (counts["raw_success_rate"], counts["adjusted_success_rate"], counts["causes"]) == (None, None, [])


def test_signatures_have_what_a_user_needs(admin_client: Client, runs: list[wire.Report]) -> None:
    by_name = {
        each["name"]: each for each in admin_client.get(f"{URL}/signatures?limit=1000").json()["signatures"]
    }
    assert by_name["disk-full"]["category"] == "storage"
    assert by_name["disk-full"]["counts_against_site"] is True
    assert "Free space" in by_name["disk-full"]["help"]
    assert "unknown" in by_name


def test_hidden_series_have_no_failures(client: Client, circle: Series, runs: list[wire.Report]) -> None:
    circle.suite.viewers.add(Group.objects.create(name="others"))
    client.force_login(user("reader"))
    assert client.get(URL).json()["failures"] == []
    assert client.get(f"{URL}/counts").json()["failed"] == 0
    assert client.get(f"{URL}/breakdown", {"by": "site"}).json() == {"rows": [], "more": 0}
    assert client.get(f"{URL}/by-hour").json()["hours"] == []
