"""Lists: pages without an end, cursors, filters and sparse fields."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.models import ApiToken, Run, Series
from monitor.models.run import State
from monitor.models.token import READ
from monitor.web.api.http.lists import SPARSE_JSON
from monitor.web.api.http.schemas import parse_time
from reporters.report import run_id

URL = "/api/v1/runs"
COUNT = 25


@pytest.fixture
def client(db: None) -> Client:
    token = ApiToken.objects.issue(User.objects.create_superuser("scheduler"), "scheduler", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def runs(circle: Series, noon: datetime) -> list[Run]:
    """Runs of twelve hours, two of each slot, newest first."""
    twin = Series.objects.get(pk=circle.pk)
    twin.pk, twin.name = None, "twin"
    twin.save()
    rows = [
        Run(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, state=State.PASSED)
        for slot in (noon + timedelta(hours=hour) for hour in range(12))
        for series in (circle, twin)
    ]
    Run.objects.bulk_create(rows)
    return sorted(rows, key=lambda run: (run.slot, run.pk), reverse=True)


def ids(body: dict[str, Any]) -> list[str]:
    return [run["id"] for run in body["runs"]]


@pytest.mark.parametrize("limit", [1, 5, 24, 100])
def test_the_pages_of_a_list_are_the_whole_list_once(runs: list[Run], client: Client, limit: int) -> None:
    found, cursor = [], ""
    while cursor is not None:
        body = client.get(URL, {"limit": str(limit), "cursor": cursor}).json()
        assert len(body["runs"]) <= limit
        found += ids(body)
        cursor = body["next"]
    assert found == [str(run.pk) for run in runs]


def test_a_row_that_is_added_between_pages_shifts_nothing(runs: list[Run], client: Client) -> None:
    first = client.get(URL, {"limit": "5"}).json()
    newest = runs[0].slot + timedelta(hours=1)
    key = run_id("circle", newest)
    Run.objects.create(id=key, series=runs[0].series, slot=newest, due_at=newest, state=State.FAILED)
    second = client.get(URL, {"limit": "5", "cursor": first["next"]}).json()
    assert ids(first) + ids(second) == [str(run.pk) for run in runs[:10]]


@pytest.mark.parametrize("change", [lambda cursor: cursor[:-1] + "_", lambda _: "abc", lambda _: "é:x"])
def test_a_changed_cursor_is_refused(runs: list[Run], client: Client, change: Any) -> None:
    cursor = change(client.get(URL, {"limit": "5"}).json()["next"])
    answer = client.get(URL, {"cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_filters_select_by_series_suite_site_state_and_slot(runs: list[Run], client: Client) -> None:
    def count(**query: str) -> int:
        return len(client.get(URL, query).json()["runs"])

    assert count(series="twin") == 12
    assert count(suite=runs[0].series.suite.name) == 24
    assert (count(site="site-of-here"), count(site="elsewhere")) == (12, 0)  # the twin uses no site
    assert (count(state="passed"), count(state="failed")) == (24, 0)
    assert count(start="2026-03-01T13:00:00Z", end="2026-03-01T15:00:00+01:00") == 2


def test_the_fields_that_are_asked_for_are_answered(runs: list[Run], client: Client) -> None:
    answer = client.get(URL, {"fields": "id,state", "limit": "1"})
    assert answer.json()["runs"] == [{"id": str(runs[0].pk), "state": "passed"}]
    assert answer["Content-Type"] == SPARSE_JSON
    for fields in ("id,colour", "id,id", ","):
        refused = client.get(URL, {"fields": fields})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        assert "state" in refused.json()["known"]


@pytest.mark.parametrize(
    "query",
    ["colour=red", "limit=1&limit=2", "limit=0", "limit=1001", "start=2026-03-01T12:00:00", "series=a%00b",
     "start=1772366400", "start=2026-03-01T12:00:00Z&end=2026-03-01T12:00:00Z", "state=excellent"],
)  # fmt: skip
def test_what_is_not_declared_is_refused(client: Client, query: str) -> None:
    answer = client.get(f"{URL}?{query}")
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["detail"] or "NUL" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00"),
        ("2026-03-01t12:00:00.123456789z", "2026-03-01T12:00:00.123456+00:00"),
        ("2026-03-01 12:00:00-05:30", "2026-03-01T17:30:00+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
    ],
)
def test_a_time_is_that_of_rfc_3339(text: str, expected: str) -> None:
    assert parse_time(text).isoformat() == expected


@pytest.mark.parametrize(
    "text", ["", "2026-03-01", "2026-03-01T12:00Z", "2026-02-30T12:00:00Z", "0001-01-01T00:00:00Z", 1, None]
)
def test_anything_else_is_no_time(text: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)
