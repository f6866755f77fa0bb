"""Export of all values of a series as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import StreamingHttpResponse
from django.utils import timezone
from ninja import Query, Router

from monitor.depot.samples import formats
from monitor.depot.samples.export import export
from monitor.depot.samples.formats.base import UnknownFormat
from monitor.web.api.http.declare import declare
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.find_metrics import checked_period, find_series
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["values"])
_FILE = {
    "description": "A row for each value",
    "content": {formats.load(name).media_type.partition(";")[0]: {} for name in formats.names()},
}


class ExportQuery(WindowFilter):
    format: str = "csv"


@router.get(
    "/series/{series}/export",
    operation_id="export_series",
    openapi_extra=declare(
        errors={404: ["unknown_series"], 422: ["unknown_format"], 503: ["busy"]},
        is_streamed=True,
        responses={200: _FILE},
    ),
    summary="Export all values of a series as a file",
)
@few_at_once
def export_series(request: HttpRequest, series: str, query: Query[ExportQuery]) -> StreamingHttpResponse:
    """Return every value of every ended run whose slot lies in [*start*, *end*) (default: all), as ``csv``,
    ``ndjson`` or ``parquet``. A run that did not pass has an additional row for its total, without a value.
    The file is streamed; the header ``Data-Age-Seconds`` gives the age of the newest value. While two
    downloads of yours are being sent, a third one is answered with 503 ``busy``."""
    start, end = checked_period(query.start, query.end)
    found = find_series(request, series)
    try:
        label = f"{timezone.now():%Y-%m-%d}"
        file = export(found, query.format, start=start, end=end, label=label)
    except UnknownFormat as error:
        raise Refused(422, "unknown_format", str(error), known=formats.names()) from error
    headers = file.headers(timezone.now())
    return StreamingHttpResponse(file.chunks, content_type=file.media_type, headers=headers)
