"""The admin site."""

from __future__ import annotations

import html
import json
from datetime import datetime

import pytest
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from monitor.models import Forecast, MaintenanceWindow, Reporter, Resource, Run, Series, Site
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid


@pytest.fixture
def administrator(db: None) -> Client:
    browser = Client()
    browser.force_login(builders.user("chief", is_staff=True, is_superuser=True))
    return browser


def test_every_list_and_form_opens(grid: Grid, administrator: Client, now: datetime) -> None:
    builders.history(grid.circle, 3, until=now)  # the first forecasts need three runs
    statuses: dict[str, int] = {}
    for model in (model for model in admin.site._registry if model._meta.app_label == "monitor"):
        name = f"admin:monitor_{model.__name__.lower()}"
        urls = [reverse(f"{name}_changelist")]
        urls += [reverse(f"{name}_change", args=[each.pk]) for each in model._default_manager.all()[:1]]
        statuses |= {url: administrator.get(url).status_code for url in urls}
    assert set(statuses.values()) == {200}, statuses


@pytest.mark.parametrize("model", [Run, Forecast])
def test_measured_data_cannot_be_edited_or_added(grid: Grid, administrator: Client, model: type) -> None:
    assert administrator.get(reverse(f"admin:monitor_{model.__name__.lower()}_add")).status_code == 403


def edited(administrator: Client, series: Series, **changes: str) -> str:
    """Submit the form of *series* with *changes*; return the page."""
    url = reverse("admin:monitor_series_change", args=[series.pk])
    shown = administrator.get(url).context["adminform"].form
    form = {name: "" if shown[name].value() is None else shown[name].value() for name in shown.fields}
    inline = {"bindings-TOTAL_FORMS": "0", "bindings-INITIAL_FORMS": "0"}
    return administrator.post(url, {**form, **inline, **changes}, follow=True).content.decode()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schedule", "banana", "expected five fields"),
        ("schedule", "61 * * * *", "61"),
        ("parameters", "[1]", "Expected an object"),
        ("parameters", '{"file_bites": 1}', "unknown parameter"),
        ("parameters", '{"file_bytes": "many"}', "file_bytes: expected an integer"),
        ("max_load1", "0", "Expected a maximum load above 0"),
        ("warm_up_runs", "6", "Expected at most 5 warm-up runs"),
    ],
)
def test_an_invalid_series_is_refused(
    grid: Grid, administrator: Client, field: str, value: str, message: str
) -> None:
    before = getattr(grid.circle, field)
    assert message in edited(administrator, grid.circle, **{field: value})
    grid.circle.refresh_from_db()
    assert getattr(grid.circle, field) == before


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("shell", '{"kind": "telnet"}', "there is no shell 'telnet'"),
        ("shell", '{"kind": "ssh"}', "missing a required argument: 'host'"),
        ("transfer", '{"kind": "gridftp"}', "the host is missing or invalid"),
        ("transfer", '{"kind": "gridftp", "host": "a", "prot": 1}', "unknown option 'prot'"),
        ("transfer", '{"kind": "gridftp", "host": "a", "retries": -1}', "retries: -1 is negative"),
        ("transfer", '{"kind": "xrootd", "host": "a b"}', "expected a name or an address for a URL"),
        ("shell", '{"kind": "ssh", "host": "a", "port": "22"}', "port: expected an integer or null"),
        ("batch", '{"kind": "slurm", "partition": "short"}', "partition"),
        ("batch", "[1]", "Expected an object"),
        ("scratch", "tmp", "is not absolute"),
    ],
)
def test_an_unknown_access_method_is_refused(
    grid: Grid, administrator: Client, field: str, value: str, message: str
) -> None:
    resource = Resource.objects.earliest("pk")
    assert html.escape(message) in edited_resource(administrator, resource, **{field: value})
    before = getattr(resource, field)
    resource.refresh_from_db()
    assert getattr(resource, field) == before


def added(administrator: Client, **values: str) -> str:
    """Submit the form of a new maintenance window with *values*; return the page."""
    form = {"name": "disks", "title": "", "schedule": "", "timezone": "UTC", "duration_seconds": ""}
    days = {f"{end}_at_{part}": "" for end in ("starts", "ends") for part in (0, 1)}
    answer = administrator.post(
        reverse("admin:monitor_maintenancewindow_add"), {**form, **days, **values}, follow=True
    )
    return html.unescape(answer.content.decode())


ONE_DAY = {
    "starts_at_0": "2026-03-01",
    "starts_at_1": "08:00",
    "ends_at_0": "2026-03-02",
    "ends_at_1": "08:00",
}
TUESDAYS = {"schedule": "0 8 * * tue", "duration_seconds": "14400"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "expected starts_at and ends_at, or schedule and duration_seconds"),
        ({**ONE_DAY, "ends_at_0": "2026-02-02"}, "2026-02-02T08:00:00+00:00 is not after starts_at"),
        ({**ONE_DAY, "duration_seconds": "60"}, "expected one, because there is duration_seconds"),
        ({**TUESDAYS, "duration_seconds": ""}, "expected the duration of each occurrence"),
        ({**TUESDAYS, "duration_seconds": "0"}, "expected 1 to 31,536,000, got 0"),
        ({**TUESDAYS, "duration_seconds": "604801"}, "the window would always be open"),
        ({**TUESDAYS, "schedule": "H 8 * * *"}, "windows are announced"),
        ({**TUESDAYS, "schedule": "banana"}, "expected five fields"),
        ({**TUESDAYS, "timezone": "Europe/Berln"}, "did you mean Europe/Berlin?"),
        ({**TUESDAYS, "timezone": ""}, "This field is required"),
        ({**TUESDAYS, "name": "new disks"}, "valid “slug”"),
    ],
)
def test_a_maintenance_window_with_invalid_times_is_refused(
    administrator: Client, values: dict[str, str], message: str
) -> None:
    assert message in added(administrator, **values)
    assert not MaintenanceWindow.objects.exists()


@pytest.mark.parametrize("values", [ONE_DAY, TUESDAYS, {**TUESDAYS, **ONE_DAY}])
def test_a_maintenance_window_occurs_once_or_recurs(administrator: Client, values: dict[str, str]) -> None:
    added(administrator, **values)
    assert MaintenanceWindow.objects.get().schedule == values.get("schedule", "")


def test_the_only_site_of_a_maintenance_window_cannot_be_deleted(administrator: Client) -> None:
    here, there = (Site.objects.create(name=name) for name in ("here", "there"))
    both, alone = (
        MaintenanceWindow.objects.create(name=name, schedule="0 8 * * tue", duration_seconds=60)
        for name in ("both", "alone")
    )
    both.sites.set([here, there])
    alone.sites.set([here])
    url = reverse("admin:monitor_site_delete", args=[here.pk])
    assert "alone, which is at no other site" in administrator.get(url).content.decode()
    administrator.post(url, {"post": "yes"})
    assert Site.objects.filter(name="here").exists()
    alone.delete()
    administrator.post(url, {"post": "yes"})
    assert [site.name for site in both.sites.all()] == ["there"]
    assert not Site.objects.filter(name="here").exists()


def test_the_address_of_a_resource_is_used_by_its_transfer(grid: Grid, administrator: Client) -> None:
    resource = Resource.objects.earliest("pk")
    edited_resource(administrator, resource, address="dtn.example.org", transfer='{"kind": "http"}')
    resource.refresh_from_db()
    assert resource.transfer == {"kind": "http"}


def edited_resource(administrator: Client, resource: Resource, **changes: str) -> str:
    """Post *changes*; return the page."""
    url = reverse("admin:monitor_resource_change", args=[resource.pk])
    shown = administrator.get(url).context["adminform"].form
    form = {name: "" if shown[name].value() is None else shown[name].value() for name in shown.fields}
    form = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in form.items()}
    return administrator.post(url, {**form, **changes}, follow=True).content.decode()


def test_an_agent_runs_only_series_with_a_resource_of_its_site(grid: Grid, administrator: Client) -> None:
    first, second = grid.circle.bindings.order_by("position")[:2]
    inline = {"bindings-TOTAL_FORMS": "2", "bindings-INITIAL_FORMS": "2"}
    for place, binding in enumerate((first, second)):
        values = {"id": binding.pk, "series": grid.circle.pk, "role": binding.role}
        values |= {"position": binding.position, "resource": binding.resource_id}
        inline |= {f"bindings-{place}-{name}": str(value) for name, value in values.items()}
    elsewhere = Reporter.objects.create(name="agent-elsewhere", site=Site.objects.create(name="elsewhere"))
    page = edited(administrator, grid.circle, reporter=str(elsewhere.pk), **inline)
    assert "Reporter agent-elsewhere runs at site elsewhere: expected a resource of this site." in page
    agent = Reporter.objects.create(name="agent", site=second.resource.site)
    edited(administrator, grid.circle, reporter=str(agent.pk), **inline)
    grid.circle.refresh_from_db()
    assert grid.circle.reporter == agent


def test_an_agents_series_waits_only_for_series_of_the_agent(grid: Grid) -> None:
    agent = Reporter.objects.create(name="agent", site=Site.objects.first())
    leader = Series(pk=-1, name="leader", reporter=grid.circle.reporter, schedule="* * * * *")
    follower = Series(pk=-2, name="follower", reporter=agent, leader=leader, follows="after")
    with pytest.raises(ValidationError, match="waits only for its own runs"):
        follower.clean()
    follower.follows = "with"
    follower.clean()


def test_the_name_of_a_series_cannot_change(grid: Grid, administrator: Client) -> None:
    edited(administrator, grid.circle, name="another", schedule="0 * * * *")
    before = grid.circle.name
    grid.circle.refresh_from_db()
    assert (grid.circle.name, grid.circle.schedule) == (before, "0 * * * *")


def edited_site(administrator: Client, site: Site, **changes: str) -> str:
    """Post *changes*; return the page."""
    url = reverse("admin:monitor_site_change", args=[site.pk])
    shown = administrator.get(url).context["adminform"].form
    form = {name: "" if shown[name].value() is None else shown[name].value() for name in shown.fields}
    inline = {"resources-TOTAL_FORMS": "0", "resources-INITIAL_FORMS": "0"}
    return administrator.post(url, {**form, **inline, **changes}, follow=True).content.decode()


def test_the_budget_of_a_site_is_set_and_removed(grid: Grid, administrator: Client) -> None:
    site = Site.objects.earliest("pk")
    budget = {"runs_per_day": "100", "bytes_per_day": str(10**12), "cpu_hours_per_day": "2.5"}
    edited_site(administrator, site, **budget)
    site.refresh_from_db()
    assert (site.runs_per_day, site.bytes_per_day, site.cpu_hours_per_day) == (100, 10**12, 2.5)
    assert "CPU-hours per day of at least 0" in edited_site(administrator, site, cpu_hours_per_day="-1")
    edited_site(administrator, site, **dict.fromkeys(budget, ""))
    site.refresh_from_db()
    assert (site.runs_per_day, site.bytes_per_day, site.cpu_hours_per_day) == (None, None, None)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "auth/user/",
            "auth/user/1/password/",
            "auth/user/1/delete/",
            "auth/group/add/",
            "auth/group/1/change/",
        ),
        *(
            "mfa/authenticator/1/delete/",
            "socialaccount/socialaccount/",
            "usersessions/usersession/1/delete/",
        ),
        *("monitor/apitoken/1/change/", "monitor/siteadministrator/add/"),
    ],
)
def test_accounts_roles_and_tokens_are_not_changed_there(administrator: Client, path: str) -> None:
    """Pages below ``/access/`` do, which ask for confirmation."""
    for method in (administrator.get, administrator.post):
        assert method(f"/admin/{path}").status_code == 404


@pytest.mark.parametrize(
    ("notify", "message"),
    [
        ('{"kind": "log"}', "Expected a list of channels"),
        ('[{"kind": "pigeon"}]', "there is no channel"),
        ('[{"kind": "email", "to": []}]', "to: expected at least one address"),
        ('[{"kind": "log"}]', "was added successfully"),
    ],
)
def test_an_alert_rule_with_an_unknown_channel_is_refused(
    administrator: Client, notify: str, message: str
) -> None:
    form = {
        "name": "three",
        "everything": "on",
        "condition": "failures_in_row",
        "threshold": "3",
        "severity": "major",
        "notify": notify,
    }
    answer = administrator.post(reverse("admin:monitor_alertrule_add"), form, follow=True)
    assert message in html.unescape(answer.content.decode())


def test_the_threshold_of_an_alert_rule_keeps_the_bounds_of_its_condition(administrator: Client) -> None:
    form = {"name": "three", "condition": "silent_seconds", "threshold": "59", "notify": "[]"}
    answer = administrator.post(reverse("admin:monitor_alertrule_add"), form)
    assert "silent_seconds: expected seconds from 60 to 31,536,000, got 59" in answer.content.decode()
