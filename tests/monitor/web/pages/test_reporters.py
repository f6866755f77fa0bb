"""The page of all reporters: states, numbers, visibility, and the form to create one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from monitor.depot.rollups.worker import gather
from monitor.models import Alert, AlertRule, Hold, Reporter, Series, Site
from monitor.models.run import State
from monitor.runs.ledger import heartbeats
from monitor.web.places.reporters import server_archive_sha256
from tests.monitor import reporter_rows
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

HTMX = {"HX-Request": "true"}
PATH = "/reporters/"
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def text(client: Client, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def row_of(client: Client, name: str) -> str:
    """Return the table row of the reporter *name*."""
    (row,) = [row for row in text(client).split("<tr>") if f'"/reporters/{name}/"' in row]
    return row


def manager_user() -> User:
    user = builders.user("manager")
    user.user_permissions.add(Permission.objects.get(codename="manage_reporters"))
    return user


@pytest.fixture
def manager(db: None) -> Client:
    browser = Client()
    browser.force_login(manager_user())
    return browser


@pytest.fixture
def ncsa(grid: Grid, now: datetime) -> Reporter:
    """An enrolled reporter that runs Circle."""
    reporter = reporter_rows.enrolled("ncsa", now - HOUR)
    Series.objects.filter(pk=grid.circle.pk).update(reporter=reporter)
    return reporter


def test_without_reporters_the_page_says_so(client: Client) -> None:
    assert "No reporters yet" in text(client)


def test_a_worker_is_listed_with_its_heartbeat_and_the_latest_runs_of_its_series(
    grid: Grid, client: Client, now: datetime
) -> None:
    assert "never seen" in row_of(client, "home")
    heartbeats.record(heartbeats.HOME_REPORTER, now)
    builders.not_run(grid.gather, now - HOUR, State.MISSED, "")
    builders.not_run(grid.gather, now - 2 * HOUR, State.PASSED, "")
    builders.not_run(grid.circle, now - HOUR, State.PASSED, "")
    gather()
    row = row_of(client, "home")
    assert "Celery worker, 2 series" in row
    assert "reporting" in row
    assert "</span>1 missed</span>" in row
    assert "</span>1 passed</span>" in row


def test_an_agent_is_listed_with_what_it_said(ncsa: Reporter, client: Client, now: datetime) -> None:
    reporter_rows.status(
        ncsa,
        now - MINUTE,
        spool_records=1234,
        spool_bytes=5_000_000,
        spool_oldest_at=now - 11 * MINUTE,
        dropped_records=7,
        policy_status="in_force",
        policy_sha256="cafe" * 16,
        pending_approvals=2,
        clock_offset_seconds=-3.2,
        clock_bound_seconds=0.5,
    )
    row = row_of(client, "ncsa")
    for part in (
        'agent at <a class="site" href="/sites/ncsa/">ncsa</a>, 1 series',
        "reporting",
        "1 min ago",
        "0.1.0",
        "ab12cd34<",
        "not this server",
        "1,234",
        "5 MB",
        "7 dropped",
        "10 min 03 s",  # the lag at the last exchange, by the server's clock
        "in force",
        "cafecafe<",
        "2 pending approvals",
        "\N{MINUS SIGN}3.200 s",
        "0.500 s",
    ):
        assert part in row, part


def test_the_archive_of_this_server_is_no_other_version(
    ncsa: Reporter, client: Client, now: datetime
) -> None:
    reporter_rows.status(ncsa, now, archive_sha256=server_archive_sha256())
    assert "not this server" not in row_of(client, "ncsa")


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "reporting"),
        ({"seen_at": timedelta(minutes=4)}, "silent"),
        ({"policy_status": "unreadable"}, "policy unreadable"),
    ],
)
def test_the_state_follows_from_the_last_exchange(
    ncsa: Reporter, client: Client, now: datetime, fields: dict[str, Any], state: str
) -> None:
    age = fields.pop("seen_at", timedelta())
    reporter_rows.status(ncsa, now - age, **fields)
    assert f"</span>{state}</span>" in row_of(client, "ncsa")


def test_the_state_follows_from_the_keys(ncsa: Reporter, client: Client, now: datetime) -> None:
    assert "never seen" in row_of(client, "ncsa")
    ncsa.keys.update(revoked_at=now)
    assert "revoked" in row_of(client, "ncsa")
    ncsa.keys.all().delete()
    assert "not enrolled" in row_of(client, "ncsa")


def test_the_worst_state_comes_first(ncsa: Reporter, client: Client, now: datetime) -> None:
    heartbeats.record(heartbeats.HOME_REPORTER, now)
    assert text(client).index("/reporters/ncsa/") < text(client).index("/reporters/home/")
    heartbeats.record(heartbeats.HOME_REPORTER, now - HOUR)
    assert text(client).index("/reporters/home/") < text(client).index("/reporters/ncsa/")


def test_holds_and_alerts_are_shown(ncsa: Reporter, client: Client, now: datetime) -> None:
    Hold.objects.create(kind="reporter", name="ncsa", mode="pause", who="ada", why="new disks", began_at=now)
    rule = AlertRule.objects.create(name="r", everything=True, condition="lag_seconds", threshold=600)
    Alert.objects.create(rule=rule, reporter=ncsa, since=now, opened_at=now, text="it lags")
    row = row_of(client, "ncsa")
    assert "paused by ada: new disks" in row
    assert "1 alert</a>" in row


def test_only_reporters_of_visible_series_are_listed(
    ncsa: Reporter, client: Client, manager: Client, now: datetime
) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    secret = builders.circle("secret-ring", builders.sites(2), in_suite="closed")
    hidden = reporter_rows.remote("hidden")
    Series.objects.filter(pk=secret.pk).update(reporter=hidden)
    assert "/reporters/ncsa/" in text(client)
    assert "/reporters/hidden/" not in text(client)
    rule = AlertRule.objects.create(name="r", condition="lag_seconds", threshold=600)
    Alert.objects.create(rule=rule, reporter=hidden, since=now, opened_at=now, text="it lags")
    assert 'href="/sites/hidden/">hidden</a>, 0 series' in row_of(manager, "hidden")
    assert "It lags" in text(manager, "/alerts/")
    assert "It lags" not in text(client, "/alerts/")
    assert client.get("/reporters/hidden/").status_code == 404
    assert client.get("/reporters/no-such/").status_code == 404


def test_anonymous_users_are_sent_to_the_login_page(db: None) -> None:
    for path in (PATH, "/reporters/home/"):
        assert Client().get(path)["Location"] == f"/login/?next={path}"


def test_an_open_page_is_updated_only_if_something_changed(
    ncsa: Reporter, client: Client, now: datetime
) -> None:
    part = client.get(PATH, headers=HTMX).content.decode()
    assert "<html" not in part
    seen = part.split("seen=")[1].split('"')[0]
    assert client.get(PATH, {"seen": seen}, headers=HTMX).status_code == 204
    reporter_rows.status(ncsa, now)
    assert client.get(PATH, {"seen": seen}, headers=HTMX).status_code == 200


def test_the_number_of_queries_does_not_depend_on_the_number_of_reporters(
    ncsa: Reporter,
    grid: Grid,
    client: Client,
    now: datetime,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    text(client)
    for count in range(2):
        for i in range(10):
            other = reporter_rows.enrolled(f"r{count}-{i}", now)
            reporter_rows.status(other, now)
            (series,) = builders.circles([f"ring-{count}-{i}"], grid.resources[:2], reporter=other)
            builders.not_run(series, now - HOUR, State.PASSED, "")
        with django_assert_num_queries(11):
            client.get(PATH, headers=HTMX)


def test_many_reporters_have_pages(grid: Grid, manager: Client, now: datetime) -> None:
    site = Site.objects.get(name="site1")
    Reporter.objects.bulk_create(Reporter(name=f"r{i:03}", site=site) for i in range(150))
    first, second, beyond = (text(manager, f"{PATH}?page={page}") for page in ("1", "2", "99"))
    assert "Page 1 of 2" in first
    assert ("/reporters/r098/" in first, "/reporters/r099/" in first) == (True, False)
    assert ("/reporters/r099/" in second, "/reporters/r149/" in second) == (True, True)
    assert "Page 2 of 2" in beyond


def test_a_manager_creates_a_reporter_for_a_site(grid: Grid, manager: Client) -> None:
    assert "New reporter" in text(manager)
    answer = manager.post(PATH, {"name": "uc-login", "site": "site1", "capacity": "2"})
    assert (answer.status_code, answer["Location"]) == (302, "/reporters/uc-login/")
    created = Reporter.objects.get(name="uc-login")
    assert (created.site, created.capacity) == (Site.objects.get(name="site1"), 2)


def test_without_a_site_the_form_says_how_to_define_one(manager: Client) -> None:
    form = text(manager).partition("no sites defined")[2]
    assert "<code>manage.py grid apply</code>" in form
    assert 'href="/admin/monitor/site/add/"' in form


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "home"}, "&#x27;home&#x27; is reserved"),
        ({"name": "enrol"}, "is reserved"),
        ({"name": "ncsa"}, "there is a reporter &#x27;ncsa&#x27; already"),
        ({"name": "<b>"}, "expected 1 to 50 letters, digits, - and _, got &#x27;&lt;b&gt;&#x27;"),
        ({"name": ""}, "expected 1 to 50 letters"),
        ({"site": "atlantis"}, "there is no site &#x27;atlantis&#x27;"),
        ({"site": "a\0"}, "there is no site"),
        ({"capacity": "many"}, "expected 1 to 1000 concurrent runs"),
        ({"capacity": "9" * 400}, "expected 1 to 1000 concurrent runs"),
    ],
)
def test_a_refused_form_keeps_its_values_and_says_why(
    ncsa: Reporter, manager: Client, fields: dict[str, str], message: str
) -> None:
    answer = manager.post(PATH, {"name": "new", "site": "site2", "capacity": "2", **fields})
    shown = answer.content.decode()
    assert answer.status_code == 409
    assert message in shown
    assert "<b>" not in shown.split("<form")[-1]
    assert not Reporter.objects.filter(name="new").exists()


def test_creating_needs_the_permission(grid: Grid, client: Client) -> None:
    assert "New reporter" not in text(client)
    answer = client.post(PATH, {"name": "new", "site": "site1", "capacity": "2"})
    assert answer.status_code == 403
    assert not Reporter.objects.filter(name="new").exists()
