"""A new metric begins with what metrics like it have learned, and a rebuild begins with the same."""

from __future__ import annotations

from datetime import datetime, timedelta

from forecasting.prior import MIN_VALUES
from monitor.analysis.forecasts.refresh import refresh_all, reset
from monitor.depot.rollups import mark_dirty
from monitor.depot.samples import write
from monitor.depot.samples.write import SampleRow
from monitor.models import ForecastState, Metric, Series
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report

HOUR = timedelta(hours=1)
NEXT_VERSION = wire.ProbeIdentity("circle", "9.9.9", "0" * 64)


def put(metric: Metric, first: datetime, count: int) -> None:
    times = [first + n * HOUR for n in range(count)]
    write.write(
        [SampleRow(metric.pk, at, at + HOUR / 60, 4.0 + n * n % 7, True) for n, at in enumerate(times)]
    )
    mark_dirty.mark({(metric.segment.series_id, at) for at in times})


def state_of(metric: Metric) -> ForecastState:
    return ForecastState.objects.get(metric=metric)


def test_a_new_segment_begins_with_the_prior_of_the_old_and_is_rebuilt_alike(
    circle: Series, noon: datetime
) -> None:
    ingest(wire.to_json(circle_report(noon)))
    old = Metric.objects.get(name="total.seconds")
    put(old, noon + HOUR, MIN_VALUES + 5)
    now = noon + 50 * HOUR
    refresh_all(now)
    assert bytes(state_of(old).prior or b"") == b""  # nothing taught the first one

    ingest(wire.to_json(circle_report(now, probe=NEXT_VERSION)))
    new = Metric.objects.exclude(pk=old.pk).get(name="total.seconds")
    put(new, now + HOUR, 5)
    refresh_all(now + 10 * HOUR)
    before = state_of(new)
    assert before.prior

    put(old, now + HOUR, 5)  # what the others learn later changes nothing
    reset([circle.pk])
    refresh_all(now + 10 * HOUR)
    after = state_of(new)
    assert (after.n, after.state) == (before.n, before.state)
    assert after.prior == before.prior
