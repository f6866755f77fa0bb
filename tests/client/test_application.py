"""The client and the real application."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TypedDict

import pytest
from django.utils import timezone

from gridcast_client import Client, Ended, NoForecast, NotAllowed, Refused
from monitor.models import Outcome, Run
from reporters import report as wire
from tests.client.grid_rows import RINGS, define_rings, new_token
from tests.client.in_process import URL, application
from tests.monitor.builders import circle_report


class Times(TypedDict):
    started_at: datetime
    ended_at: datetime


def a_minute_until_now() -> Times:
    now = timezone.now()
    return {"started_at": now - timedelta(minutes=1), "ended_at": now}


@pytest.fixture
def token(db: None) -> str:
    define_rings()
    return new_token()


@pytest.fixture
def client(token: str) -> Client:
    return Client(URL, token, transport=application, environ={})


def test_a_forecast_is_asked_by_series(client: Client) -> None:
    forecast = client.ask("quick", quantiles=[0.5, 0.9])
    assert (forecast.series, forecast.metric, forecast.unit) == ("quick", "total.seconds", "seconds")
    assert forecast.median == pytest.approx(10.0)
    assert list(forecast.quantiles) == [0.5, 0.9]
    assert forecast.interval.lower <= forecast.median <= forecast.interval.upper
    assert forecast.success is not None
    assert forecast.success.probability == 0.75
    assert forecast.n == 4
    assert forecast.issued_at.tzinfo is not None
    assert forecast.at <= timezone.now()


def test_a_forecast_is_asked_by_application_and_path(client: Client) -> None:
    by_role = client.ask(application="circle", roles={"ring": RINGS["slow"]}, stage="transfer_ring")
    assert (by_role.series, by_role.metric) == ("slow", "stage.transfer_ring.seconds")
    later = timezone.now() + timedelta(hours=2)
    by_resources = client.ask(application="circle", resources=("gamma", "beta"), at=later, total="core")
    assert (by_resources.series, by_resources.metric) == ("slow", "total_core.seconds")
    assert abs(by_resources.at - later) < timedelta(seconds=1)
    ahead = client.ask("slow", horizon_seconds=3600, level=0.9, method="auto", max_age_seconds=10 * 86400)
    assert ahead.interval.level == 0.9


def test_a_series_without_runs_has_no_forecast(client: Client) -> None:
    with pytest.raises(NoForecast) as raised:
        client.ask("new")
    assert raised.value.code == "too_few"
    assert not raised.value.again


def test_what_does_not_exist_is_refused_with_what_exists(client: Client) -> None:
    with pytest.raises(Refused, match="404 unknown_series: there is no series 'x&y=1' that you may see"):
        client.ask("x&y=1")
    with pytest.raises(Refused) as raised:
        client.ask("quick", metric="nosuch")
    assert "total.seconds" in raised.value.fields["known"]


def test_series_are_ranked(client: Client) -> None:
    ranking = client.rank(["slow", "new", "quick"], quantile=0.5)
    assert [(each.rank, each.series, each.candidate) for each in ranking.ranked] == [
        (1, "quick", 2),
        (2, "slow", 0),
    ]
    assert ranking.ranked[0].seconds == pytest.approx(15.0)
    assert [(each.candidate, each.code) for each in ranking.unranked] == [(1, "too_few")]


def test_candidates_come_back_with_their_keys(client: Client) -> None:
    paths = {name: {"ring": ring} for name, ring in RINGS.items()}
    ranking = client.rank(paths, application="circle", horizon_seconds=60)
    assert [each.key for each in ranking.ranked] == ["quick", "slow"]
    assert [each.key for each in ranking.unranked] == ["new"]
    by_set = client.rank([["gamma", "beta"], ["beta", "alpha"]], application="circle")
    assert [(each.series, each.key) for each in by_set.ranked] == [("quick", None), ("slow", None)]


def test_an_outcome_is_told_once(client: Client) -> None:
    forecast = client.ask("quick").id
    times = a_minute_until_now()
    told = [client.tell(forecast, "job-1", "passed", **times, seconds=12.0) for _ in range(2)]
    assert [(each.job, each.seconds, each.is_duplicate) for each in told] == [
        ("job-1", 12.0, False),
        ("job-1", 12.0, True),
    ]
    assert Outcome.objects.get().seconds == 12.0
    with pytest.raises(Refused, match="409 conflict"):
        client.tell(forecast, "job-1", "failed", **times)


def test_outcomes_of_many_jobs_are_told_with_receipts(client: Client) -> None:
    forecast = client.ask("quick").id
    times = a_minute_until_now()
    jobs = [Ended(forecast, f"job-{number}", "passed", **times, seconds=12.0) for number in range(3)]
    receipts = client.tell_all([*jobs, Ended(10**9, "lost", "failed", **times)])
    assert [receipt.stored and receipt.stored.job for receipt in receipts] == [
        "job-0",
        "job-1",
        "job-2",
        None,
    ]
    assert (receipts[3].code, "1000000000" in receipts[3].error) == ("unknown_forecast", True)
    assert {receipt.stored and receipt.stored.is_duplicate for receipt in client.tell_all(jobs)} == {True}
    assert client.tell_all([]) == []
    assert Outcome.objects.count() == 3


def test_reports_are_sent_with_receipts_and_count_once(client: Client) -> None:
    slots = [timezone.now() - timedelta(minutes=number) for number in (30, 20)]
    bodies = [wire.to_json(circle_report(slot, series="new")) for slot in slots]
    sent = client.send([*bodies, {"series": "new", "slot": "yesterday"}])
    assert [receipt.accepted for receipt in sent.receipts] == [True, True, False]
    assert len(sent.refused) == 1
    assert [receipt.duplicate for receipt in client.send(bodies).receipts] == [True, True]
    assert Run.objects.filter(series__name="new").count() == 2


def test_only_refused_reports_give_receipts_too(client: Client) -> None:
    (error,) = client.send([{"slot": "x"}]).refused
    assert "expected" in error or "missing" in error


def test_outcomes_and_reports_go_through_the_spool(client: Client, token: str, tmp_path: Path) -> None:
    spooling = Client(URL, token, spool=tmp_path / "spool", transport=application, environ={})
    forecast = client.ask("slow").id
    times = a_minute_until_now()
    later = spooling.tell_later(forecast, "job-2", "failed", **times)
    assert [each.job for each in later.told] == ["job-2"]
    again = spooling.tell_later(10**9, "job-3", "failed", **times)
    assert (again.told, again.waiting, again.error) == ((), 0, None)
    assert "unknown_forecast: there is no forecast" in again.refused[0]
    assert "unknown_forecast" in next((tmp_path / "spool" / "refused").iterdir()).read_text()
    sent = spooling.send([wire.to_json(circle_report(timezone.now() - timedelta(minutes=9), series="new"))])
    assert ([receipt.accepted for receipt in sent.receipts], sent.waiting, sent.error) == ([True], 0, None)


def test_runs_are_listed_page_by_page(client: Client) -> None:
    runs = list(client.runs(series="quick"))
    assert len(runs) == 4
    assert [run.slot for run in runs] == sorted((run.slot for run in runs), reverse=True)
    assert {run.state for run in runs} == {"passed"}
    assert [run.id for run in client.runs(series="quick", limit=3)] == [run.id for run in runs[:3]]
    assert client.run(runs[0].id).series == "quick"


def test_series_sites_and_resources_are_listed(client: Client) -> None:
    assert {each.name for each in client.series()} == set(RINGS)
    assert {site.name for site in client.sites()} == {"site-of-alpha", "site-of-beta", "site-of-gamma"}
    assert {each.name for each in client.resources(site="site-of-beta")} == {"beta"}


def test_without_a_token_nothing_is_answered(client: Client) -> None:
    with pytest.raises(NotAllowed, match="401 not_authenticated"):
        Client(URL, transport=application, environ={}).ask("quick")
