"""Ask and rank: the order of paths, their stages, reasons without a forecast, and the same by the API."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import datetime, timedelta
from html import unescape
from typing import TYPE_CHECKING

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from monitor.analysis.forecasts import refresh
from monitor.models import ApiToken, MaintenanceWindow, Series, Suite
from monitor.models.token import READ
from tests.monitor.analysis.forecasts.io_builders import io_grid
from tests.monitor.web.pages import builders

if TYPE_CHECKING:
    from pytest_django.live_server_helper import LiveServer

PATH = "/forecasts/rank/"


@pytest.fixture
def rings(db: None, now: datetime) -> list[Series]:
    """Rings that pass in about 7 and 21 s, and one that has never run."""
    first, second, third = builders.sites(3)
    fast = builders.circle("ring-fast", [first, second])
    slow = builders.circle("ring-slow", [second, third])
    for series, slowness in ((fast, 1.0), (slow, 3.0)):
        for number in range(5, 0, -1):
            slot = now - timedelta(minutes=2 * number)
            builders.passed(series, slot, slowness=slowness * (1 + number / 100))
    refresh.refresh_all(now)
    return [fast, slow, builders.circle("ring-new", [first, third])]


def text_of(client: Client, query: str = "", *, status: int = 200) -> str:
    answer = client.get(PATH + query)
    assert answer.status_code == status
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def test_paths_are_ranked_with_their_stages_and_the_others_have_a_reason(
    rings: list[Series], client: Client
) -> None:
    text = text_of(client)
    assert text.index("ring-fast") < text.index("ring-slow") < text.index("1 without a forecast")
    assert "2 ranked" in text
    assert re.search(r"transfer_ring .* 4\.\d s .* to .* 12\.\d s", text)
    assert "ring-new too few runs no run has passed yet" in text
    assert "ring-fast" not in text_of(client, "?text=site3").partition("The same by the API")[0]
    assert "No series match" in text_of(client, "?text=elsewhere")
    selected = text_of(client, "?series=ring-slow&series=other")
    assert "1 ranked" in selected
    assert "other unknown series there is no such series that you may see" in selected


def test_pages_say_what_a_forecast_from_elsewhere_is_based_on(client: Client, now: datetime) -> None:
    grid = io_grid(now)
    text = text_of(client, "?application=madbench")
    assert text.index("madbench-flash") < text.index("from 3 replays by replay-flash") < text.index("without")
    assert "and 3 runs of madbench-disk" in text
    assert "madbench-tape no replay no replay of madbench has passed at site3-login" in text
    page = client.get(f"/series/{grid.target.name}/").content.decode()
    assert "elsewhere, 0 runs" in page
    assert "replay-flash" in page
    for tab in ("patterns", "runs"):  # the segment of the forecast has no run yet
        assert client.get(f"/series/{grid.target.name}/{tab}/").status_code == 200


def test_maintenance_counts_at_the_time_of_the_start(
    rings: list[Series], client: Client, now: datetime
) -> None:
    tomorrow = now + timedelta(days=1)
    window = MaintenanceWindow.objects.create(
        name="disks", starts_at=tomorrow - timedelta(hours=1), ends_at=tomorrow + timedelta(hours=1)
    )
    window.sites.set([rings[0].bindings.all()[0].resource.site])
    assert "site unavailable" not in text_of(client)
    assert "ring-fast site unavailable" in text_of(client, "?start=86400")
    assert "ring-fast site unavailable" in text_of(client, f"?at={tomorrow:%Y-%m-%dT%H:%M}")


INVALID = {
    "quantile=2": "quantile: expected a number from 0.",
    "start=never": "start: expected a number from 0 to",
    "at=2020-01-01T00:00": "at: expected a time in the future, got 2020-01-01 00:00 UTC",
    "at=soon": "at: expected a time such as",
    "at=2199-01-01T00:00": "at: expected a time within a year",
    "text=%00": "expected text, got a NUL character",
}


def test_a_question_that_cannot_be_asked_is_explained(client: Client) -> None:
    builders.circle("ring", builders.sites(2))
    texts = {query: text_of(client, f"?{query}", status=400) for query in INVALID}
    assert [query for query, message in INVALID.items() if message not in texts[query]] == []


def test_readers_see_their_own_series_only(rings: list[Series], client: Client) -> None:
    Suite.objects.get().viewers.create(name="others")
    assert "No series yet" in text_of(client)
    assert "ring-fast" not in text_of(client, "?application=circle&series=ring-fast")


def test_the_command_gives_the_same_ranking(
    live_server: LiveServer, rings: list[Series], client: Client, reader: User, settings: LazySettings
) -> None:
    settings.GRIDCAST_URL = live_server.url
    page = client.get(PATH + "?start=3600&quantile=0.8").content.decode()
    found = re.search(r"<pre[^>]*>(curl .*?)</pre>", page, re.DOTALL)
    assert found
    token = ApiToken.objects.issue(reader, "ranking", [READ])
    done = subprocess.run(
        ["/bin/sh", "-c", unescape(found[1])], env={"TOKEN": str(token), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert [each["series"] for each in answer["ranked"]] == ["ring-fast", "ring-slow"]
    assert answer["quantile"] == 0.8
    assert [each["code"] for each in answer["unranked"]] == ["too_few"]
