"""The latest states of series over the API."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from monitor.depot.rollups.worker import roll
from monitor.models import ApiToken, Series
from monitor.models.run import State
from monitor.models.token import READ
from monitor.web.api.latest import LatestList, LatestOut
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)
REFUSED = "cannot connect to site2.example.org:22: Connection refused"


@pytest.fixture
def client(db: None) -> Client:
    """A program with a token that may read."""
    token = ApiToken.objects.issue(User.objects.create_user("viewer"), "scheduler", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def rings(db: None) -> list[Series]:
    return builders.circles([f"ring-{number}" for number in range(5)], builders.sites(2))


def get_all(client: Client, **query: str | int) -> LatestList:
    response = client.get("/api/v1/latest", query)
    assert response.status_code == 200, response.content
    return LatestList.model_validate_json(response.content)


def get_one(client: Client, series: Series) -> LatestOut:
    response = client.get(f"/api/v1/series/{series.name}/latest")
    assert response.status_code == 200, response.content
    return LatestOut.model_validate_json(response.content)


def test_the_latest_state_has_run_age_and_hourly_means(
    rings: list[Series], client: Client, now: datetime
) -> None:
    passed = builders.passed(rings[0], now - 61 * MINUTE)
    report = builders.report(rings[0], now - MINUTE)
    failed = builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    shown = get_one(client, rings[0])
    assert (shown.series, shown.state, shown.run) == ("ring-0", "failed", failed.pk)
    assert (shown.slot, shown.stage, shown.failed_resource) == (failed.slot, "transfer_ring", "site2-login")
    assert shown.outcomes == ["passed", "failed"]
    assert shown.age_seconds is not None
    assert 0 <= shown.age_seconds < 600
    assert failed.ended_at is not None
    assert shown.ended_at == failed.ended_at
    hours = [mean for mean in shown.hourly_seconds if mean is not None]
    assert hours == [pytest.approx(sum(seconds for _, seconds in builders.CIRCLE.values()))]
    back = int((shown.hours_end - passed.slot).total_seconds() // 3600)
    assert shown.hourly_seconds[23 - back] == hours[0]


def test_a_series_without_runs_has_no_state(rings: list[Series], client: Client) -> None:
    shown = get_one(client, rings[0])
    assert (shown.state, shown.run, shown.slot, shown.age_seconds) == (None, None, None, None)
    assert (shown.outcomes, set(shown.hourly_seconds)) == ([], {None})


def test_stored_rows_give_the_same_answer(rings: list[Series], client: Client, now: datetime) -> None:
    builders.passed(rings[0], now)
    before = get_one(client, rings[0])
    roll(now)
    after = get_one(client, rings[0])
    assert after.model_dump(exclude={"age_seconds"}) == before.model_dump(exclude={"age_seconds"})


def test_states_are_filtered_by_site_suite_and_state(
    rings: list[Series], client: Client, now: datetime
) -> None:
    builders.circle("elsewhere", [builders.site("site8"), builders.site("site9")], in_suite="other")
    builders.passed(rings[1], now)
    builders.not_run(rings[3], now, State.MISSED, "")
    every = [series.name for series in rings]
    assert [entry.series for entry in get_all(client).latest] == ["elsewhere", *every]
    assert [entry.series for entry in get_all(client, site="site8").latest] == ["elsewhere"]
    assert [entry.series for entry in get_all(client, suite="main", site="site1").latest] == every
    assert [entry.series for entry in get_all(client, state="passed").latest] == ["ring-1"]
    assert [entry.series for entry in get_all(client, state="not-working").latest] == ["ring-3"]


@pytest.mark.parametrize("state", [{}, {"state": "missed"}])
def test_pages_list_every_series_once(
    rings: list[Series], client: Client, now: datetime, state: dict[str, str]
) -> None:
    for series in rings:
        builders.not_run(series, now, State.MISSED, "")
    assert _every_page(client, **state) == [series.name for series in rings]


@pytest.mark.parametrize("state", [{}, {"state": "missed"}])
def test_pages_list_every_series_once_in_natural_order(
    client: Client, now: datetime, state: dict[str, str]
) -> None:
    names = [
        "alpha",
        "be-ta",
        "be-ta-9",
        "be-ta-10",
        "be_ta",
        "beta",
        "ring2",
        "ring02-a",
        "ring10",
        "Zeta",
        "zoo",
    ]
    for name in random.Random(7).sample(names, len(names)):
        builders.not_run(builders.circle(name, builders.sites(2)), now, State.MISSED, "")
    assert _every_page(client, **state) == names


def _every_page(client: Client, **query: str) -> list[str]:
    shown, cursor = [], ""
    while True:
        page = get_all(client, limit=2, cursor=cursor, **query)
        shown += [entry.series for entry in page.latest]
        if page.next is None:
            return shown
        cursor = page.next


def test_invisible_series_are_not_listed(rings: list[Series], client: Client) -> None:
    builders.suite("main").viewers.add(Group.objects.create(name="physicists"))
    assert get_all(client).latest == []
    assert client.get("/api/v1/series/ring-0/latest").status_code == 404


def test_an_unknown_state_is_refused(client: Client) -> None:
    assert client.get("/api/v1/latest", {"state": "excellent"}).status_code == 422
