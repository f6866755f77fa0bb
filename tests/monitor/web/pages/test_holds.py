"""The pages to pause, drain, resume and run scopes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from monitor.models import Hold, MaintenanceChange, MaintenanceWindow, Run, Site
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.ledger.holds import hold
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

SITE = "/holds/site/site2/"
HTMX = {"HX-Request": "true"}


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def pause(kind: HoldKind, name: str, now: datetime, why: str = "disk swap") -> Hold:
    return hold(Scope(kind, name), HoldMode.PAUSE, who="ada", why=why, now=now)


def test_the_page_says_that_nothing_is_paused(grid: Grid, client: Client) -> None:
    shown = text(client, "/holds/")
    assert "Nothing is paused" in shown
    assert "Nothing has been paused yet" in shown


def test_holds_are_listed_with_user_and_reason_and_so_is_their_end(grid: Grid, runner: Client) -> None:
    runner.post(f"{SITE}act/", {"verb": "drain", "why": "disk <swap>"})
    shown = text(runner, "/holds/")
    for part in ("site site2", "drained", "runner", "disk &lt;swap&gt;"):
        assert part in shown
    runner.post(f"{SITE}act/", {"verb": "resume", "why": "new disks"})
    shown = text(runner, "/holds/")
    for part in ("Nothing is paused", "resumed", "new disks", "disk &lt;swap&gt;"):
        assert part in shown


def test_a_hold_may_have_a_duration(grid: Grid, runner: Client) -> None:
    runner.post(f"{SITE}act/", {"verb": "pause", "why": "disk swap", "hours": "4"})
    new_hold = Hold.objects.get()
    assert new_hold.until == new_hold.began_at + timedelta(hours=4)


def test_a_hold_lasts_two_hours_if_the_user_chooses_nothing_else(
    grid: Grid, runner: Client, now: datetime
) -> None:
    assert '<option value="2" selected>' in text(runner, SITE)
    tomorrow = (now + timedelta(days=1)).replace(second=0)
    ends = {"site2": {}, "site3": {"hours": "unlimited"}, "site4": {"until": f"{tomorrow:%Y-%m-%dT%H:%M}"}}
    for site, end in ends.items():
        runner.post(f"/holds/site/{site}/act/", {"verb": "pause", "why": "disk swap", **end})
    holds = {each.name: each for each in Hold.objects.all()}
    assert holds["site2"].until == holds["site2"].began_at + timedelta(hours=2)
    assert (holds["site3"].until, holds["site4"].until) == (None, tomorrow)
    assert "until resumed" in text(runner, "/holds/site/site3/")


def test_the_form_tells_what_a_pause_would_affect(grid: Grid, runner: Client, now: datetime) -> None:
    for minutes in (30, 90, 200):
        builders.not_run(grid.gather, now + timedelta(minutes=minutes), State.EXPECTED, "")
    builders.not_run(grid.circle, now - timedelta(minutes=1), State.CLAIMED, "")
    builders.gather("disabled", grid.resources, enabled=False)
    shown = text(runner, SITE)
    for part in (
        "2 enabled series at site1, site2, site3, site4",
        "1 queued, 0 running",
        "1 hour (1 run)",
        "2 hours (2 runs)",
        "1 day (3 runs)",
        f"{now + timedelta(minutes=30):%Y-%m-%d %H:%M}",
    ):
        assert part in shown


def test_windows_tell_who_announced_them_and_feeds_when_they_changed(
    grid: Grid, client: Client, now: datetime
) -> None:
    assert "No feed is imported" in text(client, "/holds/")
    later = {"starts_at": now + timedelta(days=1), "ends_at": now + timedelta(days=2)}
    MaintenanceWindow.objects.create(name="disks", **later)
    MaintenanceWindow.objects.create(name="topology-1", source="topology", uid="1", **later)
    for window, source in (("disks", ""), ("topology-1", "topology")):
        MaintenanceChange.objects.create(
            window=window, source=source, action="added", at=now, who="grace", why="new disks"
        )
    shown = text(client, "/holds/")
    assert "grace" in shown
    assert "feed topology" in shown
    assert f"{now:%Y-%m-%d %H:%M}" in shown.partition("Calendar feeds")[2]


@pytest.mark.parametrize("path", ["/series/circle-ring/", "/", SITE])
def test_pages_of_held_scopes_show_user_and_reason(
    grid: Grid, client: Client, now: datetime, path: str
) -> None:
    pause(HoldKind.SITE, "site2", now, "<i>disk swap")
    shown = text(client, path)
    assert "&lt;i&gt;disk swap" in shown
    assert "<i>disk" not in shown
    assert "paused" in shown


def test_the_next_run_of_a_paused_series_is_said_to_be_skipped(
    grid: Grid, client: Client, now: datetime
) -> None:
    builders.not_run(grid.circle, now + timedelta(minutes=9), State.EXPECTED, "")
    assert "skipped while" not in text(client, "/series/circle-ring/")
    pause(HoldKind.SERIES, "circle-ring", now)
    assert "</time>, skipped while paused" in text(client, "/series/circle-ring/")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"verb": "pause", "why": " "}, "expected a reason"),
        ({"verb": "pause", "why": "x" * 501}, "at most 500 characters"),
        ({"verb": "pause", "why": "x", "hours": "-3"}, "expected one of the listed values"),
        ({"verb": "resume", "why": "x"}, "is not held"),
        ({"verb": "stop", "why": "as I typed it"}, "as I typed it"),
        ({}, "expected one of: pause"),
    ],
)
def test_an_invalid_order_shows_the_error_above_the_form(
    grid: Grid, runner: Client, form: dict[str, str], message: str
) -> None:
    answer = runner.post(f"{SITE}act/", form)
    assert answer.status_code == 409
    assert message in answer.content.decode()
    assert not Hold.objects.exists()


def test_all_series_of_a_site_are_run_from_its_page(grid: Grid, runner: Client) -> None:
    answer = runner.post("/holds/site/site4/act/", {"verb": "run", "why": "new disks"}, follow=True)
    assert "1 run queued." in answer.content.decode()
    assert Run.objects.get().trigger == "asked for by runner for the site site4: new disks"


def test_a_held_series_runs_from_its_page_only_with_force(grid: Grid, runner: Client, now: datetime) -> None:
    pause(HoldKind.SERIES, "circle-ring", now)
    refused = runner.post("/series/circle-ring/run-now/", follow=True).content.decode()
    assert "the series circle-ring is paused by ada" in refused
    assert "Run once anyway" in refused
    answer = runner.post("/holds/series/circle-ring/act/", {"verb": "force", "why": "is it mended?"})
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert run.forced


def test_a_reader_sees_holds_without_forms_and_is_refused(grid: Grid, client: Client, now: datetime) -> None:
    pause(HoldKind.SITE, "site2", now)
    for path in ("/holds/", SITE, "/series/circle-ring/"):
        assert 'name="verb"' not in text(client, path)
    for verb in ("pause", "resume", "run", "force"):
        assert client.post(f"{SITE}act/", {"verb": verb, "why": "x"}).status_code == 403
    assert Hold.objects.get().ended_at is None
    assert not Run.objects.exists()


def test_get_and_forged_requests_hold_nothing(grid: Grid, runner: Client) -> None:
    assert runner.get(f"{SITE}act/").status_code == 405
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(builders.user("forged", may_run=True))
    assert forged.post(f"{SITE}act/", {"verb": "pause", "why": "x"}).status_code == 403
    assert not Hold.objects.exists()


def test_invisible_scopes_are_not_found(grid: Grid, client: Client, now: datetime) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", [builders.site("bunker"), builders.site("cellar")], in_suite="closed")
    pause(HoldKind.SUITE, "closed", now, "nobody shall know")
    pause(HoldKind.SITE, "bunker", now, "nobody shall know")
    for path in ("suite/closed", "site/bunker", "series/secret-ring", "site/nowhere", "planet/earth"):
        assert client.get(f"/holds/{path}/").status_code == 404
    for path in ("/holds/", "/"):
        shown = text(client, path)
        assert "nobody shall know" not in shown
        assert "bunker" not in shown


def test_maintenance_is_listed_with_its_next_occurrence(grid: Grid, client: Client, now: datetime) -> None:
    assert "No maintenance scheduled" in text(client, "/holds/")
    tomorrow = now + timedelta(days=1)
    MaintenanceWindow.objects.create(name="past", starts_at=now - timedelta(days=2), ends_at=now)
    MaintenanceWindow.objects.create(name="cables", starts_at=tomorrow, ends_at=tomorrow + timedelta(hours=1))
    weekly = MaintenanceWindow.objects.create(
        name="weekly", title="<Disks>", schedule="* * * * *", timezone="Asia/Tokyo", duration_seconds=60
    )
    weekly.sites.add(Site.objects.get(name="site2"))
    shown = text(client, "/holds/")
    assert "past" not in shown
    assert "<strong>open</strong>" in shown
    assert '* * * * *</code> Asia/Tokyo, <span class="nowrap">for 1 min' in shown
    assert shown.index("&lt;Disks&gt;") < shown.index("cables")
    assert f"{tomorrow:%Y-%m-%d %H:%M}" in shown
    assert "in maintenance until" in text(client, "/series/gather-main/")


def test_maintenance_at_invisible_sites_is_not_shown(grid: Grid, client: Client, now: datetime) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", [builders.site("bunker"), builders.site("cellar")], in_suite="closed")
    work = MaintenanceWindow.objects.create(name="digging", starts_at=now, ends_at=now + timedelta(hours=1))
    work.sites.add(Site.objects.get(name="bunker"))
    for path in ("/holds/", "/"):
        assert "digging" not in text(client, path)
    work.sites.add(Site.objects.get(name="site1"))
    for path in ("/holds/", "/", "/series/gather-main/"):
        shown = text(client, path)
        assert "digging" in shown
        assert "bunker" not in shown


def test_a_site_with_invisible_series_cannot_be_held(grid: Grid, runner: Client) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    answer = runner.post(f"{SITE}act/", {"verb": "pause", "why": "x"})
    assert answer.status_code == 403
    assert "you may not see" in answer.content.decode()
    assert not Hold.objects.exists()


def test_the_list_of_an_open_page_is_sent_only_when_it_changes(
    grid: Grid, client: Client, now: datetime
) -> None:
    part = client.get("/holds/", headers=HTMX).content.decode()
    assert part.startswith('<section id="current-holds"')
    digest = part.split("seen=")[1].split('"')[0]
    assert client.get("/holds/", {"seen": digest}, headers=HTMX).status_code == 204
    pause(HoldKind.SITE, "site2", now)
    assert client.get("/holds/", {"seen": digest}, headers=HTMX).status_code == 200
