"""Forecasts as they were issued, with the values that came."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.models import Forecast
from monitor.web.api.forecasts import Interval
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import RowId

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["forecasts"], auth=SCHEDULER_AUTH)


class StoredForecast(Schema):
    """A forecast as it was issued; *actual* and *actual_at* are null until a run has the value."""

    id: int
    series: str
    metric: str
    unit: str
    method: str
    predictor: str
    mean: float
    median: float
    interval: Interval
    n: int
    at: datetime | None = Field(description="When the run was to start; null: the next run.")
    issued_at: datetime
    data_until: datetime
    actual: float | None
    actual_at: datetime | None


@router.get(
    "/forecasts/{forecast}",
    response=StoredForecast,
    operation_id="show_stored_forecast",
    openapi_extra=declare(errors={404: ["unknown_forecast"]}),
    summary="Show a forecast as it was issued, with the actual value",
)
def show_stored_forecast(request: HttpRequest, forecast: RowId, query: Query[Sparse]) -> HttpResponse:
    """Forecasts that were delivered are kept; of the others, the newest of each metric."""
    rows = Forecast.objects.visible_to(request.user).select_related("metric__segment__series")
    found = rows.filter(pk=forecast).first()
    if found is None:
        raise Refused(404, "unknown_forecast", f"there is no forecast {forecast} that you may see")
    return show_item(query, _fields(found), StoredForecast)


def _fields(forecast: Forecast) -> dict[str, Any]:
    plain = ("method", "predictor", "mean", "median", "n", "at", "issued_at")
    return {
        **{name: getattr(forecast, name) for name in plain},
        "id": forecast.pk,
        "series": forecast.metric.segment.series.name,
        "metric": forecast.metric.name,
        "unit": forecast.metric.unit,
        "interval": {"level": forecast.level, "lower": forecast.lower, "upper": forecast.upper},
        "data_until": forecast.last_time,
        "actual": forecast.truth,
        "actual_at": forecast.truth_time,
    }
