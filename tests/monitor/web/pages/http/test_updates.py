"""Updates of open pages: by version, with the banner in the same answer."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from monitor.runs.ledger import heartbeats
from tests.monitor.web.pages.conftest import Grid
from tests.waiting import eventually

HTMX = {"HX-Request": "true"}


def update(client: Client, version: str = "", seen: str = "") -> HttpResponse:
    headers = {**HTMX, **({"If-None-Match": version} if version else {})}
    return client.get("/alerts/", {"seen": seen}, headers=headers)  # type: ignore[return-value]


def test_without_a_change_a_page_is_not_computed(grid: Grid, client: Client) -> None:
    heartbeats.record("beat", timezone.now() + timedelta(hours=1))

    def is_not_modified() -> bool:  # a new minute is a new version
        version = update(client).headers["ETag"]
        return (
            update(client, version).status_code == 304 and update(client, f"W/{version}").status_code == 304
        )

    assert eventually(is_not_modified)


def test_a_changed_part_and_the_banner_come_in_one_answer(grid: Grid, client: Client) -> None:
    heartbeats.record("beat", timezone.now() - timedelta(minutes=2))
    answer = update(client, '"of-before"')
    assert answer.status_code == 200
    text = answer.content.decode()
    assert 'id="alerts"' in text
    assert '<div id="banner" hx-swap-oob="innerHTML">' in text
    assert 'data-state="beat"' in text


def test_a_changed_banner_comes_alone_if_the_part_is_the_same(grid: Grid, client: Client) -> None:
    digest = client.get("/alerts/").context["digest"]
    assert update(client, '"old-"', digest).status_code == 204
    heartbeats.record("beat", timezone.now() - timedelta(minutes=2))
    answer = update(client, '"old-"', digest)
    assert answer.headers["HX-Reswap"] == "none"
    text = answer.content.decode()
    assert "Scheduler: no heartbeat" in text
    assert 'id="alerts"' not in text
