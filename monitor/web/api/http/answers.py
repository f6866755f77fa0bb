"""Parts of answers about measured values: the metric, the time window and how recent the data are."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from django.http import HttpResponse
from django.urls import reverse
from ninja import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from monitor.depot.rollups.statistics import Freshness
    from monitor.models import Metric
    from monitor.web.api.http.find_metrics import TimeWindow


class MetricOut(Schema):
    series: str
    segment: int
    metric: str
    unit: str


class WindowOut(Schema):
    """The time from *start* until before *end*. *data_age_seconds* is the age of the newest value in the
    window; it is null if the window has no value. *complete* is false if rollups do not cover the whole
    window; the missing hours were then read from samples."""

    start: datetime
    end: datetime
    complete: bool
    data_age_seconds: float | None


def answer(body: Any) -> HttpResponse:
    """Return *body* as JSON, without validation.

    Validating thousands of numbers that were just computed would dominate the response time. Tests compare
    answers with the declared schema.
    """
    return HttpResponse(msgspec.json.encode(body), content_type="application/json")


def created(item: Schema, *, status: int, location: str) -> HttpResponse:
    """Return *item* with the *status* 201 or 202, and the path below ``/api/v1`` at which it is found."""
    response = HttpResponse(
        msgspec.json.encode(item.model_dump()), status=status, content_type="application/json"
    )
    response["Location"] = reverse("api-1:api-root") + location.removeprefix("/")
    return response


def metric_fields(metric: Metric) -> dict[str, object]:
    """Return the fields of ``MetricOut``."""
    return {
        "series": metric.series.name,
        "segment": metric.segment.number,
        "metric": metric.name,
        "unit": metric.unit,
    }


def window_fields(window: TimeWindow, freshness: Freshness) -> dict[str, object]:
    """Return the fields of ``WindowOut``."""
    return {
        "start": window.start,
        "end": window.end,
        "complete": freshness.complete,
        "data_age_seconds": freshness.age_seconds(window.now),
    }


def rfc3339(micros: NDArray[np.int64]) -> list[str]:
    """Format microseconds since 1970 as RFC 3339 times in UTC."""
    texts: list[str] = np.datetime_as_string(micros.astype("M8[us]"), timezone="UTC").tolist()
    return texts
