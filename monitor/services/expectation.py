"""How long a run is expected to take at most, as its reporter is told when it begins."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from forecasting.base import Abstained
from monitor.models import Series
from monitor.services.forecast import issue
from monitor.services.segments import current_metrics

if TYPE_CHECKING:
    from datetime import datetime

# What probes ask for: credentials must outlast the run, a job's wall-clock limit its compute stage.
EXPECTED = ("total.seconds", "stage.compute.seconds")


def expected_seconds(series: Series, now: datetime) -> dict[str, float]:
    """The upper bound of the forecast of each metric in ``EXPECTED``; without those that have none, as all
    are when what *series* runs has just changed."""
    expected = {}
    for metric in current_metrics(Series.objects.filter(pk=series.pk)).filter(name__in=EXPECTED):
        with suppress(Abstained):
            expected[metric.name] = issue(metric, now).upper
    return expected
