"""Weather sources: steps of time, slots in labels, and faults set by hand."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.testbed.sites.weather_sources import (
    DrawnWeather,
    NoWeather,
    WithManualFault,
    parse_fault,
    slot_of,
    step_index,
)
from monitor.testbed.weather.conditions import Conditions, SiteFault

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("anl", "iu", "ncsa")


def draw(index: int) -> Conditions:
    return Conditions(index=index, seconds={"disk": 4.0}, slowest_site={"disk": 0}, others_fraction=0.5)


@pytest.mark.parametrize(
    ("seconds", "scale", "index"),
    [(0, 20.0, 0), (9.99, 20.0, 0), (10.0, 20.0, 1), (25.0, 20.0, 2), (199.0, 1.0, 0), (-5.0, 20.0, 0)],
)
def test_a_step_of_weather_is_200_grid_seconds_long(seconds: float, scale: float, index: int) -> None:
    assert step_index(EPOCH + timedelta(seconds=seconds), EPOCH, scale) == index


@pytest.mark.parametrize(
    ("label", "slot"),
    [
        ("gather-main@2026-01-01T00:01:00.000000Z", EPOCH + timedelta(minutes=1)),
        ("a@b@2026-01-01T01:00:00+01:00", EPOCH),
        ("gather-main", None),
        ("gather-main@soon", None),
        ("gather-main@2026-01-01T00:01:00", None),
        (None, None),
    ],
)
def test_the_slot_of_a_run_is_read_from_its_label(label: str | None, slot: datetime | None) -> None:
    assert slot_of(label) == slot


def test_all_sessions_of_a_run_meet_the_weather_of_its_slot() -> None:
    source = DrawnWeather(draw, EPOCH, scale=20.0)
    label = "gather-main@2026-01-01T00:00:50.000000Z"
    moments = [EPOCH + timedelta(seconds=seconds) for seconds in (50, 59, 75)]
    assert [source.at(label, now).index for now in moments] == [5, 5, 5]
    assert [source.at(None, now).index for now in moments] == [5, 5, 7]


def test_a_manual_fault_replaces_the_drawn_one_until_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "fault.json"
    source = WithManualFault(DrawnWeather(draw, EPOCH, 20.0), path, NAMES)
    path.write_text(json.dumps({"site": "ncsa", "mechanism": "compile", "kind": "missing"}))
    broken = source.at(None, EPOCH)
    assert broken is not None
    assert (broken.fault, broken.seconds) == (SiteFault(2, "compile", "missing"), {"disk": 4.0})
    path.unlink()
    assert source.at(None, EPOCH) == draw(0)


def test_a_manual_fault_needs_no_weather(tmp_path: Path) -> None:
    path = tmp_path / "fault.json"
    source = WithManualFault(NoWeather(), path, NAMES)
    assert source.at(None, EPOCH) is None
    path.write_text(json.dumps({"site": "anl", "mechanism": "login", "kind": "hang"}))
    broken = source.at(None, EPOCH)
    assert broken is not None
    assert (broken.fault, broken.seconds) == (SiteFault(0, "login", "hang"), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"site": "x", "mechanism": "disk", "kind": "full"}', "unknown site 'x'; known are anl, iu, ncsa"),
        ('{"site": "anl", "mechanism": "x", "kind": "full"}', "unknown mechanism 'x'"),
        ('{"site": "anl", "mechanism": "disk", "kind": "x"}', "unknown kind 'x'; known are full, unwritable"),
        ('["anl"]', "expected an object"),
        ("{", "Expecting property name"),
    ],
)
def test_the_error_about_an_unknown_fault_names_the_valid_ones(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_fault(text, NAMES)


def test_an_unparsable_fault_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "fault.json"
    path.write_text("{")
    with caplog.at_level(logging.WARNING):
        assert WithManualFault(NoWeather(), path, NAMES).at(None, EPOCH) is None
    assert "is ignored" in caplog.text
