"""Job outcomes over the API."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.prune import keep_newest, prune_deliveries
from monitor.analysis.forecasts.rank import rank
from monitor.analysis.forecasts.refresh import refresh_all
from monitor.models import (
    ApiToken,
    ForecastDelivery,
    ForecastState,
    Metric,
    Outcome,
    PendingChange,
    Series,
    Suite,
)
from monitor.models import Forecast as Issued
from monitor.models.token import OUTCOME, READ
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.analysis.forecasts.io_builders import io_grid
from tests.monitor.builders import circle_report

ACCURACY = "/api/v1/forecasts/accuracy"
MANY = "/api/v1/forecasts/outcomes"


def new_user(name: str, *permissions: str) -> User:
    user = User.objects.create_user(name)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


def client_of(user: User, *scopes: str) -> Client:
    token = ApiToken.objects.issue(user, f"of {user}", list(scopes))
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def scheduler(db: None) -> User:
    return new_user("scheduler", "add_outcome")


@pytest.fixture
def client(scheduler: User) -> Client:
    return client_of(scheduler, READ, OUTCOME)


@pytest.fixture
def forecast(circle: Series) -> Issued:
    """A forecast of about 7 seconds, issued an hour ago."""
    for number in range(4, 0, -1):
        slot = timezone.now() - timedelta(hours=2, minutes=number)
        ingest(wire.to_json(circle_report(slot)))
    total = Metric.objects.get(name="total.seconds")
    issued = issue(total, timezone.now())
    Issued.objects.filter(pk=issued.pk).update(issued_at=timezone.now() - timedelta(hours=1))
    return Issued.objects.get(pk=issued.pk)


def tell(client: Client, forecast: int, **changes: Any) -> Any:
    now = timezone.now()
    message = {
        "job": "job-1",
        "outcome": "passed",
        "started_at": (now - timedelta(minutes=10)).isoformat(),
        "ended_at": (now - timedelta(minutes=5)).isoformat(),
        "seconds": 8.0,
    }
    url = f"/api/v1/forecasts/{forecast}/outcome"
    return client.post(url, {**message, **changes}, content_type="application/json")


def test_an_outcome_is_stored_and_updates_forecasts(
    forecast: Issued, client: Client, scheduler: User
) -> None:
    PendingChange.objects.all().delete()
    answer = tell(client, forecast.pk)
    assert answer.status_code == 201
    assert (answer.json()["seconds"], answer.json()["is_duplicate"]) == (8.0, False)
    outcome = Outcome.objects.get()
    assert (outcome.forecast, outcome.metric, outcome.consumer) == (forecast, forecast.metric, scheduler)
    assert (outcome.passed, outcome.seconds) == (True, 8.0)
    assert PendingChange.objects.filter(series=forecast.metric.segment.series_id).exists()


def test_a_job_where_the_application_had_not_run_may_have_an_outcome(client: Client, scheduler: User) -> None:
    now = timezone.now() - timedelta(hours=1)
    grid = io_grid(now)
    (ranked,), _ = rank(
        scheduler, "series", [grid.target.name], application="", probability=0.9, at=now, now=now
    )
    assert ranked.candidate.forecast is not None
    assert tell(client, ranked.candidate.forecast).status_code == 201
    assert Outcome.objects.get().metric.segment.series == grid.target


def test_without_seconds_the_whole_job_counts(forecast: Issued, client: Client) -> None:
    assert tell(client, forecast.pk, seconds=None).json()["seconds"] == pytest.approx(300.0)


def test_the_same_outcome_is_stored_once(forecast: Issued, client: Client) -> None:
    now = timezone.now()
    times = {"started_at": (now - timedelta(minutes=1)).isoformat(), "ended_at": now.isoformat()}
    assert tell(client, forecast.pk, **times).status_code == 201
    again = tell(client, forecast.pk, **times)
    assert (again.status_code, again.json()["is_duplicate"]) == (200, True)
    other = tell(client, forecast.pk, **times, outcome="failed")
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert Outcome.objects.count() == 1


def job_of(issued_forecast: Issued, job: str, **changes: Any) -> dict[str, Any]:
    """Return a job as one of many, whose times are those of every other."""
    issued = issued_forecast.issued_at
    times = {"started_at": issued + timedelta(minutes=10), "ended_at": issued + timedelta(minutes=15)}
    told = {"forecast": issued_forecast.pk, "job": job, "outcome": "passed", "seconds": 8.0}
    return {**told, **{name: time.isoformat() for name, time in times.items()}, **changes}


def tell_many(client: Client, *jobs: Any) -> Any:
    return client.post(MANY, json.dumps(jobs), content_type="application/json")


def test_a_thousand_outcomes_are_stored_by_a_few_statements(
    forecast: Issued, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    PendingChange.objects.all().delete()
    jobs = [job_of(forecast, f"job-{number}") for number in range(1000)]
    with django_assert_max_num_queries(12):
        answer = tell_many(client, *jobs)
    assert (answer.status_code, answer.json()["refused"]) == (200, [])
    assert [each["stored"]["job"] for each in answer.json()["outcomes"]] == [job["job"] for job in jobs]
    assert Outcome.objects.count() == 1000
    assert PendingChange.objects.filter(series=forecast.metric.segment.series_id).count() == 1
    again = tell_many(client, *jobs).json()
    assert {each["stored"]["is_duplicate"] for each in again["outcomes"]} == {True}
    assert Outcome.objects.count() == 1000
    full = tell_many(client, job_of(forecast, "one more"), jobs[7]).json()
    assert (full["refused"], full["outcomes"][0]["code"]) == ([0], "invalid")
    assert "1000 outcomes of this forecast" in full["outcomes"][0]["error"]


def test_a_refused_outcome_keeps_no_other_from_being_stored(forecast: Issued, client: Client) -> None:
    tell_many(client, job_of(forecast, "before"))
    answer = tell_many(
        client,
        job_of(forecast, "first"),
        job_of(forecast, "other", forecast=10**9),
        job_of(forecast, "before", outcome="failed"),
        job_of(forecast, "late", ended_at="2199-01-01T00:00:00Z"),
        job_of(forecast, "zoneless", started_at="2026-03-01T12:00:00"),
        {"job": "half"},
        7,
        job_of(forecast, "extra", second=8.0),
        job_of(forecast, " "),
        job_of(forecast, "last"),
    )
    assert answer.status_code == 200
    receipts = answer.json()["outcomes"]
    assert answer.json()["refused"] == list(range(1, 9))
    assert [receipt["code"] for receipt in receipts] == [
        *("", "unknown_forecast", "conflict"), *["invalid"] * 6, ""
    ]  # fmt: skip
    named = ["", "1000000000", "before", "ended_at", "zone", "outcome", "", "second", "job", ""]
    assert [name in receipt["error"] for name, receipt in zip(named, receipts, strict=True)] == [True] * 10
    assert set(Outcome.objects.values_list("job", flat=True)) == {"before", "first", "last"}


def test_a_job_that_is_named_twice_in_a_request_counts_once(forecast: Issued, client: Client) -> None:
    jobs = [job_of(forecast, "a"), job_of(forecast, "a"), job_of(forecast, "a", outcome="failed")]
    first, second, third = tell_many(client, *jobs).json()["outcomes"]
    assert (first["stored"]["is_duplicate"], second["stored"]["is_duplicate"]) == (False, True)
    assert (third["stored"], third["code"]) == (None, "conflict")
    assert Outcome.objects.get().passed


def test_the_outcomes_of_a_request_are_those_of_its_user(forecast: Issued, client: Client) -> None:
    other = client_of(new_user("other", "add_outcome"), OUTCOME)
    for teller in (client, other):
        answer = tell_many(teller, job_of(forecast, "a"))
        assert answer.json().get("refused") == [], answer.json()
    assert Outcome.objects.count() == 2
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    assert tell_many(client, job_of(forecast, "b")).json()["outcomes"][0]["code"] == "unknown_forecast"


@pytest.mark.parametrize(
    ("jobs", "status"), [([], 422), ([{}] * 1001, 422), ({"outcomes": []}, 422), (None, 422)]
)
def test_a_request_without_a_list_of_at_most_a_thousand_is_refused(
    forecast: Issued, client: Client, jobs: Any, status: int
) -> None:
    assert client.post(MANY, json.dumps(jobs), content_type="application/json").status_code == status


def test_many_outcomes_need_the_permission(forecast: Issued, scheduler: User) -> None:
    for teller, status in ((client_of(scheduler, READ), 403), (Client(), 401)):
        assert tell_many(teller, job_of(forecast, "a")).status_code == status
    assert not Outcome.objects.exists()


def test_a_forecast_may_have_several_jobs_and_users_may_reuse_their_names(
    forecast: Issued, client: Client
) -> None:
    other = client_of(new_user("other", "add_outcome"), OUTCOME)
    answers = [tell(client, forecast.pk), tell(client, forecast.pk, job="job-2"), tell(other, forecast.pk)]
    assert [answer.status_code for answer in answers] == [201] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job": ""}, "job"),
        ({"job": "j" * 201}, "job"),
        ({"job": "a\x00b"}, "job"),
        ({"outcome": "lost"}, "outcome"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": 1e300}, "seconds"),
        ({"seconds": 302.0}, "300 from start to end"),
        ({"second": 8.0}, "second"),
        ({"ended_at": "2199-01-01T00:00:00Z"}, "ended_at"),
        ({"started_at": "2026-01-01T00:00:00Z"}, "when the forecast was issued"),
        ({"started_at": "0001-01-01T00:00:00Z"}, "started_at"),
        ({"started_at": "2026-03-01T12:00:00"}, "zone"),
        ({"started_at": "now"}, "started_at"),
    ],
)
def test_impossible_outcomes_are_refused(
    forecast: Issued, client: Client, changes: dict[str, Any], message: str
) -> None:
    answer = tell(client, forecast.pk, **changes)
    assert answer["content-type"] == "application/problem+json"
    assert answer.status_code == 422
    assert message in answer.json()["detail"]
    assert not Outcome.objects.exists()


def test_a_job_does_not_end_before_it_starts(forecast: Issued, client: Client) -> None:
    now = timezone.now()
    before = (now - timedelta(minutes=30)).isoformat()
    assert tell(client, forecast.pk, ended_at=before).status_code == 422


@pytest.mark.parametrize("body", [b"{", b'{"job": NaN}', b"[]", b'{"seconds": NaN, "job": "j"}'])
def test_malformed_outcomes_are_refused(forecast: Issued, client: Client, body: bytes) -> None:
    url = f"/api/v1/forecasts/{forecast.pk}/outcome"
    assert client.post(url, body, content_type="application/json").status_code in {400, 422}


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [(0, 422, "invalid"), (10**9, 404, "unknown_forecast"), (10**30, 422, "invalid")],
)
def test_an_unknown_forecast_is_not_found(
    forecast: Issued, client: Client, number: int, status: int, code: str
) -> None:
    answer = tell(client, number)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def ask(client: Client, forecast: Issued) -> list[int]:
    """Request a forecast and a ranking; return their ids."""
    series = forecast.metric.segment.series.name
    refresh_all(timezone.now())
    message = client.get("/api/v1/forecasts", {"series": series}).json()
    question = {"candidates": [{"series": series}]}
    ranked = client.post("/api/v1/forecasts/rank", question, content_type="application/json").json()
    return [message["id"], ranked["ranked"][0]["forecast"]]


def superseded(forecast: Issued) -> None:
    """Replace the forecast by another one, days ago."""
    days_ago = timezone.now() - timedelta(days=3)
    Issued.objects.filter(pk=forecast.pk).update(counts=False, issued_at=days_ago)
    ForecastState.objects.filter(forecast=forecast).update(forecast=None)
    keep_newest({forecast.metric_id: forecast.metric.name}, timezone.now())


def test_a_delivered_forecast_accepts_outcomes_after_newer_ones(forecast: Issued, client: Client) -> None:
    assert ask(client, forecast) == [forecast.pk] * 2
    superseded(forecast)
    assert tell(client, forecast.pk).status_code == 201


@pytest.mark.parametrize(("days", "noted_again"), [(0.5, False), (1.5, True)])
def test_a_delivery_is_recorded_once_a_day(
    forecast: Issued, client: Client, days: float, noted_again: bool
) -> None:
    ask(client, forecast)
    before = timezone.now() - timedelta(days=days)
    ForecastDelivery.objects.update(delivered_at=before)
    ask(client, forecast)
    assert (ForecastDelivery.objects.get().delivered_at != before) is noted_again


def test_deliveries_expire_after_a_month(forecast: Issued, client: Client) -> None:
    ask(client, forecast)
    assert prune_deliveries(timezone.now() + timedelta(days=29)) == 0
    assert prune_deliveries(timezone.now() + timedelta(days=31)) == 1
    superseded(forecast)
    assert tell(client, forecast.pk).json()["code"] == "unknown_forecast"


def test_deliveries_for_a_later_start_expire_a_month_after_it(forecast: Issued, client: Client) -> None:
    client.get("/api/v1/forecasts", {"series": "circle", "horizon_seconds": f"{60 * 86_400}"})
    assert prune_deliveries(timezone.now() + timedelta(days=89)) == 0
    assert prune_deliveries(timezone.now() + timedelta(days=91)) == 1


def test_a_forecast_of_an_invisible_series_is_unknown(forecast: Issued, client: Client) -> None:
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    assert tell(client, forecast.pk).status_code == 404


def test_a_forecast_that_is_no_duration_accepts_no_outcome(forecast: Issued, client: Client) -> None:
    rate = issue(Metric.objects.get(name="ring.bytes_per_second"), timezone.now())
    assert "bytes_per_second" in tell(client, rate.pk).json()["detail"]


def test_an_outcome_without_permission_is_refused(forecast: Issued, scheduler: User) -> None:
    assert tell(client_of(scheduler, READ), forecast.pk).status_code == 403
    assert tell(client_of(new_user("nobody"), OUTCOME), forecast.pk).status_code == 403
    assert tell(Client(), forecast.pk).status_code == 401


def test_accuracy_is_computed_from_outcomes(forecast: Issued, client: Client) -> None:
    assert client.get(ACCURACY).json() == {
        "consumer": "scheduler",
        **dict.fromkeys(["n", "passed"], 0),
        "level": 0.8,
        **dict.fromkeys(["mean_absolute_error", "relative_error", "mean_absolute_scaled_error"]),
        **dict.fromkeys(["coverage", "newest_at"]),
    }
    tell(client, forecast.pk, seconds=forecast.median)
    tell(client, forecast.pk, job="job-2", seconds=forecast.median * 2)
    tell(client, forecast.pk, job="job-3", outcome="failed", seconds=1.0)
    body = client.get(ACCURACY).json()
    assert (body["n"], body["passed"], body["coverage"]) == (3, 2, 0.5)
    assert body["mean_absolute_error"] == pytest.approx(forecast.median / 2)
    assert body["relative_error"] == pytest.approx(1 / 3)
    assert body["mean_absolute_scaled_error"] == pytest.approx(1.0)
    assert datetime.fromisoformat(body["newest_at"]) <= timezone.now()


def test_the_accuracy_of_others_needs_permission(forecast: Issued, client: Client) -> None:
    tell(client, forecast.pk)
    query = {"consumer": "scheduler"}
    assert client.get(ACCURACY, query).json()["n"] == 1
    assert client_of(new_user("curious"), READ).get(ACCURACY, query).status_code == 404
    operator = client_of(new_user("operator", "view_outcome"), READ)
    assert operator.get(ACCURACY, query).json()["n"] == 1
    assert client.get(ACCURACY, {"consumer": "no\x00body"}).status_code in {404, 422}
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    assert operator.get(ACCURACY, query).json()["n"] == 0
