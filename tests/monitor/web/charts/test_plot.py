"""Scales and shapes of the charts that the server draws."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from monitor.web.charts import plot
from monitor.web.charts.plot import Note
from monitor.web.charts.time_scale import TimeScale
from monitor.web.charts.value_scale import ValueScale

HOUR = 3600.0
NAN = float("nan")


def test_a_long_pause_is_cut_out_of_the_axis() -> None:
    times = np.array([0, 1, 2, 3, 100, 101]) * HOUR
    scale = TimeScale.of_runs(times, UTC)
    assert scale.pauses == [(4 * HOUR, 99 * HOUR)]
    assert scale.shown_seconds == 9 * HOUR
    assert scale.positions(times) * 9 == pytest.approx([1, 2, 3, 4, 6, 7])
    assert scale.position(50 * HOUR) == scale.position(99 * HOUR)  # within the pause


def test_ticks_are_round_times_outside_of_pauses_and_name_the_day_where_it_changes() -> None:
    scale = TimeScale.of_runs(np.array([22, 23, 24, 25, 26, 800, 801]) * HOUR, UTC)
    labels = [(label, day) for _, label, day in scale.ticks()]
    assert labels[:3] == [("22:00", "01-01"), ("00:00", "01-02"), ("02:00", "")]
    assert labels[-1] == ("10:00", "")
    assert len(labels) <= 7


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        ([HOUR], ["00:56", "00:58", "01:00", "01:02", "01:04"]),
        ([0, 5], ["23:59:55", "00:00:00", "00:00:05", "00:00:10", "00:00:15"]),
    ],
)
def test_few_runs_have_an_axis(times: list[float], labels: list[str]) -> None:
    scale = TimeScale.of_runs(np.array(times), UTC)
    assert [label for _, label, _ in scale.ticks()] == labels
    assert 0 <= scale.position(times[0]) <= 0.5


def test_the_days_of_an_axis_begin_at_midnight_of_its_zone() -> None:
    scale = TimeScale.of_runs(np.array(range(48)) * HOUR, ZoneInfo("America/Chicago"))
    position, label, day = next(scale.ticks())
    assert (label, day) == ("00:00", "01-01")
    assert position == pytest.approx(scale.position(6 * HOUR))


def test_an_axis_reaches_down_to_values_below_zero() -> None:
    scale = ValueScale.from_zero("seconds", 0.0, lowest=-10.0)
    assert 0 < scale.positions(np.array([0.0]))[0] < scale.positions(np.array([-10.0]))[0] < 1


@pytest.mark.parametrize(
    ("unit", "tallest", "needed", "high", "name"),
    [
        ("seconds", 40.0, 0.0, 42.4, "s"),
        ("seconds", 40.0, 60.0, 63.6, "s"),  # with the forecast
        ("seconds", 40.0, 4000.0, 106.0, "s"),  # a very wide interval does not squeeze the runs
        ("seconds", 0.0, 30.0, 31.8, "s"),  # only forecasts
        ("seconds", 9000.0, 0.0, 9540.0, "h"),
        ("bytes_per_second", 2e6, 0.0, 2.12e6, "MB/s"),
        ("count", 0.0, 0.0, 1, "count"),
    ],
)
def test_the_axis_of_values_fits_unit_and_values(
    unit: str, tallest: float, needed: float, high: float, name: str
) -> None:
    scale = ValueScale.from_zero(unit, tallest, needed)
    assert scale.high == pytest.approx(high)
    assert scale.name == name
    assert scale.positions(np.array([0.0, scale.high, 2 * scale.high])).tolist() == [1, 0, 0]


def test_a_logarithmic_axis_has_a_tick_at_each_decade() -> None:
    scale = ValueScale.logarithmic("seconds", np.array([0.0, 2.0, 500.0]))
    assert [label for _, label in scale.ticks()] == ["2", "5", "10", "20", "50", "100", "200", "500"]
    assert scale.positions(np.array([0.0])) == 1
    assert not ValueScale.logarithmic("seconds", np.array([0.0])).is_log  # nothing to take a logarithm of


def test_lines_are_interrupted_and_bars_without_height_left_out() -> None:
    x = np.array([0.0, 0.1, 0.2, 0.3])
    assert plot.line(x, np.array([0.5, NAN, 0.25, 0.5])) == "M0 1000M2000 500l1000 500"
    assert plot.bars(x[:2], x[1:3], np.array([0.5, 1.0]), np.array([1.0, 1.0])) == "m0 1000h1000v1000h-1000z"
    assert plot.dots(x[1:3], x[1:3]) == "m1000 200h0zm1000 200h0z"
    area = plot.band(x[:2], np.array([0.1, 0.2]), np.array([0.3, 0.4]))
    assert area == "M0 200l1000 200L1000 800l-1000 -200z"


def test_no_note_is_printed_over_another() -> None:
    first, second = Note(0.2, ["segment 2", "2"], "boundary"), Note(0.3, ["segment 3", "3"], "boundary")
    drawn = plot.notes([first, second, Note(0.31, ["segment 4", "4"], "boundary")])
    assert [text in drawn for text in ("segment 2", ">3<", "segment 3", ">4<", "segment 4")] == [
        True, False, False, False, False,
    ]  # fmt: skip
    assert "segment 3" in plot.notes([Note(0.2, ["2"], "boundary"), second])
