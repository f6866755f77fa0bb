"""Ranking of paths over the API."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.forecasts.refresh import refresh_companions, refresh_requested
from monitor.depot.series.segments import current_bindings
from monitor.models import (
    ApiToken,
    ForecastState,
    MaintenanceWindow,
    Metric,
    Series,
    Site,
    SuccessState,
    Suite,
)
from monitor.models.token import READ, RUN
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from probes.base import checked_parameters
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.analysis.forecasts.io_builders import io_grid
from tests.monitor.builders import CIRCLE, circle_report

URL = "/api/v1/forecasts/rank"
HOSTS = ("alpha", "beta", "gamma")
MEDIANS = {"quick": 10.0, "slow": 30.0}


def ring_of(*names: str) -> dict[str, list[str]]:
    return {"ring": list(names)}


RINGS = {"quick": ring_of("alpha", "beta"), "slow": ring_of("beta", "gamma")}


def passes(series: str, *, seconds: float, runs: int = 4) -> None:
    """Let *runs* runs of *series* pass in about *seconds* each."""
    shown = Series.objects.get(name=series)
    bindings = current_bindings([shown.pk])[shown.pk]
    for number in range(runs, 0, -1):
        slot = timezone.now() - timedelta(minutes=number)
        report = circle_report(slot, series=series, ring_seconds=seconds - 3, bindings=bindings)
        ingest(wire.to_json(report))
    if runs > 2:
        issue(Metric.objects.get(segment__series=shown, name="total.seconds"), timezone.now())
    fields = {"n": runs, "probability": 0.75, "expected_seconds": seconds * 4 / 3, "is_behind": False}
    quantiles = [seconds * (1 + probability) for probability in QUANTILE_LEVELS]
    SuccessState.objects.update_or_create(series=shown, defaults={**fields, "quantiles": quantiles})


@pytest.fixture
def grid(db: None) -> None:
    """Two rings with runs, and one without."""
    resources = [ResourceConfig(name, f"site-of-{name}", f"/{name}") for name in HOSTS]
    rings = {**RINGS, "new": ring_of("alpha", "gamma")}
    define(
        resources, [SeriesDefinition(n, "circle", ring, {"file_bytes": 1000}) for n, ring in rings.items()]
    )
    for name, seconds in MEDIANS.items():
        passes(name, seconds=seconds)


@pytest.fixture
def client(db: None) -> Client:
    token = ApiToken.objects.issue(User.objects.create_user("viewer"), "scheduler", [READ])
    return Client(headers={"authorization": f"Bearer {token}"})


def ask(client: Client, **asked: Any) -> Any:
    """Ask for the ranking of candidates, given as series, as resources by role, or as resources."""
    if isinstance(candidates := asked.get("candidates"), list):
        asked["candidates"] = [as_candidate(candidate) for candidate in candidates]
    return client.post(URL, json.dumps(asked), content_type="application/json")


class Whole(dict[str, Any]):
    """A candidate as it is sent."""


def as_candidate(way: Any) -> Any:
    kinds: dict[type, str] = {str: "series", dict: "roles", list: "resources"}
    return {kinds[type(way)]: way} if type(way) in kinds else way


def ask_for(client: Client, *candidates: Any, **more: Any) -> dict[str, Any]:
    answer = ask(client, application="circle", candidates=list(candidates), **more)
    assert answer.status_code == 200, answer.content
    shown: dict[str, Any] = answer.json()
    return shown


def test_the_fastest_candidate_comes_first(grid: None, client: Client) -> None:
    body = ask_for(client, RINGS["slow"], RINGS["quick"])
    assert [(entry["rank"], entry["series"], entry["candidate"]) for entry in body["ranked"]] == [
        (1, "quick", 1),
        (2, "slow", 0),
    ]
    assert body["unranked"] == []
    assert body["quantile"] == 0.9
    first = body["ranked"][0]
    assert first["seconds"] == pytest.approx(10.0 * 1.9)
    assert first["median"] == pytest.approx(10.0)
    assert (first["n"], first["success_probability"], first["is_tied"]) == (4, 0.75, False)
    assert first["expected_seconds"] == pytest.approx(10.0 * 4 / 3)
    assert 0 <= first["data_age_seconds"] < 600


def test_a_candidate_has_the_key_of_the_caller(grid: None, client: Client) -> None:
    slow, unknown = {"key": "site B", "roles": RINGS["slow"]}, {"key": "site A", "roles": {"ring": ["x"]}}
    answer = ask(client, application="circle", candidates=[Whole(slow), Whole(unknown)]).json()
    assert [entry["key"] for entry in answer["ranked"]] == ["site B"]
    assert [entry["key"] for entry in answer["unranked"]] == ["site A"]


def test_other_quantiles_are_interpolated(grid: None, client: Client) -> None:
    (entry,) = ask_for(client, RINGS["quick"], quantile=0.85)["ranked"]
    assert entry["seconds"] == pytest.approx(10.0 * 1.85)


def test_candidates_without_a_forecast_are_listed_with_the_reason(grid: None, client: Client) -> None:
    unknown = ring_of("beta", "alpha")
    body = ask_for(client, unknown, RINGS["quick"], ring_of("alpha", "gamma"))
    assert [entry["series"] for entry in body["ranked"]] == ["quick"]
    assert [(entry["candidate"], entry["code"], entry["series"]) for entry in body["unranked"]] == [
        (0, "unknown", []),
        (2, "too_few", ["new"]),
    ]


def test_a_path_without_a_run_says_what_its_forecast_is_based_on(db: None, client: Client) -> None:
    grid = io_grid(timezone.now())
    answer = ask(client, candidates=[grid.reference.name, grid.target.name]).json()
    elsewhere, here = answer["ranked"]
    assert (elsewhere["series"], elsewhere["method"], elsewhere["n"]) == ("madbench-flash", "elsewhere", 0)
    assert (here["method"], here["basis"]) == ("auto", None)
    basis = elsewhere["basis"]
    assert (basis["reference"], basis["replay"]) == ("madbench-disk", "replay-flash")
    assert len(basis["signature"]) == 16
    assert basis["reference_age_seconds"] == pytest.approx(3600, abs=60)
    assert [each["name"] for each in basis["classes"]] == ["read", "write"]
    assert elsewhere["median"] == pytest.approx(
        basis["io_seconds"] + basis["compute_seconds"] + basis["queue_seconds"]
    )


def test_a_changed_configuration_is_a_reason(grid: None, client: Client) -> None:
    Series.objects.filter(name="quick").update(parameters={"file_bytes": 7})
    (entry,) = ask(client, candidates=["quick"]).json()["unranked"]
    assert entry["code"] == "segment_changed"


def test_a_changed_configuration_is_the_reason_until_enough_runs_passed(grid: None, client: Client) -> None:
    parameters = {"file_bytes": 100_000_000}
    Series.objects.filter(name="quick").update(parameters=parameters)
    for number in (50, 40):
        slot = timezone.now() - timedelta(seconds=number)
        larger = checked_parameters(CIRCLE, parameters)
        report = circle_report(slot, series="quick", parameters=larger, bindings=RINGS["quick"])
        assert ingest(wire.to_json(report)).accepted
        (entry,) = ask(client, candidates=["quick"]).json()["unranked"]
        of_one = client.get(f"{URL.removesuffix('/rank')}?series=quick").json()
        assert entry["code"] == of_one["code"] == "segment_changed"
    (entry,) = ask(client, candidates=["quick"]).json()["unranked"]
    assert entry["detail"].startswith("2 runs have passed since its parameters changed on")


def test_too_few_runs_give_no_rank(grid: None, client: Client) -> None:
    passes("new", seconds=5.0, runs=1)
    (entry,) = ask_for(client, ring_of("alpha", "gamma"))["unranked"]
    assert entry["code"] == "too_few"


def test_equal_candidates_are_tied(grid: None, client: Client) -> None:
    passes("new", seconds=10.0)
    body = ask_for(client, RINGS["slow"], ring_of("alpha", "gamma"), RINGS["quick"])
    assert [(entry["rank"], entry["is_tied"], entry["series"]) for entry in body["ranked"]] == [
        (1, True, "new"),
        (1, True, "quick"),
        (3, False, "slow"),
    ]


def test_a_site_is_down_at_the_requested_time(grid: None, client: Client) -> None:
    began = timezone.now()
    work = MaintenanceWindow.objects.create(name="disks", starts_at=began, ends_at=began + timedelta(hours=1))
    work.sites.add(Site.objects.get(name="site-of-gamma"))
    body = ask_for(client, RINGS["slow"], RINGS["quick"])
    assert [entry["series"] for entry in body["ranked"]] == ["quick"]
    assert [entry["code"] for entry in body["unranked"]] == ["site_down"]
    assert len(ask_for(client, RINGS["slow"], RINGS["quick"], horizon_seconds=7200)["ranked"]) == 2


def test_old_data_are_stale(grid: None, client: Client) -> None:
    ForecastState.objects.update(stale_at=timezone.now() - timedelta(seconds=1))
    assert [entry["code"] for entry in ask_for(client, RINGS["quick"])["unranked"]] == ["stale"]


def test_roles_may_be_texts_as_in_a_query(grid: None, client: Client) -> None:
    ways = [Whole(role=[f"ring:{','.join(RINGS[name]['ring'])}"]) for name in ("slow", "quick")]
    ranked = ask_for(client, *ways)["ranked"]
    assert [(each["candidate"], each["series"]) for each in ranked] == [(1, "quick"), (0, "slow")]


def test_resources_may_be_in_any_roles(grid: None, client: Client) -> None:
    body = ask_for(client, ["gamma", "beta"], ["beta", "alpha"])
    assert [entry["candidate"] for entry in body["ranked"]] == [1, 0]


def test_a_path_of_several_series_is_ambiguous_and_they_can_be_ranked(grid: None, client: Client) -> None:
    define([], [SeriesDefinition("larger", "circle", RINGS["quick"], {"file_bytes": 5000})])
    (entry,) = ask_for(client, RINGS["quick"])["unranked"]
    assert (entry["code"], entry["series"]) == ("ambiguous", ["larger", "quick"])
    body = ask(client, candidates=["larger", "quick"]).json()
    assert [entry["series"] for entry in body["ranked"]] == ["quick"]


def test_changed_bindings_apply_at_once(grid: None, client: Client) -> None:
    ask_for(client, RINGS["quick"])
    Series.objects.filter(name="quick").update(parameters={"file_bytes": 7000})
    (entry,) = ask_for(client, RINGS["quick"])["unranked"]
    assert entry["code"] == "segment_changed"


def test_invisible_series_are_unknown(grid: None, client: Client) -> None:
    Suite.objects.get().viewers.add(Group.objects.create(name="staff"))
    assert [entry["code"] for entry in ask_for(client, RINGS["quick"])["unranked"]] == ["unknown"]


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        ({}, 422, "candidates"),
        ({"candidates": ["quick"], "application": "circle"}, 422, "expected an application, unless"),
        ({"application": "circle"}, 422, "candidates"),
        ({"candidates": [["alpha"]]}, 422, "expected an application, unless"),
        ({"candidates": []}, 422, "at least 1 item"),
        ({"candidates": [f"s{number}" for number in range(1001)]}, 422, "1001"),
        ({"candidates": ["quick", "slow", "quick"]}, 422, "[0, 2]"),
        ({"candidates": [Whole()]}, 422, "candidates.0: expected one of series, role, roles, resources"),
        ({"candidates": [Whole(series="quick", roles={"ring": ["a"]})]}, 422, "candidates.0"),
        ({"candidates": [Whole(series="quick", kee="a")]}, 422, "candidates.0.kee"),
        ({"application": "circle", "candidates": [["a", "b"], ["b", "a"]]}, 422, "[0, 1]"),
        ({"application": "circle", "candidates": [["a"], {"ring": ["a"]}]}, 422, "expected all by one of"),
        ({"application": "circle", "candidates": [{"ring": "a"}]}, 422, "candidates.0"),
        ({"application": "circle", "candidates": [{"ring": []}]}, 422, "ring"),
        ({"application": "circle", "candidates": [[]]}, 422, "resources"),
        *(
            ({"application": "circle", "candidates": [Whole(role=texts)]}, 422, message)
            for texts, message in (
                (["ring"], "role: expected a role and its resources"),
                (["wheel:a,b"], "role: there is no role 'wheel'"),
                (["ring:a", "ring:b"], "role: ring is repeated"),
                (["ring:a,"], "ring: expected names"),
                ([1], "candidates.0.role.0"),
                ("ring:a,b", "candidates.0.role"),
            )
        ),
        ({"candidates": ["qu\x00ick"]}, 422, "NUL"),
        ({"candidates": ["quick"], "quantile": 1.0}, 422, "quantile"),
        ({"candidates": ["quick"], "horizon_seconds": 1e300}, 422, "horizon"),
        ({"candidates": ["quick"], "horizon_seconds": -1}, 422, "horizon"),
        ({"candidates": ["quick"], "at": "2026-03-01T12:00:00"}, 422, "zone"),
        ({"candidates": ["quick"], "at": "2026-03-01T12:00:00Z"}, 409, "past"),
        ({"candidates": ["quick"], "probability": 0.9}, 422, "probability"),
        ({"series": ["quick"], "candidates": ["quick"]}, 422, "series"),
    ],
)
def test_an_invalid_ranking_names_the_error(
    client: Client, asked: dict[str, Any], status: int, message: str
) -> None:
    answer = ask(client, **asked)
    assert answer["content-type"] == "application/problem+json"
    assert (answer.status_code, message in answer.json()["detail"]) == (status, True), answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 10_000])
def test_invalid_json_is_malformed(client: Client, body: bytes) -> None:
    answer = client.post(URL, body, content_type="application/json")
    assert answer.status_code in {400, 422}


def test_ranking_needs_the_scope_read(grid: None, client: Client) -> None:
    ApiToken.objects.update(scopes=[RUN])
    assert ask(client, candidates=["quick"]).status_code == 403


def test_the_success_probability_is_that_of_the_requested_time(grid: None, client: Client) -> None:
    SuccessState.objects.all().delete()
    for series in Series.objects.filter(name__in=MEDIANS):
        total = Metric.objects.get(segment__series=series, name="total.seconds")
        assert refresh_requested(total, timezone.now(), time.monotonic() + 60.0)
        refresh_companions(total, timezone.now(), time.monotonic() + 60.0)
    now, later = (
        ask(client, candidates=["quick"], **at).json()["ranked"]
        for at in ({}, {"horizon_seconds": 7 * 86_400})
    )
    assert now[0]["forecast"] == later[0]["forecast"]
    assert now[0]["success_probability"] > later[0]["success_probability"]  # after a week without requests
    assert now[0]["expected_seconds"] < later[0]["expected_seconds"]
    assert now[0]["seconds"] <= later[0]["seconds"]
    of_one = client.get(f"{URL.removesuffix('/rank')}?series=quick&horizon_seconds={7 * 86_400}").json()
    assert of_one["success"]["probability"] == pytest.approx(later[0]["success_probability"], rel=1e-3)
    assert of_one["success"]["n"] == 4
