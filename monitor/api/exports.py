"""All values of a series as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import StreamingHttpResponse
from django.utils import timezone
from ninja import Router
from pydantic import AwareDatetime

from monitor.api.lookup import checked, find_series
from monitor.api.problems import Refused
from monitor.depot.samples import formats
from monitor.depot.samples.export import export
from monitor.depot.samples.formats.base import UnknownFormat

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router()


@router.get("/{name}/export", summary="All values of a series as a file")
def whole(
    request: HttpRequest,
    name: str,
    format: str = "csv",
    start: AwareDatetime | None = None,
    end: AwareDatetime | None = None,
) -> StreamingHttpResponse:
    """Every value of every run that ended, of slots from *start* until before *end*, by default of all, as
    ``csv``, ``ndjson`` or ``parquet``. A run that did not pass has one more row, of its total, without a
    value. It begins at once and is never all in memory; ``Data-Age-Seconds`` says how old its newest is."""
    since, until = checked(start, end)
    series = find_series(request, name)
    try:
        file = export(series, format, start=since, end=until, label=f"{timezone.now():%Y-%m-%d}")
    except UnknownFormat as error:
        raise Refused(422, "unknown_format", str(error), known=formats.names()) from error
    headers = file.headers(timezone.now())
    return StreamingHttpResponse(file.chunks, content_type=file.media_type, headers=headers)
