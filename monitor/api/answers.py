"""What answers about values have in common: what they are of, how fresh they are, and that they are quick."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from django.http import HttpResponse
from ninja import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.api.lookup import Window
    from monitor.depot.rollups.statistics import Freshness
    from monitor.models import Metric


class MetricOut(Schema):
    series: str
    segment: int
    metric: str
    unit: str


class WindowOut(Schema):
    """From *start* until before *end*. *data_age_seconds*: since when the newest value in it is known, null
    without any. *complete*: rollups have all of it; if not, what they lack was read from samples."""

    start: datetime
    end: datetime
    complete: bool
    data_age_seconds: float | None


def answer(body: Any) -> HttpResponse:
    """*body* as JSON. Thousands of numbers, just computed, are not checked one by one: the schema that an
    operation shows is for those who read it, and for its tests."""
    return HttpResponse(msgspec.json.encode(body), content_type="application/json")


def of_metric(metric: Metric) -> dict[str, object]:
    """As ``MetricOut``."""
    return {
        "series": metric.series.name,
        "segment": metric.segment.number,
        "metric": metric.name,
        "unit": metric.unit,
    }


def of_window(asked: Window, found: Freshness) -> dict[str, object]:
    """As ``WindowOut``."""
    return {
        "start": asked.start,
        "end": asked.end,
        "complete": found.complete,
        "data_age_seconds": found.age_seconds(asked.now),
    }


def times(micros: NDArray[np.int64]) -> list[str]:
    """Microseconds since 1970 as RFC 3339, UTC."""
    texts: list[str] = np.datetime_as_string(micros.astype("M8[us]"), timezone="UTC").tolist()
    return texts
