"""The pages of failures: causes by frequency and time, and the runs of one cause."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import resolve
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.signatures.shipped import shipped
from monitor.models import AttributedRun, Attribution, Run
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

FULL = "write failed: No space left on device <b>"


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def failed(grid: Grid, slot: datetime, message: str = FULL) -> Run:
    sent = builders.failed(
        builders.report(grid.circle, slot), "transfer_ring", grid.resources[1].name, message
    )
    return builders.delivered(sent)


def test_without_runs_the_page_says_so(grid: Grid, client: Client) -> None:
    assert "No runs" in text(client, "/failures/")
    assert "No series at site1 ran in this range" in text(client, "/failures/?site=site1")


def test_without_failures_the_page_says_so(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.circle, now)
    shown = text(client, "/failures/")
    assert "No failures" in shown
    assert "100" in shown


def test_each_cause_has_its_title_category_counts_and_intervals(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.passed(grid.circle, now - timedelta(minutes=3))
    for minutes in (1, 2):
        failed(grid, now - timedelta(minutes=minutes))
    failed(grid, now, "login@x: Permission denied (publickey).")
    classify_runs(now)
    shown = text(client, "/failures/?range=24h")
    assert shown.index("No space left on the device") < shown.index("SSH refuses the login")
    for part in (
        "storage, critical",
        "not counted",
        "25 %",
        "33",
        "failed, from",
        "/failures/causes/disk-full/",
    ):
        assert part in shown, part


def test_a_cause_shows_what_helps_and_its_runs(grid: Grid, client: Client, now: datetime) -> None:
    run = failed(grid, now)
    classify_runs(now)
    shown = text(client, "/failures/causes/disk-full/")
    for part in ("Free space", "counts against the site", f"/runs/{run.pk}/", "transfer_ring", "site2-login"):
        assert part in shown, part
    assert "&lt;b&gt;" in shown
    assert "device <b>" not in shown


def test_times_between_failures_and_to_repair_have_units(grid: Grid, client: Client, now: datetime) -> None:
    for minutes, has_passed in ((50, True), (30, False), (20, True)):
        slot = now - timedelta(minutes=minutes)
        builders.passed(grid.circle, slot) if has_passed else failed(grid, slot)
    classify_runs(now)
    shown = text(client, "/failures/?range=24h")
    assert "20 min <small>1 outage</small>" in shown
    assert "10 min <small>1 repaired</small>" in shown
    assert "10 min <small>1 repaired</small>" in text(client, "/failures/causes/disk-full/?range=24h")


def test_too_few_failures_have_no_means(grid: Grid, client: Client, now: datetime) -> None:
    failed(grid, now)
    classify_runs(now)
    shown = text(client, "/failures/")
    assert "<small>no outage began</small>" in shown
    assert "<small>no outage ended</small>" in shown
    assert "no passed run ended an episode" in text(client, "/failures/causes/disk-full/")


@pytest.mark.parametrize(
    ("by", "parts"),
    [
        ("series", ("/series/circle-ring/", "Between failures", "10 min")),
        ("site", ("?site=site2&amp;range=24h", "site3")),
        ("path", ("site1 → site2", "site3 → site1")),
        ("stage", ("transfer_ring", "cleanup")),
        ("nonsense", ("Failures by series",)),
    ],
)
def test_a_breakdown_has_rates_and_causes(
    grid: Grid, client: Client, now: datetime, by: str, parts: tuple[str, ...]
) -> None:
    builders.passed(grid.circle, now - timedelta(minutes=30))
    failed(grid, now - timedelta(minutes=20))
    builders.passed(grid.circle, now - timedelta(minutes=10))
    classify_runs(now)
    shown = text(client, f"/failures/breakdown/?by={by}&range=24h")
    for part in (
        *parts,
        "67 %",
        "/failures/causes/disk-full/?range=24h",
        f'aria-current="page">{by.capitalize() if by != "nonsense" else "Series"}<',
    ):
        assert part in shown, part


def test_a_breakdown_without_visible_runs_says_so(grid: Grid, client: Client, now: datetime) -> None:
    failed(grid, now)
    grid.circle.suite.viewers.add(Group.objects.create(name="others"))
    for by in ("series", "site", "stage"):
        assert "No run ended" in text(client, f"/failures/breakdown/?by={by}")
    assert "No series of this range has a path" in text(client, "/failures/breakdown/?by=path")
    assert "No series at site4 ran" in text(client, "/failures/breakdown/?by=site&site=site4")


def test_no_signature_has_the_name_of_another_page() -> None:
    views = {resolve(f"/failures/causes/{signature.name}/").url_name for signature in shipped()}
    assert views == {"failure"}


def test_unknown_causes_are_linked(grid: Grid, client: Client, now: datetime) -> None:
    failed(grid, now, "the cat ate the cable")
    classify_runs(now)
    assert "/failures/causes/unknown/" in text(client, "/failures/")
    assert "the cat ate the cable" in text(client, "/failures/causes/unknown/")


def test_failures_that_are_not_classified_yet_are_shown_as_such(
    grid: Grid, client: Client, now: datetime
) -> None:
    failed(grid, now)
    assert "Not classified yet" in text(client, "/failures/")


def test_the_site_and_the_range_choose_the_runs(grid: Grid, client: Client, now: datetime) -> None:
    failed(grid, now - timedelta(days=2))
    classify_runs(now)
    assert "No runs" in text(client, "/failures/?range=24h")
    assert "No space left" in text(client, "/failures/?range=7d&site=site1")
    assert "No series at site4 ran" in text(client, "/failures/?range=7d&site=site4")
    assert "No run of a series at site4 failed" in text(client, "/failures/causes/disk-full/?site=site4")


@pytest.mark.parametrize("query", ["range=never", "site=%00", "site=%F0%9F%98%80&range="])
def test_an_invalid_filter_is_ignored(grid: Grid, client: Client, query: str) -> None:
    text(client, f"/failures/?{query}")


def test_an_unknown_signature_is_not_found(grid: Grid, client: Client) -> None:
    text(client, "/failures/causes/nothing/", status=404)


def test_a_user_sees_only_the_failures_of_visible_series(grid: Grid, client: Client, now: datetime) -> None:
    run = failed(grid, now)
    classify_runs(now)
    grid.circle.suite.viewers.add(Group.objects.create(name="others"))
    assert "No runs" in text(client, "/failures/")
    assert str(run.pk) not in text(client, "/failures/causes/disk-full/")


def test_the_page_of_a_run_names_the_cause_and_what_helps(grid: Grid, client: Client, now: datetime) -> None:
    run = failed(grid, now)
    assert "No space left on the device" not in text(client, f"/runs/{run.pk}/")
    classify_runs(now)
    shown = text(client, f"/runs/{run.pk}/")
    assert "/failures/causes/disk-full/" in shown
    assert "Free space" in shown


def test_the_number_of_queries_does_not_depend_on_the_failures(
    grid: Grid, client: Client, now: datetime, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for minutes in range(6):
        failed(grid, now - timedelta(minutes=minutes), f"{FULL} {minutes}")
    classify_runs(timezone.now())
    with django_assert_max_num_queries(17):
        text(client, "/failures/")


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/failures/?site=", r"<dt>Failed</dt><dd>(\d)</dd>"),
        ("/failures/causes/disk-full/?site=", r"<dt>Failed runs</dt><dd>(\d)</dd>"),
        ("/failures/breakdown/?by=series", r'data-label="Failed">(\d)<'),
    ],
)
def test_causes_and_breakdowns_use_the_time_range_of_all_pages(
    grid: Grid, client: Client, now: datetime, path: str, pattern: str
) -> None:
    for days in (2, 40, 41):
        failed(grid, now - timedelta(days=days))
    classify_runs(now)
    absolute = "&".join(
        f"{name}={now - timedelta(days=n):%Y-%m-%d}" for name, n in (("from", 50), ("to", 30))
    )
    ranges = ("range=7d", absolute, "range=1y")
    shown = [re.findall(pattern, text(client, f"{path}&{query}")) for query in ranges]
    assert shown == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize(("parts", "shown", "has_note"), [(0, 0, False), (50, 50, False), (51, 50, True)])
def test_the_newest_parts_at_fault_are_shown_and_a_note_says_if_there_are_more(
    grid: Grid, client: Client, now: datetime, parts: int, shown: int, has_note: bool
) -> None:
    run = failed(grid, now)
    found = Attribution.objects.bulk_create(
        Attribution(
            kind="site", name=f"site{number}", probability=0.9, failed=3, total=4,
            since=now, latest_at=now, decided_at=now + timedelta(seconds=number), ended_at=now,
        )
        for number in range(parts)
    )  # fmt: skip
    AttributedRun.objects.bulk_create(
        AttributedRun(attribution=part, run=run.pk, slot=run.slot, series=grid.circle) for part in found
    )
    page = text(client, "/failures/?range=24h")
    assert page.count('data-label="Probability"') == shown
    assert ("The newest 50 of this range" in page) == has_note
    assert ("at-fault" in page) == (parts > 0)
