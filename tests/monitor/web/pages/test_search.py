"""Search and the list of series: what they find, and what they do not show."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from monitor.models import Series, Site
from monitor.models.run import State
from monitor.web.pages.http.time_search import time_hits
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid


def found(client: Client, text: str) -> str:
    answer = client.get("/search/", {"q": text, "all": "1"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_text_finds_sites_resources_and_series_in_any_case(grid: Grid, client: Client) -> None:
    Site.objects.filter(name="site2").update(title="The Gathering Place")
    text = found(client, "GATHER")
    assert "/series/gather-main/" in text
    assert "The Gathering Place" in text
    assert "/series/circle-ring/" not in text
    assert "site1-login" in found(client, "login site1")  # every word, in any order


def test_a_text_finds_guides_their_sections_and_terms(grid: Grid, client: Client) -> None:
    text = found(client, "availab")
    assert 'href="/help/guides/availability/"' in text
    assert 'href="/help/#term-availability"' in text
    assert 'href="/help/guides/failures/#availability"' in text


def test_a_full_name_leads_to_the_page(grid: Grid, client: Client, now: datetime) -> None:
    answer = client.get("/search/", {"q": "gather-main"})
    assert (answer.status_code, answer["Location"]) == (302, "/series/gather-main/")
    run = builders.passed(grid.circle, now)
    assert client.get("/search/", {"q": str(run.pk)})["Location"] == f"/runs/{run.pk}/"
    assert client.get("/search/", {"q": str(run.pk)[:8]})["Location"] == f"/runs/{run.pk}/"


@pytest.mark.parametrize("text", ["", "%", "_", "\x00", "no-such-thing", "x" * 1900, "\\"])
def test_a_text_that_names_nothing_says_what_can_be_found(grid: Grid, client: Client, text: str) -> None:
    page = found(client, text)
    assert "empty-note" in page
    assert "/series/gather-main/" not in page


def test_what_a_reader_may_not_see_is_not_found(grid: Grid, client: Client, now: datetime) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    secret = builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    run = builders.passed(secret, now)
    assert "/series/secret-ring/" not in found(client, "secret")
    assert f"/runs/{run.pk}/" not in found(client, str(run.pk))
    assert "secret-ring" not in client.get("/series/").content.decode()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("14:00", "2026-03-01T14:00"),  # now is 15:30 in Berlin
        (" 9:05 ", "2026-03-01T09:05"),
        ("16:00", "2026-02-28T16:00"),
        ("2026-01-31 16:00", "2026-01-31T16:00"),
        ("2027-01-31T16:00", "2027-01-31T16:00"),
        ("25:00", None),
        ("2026-02-30 14:00", None),
        ("14:00:00", None),
    ],
)
def test_a_time_leads_to_what_ran_then_in_the_zone_of_the_reader(text: str, at: str | None) -> None:
    hits = time_hits(text, ZoneInfo("Europe/Berlin"), datetime(2026, 3, 1, 14, 30, tzinfo=UTC)).hits
    assert [hit.url for hit in hits] == ([f"/schedule/?at={at}"] if at else [])


def test_a_time_in_the_search_is_answered_by_the_schedule(grid: Grid, client: Client, now: datetime) -> None:
    builders.passed(grid.gather, now)
    answer = client.get("/search/", {"q": f"{now:%Y-%m-%d %H:%M}"}, follow=True)
    assert answer.redirect_chain == [(f"/schedule/?at={now:%Y-%m-%dT%H:%M}", 302)]
    assert "Runs at" in answer.content.decode()
    assert "What ran at" in found(client, f"{now:%H:%M}")


def test_suggestions_are_only_the_list(grid: Grid, client: Client) -> None:
    part = client.get("/search/", {"q": "gather-main"}, headers={"HX-Request": "true"})
    assert part.content.decode().startswith('<div id="search-results"')
    below_the_field = {"HX-Request": "true", "HX-Target": "search-suggestions"}
    suggestions = client.get("/search/", {"q": "gather-main"}, headers=below_the_field).content.decode()
    assert "/series/gather-main/" in suggestions
    assert "id=" not in suggestions
    assert client.get("/search/", {"q": " "}, headers=below_the_field).content.strip() == b""


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["circle-ring", "gather-main"]),
        ({"text": "RING circle"}, ["circle-ring"]),
        ({"probe": "gather"}, ["gather-main"]),
        ({"site": "site4"}, ["gather-main"]),
        ({"state": "missed"}, ["circle-ring"]),
        ({"text": "nothing"}, []),
    ],
)
def test_the_list_of_series_is_filtered(
    grid: Grid, client: Client, now: datetime, query: dict[str, str], names: list[str]
) -> None:
    builders.not_run(grid.circle, now, State.MISSED, "no report")
    builders.passed(grid.gather, now)
    text = client.get("/series/", query).content.decode()
    assert [name for name in ("circle-ring", "gather-main") if f'href="/series/{name}/' in text] == names
    assert ("No series match" in text) == (not names)


def test_an_empty_list_says_how_to_define_series(db: None, client: Client) -> None:
    Series.objects.all().delete()
    assert "grid apply" in client.get("/series/").content.decode()
