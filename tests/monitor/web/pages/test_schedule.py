"""The schedule: what runs next, what ran at a given time, exclusive runs, maintenance and pauses."""

from __future__ import annotations

import csv
import re
from datetime import datetime, timedelta
from html import unescape

from django.test import Client

from monitor.models import MaintenanceWindow, Series, Suite
from monitor.models.hold import HoldKind, HoldMode, Scope
from monitor.models.run import State
from monitor.runs.ledger import holds
from monitor.runs.ledger.schedule import Closure, ResourceDay, RunKind
from monitor.web.charts.day_timeline import day_timeline
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

PATH = "/schedule/"
NOON = builders.NOON
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def text_of(client: Client, query: str = "", *, status: int = 200) -> str:
    answer = client.get(PATH + query)
    assert answer.status_code == status
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def test_what_ran_at_a_time_is_listed_with_the_reason_of_skipped_slots(grid: Grid, client: Client) -> None:
    builders.passed(grid.gather, NOON - 5 * timedelta(seconds=1))
    builders.not_run(grid.circle, NOON - 10 * MINUTE, State.SKIPPED, "paused by ada: new disks")
    builders.passed(grid.circle, NOON - 2 * HOUR)
    text = text_of(client, f"?at={NOON:%Y-%m-%dT%H:%M}")
    listed = text.partition("By resource")[0]
    assert "gather-main 2026-03-04 11:59:55" in listed
    assert "paused by ada: new disks" in listed
    assert "10:00:00" not in listed
    assert "No run was in progress" in text_of(client, "?at=2026-03-01T12:00")
    assert "at: expected a time such as" in text_of(client, "?at=noon", status=400)
    Suite.objects.get().viewers.create(name="others")
    assert "No resources" in text_of(client, f"?at={NOON:%Y-%m-%dT%H:%M}")


def test_the_next_day_has_planned_and_exclusive_runs_and_closures(
    grid: Grid, client: Client, now: datetime
) -> None:
    Series.objects.filter(pk=grid.gather.pk).update(exclusive="site", limit_seconds=3600)
    builders.not_run(grid.gather, now + 2 * HOUR, State.EXPECTED, "")
    builders.not_run(grid.circle, now + 3 * HOUR, State.EXPECTED, "")
    builders.passed(grid.circle, now - HOUR)
    start = now + 5 * HOUR
    window = MaintenanceWindow.objects.create(name="disks", starts_at=start, ends_at=start + HOUR)
    window.sites.set([grid.resources[0].site])
    scope = Scope(HoldKind.SITE, "site2")
    holds.hold(scope, HoldMode.PAUSE, who="ada", why="power", now=now, until=now + HOUR)
    text = text_of(client)
    assert "Exclusive runs" in text
    assert f"{now + 3 * HOUR:%Y-%m-%d %H:%M}" in text  # the expected end: its limit
    assert re.search(r"site1-login 2\d{3}-.* maintenance: disks", text)
    assert "paused by ada: power" in text
    assert "site4" in text
    assert "site4" not in text_of(client, "?text=site1")
    rows = list(csv.DictReader(client.get("/schedule.csv?text=site1").content.decode().splitlines()))
    assert [(row["resource"], row["planned"]) for row in rows] == [("site1-login", "1")] * 2
    past = csv.DictReader(client.get("/schedule.csv?text=site1&view=last").content.decode().splitlines())
    assert [(row["planned"], row["passed"]) for row in past] == [("0", "1")]


def test_a_strip_says_in_words_what_it_draws() -> None:
    day = ResourceDay("ncsa-login", "ncsa")
    day.counts[0] = {RunKind.PASSED: 3, RunKind.FAILED: 1}
    day.closures = [Closure(NOON, NOON + HOUR, "maintenance: <disks>")]
    drawn = day_timeline(day, NOON, NOON)
    assert 'aria-label="3 passed, 1 failed; maintenance: &lt;disks&gt;"' in drawn
    assert 'class="k-tick"' in drawn
    assert 'class="closed" x="0.0" y="1" width="60.0"' in drawn
