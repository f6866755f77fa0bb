"""Forecasts over the API: values, intervals, track records and refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone

from monitor.analysis.forecasts.defaults import METHOD
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.not_ready import NotReady
from monitor.analysis.forecasts.refresh import refresh_all, reset
from monitor.models import (
    ApiToken,
    Forecast,
    ForecastState,
    MaintenanceWindow,
    Metric,
    Run,
    Series,
    Site,
    Suite,
)
from monitor.models.token import READ, RUN
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from monitor.web.api.http.prefer import Waiting, preferred_wait_seconds
from probes.base import checked_parameters
from reporters import report as wire
from tests.monitor.builders import CIRCLE, circle_report

URL = "/api/v1/forecasts"


@pytest.fixture
def viewer(db: None) -> User:
    return User.objects.create_user("viewer")


@pytest.fixture
def client(viewer: User) -> Client:
    """A program with a token that may read."""
    token = ApiToken.objects.issue(viewer, "scheduler", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def history(circle: Series) -> Series:
    """Circle with five passed runs, the last a minute ago."""
    for number in range(5, 0, -1):
        slot = timezone.now() - timedelta(minutes=number)
        ingest(wire.to_json(circle_report(slot, ring_seconds=4.0 + number % 2)))
    return circle


def problem(response: Any) -> dict[str, Any]:
    assert response["content-type"] == "application/problem+json"
    shown: dict[str, Any] = response.json()
    assert shown["status"] == response.status_code
    return shown


def post(client: Client, url: str) -> Any:
    return client.post(url, {}, content_type="application/json")


def test_a_forecast_has_interval_data_age_and_track_record(history: Series, client: Client) -> None:
    answer = client.get(URL, {"series": "circle", "metric": "total.seconds"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["unit"] == "seconds"
    assert (body["method"], body["predictor"]) == (METHOD, "")
    assert body["n"] == 5
    assert 0 <= body["interval"]["lower"] <= body["mean"] <= body["interval"]["upper"]
    assert body["interval"]["level"] == 0.8
    assert 0 <= body["data_age_seconds"] < 120
    assert body["track_record"]["n"] == 0


def test_while_a_state_is_recomputed_the_previous_forecast_is_served(history: Series, client: Client) -> None:
    refresh_all(timezone.now())
    before = client.get(URL, {"series": "circle"}).json()
    reset([history.pk])
    while_anew = client.get(URL, {"series": "circle"}).json()
    changing = {"at", "data_age_seconds"}
    assert {**while_anew, **dict.fromkeys(changing)} == {**before, **dict.fromkeys(changing)}
    named = client.get(URL, {"series": "circle", "method": "last_value"}).json()
    assert (named["mean"], named["data_until"]) == (8.0, before["data_until"])


def test_a_question_computes_only_what_it_asks_for(history: Series, client: Client) -> None:
    assert client.get(URL, {"series": "circle", "stage": "init"}).status_code == 200
    assert {state.metric.name for state in ForecastState.objects.all()} == {"stage.init.seconds"}


def test_a_forecast_that_takes_too_long_is_computed_in_the_background(
    history: Series, client: Client, settings: LazySettings
) -> None:
    settings.GRIDCAST_FORECAST_SECONDS = 0.0
    answer = client.get(URL, {"series": "circle", "metric": "ring.bytes_per_second"})
    assert (answer.status_code, problem(answer)["code"]) == (503, "not_ready")
    assert "the forecast of ring.bytes_per_second of circle is being computed" in problem(answer)["detail"]
    assert int(answer["Retry-After"]) >= 1
    refresh_all(timezone.now())
    again = client.get(URL, {"series": "circle", "metric": "ring.bytes_per_second"})
    assert (again.status_code, again.json()["n"]) == (200, 5)


def test_the_number_of_a_forecast_is_in_its_entity_tag(history: Series, client: Client) -> None:
    refresh_all(timezone.now())
    first = client.get(URL, {"series": "circle"})
    assert first["ETag"].startswith(f'W/"{first.json()["id"]}-')
    known = {"if-none-match": first["ETag"]}
    assert client.get(URL, {"series": "circle"}, headers=known).status_code == 304
    ingest(wire.to_json(circle_report(timezone.now() - timedelta(seconds=20))))
    refresh_all(timezone.now())
    assert client.get(URL, {"series": "circle"}, headers=known).status_code == 200


def test_the_requested_quantiles_are_returned(history: Series, client: Client) -> None:
    body = client.get(URL, {"series": "circle", "quantiles": "0.05,.5,0.923456789,0.95"}).json()
    low, median, between, high = body["quantiles"].values()
    assert list(body["quantiles"]) == ["0.05", "0.5", "0.923456789", "0.95"]
    assert 0 <= low <= median <= between <= high
    assert list(client.get(URL, {"series": "circle"}).json()["quantiles"]) == ["0.5", "0.9", "0.95"]


def test_a_forecast_has_success_probability_and_stages(history: Series, client: Client) -> None:
    body = client.get(URL, {"series": "circle"}).json()
    assert body["success"]["n"] == 5
    assert body["success"]["probability"] > 0.5
    assert body["success"]["expected_seconds"] >= 7.0
    assert list(body["success"]["quantiles"]) == ["0.5", "0.9", "0.95"]
    stages = {stage["metric"]: stage["median"] for stage in body["stages"]}
    assert stages["stage.init.seconds"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("query", "metric"),
    [
        ({"stage": "transfer_ring"}, "stage.transfer_ring.seconds"),
        ({"total": "total"}, "total.seconds"),
        ({"total": "essential"}, "total_essential.seconds"),
        ({"total": "core"}, "total_core.seconds"),
        ({}, "total.seconds"),
    ],
)
def test_stage_and_total_name_a_metric(
    history: Series, client: Client, query: dict[str, str], metric: str
) -> None:
    assert client.get(URL, {"series": "circle", **query}).json()["metric"] == metric


def test_a_method_can_be_chosen(history: Series, client: Client) -> None:
    body = client.get(URL, {"series": "circle", "method": "last_value", "level": "0.9"}).json()
    assert (body["method"], body["mean"]) == ("last_value", 8.0)
    assert body["interval"]["lower"] <= 8.0 <= body["interval"]["upper"]
    assert body["id"] != client.get(URL, {"series": "circle"}).json()["id"]


def test_a_chosen_method_has_its_own_track_record(circle: Series, client: Client) -> None:
    began = timezone.now() - timedelta(minutes=10)
    for number in range(8):
        slot = began + timedelta(minutes=number)
        ingest(wire.to_json(circle_report(slot, ring_seconds=4.0 + number % 2)))
        refresh_all(slot + timedelta(seconds=30))
        if number >= 3:
            total = Metric.objects.get(name="total.seconds")
            issue(total, slot + timedelta(seconds=30), method="last_value")
    query = {"series": "circle", "method": "last_value", "level": "0.9"}
    record = client.get(URL, query).json()["track_record"]
    assert (record["n"], record["level"]) == (4, 0.9)
    assert record["mean_absolute_error"] == pytest.approx(1.0)
    assert record["relative_error"] == pytest.approx((1 / 7 + 1 / 8) / 2)
    assert record["mean_absolute_scaled_error"] == pytest.approx(1.0)
    assert 0.0 <= record["coverage"] <= 1.0
    assert record["winkler_score"] > 0.0


def test_a_later_start_time_can_be_given(history: Series, client: Client) -> None:
    soon = client.get(URL, {"series": "circle", "horizon_seconds": "3600"}).json()
    assert timezone.now() < datetime.fromisoformat(soon["at"]) < timezone.now() + timedelta(hours=2)
    later = client.get(URL, {"series": "circle", "at": soon["at"]}).json()
    assert (later["at"], later["mean"]) == (soon["at"], pytest.approx(soon["mean"]))


def test_a_past_start_time_is_refused(history: Series, client: Client) -> None:
    an_hour_ago = (timezone.now() - timedelta(hours=1)).isoformat()
    answer = client.get(URL, {"series": "circle", "at": an_hour_ago})
    assert (answer.status_code, problem(answer)["code"]) == (409, "past")


def test_a_slightly_slow_client_clock_is_accepted(history: Series, client: Client) -> None:
    just_now = (timezone.now() - timedelta(seconds=10)).isoformat()
    assert client.get(URL, {"series": "circle", "at": just_now}).status_code == 200


def test_data_older_than_max_age_are_stale(history: Series, client: Client) -> None:
    answer = client.get(URL, {"series": "circle", "max_age_seconds": "1"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "stale")
    assert client.get(URL, {"series": "circle", "max_age_seconds": "3600"}).status_code == 200


def test_data_old_for_their_series_are_stale_without_max_age(circle: Series, client: Client) -> None:
    for number in range(5):
        slot = timezone.now() - timedelta(days=30, minutes=number)
        ingest(wire.to_json(circle_report(slot)))
    answer = client.get(URL, {"series": "circle"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "stale")
    month = str(31 * 86_400)
    assert client.get(URL, {"series": "circle", "max_age_seconds": month}).status_code == 200


def test_a_closed_site_gives_the_reason_instead_of_a_forecast(history: Series, client: Client) -> None:
    began = timezone.now() - timedelta(minutes=1)
    work = MaintenanceWindow.objects.create(name="disks", starts_at=began, ends_at=began + timedelta(hours=1))
    work.sites.add(Site.objects.get(name="site-of-there"))
    answer = client.get(URL, {"series": "circle"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "site_down")
    assert list(problem(answer)["down"]) == ["there"]
    assert client.get(URL, {"series": "circle", "horizon_seconds": "7200"}).status_code == 200


def test_a_series_is_found_by_application_and_roles(history: Series, client: Client) -> None:
    wanted = client.get(URL, {"series": "circle"}).json()
    for query in ({"role": "ring:here,there"}, {"resources": "there,here"}):
        shown = client.get(URL, {"application": "circle", **query}).json()
        assert (shown["series"], shown["id"]) == ("circle", wanted["id"])


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"role": "ring:there,here"}, 404, "unknown_path"),  # a ring has an order
        ({"resources": "here"}, 404, "unknown_path"),
        ({"role": "ring:here,,there"}, 422, "invalid"),
        ({"role": "ring:here,there\x00"}, 422, "invalid"),
        ({"role": "ring:a:b"}, 404, "unknown_path"),  # the first colon ends the role
        *(
            ({"role": text}, 422, "invalid")
            for text in ("", ":", "ring", "ring:", ":here,there", "wheel:here,there")
        ),
        ({"role": ["ring:here", "ring:there"]}, 422, "invalid"),
        ({"ring": "here,there"}, 422, "invalid"),
        ({}, 422, "invalid"),
        ({"role": "ring:here,there", "resources": "here,there"}, 422, "invalid"),
        ({"series": "circle", "role": "ring:here,there"}, 422, "invalid"),
    ],
)
def test_an_unknown_or_unclear_path_is_refused(
    history: Series, client: Client, query: dict[str, Any], status: int, code: str
) -> None:
    answer = client.get(URL, {"application": "circle", **query})
    assert (answer.status_code, problem(answer)["code"]) == (status, code)


def test_a_path_of_two_series_lists_them(history: Series, client: Client) -> None:
    define([], [SeriesDefinition("larger", "circle", {"ring": ["here", "there"]}, {"file_bytes": 9000})])
    answer = client.get(URL, {"application": "circle", "role": "ring:here,there"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "ambiguous")
    assert problem(answer)["known"] == ["circle", "larger"]


def test_a_path_in_an_invisible_suite_is_unknown(history: Series, client: Client) -> None:
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    answer = client.get(URL, {"application": "circle", "role": "ring:here,there"})
    assert (answer.status_code, problem(answer)["code"]) == (404, "unknown_path")


def test_an_issued_forecast_is_stored(history: Series, client: Client) -> None:
    client.get(URL, {"series": "circle"})
    client.get(URL, {"series": "circle"})
    assert Forecast.objects.filter(metric__name="total.seconds").count() == 1


def test_any_metric_can_be_forecast(history: Series, client: Client) -> None:
    answer = client.get(URL, {"series": "circle", "metric": "ring.bytes_per_second"})
    assert answer.json()["unit"] == "bytes_per_second"


def test_too_few_values_give_an_abstention_with_its_reason(circle: Series, client: Client) -> None:
    ingest(wire.to_json(circle_report(timezone.now() - timedelta(minutes=1))))
    answer = client.get(URL, {"series": "circle"})
    assert answer.status_code == 409
    assert problem(answer)["code"] == "too_few"


def test_a_series_that_never_ran_has_too_few_runs(circle: Series, client: Client) -> None:
    answer = client.get(URL, {"series": "circle"})
    assert (answer.status_code, problem(answer)["code"]) == (409, "too_few")


def test_an_unknown_metric_is_answered_with_the_known_ones(history: Series, client: Client) -> None:
    answer = client.get(URL, {"series": "circle", "metric": "total.minutes"})
    assert answer.status_code == 404
    assert "total.seconds" in problem(answer)["known"]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({}, 422, "series"),
        ({"series": "nobody-knows"}, 404, "nobody-knows"),
        ({"series": "circle", "level": "1.5"}, 422, "level"),
        ({"series": "circle", "level": "nan"}, 422, "level"),
        ({"series": "circle", "method": "../nws"}, 422, "../nws"),
        ({"series": "circle\x00"}, 422, "NUL"),
        ({"series": "circle", "quantiles": "0.5,1.5"}, 422, "quantiles"),
        ({"series": "circle", "quantiles": "nan"}, 422, "quantiles"),
        ({"series": "circle", "quantiles": "half"}, 422, "quantiles"),
        ({"series": "circle", "quantiles": ",".join(["0.5"] * 51)}, 422, "quantiles"),
        ({"series": "circle", "horizon_seconds": "-1"}, 422, "horizon"),
        ({"series": "circle", "horizon_seconds": "1e300"}, 422, "horizon"),
        (
            {"series": "circle", "horizon_seconds": "1", "at": "2100-01-01T00:00:00Z"},
            422,
            "at and horizon_seconds",
        ),
        ({"series": "circle", "at": "2100-01-01T00:00:00Z"}, 422, "within a year"),
        ({"series": "circle", "at": "yesterday"}, 422, "at"),
        ({"series": "circle", "at": "2100-01-01T00:00:00"}, 422, "zone"),
        ({"series": "circle", "horizon": "60"}, 422, "'horizon'"),
        ({"series": "circle", "resources": "here"}, 422, "resources"),
        ({"series": "circle", "total": "i"}, 422, "total"),
        ({"series": "circle", "total": "total", "stage": "init"}, 422, "stage and total"),
        ({"series": "circle", "max_age_seconds": "-1"}, 422, "max_age"),
    ],
)
def test_an_invalid_query_names_the_error(
    history: Series, client: Client, query: dict[str, str], status: int, message: str
) -> None:
    answer = client.get(URL, query)
    assert answer.status_code == status
    assert message in problem(answer)["detail"]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer gcast_wrong", "Basic dmlld2VyOng=", "Bearer \x00"])
def test_without_a_token_there_is_no_answer(history: Series, header: str) -> None:
    answer = Client(headers={"authorization": header}).get(URL, {"series": "circle"})
    assert answer.status_code == 401
    assert problem(answer)["code"] == "not_authenticated"


def test_expired_tokens_and_those_of_inactive_users_are_refused(
    history: Series, client: Client, viewer: User
) -> None:
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get(URL, {"series": "circle"}).status_code == 401
    ApiToken.objects.update(expires_at=None)
    User.objects.update(is_active=False)
    assert client.get(URL, {"series": "circle"}).status_code == 401


def test_a_level_is_rounded_to_whole_percents(history: Series, client: Client) -> None:
    for digits in range(20):
        answer = client.get(URL, {"series": "circle", "level": f"0.9000{digits}"})
        assert answer.json()["interval"]["level"] == 0.9
    assert Forecast.objects.filter(metric__name="total.seconds").count() == 1


def test_a_token_with_the_scope_run_does_not_read(history: Series, client: Client) -> None:
    ApiToken.objects.update(scopes=[RUN])
    for url in (URL, "/api/v1/series", "/api/v1/runs"):
        answer = client.get(url, {"series": "circle"})
        assert answer.status_code == 403
        assert "'read'" in problem(answer)["detail"]


@pytest.mark.parametrize("url", ["/api/v1/runs", URL])
def test_a_name_that_cannot_be_stored_is_no_internal_error(history: Series, client: Client, url: str) -> None:
    assert problem(client.get(url, {"series": "\x00"}))["status"] == 422


def test_a_session_is_accepted_too(history: Series, viewer: User) -> None:
    client = Client()
    client.force_login(viewer)
    assert client.get(URL, {"series": "circle"}).status_code == 200


def test_an_invisible_suite_is_unknown(history: Series, client: Client, viewer: User) -> None:
    staff = Group.objects.create(name="staff")
    Suite.objects.get().viewers.add(staff)
    assert client.get(URL, {"series": "circle"}).status_code == 404
    viewer.groups.add(staff)
    assert client.get(URL, {"series": "circle"}).status_code == 200


def test_only_permitted_users_queue_runs(circle: Series, client: Client, viewer: User) -> None:
    url = "/api/v1/series/circle/runs"
    assert post(client, url).status_code == 403
    viewer.user_permissions.add(Permission.objects.get(codename="run_series"))
    assert post(client, url).status_code == 403  # the token's scope is to read
    ApiToken.objects.update(scopes=[READ, RUN])
    answer = post(client, url)
    assert answer.status_code == 202
    assert str(Run.objects.get().pk) == answer.json()["id"]
    assert client.get(answer["Location"]).json()["state"] == "expected"
    assert Run.objects.get().trigger == "asked for by viewer"


def test_a_forged_request_with_a_session_starts_no_run(circle: Series, viewer: User) -> None:
    viewer.user_permissions.add(Permission.objects.get(codename="run_series"))
    client = Client(enforce_csrf_checks=True)
    client.force_login(viewer)
    assert post(client, "/api/v1/series/circle/runs").status_code == 403
    assert not Run.objects.exists()


def test_the_values_of_a_metric_are_sorted(history: Series, client: Client) -> None:
    answer = client.get("/api/v1/series/circle/metrics/total.seconds", {"newest": 3})
    times = [point["time"] for point in answer.json()["points"]]
    assert len(times) == 3
    assert times == sorted(times)


def test_the_latest_runs_come_first(history: Series, client: Client) -> None:
    runs = client.get("/api/v1/runs", {"series": "circle"}).json()["runs"]
    assert [run["state"] for run in runs] == ["passed"] * 5
    assert client.get(f"/api/v1/runs/{runs[0]['id']}").json() == {**runs[0], "conflicts": []}


def test_the_openapi_document_lists_the_forecasts(client: Client) -> None:
    assert client.get("/api/v1/openapi.json").json()["openapi"].startswith("3.1")


def changed(series: Series) -> None:
    Series.objects.filter(pk=series.pk).update(parameters={"file_bytes": 100_000_000})


def deliver_larger(minutes_ago: float) -> None:
    parameters = checked_parameters(CIRCLE, {"file_bytes": 100_000_000})
    slot = timezone.now() - timedelta(minutes=minutes_ago)
    ingest(wire.to_json(circle_report(slot, ring_seconds=10.0, parameters=parameters)))


def test_after_a_change_there_is_no_forecast_until_enough_runs_passed(
    history: Series, client: Client
) -> None:
    changed(history)
    answer = client.get(URL, {"series": "circle"})
    assert answer.status_code == 409
    assert problem(answer)["code"] == "segment_changed"
    assert "no run has passed since its parameters changed" in problem(answer)["detail"]
    assert problem(answer)["changed"] == ["file_bytes 1 kB -> 100 MB"]
    deliver_larger(0.9)
    today = f"{timezone.now():%Y-%m-%d}"
    answer = client.get(URL, {"series": "circle"})
    assert f"1 run has passed since its parameters changed on {today}" in problem(answer)["detail"]
    deliver_larger(0.8)
    deliver_larger(0.7)
    answer = client.get(URL, {"series": "circle"})
    assert (answer.json()["n"], answer.json()["mean"] > 10) == (3, True)


def test_values_are_of_the_current_segment_unless_another_is_named(history: Series, client: Client) -> None:
    url = "/api/v1/series/circle/metrics/total.seconds"
    changed(history)
    assert (client.get(url).json()["segment"], client.get(url).json()["points"]) == (None, [])
    deliver_larger(0.5)
    assert (client.get(url).json()["segment"], len(client.get(url).json()["points"])) == (2, 1)
    assert len(client.get(url, {"segment": 1}).json()["points"]) == 5


def test_the_segments_of_a_series_are_listed(history: Series, client: Client) -> None:
    changed(history)
    deliver_larger(0.5)
    segment, other = client.get("/api/v1/series/circle/segments").json()["segments"]
    assert (segment["number"], segment["is_current"], segment["parameters"]["file_bytes"]) == (1, False, 1000)
    assert (other["number"], other["is_current"], other["parameters"]["file_bytes"]) == (2, True, 100_000_000)
    assert other["bindings"] == {"ring": ["here", "there"]}
    assert client.get("/api/v1/series/nobody-knows/segments").status_code == 404


def later(work: Callable[[], object], at: threading.Event) -> Future[object]:
    """Do *work* in a thread with a connection of its own when *at* is set."""

    def run() -> object:
        try:
            assert at.wait(60)
            return work()
        finally:
            connection.close()

    return ThreadPoolExecutor(1).submit(run)


@pytest.mark.django_db(transaction=True)
def test_a_client_that_prefers_to_wait_gets_a_first_forecast_in_one_request(
    history: Series, client: Client, settings: LazySettings
) -> None:
    settings.GRIDCAST_FORECAST_SECONDS = 0.0  # the request computes nothing
    is_asked = threading.Event()
    worker = later(lambda: refresh_all(timezone.now()), is_asked)
    question = {"series": "circle", "metric": "ring.bytes_per_second"}
    is_asked.set()
    answer = client.get(URL, question, headers={"prefer": "respond-async, wait=10"})
    worker.result()
    if answer.status_code == 503:  # a busy machine: the worker needed more than ten seconds
        answer = client.get(URL, question, headers={"prefer": "wait=10"})
    assert (answer.status_code, answer.json()["n"]) == (200, 5)


def test_a_preference_that_is_over_is_told_with_the_refusal(
    history: Series, client: Client, settings: LazySettings
) -> None:
    settings.GRIDCAST_FORECAST_SECONDS = 0.0
    answer = client.get(URL, {"series": "circle"}, headers={"prefer": "wait=1"})
    assert (answer.status_code, answer["Preference-Applied"]) == (503, "wait=1")
    assert int(answer["Retry-After"]) >= 1
    without = client.get(URL, {"series": "circle"})
    assert (without.status_code, without.has_header("Preference-Applied")) == (503, False)


class Asked:
    """A question that is ready when it was asked so many times."""

    def __init__(self, ready_after: int) -> None:
        self.ready_after, self.times = ready_after, 0

    def __call__(self, seconds: float | None) -> str:
        self.times += 1
        if self.times < self.ready_after:
            raise NotReady("it is being computed")
        return "ready"


def preferring(header: str) -> HttpRequest:
    return RequestFactory().get(URL, headers={"prefer": header})


def test_only_some_threads_wait_and_further_requests_are_refused_at_once() -> None:
    waiting, inside, go_on = Waiting(most=1), threading.Event(), threading.Event()

    def ask(seconds: float | None) -> str:
        if seconds is None:
            raise NotReady("it is being computed")
        inside.set()
        assert go_on.wait(60)
        return "ready"

    with ThreadPoolExecutor(1) as pool:
        request = preferring("wait=10")
        first = pool.submit(waiting.answer, request, ask)
        assert inside.wait(60)
        further = Asked(ready_after=2)
        with pytest.raises(NotReady) as refused:
            waiting.answer(preferring("wait=10"), further)
        assert (further.times, refused.value.preference) == (1, "")
        go_on.set()
        assert first.result() == "ready"
        assert request.preference == "wait=10"  # type: ignore[attr-defined]
    assert waiting.answer(preferring("wait=10"), Asked(ready_after=3)) == "ready"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=5", 5),
        ("WAIT = 7", 7),
        ('wait="3"', 3),
        ("respond-async, wait=4; x=y", 4),
        ("wait=99999999999999999999", 10),
        ("wait=2, wait=9", 2),
        ("wait=0", 0),
        ("wait=-1", 0),
        ("wait", 0),
        ("wait=1.5", 0),
        ("waiting=5", 0),
        ("", 0),
    ],
)
def test_the_preference_is_read_as_rfc_7240_says_and_bounded(header: str, seconds: int) -> None:
    assert preferred_wait_seconds(header) == seconds
