"""The list of sites, the page of a site and of a resource."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from monitor.analysis.availability.refresh import refresh
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Hold, Resource, Site, SiteAdministrator, Suite
from monitor.models.hold import HoldKind, HoldMode
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


@pytest.fixture
def failing(grid: Grid) -> Grid:
    """Gather failed three times at site2."""
    trouble = builders.Trouble("transfer_data", "site2-login", "cannot connect: Connection refused")
    until = timezone.now()
    builders.history(grid.gather, 6, until=until, troubles={3: trouble, 4: trouble, 5: trouble})
    classify_runs(until)
    refresh(until)
    return grid


def test_without_sites_the_list_says_what_to_do(db: None, client: Client) -> None:
    assert "manage.py grid apply" in text(client, "/sites/")


def test_the_list_has_the_worst_site_first(failing: Grid, client: Client) -> None:
    shown = text(client, "/sites/")
    assert shown.index('href="/sites/site2/') < shown.index('href="/sites/site1/')
    assert "down" in shown


def test_the_list_is_filtered_by_text_and_state(failing: Grid, client: Client) -> None:
    Site.objects.filter(name="site3").update(title="Third of all")
    assert "1 site<" in text(client, "/sites/?q=THIRD")
    assert "1 site<" in text(client, "/sites/?state=failing")
    assert "No sites match." in text(client, "/sites/?state=held")
    Hold.objects.create(
        kind=HoldKind.SITE, name="site1", mode=HoldMode.PAUSE, who="ada", why="disk", began_at=timezone.now()
    )
    assert "1 site<" in text(client, "/sites/?state=held")


def test_all_pages_show_the_same_availability_of_this_month(failing: Grid, client: Client) -> None:
    pattern = r"Availability this month</dt><dd>(.*?)</dd>"
    (shown,) = re.findall(pattern, text(client, "/sites/site2/"))
    assert 0 < float(shown.removesuffix(" %").strip()) < 100
    assert f'data-label="Availability">{shown}<' in text(client, "/sites/")
    assert text(client, "/").count(f'<td class="number month">{shown}</td>') == 1


def test_the_page_of_a_site_answers_what_fails_there(failing: Grid, client: Client) -> None:
    shown = text(client, "/sites/site2/")
    for part in (
        "down",
        "gather-main",
        "site2-login",
        "the last 3 runs failed at site2-login",
        "Availability",
    ):
        assert part in shown.lower() or part in shown, part
    assert "No run failed here in this range." in text(client, "/sites/site1/")


def test_a_site_and_its_resources_are_hidden_from_users_without_its_series(
    failing: Grid, client: Client
) -> None:
    Suite.objects.get(name="main").viewers.add(Group.objects.create(name="others"))
    text(client, "/sites/site2/", status=404)
    text(client, "/sites/site2/resources/site2-login/", status=404)
    assert "site2" not in text(client, "/sites/")


def test_notes_and_contacts_are_shown_as_text(grid: Grid, client: Client) -> None:
    contacts = [{"name": "<b>Help</b>", "email": "help@example.org"}]
    notes = "Quotas: https://example.org/q\n<script>"
    Site.objects.filter(name="site1").update(notes=notes, contacts=contacts)
    shown = text(client, "/sites/site1/")
    assert '<a href="https://example.org/q" rel="nofollow">' in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;Help&lt;/b&gt;" in shown
    assert 'href="mailto:help@example.org"' in shown


def test_a_site_admin_edits_the_notes_of_its_own_site_only(grid: Grid) -> None:
    admin = builders.user("admin")
    admin.groups.add(Group.objects.get(name="site_admin"))
    SiteAdministrator.objects.create(user=admin, site=Site.objects.get(name="site1"))
    browser = Client()
    browser.force_login(admin)
    content = {
        "notes": "new disks",
        "contacts": "Help desk <help@example.org>\nada@example.org\nThe operators",
    }
    assert browser.post("/sites/site1/edit/", content).status_code == 302
    assert browser.post("/sites/site2/edit/", content).status_code == 403
    site = Site.objects.get(name="site1")
    assert site.notes == "new disks"
    assert site.contacts == [
        {"name": "Help desk", "email": "help@example.org"},
        {"name": "ada@example.org", "email": "ada@example.org"},
        {"name": "The operators", "email": ""},
    ]
    wrong = browser.post("/sites/site1/edit/", {"contacts": "Help <nowhere>"})
    assert wrong.status_code == 422
    assert "Expected an e-mail address" in wrong.content.decode()


def test_hosts_are_shown_to_users_who_manage_the_site(failing: Grid, client: Client, runner: Client) -> None:
    Resource.objects.filter(name="site2-login").update(shell={"kind": "ssh", "host": "secret.example.org"})
    path = "/sites/site2/resources/site2-login/"
    reader, manager = text(client, path), text(runner, path)
    assert "secret.example.org" not in reader
    assert "/scratch/probes" not in reader
    assert "secret.example.org" in manager
    assert "Connection refused" in reader


def test_a_site_is_stale_when_all_of_its_results_are(grid: Grid, client: Client) -> None:
    builders.history(grid.gather, 2, until=timezone.now() - timedelta(days=3), with_forecasts=False)
    assert "stale, " in text(client, "/sites/?q=site4")
    builders.history(grid.gather, 2, until=timezone.now(), with_forecasts=False)
    assert "stale, " not in text(client, "/sites/?q=site4")
