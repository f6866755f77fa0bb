"""The pages on which people pause, drain, resume and run: for those who may, with who and why."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from monitor.ledger.holds import hold
from monitor.models import Hold, MaintenanceWindow, Run, Site
from monitor.models.hold import HoldKind, HoldMode, Scope
from tests.monitor.pages import builders
from tests.monitor.pages.conftest import Grid

SITE = "/holds/site/site2/"
HTMX = {"HX-Request": "true"}


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def pause(kind: HoldKind, name: str, now: datetime, why: str = "disk swap") -> Hold:
    return hold(Scope(kind, name), HoldMode.PAUSE, who="ada", why=why, now=now)


def test_while_nothing_is_held_the_page_says_so(grid: Grid, client: Client) -> None:
    found = text(client, "/holds/")
    assert "Nothing is held" in found
    assert "Nobody has held anything yet" in found


def test_what_is_held_is_listed_with_who_and_why_and_so_is_its_end(grid: Grid, runner: Client) -> None:
    runner.post(f"{SITE}act/", {"verb": "drain", "why": "disk <swap>"})
    found = text(runner, "/holds/")
    for part in ("site site2", "drained", "runner", "disk &lt;swap&gt;"):
        assert part in found
    runner.post(f"{SITE}act/", {"verb": "resume", "why": "new disks"})
    found = text(runner, "/holds/")
    for part in ("Nothing is held", "resumed", "new disks", "disk &lt;swap&gt;"):
        assert part in found


def test_a_hold_from_a_page_may_end_by_itself(grid: Grid, runner: Client) -> None:
    runner.post(f"{SITE}act/", {"verb": "pause", "why": "disk swap", "hours": "4"})
    made = Hold.objects.get()
    assert made.until == made.began_at + timedelta(hours=4)


@pytest.mark.parametrize("path", ["/series/circle-ring/", "/", SITE])
def test_what_is_held_says_by_whom_and_why_where_it_is_looked_at(
    grid: Grid, client: Client, now: datetime, path: str
) -> None:
    pause(HoldKind.SITE, "site2", now, "<i>disk swap")
    found = text(client, path)
    assert "&lt;i&gt;disk swap" in found
    assert "<i>disk" not in found
    assert "paused" in found


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"verb": "pause", "why": " "}, "expected a reason"),
        ({"verb": "pause", "why": "x" * 501}, "at most 500 characters"),
        ({"verb": "pause", "why": "x", "hours": "-3"}, "expected one of those in the list"),
        ({"verb": "resume", "why": "x"}, "is not held"),
        ({"verb": "stop", "why": "as I typed it"}, "as I typed it"),
        ({}, "expected one of: pause"),
    ],
)
def test_an_order_that_cannot_be_kept_is_told_above_the_form(
    grid: Grid, runner: Client, form: dict[str, str], said: str
) -> None:
    answer = runner.post(f"{SITE}act/", form)
    assert answer.status_code == 409
    assert said in answer.content.decode()
    assert not Hold.objects.exists()


def test_all_series_of_a_site_are_run_from_its_page(grid: Grid, runner: Client) -> None:
    answer = runner.post("/holds/site/site4/act/", {"verb": "run", "why": "new disks"}, follow=True)
    assert "1 run asked for." in answer.content.decode()
    assert Run.objects.get().trigger == "asked for by runner for the site site4: new disks"


def test_a_held_series_is_run_from_its_page_only_by_force(grid: Grid, runner: Client, now: datetime) -> None:
    pause(HoldKind.SERIES, "circle-ring", now)
    refused = runner.post("/series/circle-ring/run-now/", follow=True).content.decode()
    assert "the series circle-ring is paused by ada" in refused
    assert "Run once anyway" in refused
    answer = runner.post("/holds/series/circle-ring/act/", {"verb": "force", "why": "is it mended?"})
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert run.forced


def test_who_may_only_look_sees_holds_but_no_forms_and_is_refused(
    grid: Grid, client: Client, now: datetime
) -> None:
    pause(HoldKind.SITE, "site2", now)
    for path in ("/holds/", SITE, "/series/circle-ring/"):
        assert 'name="verb"' not in text(client, path)
    for verb in ("pause", "resume", "run", "force"):
        assert client.post(f"{SITE}act/", {"verb": verb, "why": "x"}).status_code == 403
    assert Hold.objects.get().ended_at is None
    assert not Run.objects.exists()


def test_a_link_or_somebody_elses_page_holds_nothing(grid: Grid, runner: Client) -> None:
    assert runner.get(f"{SITE}act/").status_code == 405
    forged = Client(enforce_csrf_checks=True)
    forged.force_login(builders.user("forged", may_run=True))
    assert forged.post(f"{SITE}act/", {"verb": "pause", "why": "x"}).status_code == 403
    assert not Hold.objects.exists()


def test_what_is_not_for_you_is_not_there(grid: Grid, client: Client, now: datetime) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", [builders.site("bunker"), builders.site("cellar")], in_suite="closed")
    pause(HoldKind.SUITE, "closed", now, "nobody shall know")
    pause(HoldKind.SITE, "bunker", now, "nobody shall know")
    for path in ("suite/closed", "site/bunker", "series/secret-ring", "site/nowhere", "planet/earth"):
        assert client.get(f"/holds/{path}/").status_code == 404
    for path in ("/holds/", "/"):
        found = text(client, path)
        assert "nobody shall know" not in found
        assert "bunker" not in found


def test_what_is_planned_is_listed_with_its_next_time(grid: Grid, client: Client, now: datetime) -> None:
    assert "No maintenance is planned" in text(client, "/holds/")
    tomorrow = now + timedelta(days=1)
    MaintenanceWindow.objects.create(name="past", starts_at=now - timedelta(days=2), ends_at=now)
    MaintenanceWindow.objects.create(name="cables", starts_at=tomorrow, ends_at=tomorrow + timedelta(hours=1))
    weekly = MaintenanceWindow.objects.create(
        name="weekly", title="<Disks>", schedule="* * * * *", timezone="Asia/Tokyo", duration_seconds=60
    )
    weekly.sites.add(Site.objects.get(name="site2"))
    found = text(client, "/holds/")
    assert "past" not in found
    assert "<strong>now</strong>" in found
    assert "* * * * * Asia/Tokyo" in found
    assert found.index("&lt;Disks&gt;") < found.index("cables")
    assert f"{tomorrow:%Y-%m-%d %H:%M:%S}" in found
    assert "in maintenance until" in text(client, "/series/gather-main/")


def test_work_where_you_see_nothing_is_not_told(grid: Grid, client: Client, now: datetime) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", [builders.site("bunker"), builders.site("cellar")], in_suite="closed")
    work = MaintenanceWindow.objects.create(name="digging", starts_at=now, ends_at=now + timedelta(hours=1))
    work.sites.add(Site.objects.get(name="bunker"))
    for path in ("/holds/", "/"):
        assert "digging" not in text(client, path)
    work.sites.add(Site.objects.get(name="site1"))
    for path in ("/holds/", "/", "/series/gather-main/"):
        found = text(client, path)
        assert "digging" in found
        assert "bunker" not in found


def test_a_site_with_series_of_others_is_not_one_to_hold_alone(grid: Grid, runner: Client) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    answer = runner.post(f"{SITE}act/", {"verb": "pause", "why": "x"})
    assert answer.status_code == 409
    assert "you may not see" in answer.content.decode()
    assert not Hold.objects.exists()


def test_the_list_on_an_open_page_is_sent_only_when_it_changes(
    grid: Grid, client: Client, now: datetime
) -> None:
    part = client.get("/holds/", headers=HTMX).content.decode()
    assert part.startswith('<section id="held"')
    seen = part.split("seen=")[1].split('"')[0]
    assert client.get("/holds/", {"seen": seen}, headers=HTMX).status_code == 204
    pause(HoldKind.SITE, "site2", now)
    assert client.get("/holds/", {"seen": seen}, headers=HTMX).status_code == 200
