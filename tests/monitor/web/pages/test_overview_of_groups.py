"""The overview of many series: columns of suites or probes, and filtered lists."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from monitor.core import units
from monitor.depot.rollups.worker import roll
from monitor.models import ForecastState, Metric, Reporter, Resource, Run, Series
from monitor.models.run import State
from monitor.web.matrix import matrix
from monitor.web.matrix.cell import MatrixCell
from monitor.web.matrix.content import Overview, SiteRow
from monitor.web.matrix.matrix import overview_of_groups
from monitor.web.matrix.summary import MOST_FAILING
from monitor.web.pages.http.updates import digest_of
from monitor.web.search.series_list import (
    BY_NAME,
    NOT_WORKING,
    OLDEST,
    ListedSeries,
    SeriesChoice,
    list_series,
)
from tests.monitor.web.pages import builders

REFUSED = "cannot connect to site2.example.org:22: Connection refused"
MANY = matrix.MOST_SERIES + 5
HTMX = {"HX-Request": "true"}


@pytest.fixture
def resources(db: None) -> list[Resource]:
    return builders.sites(3)


@pytest.fixture
def rings(resources: list[Resource]) -> list[Series]:
    """Many series between site1 and site2; none uses site3."""
    return builders.circles([f"ring-{number:03}" for number in range(MANY)], resources[:2])


def fails(series: Series, slot: datetime, resource: str) -> Run:
    return builders.delivered(
        builders.failed(builders.report(series, slot), "transfer_ring", resource, REFUSED)
    )


def row(content: Overview, site: str) -> SiteRow:
    return next(row for row in content.rows if row.site == site)


def only_cell(content: Overview, site: str) -> MatrixCell:
    (cell,) = row(content, site).cells
    assert cell is not None
    return cell


def test_a_failure_counts_as_here_at_its_site_and_as_elsewhere_at_the_other(
    rings: list[Series], reader: User, now: datetime
) -> None:
    builders.passed(rings[0], now)
    fails(rings[1], now, "site2-login")
    builders.not_run(rings[2], now, State.MISSED, "")
    builders.not_run(rings[3], now, State.SKIPPED, "overlap")
    content = overview_of_groups(reader, now)
    assert only_cell(content, "site1").counts == (MANY - 4, 1, 1, 0, 1, 1, 0, 0)
    assert only_cell(content, "site2").counts == (MANY - 4, 1, 1, 0, 0, 1, 0, 1)
    assert [row.site for row in content.rows] == ["site2", "site1"]
    assert row(content, "site2").failing == 1


def test_results_older_than_the_schedule_allows_count_as_stale(
    rings: list[Series], reader: User, now: datetime
) -> None:
    old = now - timedelta(days=2)
    builders.passed(rings[0], old)
    fails(rings[1], old, "site2-login")
    leader, follower = rings[2:4]
    builders.passed(leader, now)
    builders.passed(follower, old)
    Series.objects.filter(pk=follower.pk).update(schedule="", leader=leader, follows="with")
    Series.objects.filter(pk=rings[1].pk).update(enabled=False)
    content = overview_of_groups(reader, now)
    assert only_cell(content, "site1").counts == (MANY - 4, 0, 1, 2, 1, 0, 0, 0)
    assert content.stale_count == 2


def test_a_list_is_filtered_by_a_part_of_a_name_a_probe_and_the_category_of_the_failed_stage(
    rings: list[Series], resources: list[Resource], reader: User, now: datetime
) -> None:
    gather = builders.gather("gather-main", resources[1:])
    fails(rings[1], now, "site2-login")
    builders.passed(rings[2], now)
    assert names(list_series(reader, now, SeriesChoice(text="ING-00")).lines)[0] == "ring-001"
    assert list_series(reader, now, SeriesChoice(text="ING-00")).series_count == 10
    assert names(list_series(reader, now, SeriesChoice(text="SITE3")).lines) == [gather.name]
    assert names(list_series(reader, now, SeriesChoice(probe="gather")).lines) == [gather.name]
    assert names(list_series(reader, now, SeriesChoice(category="transfer")).lines) == ["ring-001"]
    assert names(list_series(reader, now, SeriesChoice(category="queue")).lines) == []
    preco = builders.series(
        "preco-main", {"source": resources[:1]}, probe="preco", reporter=Reporter.objects.create(name="far")
    )
    for chosen in (SeriesChoice(kind="application"), SeriesChoice(reporter="far")):
        assert names(list_series(reader, now, chosen).lines) == [preco.name]


def test_series_of_which_every_slot_was_skipped_count_and_can_be_listed(
    rings: list[Series], reader: User, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(rings[0], now - minute)
    rule = "policy: the probe circle is forbidden"
    for series in rings:
        builders.not_run(series, now, State.SKIPPED, rule)
    assert only_cell(overview_of_groups(reader, now), "site1").words == "1 passed"
    rings[0].delete()
    assert only_cell(overview_of_groups(reader, now), "site1").words == "all skipped"
    listed = list_series(reader, now, SeriesChoice(state=State.SKIPPED))
    assert listed.series_count == MANY - 1
    assert listed.lines[0].cell.words == "skipped"
    assert f">site {rule}</td>" in client.get("/", {"state": "skipped"}).content.decode()


def test_a_failure_at_an_unknown_resource_has_an_unknown_site(
    rings: list[Series], reader: User, now: datetime
) -> None:
    fails(rings[0], now, "nowhere")
    assert only_cell(overview_of_groups(reader, now), "site1").words == "1 failed, site unknown"


def test_a_series_with_two_resources_at_a_site_counts_once(
    rings: list[Series], resources: list[Resource], reader: User, now: datetime
) -> None:
    beside = Resource.objects.create(site=resources[0].site, name="beside", scratch="/scratch")
    for series in rings:
        series.bindings.create(role="ring", position=9, resource=beside)
    assert only_cell(overview_of_groups(reader, now), "site1").series_count == MANY


def test_columns_are_suites_or_the_probes_of_a_single_suite(
    rings: list[Series], resources: list[Resource], reader: User, now: datetime
) -> None:
    builders.gather("gather-main", resources)
    assert overview_of_groups(reader, now).columns == ["circle", "gather"]
    builders.gather("gather-other", resources, in_suite="other")
    assert overview_of_groups(reader, now).columns == ["main", "other"]
    assert overview_of_groups(reader, now, suite="other").columns == ["gather"]
    assert [cell is None for cell in row(overview_of_groups(reader, now), "site3").cells] == [False, False]


def with_forecast(series: Series, newest: float, median: float) -> None:
    """Store a forecast of the next total of *series*, of which *newest* is known."""
    metric = Metric.objects.get(segment__series=series, name="total.seconds")
    values = {"median": median, "last_value": newest}
    ForecastState.objects.update_or_create(metric=metric, defaults=values)


def test_a_cell_of_several_series_has_the_oldest_result_and_the_median_deviation(
    rings: list[Series], reader: User, client: Client, now: datetime, minute: timedelta
) -> None:
    ages = (3 * minute, 5 * minute, minute, 2 * minute)
    for series, age in zip(rings, ages, strict=False):
        builders.passed(series, now - age)
    roll(now)
    for series, newest in zip(rings, (11.0, 13.0, 8.0), strict=False):
        with_forecast(series, newest, median=10.0)
    cell = only_cell(overview_of_groups(reader, now), "site1")
    assert cell.figures is not None
    assert cell.newest is not None
    assert cell.figures.oldest is not None
    assert (cell.figures.single, cell.figures.forecast_count) == (None, 3)
    assert cell.figures.deviation == pytest.approx(0.1)
    assert (cell.newest - cell.figures.oldest) == 4 * minute
    text = client.get("/").content.decode()
    assert f"<b>{MANY:,} series</b>: 4 passed, {MANY - 4} without a run" in text
    assert "Median duration +10 % from forecast, of the 3 newest results" in text


def test_a_cell_of_one_series_has_its_durations_and_leads_to_its_page(
    rings: list[Series], resources: list[Resource], reader: User, client: Client, now: datetime
) -> None:
    gather = builders.gather("gather-alone", resources[1:])
    builders.passed(gather, now)
    roll(now)
    with_forecast(gather, 5.0, median=10.0)
    (cell,) = (cell for cell in row(overview_of_groups(reader, now), "site3").cells if cell)
    assert cell.figures is not None
    assert cell.figures.single is not None
    assert (cell.words, cell.figures.single.name) == ("passed", "gather-alone")
    assert cell.figures.single.means[-1] > 0
    text = client.get("/").content.decode()
    assert "Duration \N{MINUS SIGN}50 % from its forecast" in text
    assert '<a class="cell" href="/series/gather-alone/">' in text


def test_failing_series_are_counted_and_the_first_are_listed(
    rings: list[Series], reader: User, client: Client, now: datetime, minute: timedelta
) -> None:
    for series in rings[:10]:
        fails(series, now - minute, "site2-login")
    again = fails(rings[0], now, "site2-login")
    content = overview_of_groups(reader, now)
    assert content.failing_count == 10
    assert len(content.failing) == MOST_FAILING
    first = content.failing[0]
    assert (first.series, first.site, first.consecutive) == ("ring-000", "site2", 2)
    assert first.last.run == again.pk
    text = client.get("/").content.decode()
    assert "and 2 more" in text
    assert REFUSED in text


def test_the_runs_of_the_last_hour_are_counted_also_where_they_are_more_than_a_trend(
    rings: list[Series], reader: User, now: datetime, minute: timedelta
) -> None:
    builders.passed(rings[0], now)
    builders.passed(rings[0], now - 60 * minute)
    for number in range(25):
        builders.not_run(rings[1], now - number * minute, State.MISSED, "")
    assert overview_of_groups(reader, now).outcomes == {"missed": 25, "passed": 1}


def test_stored_and_computed_rows_give_the_same_overview(
    rings: list[Series], reader: User, now: datetime
) -> None:
    fails(rings[0], now, "site2-login")
    builders.passed(rings[1], now)
    before = digest_of(overview_of_groups(reader, now))
    listed = digest_of(list_series(reader, now, SeriesChoice()))
    roll(now)
    assert digest_of(overview_of_groups(reader, now)) == before
    assert digest_of(list_series(reader, now, SeriesChoice())) == listed


def test_a_list_is_filtered_by_site_suite_or_state_and_sorted_worst_first(
    rings: list[Series], resources: list[Resource], reader: User, now: datetime, minute: timedelta
) -> None:
    builders.passed(rings[0], now - minute)
    failed = fails(rings[7], now - 2 * minute, "site2-login")
    builders.not_run(rings[3], now, State.MISSED, "")
    shown = list_series(reader, now, SeriesChoice(site="site1"))
    assert [line.name for line in shown.lines[:3]] == ["ring-007", "ring-003", "ring-000"]
    assert shown.lines[0].cell.words == "failed elsewhere"
    assert (shown.lines[0].site, shown.lines[0].cell.last) == ("site2", shown.lines[0].cell.last)
    assert shown.series_count == MANY
    assert names(list_series(reader, now, SeriesChoice(state=NOT_WORKING)).lines) == ["ring-007", "ring-003"]
    assert names(list_series(reader, now, SeriesChoice(state="passed")).lines) == ["ring-000"]
    assert names(list_series(reader, now, SeriesChoice(site="site3")).lines) == []
    by_name = list_series(reader, now, SeriesChoice(), order=BY_NAME)
    assert names(by_name.lines[:2]) == ["ring-000", "ring-001"]
    oldest = list_series(reader, now, SeriesChoice(state=NOT_WORKING), order=OLDEST)
    assert oldest.lines[0].cell.last is not None
    assert oldest.lines[0].cell.last.run == failed.pk


def test_a_list_shows_the_range_of_hourly_totals(
    rings: list[Series], reader: User, client: Client, now: datetime, minute: timedelta
) -> None:
    builders.passed(rings[0], now, slowness=2.0)
    builders.passed(rings[0], now - 60 * minute)
    line, other = list_series(reader, now, SeriesChoice(), order=BY_NAME).lines[:2]
    assert line.extremes is not None
    least, most = line.extremes
    assert most == pytest.approx(2 * least)
    assert other.extremes is None
    text = client.get("/", {"site": "site1", "order": "name"}).content.decode()
    assert text.count(units.seconds_range(least, most)) == 1


def names(lines: object) -> list[str]:
    assert isinstance(lines, list)
    return [line.name for line in lines if isinstance(line, ListedSeries)]


def test_a_page_of_a_list_has_fifty_series_and_links_to_the_next(rings: list[Series], client: Client) -> None:
    builders.circles([f"more-{number}" for number in range(10)], builders.sites(2))
    text = client.get("/", {"site": "site1", "order": "name"}).content.decode()
    assert text.count("<tr>") == 1 + 50
    assert "Page 1 of 2" in text
    assert "?site=site1&amp;order=name&amp;page=2" in text
    after = client.get("/", {"site": "site1", "order": "name", "page": "2"}).content.decode()
    assert "ring-044" in after


@pytest.mark.parametrize(
    "query",
    [
        {"page": "99"},
        {"page": "-1"},
        {"page": "9" * 400},
        {"order": "sideways"},
        {"state": "excellent"},
        {"site": "\x00"},
        {"site": "<script>"},
        {"suite": "nobody's"},
        {"state": "failed", "page": "3"},
    ],
)
def test_every_query_string_gives_a_page(rings: list[Series], client: Client, query: dict[str, str]) -> None:
    response = client.get("/", query)
    assert response.status_code == 200
    assert "<script>" not in response.content.decode().split('<main id="content">')[1]


def test_series_that_a_reader_may_not_see_are_counted_nowhere(
    rings: list[Series], resources: list[Resource], reader: User, client: Client, now: datetime
) -> None:
    closed = builders.suite("closed")
    closed.viewers.add(Group.objects.create(name="physicists"))
    secret = builders.circle("secret-ring", resources, in_suite="closed")
    fails(secret, now, "site3-login")
    content = overview_of_groups(reader, now)
    assert (content.series_count, content.failing_count, content.outcomes) == (MANY, 0, {})
    assert [row.site for row in content.rows] == ["site1", "site2"]
    for path in ("/", "/?site=site3", "/?state=failed", "/?suite=closed"):
        assert "secret-ring" not in client.get(path).content.decode()


@pytest.mark.parametrize("path", ["/", "/?site=site1", "/?state=not-working"])
def test_a_page_of_many_series_that_is_current_gets_no_content(
    rings: list[Series], client: Client, now: datetime, path: str
) -> None:
    fails(rings[0], now, "site2-login")
    part = client.get(path, headers=HTMX).content.decode()
    assert part.startswith('<div id="overview"')
    address = part.split('hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert client.get(address, headers=HTMX).status_code == 204
    fails(rings[1], now, "site2-login")
    assert client.get(address, headers=HTMX).status_code == 200


@pytest.mark.parametrize("path", ["/", "/?site=site1", "/?state=not-working"])
def test_more_series_and_sites_need_no_more_queries(
    rings: list[Series], client: Client, now: datetime, path: str
) -> None:
    fails(rings[0], now, "site2-login")
    fails(rings[1], now, "site2-login")
    before = queries_for(client, path)
    others = builders.circles([f"other-{number}" for number in range(20)], builders.sites(8))
    for number, series in enumerate(others):
        fails(series, now, f"site{number % 8 + 1}-login")
    assert queries_for(client, path) == before
    assert before <= 25


def queries_for(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    return len(queries)
