"""The pages of series and suites under settings: forms of probes, reviews, conflicts, retirement."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AuditEvent, Series, Suite
from monitor.models.role import UserRole
from monitor.web.pages.http.series_form import series_fields
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

NEW = "/settings/series/new/?probe=gather"
FORM: dict[str, Any] = {
    "name": "gather-new",
    "suite": "main",
    "enabled": "on",
    "bindings.sources": ["site2-login", "", "site1-login"],
    "bindings.compute": ["site3-login"],
    "bindings.destination": ["site4-login"],
    "parameters.file_bytes": "1000",
    "parameters.parallel": "",
    "schedule": "30 4 * * *",
    "timezone": "America/Chicago",
    "verb": "save",
}


@pytest.fixture
def operator(grid: Grid) -> Client:
    user, browser = builders.user("operator"), Client()
    roles.grant(user, Grant(UserRole.OPERATOR))
    browser.force_login(user)
    return browser


def sent(client: Client, path: str, status: int, form: dict[str, Any], **more: Any) -> str:
    answer = client.post(path, {**form, **more})
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def fields_of(client: Client, path: str) -> dict[str, Any]:
    """Return the values of the form at *path*, as a browser sends them."""
    page = client.get(path).content.decode()
    values: dict[str, list[str]] = {}
    for name, options in re.findall(r'<select[^>]*? name="([^"]+)".*?>(.*?)</select>', page, re.DOTALL):
        chosen = re.findall(r'<option value="([^"]*)" selected', options)
        values.setdefault(name, []).extend(chosen)
    for tag in re.findall(r"<input [^>]*>", page):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if attributes.get("type") == "checkbox" and not tag.endswith(" checked>") and " checked" not in tag:
            continue
        values.setdefault(attributes["name"], []).append(attributes.get("value", ""))
    return values


def seen_of(page: str) -> str:
    return str(re.findall(r'name="seen" value="([^"]*)"', page)[0])


def test_a_series_is_defined_by_the_form_of_its_probe(operator: Client) -> None:
    shown = operator.get(NEW).content.decode()
    assert "file_bytes" in shown
    assert "File bytes</label>" in shown
    seen = seen_of(shown)
    sent(operator, NEW, 302, FORM, seen=seen)
    series = Series.objects.get(name="gather-new")
    assert (series.parameters, series.timezone) == ({"file_bytes": 1000}, "America/Chicago")
    sources = series.bindings.filter(role="sources").order_by("position")
    assert [binding.resource.name for binding in sources] == ["site2-login", "site1-login"]
    event = AuditEvent.objects.latest("pk")
    assert event.changes[0]["kind"] == "series"
    assert event.changes[0]["after"]["schedule"] == "30 4 * * *"


def test_the_next_runs_are_shown_in_utc_and_in_the_zone_of_the_schedule(operator: Client) -> None:
    seen = seen_of(operator.get(NEW).content.decode())
    page = sent(operator, NEW, 200, FORM, verb="review", seen=seen)
    assert len(re.findall(r"04:30 C[SD]T", page)) == 5
    assert not Series.objects.filter(name="gather-new").exists()


def test_errors_stand_beside_their_fields_and_the_input_is_kept(operator: Client) -> None:
    broken = {
        "name": "two words",
        "parameters.file_bytes": "many",
        "schedule": "61 * * * *",
        "timezone": "Europe/Berln",
        "bindings.compute": [],
    }
    page = sent(operator, NEW, 409, FORM, **broken, seen=seen_of(operator.get(NEW).content.decode()))
    assert 'value="many"' in page
    for field in ("name", "parameters-file-bytes", "schedule", "timezone", "bindings-compute"):
        assert f'href="#field-{field}"' in page
        assert f'id="field-{field}-problem"' in page
    assert "did you mean Europe/Berlin?" in page
    assert page.count('site1-login" selected') == 1


def test_a_change_that_begins_a_segment_is_saved_only_after_its_review(
    operator: Client, grid: Grid, now: datetime
) -> None:
    builders.passed(grid.circle, now - timedelta(minutes=1))
    path = "/settings/series/edit/circle-ring/"
    form = {**fields_of(operator, path), "parameters.file_bytes": "2000000", "verb": "save"}
    page = sent(operator, path, 200, form)
    assert "begins a new segment" in page
    assert Series.objects.get(name="circle-ring").parameters["file_bytes"] == 1_000_000
    reviewed = re.findall(r'name="reviewed" value="([^"]*)"', page)[0]
    sent(operator, path, 200, form, reviewed=reviewed, **{"parameters.file_bytes": "3000000"})
    sent(operator, path, 302, form, reviewed=reviewed)
    assert Series.objects.get(name="circle-ring").parameters["file_bytes"] == 2_000_000


def test_a_series_that_changed_meanwhile_is_refused_with_what_changed(operator: Client, grid: Grid) -> None:
    path = "/settings/series/edit/gather-main/"
    form = {**fields_of(operator, path), "limit_seconds": "77", "verb": "save"}
    Series.objects.filter(name="gather-main").update(limit_seconds=55)
    page = sent(operator, path, 409, form)
    assert "limit_seconds: 1800.0 -&gt; 55.0" in page
    assert 'value="77"' in page
    sent(operator, path, 302, form, seen=seen_of(page))
    assert Series.objects.get(name="gather-main").limit_seconds == 77


def test_an_unchanged_form_changes_nothing(operator: Client, grid: Grid) -> None:
    path = "/settings/series/edit/circle-ring/"
    page = sent(operator, path, 200, fields_of(operator, path), verb="review")
    assert "Nothing changes" in page


def test_a_retired_series_keeps_its_history_and_a_deleted_one_does_not(
    operator: Client, grid: Grid, now: datetime
) -> None:
    builders.passed(grid.circle, now - timedelta(minutes=1))
    path = "/settings/series/retire/circle-ring/"
    shown = operator.get(path).content.decode()
    assert "1 run with reports" in shown
    sent(operator, path, 302, {"seen": seen_of(shown), "verb": "retire"})
    assert not Series.objects.get(name="circle-ring").enabled
    seen = seen_of(operator.get(path).content.decode())
    assert "type circle-ring" in sent(operator, path, 409, {"seen": seen, "verb": "delete"})
    sent(operator, path, 302, {"seen": seen, "verb": "delete", "confirmed": "circle-ring"})
    assert not Series.objects.filter(name="circle-ring").exists()


def test_a_series_reported_from_outside_has_no_fields_of_reporters(operator: Client) -> None:
    user = builders.user("chief", is_superuser=True)
    names = {field.name for field in series_fields("reported", user, {}, {}, is_new=True)}
    assert {"name", "suite", "schedule", "bindings.host"} <= names
    assert not names & {"leader", "jitter_seconds", "max_load1"}


def test_a_shorter_retention_is_saved_only_after_its_review(operator: Client) -> None:
    path = "/settings/suites/edit/main/"
    form = {**fields_of(operator, path), "keep_reports_days": "30", "verb": "save"}
    page = sent(operator, path, 200, form)
    assert "raw reports of its series that are older than 30 days are deleted" in page
    reviewed = re.findall(r'name="reviewed" value="([^"]*)"', page)[0]
    sent(operator, path, 302, form, reviewed=reviewed)
    assert Suite.objects.get(name="main").keep_reports_days == 30


def test_a_suite_with_series_is_not_deleted(operator: Client) -> None:
    builders.circles([f"ring-{number:02}" for number in range(30)], builders.sites(2))
    others = Series.objects.filter(suite__name="main").count() - 20
    shown = operator.get("/settings/suites/delete/main/").content.decode()
    assert "need another suite first: circle-ring" in shown
    assert f" and {others} more." in shown
    sent(
        operator, "/settings/suites/new/", 302, {"name": "spare", "verb": "save", "seen": new_seen(operator)}
    )
    path = "/settings/suites/delete/spare/"
    sent(operator, path, 302, {"seen": seen_of(operator.get(path).content.decode())})
    assert not Suite.objects.filter(name="spare").exists()
    seen = seen_of(operator.get("/settings/suites/edit/main/").content.decode())
    assert "is used by" in sent(operator, "/settings/suites/delete/main/", 409, {"seen": seen})


def new_seen(client: Client) -> str:
    return seen_of(client.get("/settings/suites/new/").content.decode())


def test_a_name_that_exists_is_refused(operator: Client) -> None:
    page = sent(
        operator, "/settings/suites/new/", 409, {"name": "main", "verb": "save", "seen": new_seen(operator)}
    )
    assert "exists already" in page
