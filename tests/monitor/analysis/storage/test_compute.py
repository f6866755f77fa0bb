"""Verdicts about storage areas: computed after new runs, kept while nothing changes."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from monitor.analysis.storage.compute import outdated, refresh_verdicts
from monitor.models import Resource, Series, StorageVerdict
from tests.monitor.analysis.storage import measured
from tests.monitor.web.pages import builders

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def area() -> Resource:
    return builders.site("scratch1")


def verdict(series: Series, now: datetime) -> StorageVerdict:
    assert refresh_verdicts(now, within_seconds=60.0) == 1
    return StorageVerdict.objects.get(series=series)


def test_rates_of_disk_are_compared_with_their_own_history(area: Resource, now: datetime) -> None:
    series = measured.storage_series("s1-disk", "disk", area)
    measured.disk_history(series, measured.DISKS, now - HOUR, last=0.5)
    content = verdict(series, now).content
    history = content["uses"]["random_read"]["history"]
    assert (history["n"], history["state"]) == (12, "slower")
    assert history["median"] == pytest.approx(900.0, rel=0.03)
    assert history["latest"] == pytest.approx(450.0, rel=0.03)
    assert history["by_fullness"] is not None
    assert refresh_verdicts(now, within_seconds=60.0) == 0  # nothing is new


def test_a_sweep_with_two_whole_passes_has_effects_and_the_best_setting_of_each_use(
    area: Resource, now: datetime
) -> None:
    series = measured.storage_series("s1-sweep", "storage_sweep", area)
    measured.sweep_passes(series, now - DAY)
    content = verdict(series, now).content
    assert content["sweep"]["whole_passes"] == 4
    terms = {"x".join(term["term"]): term for term in content["effects"]["terms"]}
    assert terms["tasks"]["is_claimed"]
    assert terms["tasks"]["size"] == pytest.approx(2.0, rel=0.03)
    assert terms["tasks"]["best"] == ["8"]
    assert content["effects"]["first_pass"]["ratio"] == pytest.approx(0.8, rel=0.03)
    assert content["uses"]["random_read"]["settings"]["tasks"] == "8"
    reads = content["uses"]["random_read"]["history"]["median"]
    assert reads == pytest.approx(100e6 * 2.0 * 0.05 * 0.3 / 4096, rel=0.05)


def test_an_unfinished_pass_does_not_count(area: Resource, now: datetime) -> None:
    series = measured.storage_series("s1-sweep", "storage_sweep", area)
    measured.sweep_passes(series, now - DAY, passes=2, remaining=5)
    content = verdict(series, now).content
    assert content["sweep"]["whole_passes"] == 1
    assert "effects" not in content


def test_streams_have_a_verdict(area: Resource, now: datetime) -> None:
    series = measured.storage_series("s1-streams", "streams", area)
    measured.stream_passes(series, now - DAY)
    content = verdict(series, now).content
    assert content["streams"]["verdict"] == "helps"
    assert content["streams"]["gain"]["streams"][0] == 1


def test_an_analysis_is_kept_until_another_pass_is_whole(area: Resource, now: datetime) -> None:
    series = measured.storage_series("s1-sweep", "storage_sweep", area)
    measured.sweep_passes(series, now - DAY, passes=3)
    first = verdict(series, now)
    StorageVerdict.objects.update(content={**first.content, "effects": {"kept": True}})
    measured.deliver(
        series,
        now - HOUR,
        {"sweep.pass": 4.0, "sweep.began": (now - DAY).timestamp(), "sweep.remaining": 15.0},
    )
    assert verdict(series, now).content["effects"] == {"kept": True}


def test_a_sweep_of_one_combination_says_why_there_is_no_analysis(area: Resource, now: datetime) -> None:
    series = measured.storage_series("s1-streams", "streams", area)
    began = now - DAY
    for number in (1, 2, 3):
        values = {"streams.pass": float(number), "streams.began": began.timestamp(), "streams.remaining": 0.0}
        values["streams.readers=1,writers=1.seconds"] = 100.0 + number
        measured.deliver(series, began + number * HOUR, values)
    assert "at least two settings" in verdict(series, now).content["refusal"]


def test_series_without_runs_and_of_other_probes_have_no_verdict(area: Resource, now: datetime) -> None:
    measured.storage_series("s1-disk", "disk", area)
    circle = builders.circle("ring", builders.sites(3))
    builders.passed(circle, now - HOUR)
    assert not outdated().exists()
