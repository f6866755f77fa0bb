"""Sites, resources and suites over the API, with their states."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from monitor.depot.rollups.worker import gather
from monitor.models import ApiToken, MaintenanceWindow, Series, Site, Suite
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.token import READ
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger.holds import hold
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.web.api.paging import all_pages, code

API = "/api/v1"
MINUTE = timedelta(minutes=1)


def client_of(user: User) -> Client:
    return Client(headers={"authorization": f"Bearer {ApiToken.objects.issue(user, 'program', [READ])}"})


@pytest.fixture
def client(db: None) -> Client:
    return client_of(User.objects.create_superuser("operator"))


@pytest.fixture
def stranger(circle: Series, noon: datetime) -> Client:
    """A user who may not see the series."""
    circle.suite.viewers.add(Group.objects.create(name="staff"))
    return client_of(User.objects.create_user("stranger"))


@pytest.fixture
def recent(circle: Series) -> datetime:
    """The slot of a run of ten minutes ago; both sites are up."""
    slot = timezone.now().replace(microsecond=0) - 10 * MINUTE
    deliver(circle_report(slot))
    return slot


def deliver(*reports: wire.Report) -> None:
    for report in reports:
        ingest(wire.to_json(report))
    gather()


def states(client: Client, noun: str, **query: str) -> dict[str, str]:
    return {each["name"]: each["state"] for each in client.get(f"{API}/{noun}", query).json()[noun]}


def test_a_scheduler_reads_which_sites_are_up_held_in_maintenance_and_down(
    client: Client, recent: datetime
) -> None:
    assert states(client, "sites") == {"site-of-here": "up", "site-of-there": "up"}
    deliver(*(failed_circle_report(recent + number * MINUTE) for number in (1, 2, 3)))
    site = client.get(f"{API}/sites/site-of-there").json()
    assert (site["state"], site["until"], site["resources"]) == ("down", None, ["there"])
    assert datetime.fromisoformat(site["since"]) == recent + MINUTE
    (reason,) = site["reasons"]
    assert (reason["resource"], reason["state"]) == ("there", "down")
    now = timezone.now()
    hold(Scope(HoldKind.SITE, "site-of-there"), HoldMode.PAUSE, who="ada", why="disk swap", now=now)
    assert states(client, "sites") == {"site-of-here": "up", "site-of-there": "held"}
    window = MaintenanceWindow.objects.create(name="net", starts_at=now, ends_at=now + timedelta(days=1))
    window.sites.add(Site.objects.get(name="site-of-here"))
    here = client.get(f"{API}/sites/site-of-here").json()
    assert (here["state"], datetime.fromisoformat(here["until"])) == ("maintenance", window.ends_at)
    assert states(client, "sites", state="held") == {"site-of-there": "held"}
    assert states(client, "resources", state="maintenance") == {"here": "maintenance"}


def test_polling_a_site_answers_304_until_its_state_changes(client: Client, recent: datetime) -> None:
    first = client.get(f"{API}/sites")
    again = {"if-none-match": first["ETag"]}
    assert client.get(f"{API}/sites", headers=again).status_code == 304
    deliver(circle_report(recent + MINUTE))
    assert client.get(f"{API}/sites", headers=again).status_code == 304
    deliver(failed_circle_report(recent + 2 * MINUTE))
    assert client.get(f"{API}/sites", headers=again).status_code == 200


def test_a_resource_says_what_it_offers_and_hides_how_it_is_reached(circle: Series, client: Client) -> None:
    ssh = {"kind": "ssh", "host": "login.example.org"}
    slurm = ResourceConfig("login", "ncsa", "/scratch/secret", shell=ssh, batch={"kind": "slurm"})
    define([slurm], [])
    shown = client.get(f"{API}/resources/login")
    body = shown.json()
    assert [body[way] for way in ("site", "shell", "transfer", "batch")] == ["ncsa", "ssh", "local", "slurm"]
    assert body["state"] == "unknown"
    assert b"example.org" not in shown.content
    assert b"secret" not in shown.content
    assert states(client, "resources", site="ncsa") == {"login": "unknown"}


@pytest.mark.parametrize(
    "path", ["sites/site-of-here", "resources/here", "suites/main", "series/circle", "series/circle/metrics"]
)
def test_what_a_user_may_not_see_does_not_exist(
    circle: Series, client: Client, stranger: Client, path: str
) -> None:
    path = path.replace("main", circle.suite.name)
    assert client.get(f"{API}/{path}").status_code == 200
    status, name = code(stranger.get(f"{API}/{path}"))
    assert (status, name.startswith("unknown_")) == (404, True)


@pytest.mark.parametrize("noun", ["sites", "resources", "suites", "series"])
def test_a_list_leaves_out_what_a_user_may_not_see(
    circle: Series, client: Client, stranger: Client, noun: str
) -> None:
    assert client.get(f"{API}/{noun}").json()[noun] != []
    assert stranger.get(f"{API}/{noun}").json() == {noun: [], "next": None}


def test_pages_have_each_site_and_resource_once_while_others_are_added(client: Client) -> None:
    def add(*names: str) -> None:
        define([ResourceConfig(f"host-{name}", name, "/scratch") for name in names], [])

    add(*"abcde")
    new = iter(["z-new", "b-new", "a-new"])
    sites = [
        site["name"] for site in all_pages(client, f"{API}/sites", "sites", between=lambda: add(next(new)))
    ]
    assert sites == sorted(set(sites))
    assert {*"abcde", "z-new"} <= set(sites)
    resources = [each["name"] for each in all_pages(client, f"{API}/resources", "resources", state="unknown")]
    assert resources == sorted(f"host-{name}" for name in (*"abcde", "a-new", "b-new", "z-new"))


def test_a_suite_counts_its_series_and_says_how_long_data_are_kept(circle: Series, client: Client) -> None:
    Suite.objects.filter(pk=circle.suite_id).update(keep_reports_days=90)
    define([], [SeriesDefinition("other", "circle", {"ring": ["here", "there"]})])
    suite = client.get(f"{API}/suites/{circle.suite.name}").json()
    assert (suite["series_count"], suite["keep_reports_days"], suite["keep_daily_days"]) == (2, 90, None)
    assert [each["name"] for each in all_pages(client, f"{API}/suites", "suites")] == [circle.suite.name]


def test_a_series_has_its_schedule_resources_segments_and_metrics(client: Client, recent: datetime) -> None:
    series = client.get(f"{API}/series/circle").json()
    assert series["resources"] == {"ring": ["here", "there"]}
    assert series["sites"] == ["site-of-here", "site-of-there"]
    assert (series["schedule"], series["reporter"], series["probe"]) == ("* * * * *", "home", "circle")
    assert [(segment["number"], segment["is_current"]) for segment in series["segments"]] == [(1, True)]
    assert {"name": "total.seconds", "unit": "seconds", "segment": 1} in series["metrics"]
    metrics = all_pages(client, f"{API}/series/circle/metrics", "metrics")
    assert metrics == series["metrics"]
    named = client.get(f"{API}/series/circle/metrics", {"name": "total.seconds", "segment": "1"}).json()
    assert [metric["name"] for metric in named["metrics"]] == ["total.seconds"]


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("sites", {"state": "broken"}, (422, "invalid")),
        ("sites", {"cursor": "x"}, (422, "invalid")),
        ("sites", {"fields": "name,colour"}, (422, "invalid")),
        ("sites", {"colour": "red"}, (422, "invalid")),
        ("resources", {"limit": "1001"}, (422, "invalid")),
        ("sites/nowhere", {}, (404, "unknown_site")),
        ("sites/%00", {}, (422, "invalid")),
        ("resources/nowhere", {}, (404, "unknown_resource")),
        ("suites/none", {}, (404, "unknown_suite")),
        ("series/none", {}, (404, "unknown_series")),
        ("series/circle/metrics", {"segment": "-1"}, (422, "invalid")),
    ],
)
def test_a_bad_question_is_refused(
    circle: Series, client: Client, path: str, query: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert code(client.get(f"{API}/{path}", query)) == expected


def test_sparse_fields_leave_out_the_others(client: Client, recent: datetime) -> None:
    body = client.get(f"{API}/sites", {"fields": "name,state"}).json()
    assert body["sites"][0] == {"name": "site-of-here", "state": "up"}
