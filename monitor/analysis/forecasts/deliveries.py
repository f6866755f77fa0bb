"""Record which forecasts clients received: such forecasts are kept, because clients may report outcomes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import DatabaseError

from monitor.analysis.forecasts.statements import execute

RECORD_EVERY = timedelta(days=1)  # while the same forecast is delivered again and again
logger = logging.getLogger(__name__)

# Clients do not wait for the disk. A crash of the database may lose the deliveries of its last second.
_RECORD = """
WITH asynchronous AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO monitor_forecastdelivery AS delivery (forecast_id, delivered_at)
SELECT forecast, %(now)b FROM asynchronous, unnest(%(forecasts)b::bigint[]) AS new (forecast)
ORDER BY forecast
ON CONFLICT (forecast_id) DO UPDATE SET delivered_at = excluded.delivered_at
    WHERE delivery.delivered_at < excluded.delivered_at
"""


def record_deliveries(forecasts: Iterable[tuple[int | None, datetime | None]], now: datetime) -> None:
    """Record that a client receives *forecasts*: pairs of (key, time of the last recorded delivery).

    If recording fails, for example because the disk is full, the failure is logged and the client still gets
    its answer.
    """
    new = {key for key, recorded in forecasts if key and (recorded is None or now - recorded > RECORD_EVERY)}
    if new:
        try:
            execute(_RECORD, {"forecasts": sorted(new), "now": now})
        except DatabaseError as error:
            logger.warning("cannot record the delivery of %d forecasts: %s", len(new), error)
