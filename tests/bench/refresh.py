"""Refresh forecasts after a new value of every series, relative to the time of the forecasters alone."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils import timezone

from forecasting.series import QUANTILE_LEVELS, Forecaster, Observation
from monitor.analysis.forecasts.refresh import refresh, refresh_all
from monitor.core.compression import pack_state, unpack_state
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.depot.series.segments import local_identity
from monitor.models import ForecastState, Metric, Segment, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.bench.base import Result, seconds

SERIES = 200
VALUES = 50  # of each series before the measurement
ROUNDS = 5
EVERY = timedelta(minutes=5)
WANTED_PER_MINUTE = 10_000


def measure() -> list[Result]:
    metrics, draw = _defined(), random.Random(1)
    now = timezone.now().replace(microsecond=0)
    began = now - (VALUES + ROUNDS) * EVERY
    for number in range(VALUES):
        _write(metrics, began + number * EVERY, draw, [])
    refresh_all(now)
    took, alone = [], []
    for number in range(VALUES, VALUES + ROUNDS):
        written: list[SampleRow] = []
        _write(metrics, began + number * EVERY, draw, written)
        alone.append(_alone(written))
        took.append(seconds(lambda: refresh(now, within_seconds=60.0)))
        _require_used(written)
    return [_result(statistics.median(took) / SERIES, statistics.median(alone) / SERIES)]


def _result(refresh_seconds: float, alone_seconds: float) -> Result:
    return Result(
        name="refreshed forecasts / their forecasters alone",
        ratio=refresh_seconds / alone_seconds,
        target=4.0,
        better="lower",
        figures={
            "series a minute": 60 / refresh_seconds,
            "of 10,000 wanted": 60 / refresh_seconds / WANTED_PER_MINUTE,
            "one series, ms": refresh_seconds * 1000,
            "its forecaster alone, ms": alone_seconds * 1000,
            "its state, bytes": statistics.median(
                len(state) for state in ForecastState.objects.values_list("state", flat=True) if state
            ),
        },
    )


def _defined() -> list[Metric]:
    """Define ``SERIES`` series, each with a total."""
    define(
        [ResourceConfig("here", "site", "/here")],
        [SeriesDefinition(f"noop-{number}", "noop", {"target": ["here"]}) for number in range(SERIES)],
    )
    now = timezone.now()
    measured = local_identity("noop", {}, {"target": ["here"]})
    segments = Segment.objects.bulk_create(
        Segment(series=series, number=1, began_at=now, fingerprint=measured.fingerprint)
        for series in Series.objects.all()
    )
    return Metric.objects.bulk_create(
        Metric(segment=segment, name="total.seconds", unit="seconds") for segment in segments
    )


def _write(metrics: Sequence[Metric], time: datetime, draw: random.Random, written: list[SampleRow]) -> None:
    """Write a value of each metric, of a run of a minute."""
    rows = [
        SampleRow(metric.pk, time, time + timedelta(minutes=1), draw.lognormvariate(2.0, 0.4), True)
        for metric in metrics
    ]
    write.write(rows)
    mark_dirty.mark({(metric.segment.series_id, time) for metric in metrics})
    written += rows


def _alone(written: Sequence[SampleRow]) -> float:
    """Return the seconds of the least work: unpack, learn, forecast, pack."""
    states = {row.pk: bytes(row.state or b"") for row in ForecastState.objects.only("state")}
    return seconds(lambda: [_learn(states[row.metric_id], row) for row in written])


def _learn(state: bytes, row: SampleRow) -> bytes:
    forecaster = Forecaster.load(unpack_state(state))
    known_at = row.known_at.timestamp()
    forecaster.observe(Observation(row.time.timestamp(), known_at, row.value))
    forecaster.forecast(known_at, probabilities=QUANTILE_LEVELS, floor=0.0)
    return pack_state(forecaster.dump())


def _require_used(written: Sequence[SampleRow]) -> None:
    used = ForecastState.objects.filter(used_until=written[0].known_at, is_behind=False).count()
    if used != len(written):
        raise AssertionError(f"{used} of {len(written)} values were used")
