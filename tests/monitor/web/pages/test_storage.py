"""The pages of storage areas, and their API: empty, filled, and of an area that a user may not see."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from forecasting.reading import sweeps
from monitor.analysis.storage.compute import refresh_verdicts
from monitor.models import Resource, Suite
from tests.monitor.analysis.storage import measured
from tests.monitor.web.pages import builders

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def areas(db: None) -> None:
    now = timezone.now()
    raid, flash = builders.site("raid"), builders.site("flash")
    for resource, rates in ((raid, measured.DISKS), (flash, measured.FLASH)):
        series = measured.storage_series(f"{resource.site.name}-disk", "disk", resource)
        measured.disk_history(series, rates, now - HOUR, runs=3)
    measured.sweep_passes(measured.storage_series("raid-sweep", "storage_sweep", raid), now - DAY)
    measured.stream_passes(measured.storage_series("raid-streams", "streams", raid), now - DAY)
    Resource.objects.filter(name="flash-login").update(storage=measured.STORAGE)
    refresh_verdicts(now, within_seconds=60.0)


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_without_an_area_the_page_says_how_to_start_a_sweep(client: Client) -> None:
    page = text(client, "/storage/")
    assert "No storage areas" in page
    assert "probe: storage_sweep" in page


@pytest.mark.usefixtures("areas")
def test_areas_are_listed_with_their_rates_and_figures(client: Client) -> None:
    page = text(client, "/storage/")
    assert "2 areas" in page
    assert "flash-login" in page
    assert "IOPS per price" in page


@pytest.mark.usefixtures("areas")
def test_each_rate_has_its_name_on_a_phone_also_where_an_area_lacks_it(client: Client) -> None:
    name, rate = next(iter(measured.DISKS.items()))
    series = measured.storage_series("tape-disk", "disk", builders.site("tape"))
    measured.disk_history(series, {name: rate}, timezone.now() - HOUR, runs=1)
    page = text(client, "/storage/")
    assert ">\u2013</td>" in page
    assert 'data-label=""' not in page


@pytest.mark.usefixtures("areas")
def test_an_area_shows_effects_streams_and_figures(client: Client) -> None:
    page = text(client, "/storage/raid-login/")
    assert "Which parameter matters" in page
    assert "Best combination:" in page
    assert "A limit helps" in page
    assert "Efficiency of its parts" in text(client, "/storage/flash-login/")


@pytest.mark.usefixtures("areas")
def test_a_limit_that_costs_time_is_shown_as_slower(client: Client) -> None:
    series = measured.storage_series("flash-streams", "streams", Resource.objects.get(name="flash-login"))
    measured.stream_passes(series, timezone.now() - DAY, unlimited_seconds=190.0)
    refresh_verdicts(timezone.now(), within_seconds=60.0)
    page = text(client, "/storage/flash-login/")
    assert re.search(r"A limit does not help</b>: the best one, .* at once, takes [56]\.\d % more time", page)
    assert "\N{MINUS SIGN}6" not in page


@pytest.mark.usefixtures("areas")
def test_the_csv_of_a_sweep_is_what_the_analysis_reads(client: Client, tmp_path: Path) -> None:
    page = text(client, "/storage/raid-login/")
    for series, read in (("raid-sweep", sweeps.read), ("raid-streams", sweeps.read_streams)):
        assert f'href="/series/{series}/sweep.csv"' in page
        answer = client.get(f"/series/{series}/sweep.csv")
        assert answer["Content-Disposition"] == f'attachment; filename="{series}.csv"'
        file = tmp_path / f"{series}.csv"
        file.write_bytes(answer.content)
        assert read(str(file))
    assert client.get("/series/raid-disk/sweep.csv").status_code == 404


@pytest.mark.usefixtures("areas")
def test_a_page_that_shows_the_same_is_not_sent_again(client: Client) -> None:
    for path in ("/storage/", "/storage/raid-login/"):
        digest = text(client, path).partition("seen=")[2].partition('"')[0]
        assert client.get(f"{path}?seen={digest}", headers={"HX-Request": "true"}).status_code == 204


@pytest.mark.usefixtures("areas")
def test_an_area_that_a_user_may_not_see_does_not_exist(client: Client) -> None:
    Suite.objects.get(name="main").viewers.add(Group.objects.create(name="others"))
    assert client.get("/storage/raid-login/").status_code == 404
    assert client.get("/series/raid-sweep/sweep.csv").status_code == 404
    assert client.get("/api/v1/storage/raid-login").status_code == 404
    assert "No storage areas" in text(client, "/storage/")


@pytest.mark.usefixtures("areas")
def test_the_api_gives_what_the_page_shows(client: Client) -> None:
    listed = client.get("/api/v1/storage").json()
    assert [area["name"] for area in listed["areas"]] == ["flash-login", "raid-login"]
    assert listed["areas"][0]["good_for"][:1] == ["sequential_read"]
    area = client.get("/api/v1/storage/raid-login").json()
    verdicts = {verdict["series"]: verdict for verdict in area["verdicts"]}
    assert verdicts["raid-streams"]["streams"]["verdict"] == "helps"
    assert verdicts["raid-sweep"]["effects"]["choice"]["levels"]["tasks"] == "8"
    assert verdicts["raid-disk"]["sweep"] is None
