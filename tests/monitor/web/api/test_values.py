"""Values over the API: history, statistics, distribution, pairs and export."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from ninja import Schema

from monitor.depot.samples import formats
from monitor.models import ApiToken, Series, Suite
from monitor.models.token import READ
from monitor.runs.ingest.service import ingest, ingest_all
from monitor.web.api.distribution import DistributionOut
from monitor.web.api.history import HistoryOut
from monitor.web.api.pairs import PairsOut
from monitor.web.api.statistics import StatisticsOut
from probes.base import checked_parameters
from reporters import report as wire
from tests.monitor.builders import CIRCLE, circle_report
from tests.rollups import roll_all

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
TOTAL = "/api/v1/series/circle/metrics/total.seconds"
EVERY: list[tuple[str, dict[str, str], type[Schema]]] = [
    (f"{TOTAL}/history", {}, HistoryOut),
    (f"{TOTAL}/statistics", {}, StatisticsOut),
    (f"{TOTAL}/statistics", {"every": "day"}, StatisticsOut),
    (f"{TOTAL}/statistics", {"every": "hour"}, StatisticsOut),
    (f"{TOTAL}/distribution", {}, DistributionOut),
    ("/api/v1/pairs", {"series": "circle", "predictor_series": "circle"}, PairsOut),
]
every_question = pytest.mark.parametrize(("url", "query", "schema"), EVERY)


@pytest.fixture
def viewer(db: None) -> User:
    return User.objects.create_user("viewer")


@pytest.fixture
def client(viewer: User) -> Client:
    """A program with a token that may read."""
    token = ApiToken.objects.issue(viewer, "scheduler", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def runs(circle: Series) -> list[datetime]:
    """Ingest ten passed runs, a minute apart, with totals of 4, 5, ... 13 s; return their slots."""
    newest = timezone.now().replace(microsecond=0) - MINUTE
    slots = [newest - number * MINUTE for number in range(9, -1, -1)]
    reports = [circle_report(slot, ring_seconds=1.0 + number) for number, slot in enumerate(slots)]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    return slots


def answered(client: Client, url: str, query: dict[str, Any]) -> Any:
    answer = client.get(url, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def refused(client: Client, url: str, query: dict[str, Any]) -> dict[str, Any]:
    answer = client.get(url, query)
    assert answer["content-type"] == "application/problem+json"
    shown: dict[str, Any] = answer.json()
    assert shown["status"] == answer.status_code
    return shown


def text(time: datetime) -> str:
    return wire.rfc3339(time)


@every_question
def test_an_answer_follows_its_schema(
    runs: list[datetime], client: Client, url: str, query: dict[str, str], schema: type[Schema]
) -> None:
    body = answered(client, url, query)
    assert set(body) == set(schema.model_fields)
    schema.model_validate(body)


@every_question
def test_a_window_without_values_gives_a_complete_empty_answer(
    runs: list[datetime], client: Client, url: str, query: dict[str, str], schema: type[Schema]
) -> None:
    window = {"start": "2020-01-01T00:00:00Z", "end": "2020-02-01T00:00:00Z"}
    body = answered(client, url, {**query, **window})
    schema.model_validate(body)
    assert body["data_age_seconds"] is None
    assert body["complete"]


@every_question
def test_an_answer_has_the_age_of_its_data(
    runs: list[datetime], client: Client, url: str, query: dict[str, str], schema: type[Schema]
) -> None:
    assert 30 < answered(client, url, query)["data_age_seconds"] < 300


@pytest.mark.parametrize(
    ("url", "query"), [*((url, query) for url, query, _ in EVERY), ("/api/v1/series/circle/latest", {})]
)
def test_the_age_of_values_from_the_future_is_zero(
    circle: Series, client: Client, url: str, query: dict[str, str]
) -> None:
    ends_in_minutes = circle_report(timezone.now() - MINUTE, ring_seconds=240.0)
    assert ingest(wire.to_json(ends_in_minutes)).accepted
    body = answered(client, url, query)
    assert body["age_seconds" if "latest" in url else "data_age_seconds"] == 0.0
    assert client.get("/api/v1/series/circle/export")["Data-Age-Seconds"] == "0.0"


def test_dirty_hours_make_an_answer_incomplete_but_not_different(circle: Series, client: Client) -> None:
    """Quantiles of hours that are rolled up come from sketches, which are within 1 %."""
    newest = timezone.now().replace(microsecond=0) - MINUTE
    reports = [
        circle_report(newest - number * timedelta(hours=1), ring_seconds=1.0 + number) for number in range(10)
    ]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    before = answered(client, f"{TOTAL}/statistics", {})
    roll_all()
    after = answered(client, f"{TOTAL}/statistics", {})
    assert (before["complete"], after["complete"]) == (False, True)
    assert before["figures"] == pytest.approx(after["figures"], rel=0.01)


def test_a_short_history_has_every_value(runs: list[datetime], client: Client) -> None:
    body = answered(client, f"{TOTAL}/history", {})
    assert (body["series"], body["segment"], body["unit"]) == ("circle", 1, "seconds")
    assert (body["method"], body["n"]) == ("raw", 10)
    assert body["value"] == [4.0 + number for number in range(10)]
    assert [datetime.fromisoformat(time) for time in body["time"]] == runs


def test_a_downsampled_history_keeps_its_extremes(runs: list[datetime], client: Client) -> None:
    body = answered(client, f"{TOTAL}/history", {"points": 4})
    assert (body["method"], body["n"], body["value"]) == ("m4", 10, [4.0, 13.0])


def test_a_window_excludes_its_end(runs: list[datetime], client: Client) -> None:
    window = {"start": text(runs[2]), "end": text(runs[5])}
    assert answered(client, f"{TOTAL}/history", window)["value"] == [6.0, 7.0, 8.0]
    assert answered(client, f"{TOTAL}/statistics", window)["figures"]["n"] == 3
    assert answered(client, f"{TOTAL}/distribution", window)["n"] == 3


def test_a_time_may_have_any_offset(runs: list[datetime], client: Client) -> None:
    end = runs[5].isoformat().replace("+00:00", "-00:00")
    assert len(answered(client, f"{TOTAL}/history", {"end": end})["value"]) == 5


def test_statistics_are_of_the_window_or_of_each_day(runs: list[datetime], client: Client) -> None:
    figures = answered(client, f"{TOTAL}/statistics", {})["figures"]
    assert (figures["n"], figures["passed"], figures["min"], figures["max"]) == (10, 10, 4.0, 13.0)
    assert figures["mean"] == pytest.approx(8.5)
    buckets = answered(client, f"{TOTAL}/statistics", {"every": "day"})["buckets"]
    assert sum(bucket["n"] for bucket in buckets) == 10
    assert {datetime.fromisoformat(bucket["start"]).hour for bucket in buckets} == {0}


def test_a_distribution_counts_every_value_once(runs: list[datetime], client: Client) -> None:
    body = answered(client, f"{TOTAL}/distribution", {"bins": 3})
    assert body["edges"] == [4.0, 7.0, 10.0, 13.0]
    assert body["counts"] == [3, 3, 4]
    assert body["quantiles"]["50"] == 8.0


def test_pairs_use_known_values_and_correlate(runs: list[datetime], client: Client) -> None:
    """Each run is paired with the run before it; the first has none."""
    query = {"series": "circle", "predictor_series": "circle", "predictor_metric": "ring.bytes_per_second"}
    body = answered(client, "/api/v1/pairs", query)
    assert (body["unpaired"], body["correlation"]["n"]) == (1, 9)
    assert body["target"]["unit"] == "seconds"
    assert body["predictor"]["unit"] == "bytes_per_second"
    assert body["value"] == [5.0 + number for number in range(9)]
    assert body["predictor_value"] == pytest.approx([2000 / (1.0 + number) for number in range(9)])
    assert body["predictor_age_seconds"] == [60.0] * 9
    assert body["correlation"]["spearman"]["value"] == pytest.approx(-1.0)
    assert -1 < body["correlation"]["pearson"]["value"] < -0.5


def test_the_newest_pairs_are_listed_and_the_correlation_is_of_all(
    runs: list[datetime], client: Client
) -> None:
    body = answered(
        client,
        "/api/v1/pairs",
        {"series": "circle", "predictor_series": "circle", "newest": 2, "lag_seconds": 60},
    )
    assert body["value"] == [12.0, 13.0]
    assert body["predictor_age_seconds"] == [120.0, 120.0]
    assert (body["correlation"]["n"], body["unpaired"]) == (8, 2)


def test_too_few_pairs_have_no_correlation(runs: list[datetime], client: Client) -> None:
    query = {"series": "circle", "predictor_series": "circle", "start": text(runs[-2])}
    shown = answered(client, "/api/v1/pairs", query)["correlation"]
    assert (shown["n"], shown["why"], shown["pearson"]) == (2, "too_few", None)


@pytest.mark.parametrize("form", formats.names())
def test_a_series_is_exported_in_every_format(runs: list[datetime], client: Client, form: str) -> None:
    answer = client.get("/api/v1/series/circle/export", {"format": form})
    assert answer.status_code == 200
    assert answer["content-type"] == formats.load(form).media_type
    assert float(answer["Data-Age-Seconds"]) > 0
    assert f".{form}" in answer["content-disposition"]


def test_an_export_has_the_requested_window(runs: list[datetime], client: Client) -> None:
    window = {"start": text(runs[2]), "end": text(runs[5])}
    file = b"".join(client.get("/api/v1/series/circle/export", window))
    rows = list(csv.DictReader(io.StringIO(file.decode())))
    assert [row["value"] for row in rows if row["name"] == "total.seconds"] == ["6.0", "7.0", "8.0"]


@pytest.mark.parametrize("form", formats.names())
def test_an_empty_export_is_a_valid_file(runs: list[datetime], client: Client, form: str) -> None:
    window = {"start": "1970-01-01T00:00:00Z", "end": "1971-01-01T00:00:00Z"}
    answer = client.get("/api/v1/series/circle/export", {"format": form, **window})
    assert answer.status_code == 200
    assert "Data-Age-Seconds" not in answer
    assert len(b"".join(answer)) < 2000


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ({"start": "2026-03-01T12:00:00"}, "invalid", "start"),
        ({"start": "yesterday"}, "invalid", "start"),
        ({"end": "0001-01-01T00:00:00+14:00"}, "invalid", "years 1900 to 2200"),
        ({"end": "9999-12-31T23:59:59-14:00"}, "invalid", "years 1900 to 2200"),
        ({"start": "2026-03-02T00:00:00Z", "end": "2026-03-01T00:00:00Z"}, "empty_window", "before"),
        ({"start": "2026-03-01T00:00:00Z", "end": "2026-03-01T00:00:00Z"}, "empty_window", "before"),
        (
            {"start": "1900-01-01T00:00:00Z", "end": "2199-01-01T00:00:00Z"},
            "window_too_long",
            "days or fewer",
        ),
        ({"points": "3"}, "invalid", "points"),
        ({"points": "20001"}, "invalid", "points"),
        ({"segment": "7"}, "unknown_segment", "segment 7"),
        ({"segment": "99999999999999999999"}, "invalid", "segment"),
    ],
)
def test_an_invalid_window_names_the_error(
    runs: list[datetime], client: Client, query: dict[str, str], code: str, message: str
) -> None:
    problem = refused(client, f"{TOTAL}/history", query)
    assert problem["status"] in {404, 422}
    assert problem["code"] == code
    assert message in problem["detail"]


@pytest.mark.parametrize(
    ("url", "query", "code"),
    [
        (f"{TOTAL}/statistics", {"every": "minute"}, "invalid"),
        (f"{TOTAL}/statistics", {"every": "hour", "start": "2020-01-01T00:00:00Z"}, "window_too_long"),
        (f"{TOTAL}/distribution", {"bins": "0"}, "invalid"),
        ("/api/v1/series/circle/export", {"format": "../csv"}, "unknown_format"),
        ("/api/v1/series/circle/export", {"start": "2026-03-01"}, "invalid"),
        ("/api/v1/series/nobody-knows/export", {}, "unknown_series"),
        ("/api/v1/series/circle/metrics/total.minutes/history", {}, "unknown_metric"),
        ("/api/v1/series/nobody-knows/metrics/total.seconds/history", {}, "unknown_series"),
        ("/api/v1/pairs", {"series": "circle"}, "invalid"),
        ("/api/v1/pairs", {"series": "circle", "predictor_series": "x"}, "unknown_series"),
        ("/api/v1/pairs", {"series": "circle", "predictor_series": "circle", "lag_seconds": "-1"}, "invalid"),
        (
            "/api/v1/pairs",
            {"series": "circle", "predictor_series": "circle", "lag_seconds": "nan"},
            "invalid",
        ),
        (
            "/api/v1/pairs",
            {"series": "circle", "predictor_series": "circle", "lag_seconds": "inf"},
            "invalid",
        ),
        (
            "/api/v1/pairs",
            {"series": "circle", "predictor_series": "circle", "lag_seconds": "1e99"},
            "invalid",
        ),
        ("/api/v1/pairs", {"series": "circle", "predictor_series": "circle", "level": "nan"}, "invalid"),
        ("/api/v1/pairs", {"series": "circle", "predictor_series": "circle", "newest": "1e9"}, "invalid"),
        (
            "/api/v1/pairs",
            {"series": "circle", "predictor_series": "circle", "known_by": "2026-03-01"},
            "invalid",
        ),
        ("/api/v1/pairs", {"series": "circle", "predictor_series": "circle\0"}, "invalid"),
        (f"{TOTAL}/history", {"points": "1000000000"}, "invalid"),
        (f"{TOTAL}/history", {"points": "nan"}, "invalid"),
        (f"{TOTAL}/distribution", {"bins": "1000000000"}, "invalid"),
        (f"{TOTAL}/distribution", {"start": "nan"}, "invalid"),
        ("/api/v1/series/circle/metrics/total%00/history", {}, "invalid"),
        ("/api/v1/series/%FF%00/export", {}, "invalid"),
        ("/api/v1/series/circle/export", {"format": "csv\0"}, "invalid"),
        ("/api/v1/series/circle/export", {"end": "9999-12-31T23:59:59Z"}, "invalid"),
        (
            "/api/v1/series/circle/export",
            {"start": "2026-03-02T00:00:00Z", "end": "2026-03-01T00:00:00Z"},
            "empty_window",
        ),
    ],
)
def test_an_invalid_query_names_the_error(
    runs: list[datetime], client: Client, url: str, query: dict[str, str], code: str
) -> None:
    assert refused(client, url, query)["code"] == code


def test_an_unknown_metric_is_answered_with_the_known_ones(runs: list[datetime], client: Client) -> None:
    problem = refused(client, "/api/v1/series/circle/metrics/total.minutes/statistics", {})
    assert "total.seconds" in problem["known"]


@pytest.mark.parametrize(
    ("url", "query"),
    [*((url, query) for url, query, _ in EVERY), ("/api/v1/series/circle/export", {})],
)
def test_an_invisible_suite_is_unknown(
    runs: list[datetime], client: Client, viewer: User, url: str, query: dict[str, str]
) -> None:
    staff = Group.objects.create(name="staff")
    Suite.objects.get().viewers.add(staff)
    assert refused(client, url, query)["code"] == "unknown_series"
    assert Client().get(url, query).status_code == 401
    viewer.groups.add(staff)
    assert client.get(url, query).status_code == 200


def test_values_are_of_the_segment_that_ran_last_unless_another_is_named(
    runs: list[datetime], client: Client
) -> None:
    parameters = checked_parameters(CIRCLE, {"file_bytes": 100_000_000})
    ingest(wire.to_json(circle_report(runs[-1] + MINUTE / 2, ring_seconds=50.0, parameters=parameters)))
    url = f"{TOTAL}/history"
    latest = answered(client, url, {})
    assert (latest["segment"], latest["value"]) == (2, [53.0])
    assert len(answered(client, url, {"segment": 1})["value"]) == 10
    assert refused(client, url, {"segment": 3})["known"] == [1, 2]


def test_the_openapi_document_has_the_schemas_of_values(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for rest in ("history", "statistics", "distribution"):
        message = paths[f"/api/v1/series/{{series}}/metrics/{{metric}}/{rest}"]["get"]
        assert "$ref" in message["responses"]["200"]["content"]["application/json"]["schema"]
