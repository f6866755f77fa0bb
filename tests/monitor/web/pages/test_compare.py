"""Patterns of a series, its runs, and the comparison with another series."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from monitor.models.run import State
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid


@pytest.fixture
def measured(grid: Grid, now: datetime, minute: timedelta) -> Grid:
    """Gather and Circle are slow in the same runs."""
    for number, slowness in enumerate((1.0, 2.0, 1.5, 3.0, 1.2, 2.5)):
        builders.passed(grid.gather, now - number * minute, slowness=slowness)
        builders.passed(grid.circle, now - number * minute, slowness=slowness)
    return grid


def test_two_series_are_compared_pair_by_pair(measured: Grid, client: Client) -> None:
    query = {"series": "gather-main", "with": "circle-ring"}
    text = client.get("/compare/", query).content.decode()
    assert re.search(r"<dt>Pairs</dt><dd>6</dd>", text)
    assert re.search(r"<dt>Rank correlation</dt><dd>1.00", text)
    assert text.count('<svg class="plot') == 2
    assert "No lag has 10 pairs" in text
    pairs = json.loads(client.get("/compare/pairs.json", query).content)
    assert len(pairs) == 6
    assert pairs[-1]["gather-main: total.seconds"] == pytest.approx(11.2)
    assert pairs[-1]["circle-ring: total.seconds"] == pytest.approx(6.8)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "Choose two series"),
        ({"series": "gather-main"}, "Choose two series"),
        ({"series": "gather-main", "with": "secret-ring"}, "or you have no access"),
        ({"series": "gather-main", "with": "circle-ring", "lag": "nan"}, "No values to compare"),
    ],
)
def test_what_cannot_be_compared_is_said(
    grid: Grid, client: Client, query: dict[str, str], words: str
) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    assert words in client.get("/compare/", query).content.decode()
    assert client.get("/compare/pairs.csv", query).status_code == 404


def test_a_name_that_is_not_known_stays_in_its_field(grid: Grid, client: Client) -> None:
    text = client.get("/compare/", {"series": "gather-main", "with": "circle-rong"}).content.decode()
    assert 'name="with" value="circle-rong"' in text


def test_patterns_are_a_histogram_a_week_and_shares_of_variance(measured: Grid, client: Client) -> None:
    text = client.get("/series/gather-main/patterns/").content.decode()
    assert "6 passed runs" in text
    assert 'class="sigmas"' in text
    assert 'class="week"' in text
    shares = [float(share) for share in re.findall(r'<td class="number">(-?[\d.]+) %</td>', text)]
    assert len(shares) == len(builders.GATHER)
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_series_without_values_has_no_pattern_yet(grid: Grid, client: Client) -> None:
    assert "No pattern yet" in client.get("/series/gather-main/patterns/").content.decode()


def test_all_runs_are_listed_by_page_and_state(
    measured: Grid, client: Client, now: datetime, minute: timedelta
) -> None:
    for number in range(60):
        builders.not_run(measured.circle, now - (10 + number) * minute, State.MISSED, "no report")
    first = client.get("/series/circle-ring/runs/").content.decode()
    assert "66 runs" in first
    assert "Page 1 of 2" in first
    assert "Page 2 of 2" in client.get("/series/circle-ring/runs/", {"page": "2"}).content.decode()
    passed = client.get("/series/circle-ring/runs/", {"state": "passed"}).content.decode()
    assert passed.count('class="run"') == 6
