"""Read what forecasts from elsewhere need: replays, traced applications, and their newest values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from monitor.analysis.forecasts.statements import fetch

# A series is a system: its resources, and the user groups that see it (none: all users).
_SERIES = """
SELECT series.id AS series, series.name, segment.id AS segment, segment.fingerprint, segment.probe,
    segment.probe_version, stored.resources, ARRAY(
        SELECT group_id::bigint FROM monitor_suite_viewers WHERE suite_id = series.suite_id
    ) AS viewers
FROM monitor_series AS series
JOIN monitor_currentsegment AS stored ON stored.series_id = series.id
JOIN monitor_segment AS segment ON segment.id = stored.segment_id
WHERE series.probe = ANY (%(probes)b::text[]) AND EXISTS (
    SELECT FROM monitor_metric AS metric
    CROSS JOIN LATERAL (SELECT FROM monitor_sample WHERE metric_id = metric.id AND passed LIMIT 1) AS run
    WHERE metric.segment_id = segment.id AND metric.name = ANY (%(names)b::text[]))
ORDER BY series.name
"""
_VALUES = """
SELECT metric.segment_id AS segment, metric.name, newest.time, newest.known_at, newest.value
FROM monitor_metric AS metric
CROSS JOIN LATERAL (
    SELECT time, known_at, value FROM monitor_sample
    WHERE metric_id = metric.id AND passed AND known_at <= %(now)b
    ORDER BY time DESC LIMIT %(most)b::int
) AS newest
WHERE metric.segment_id = ANY (%(segments)b::bigint[]) AND metric.name = ANY (%(names)b::text[])
ORDER BY newest.time
"""


class MeasuredSeries(NamedTuple):
    """A series whose runs measure input and output, in its current segment."""

    series: int
    name: str
    segment: int
    fingerprint: str
    probe: str
    probe_version: str
    resources: str
    viewers: Sequence[int]

    @property
    def resource_names(self) -> frozenset[str]:
        return frozenset(self.resources.split(","))

    def may_be_named_to(self, viewers: Collection[int]) -> bool:
        """Return whether all users of the groups *viewers* (none: all users) see this series."""
        return not self.viewers or (bool(viewers) and set(viewers) <= set(self.viewers))


class RunValue(NamedTuple):
    """A value of the metric *name* of a *segment*, of the run at the slot *time*."""

    segment: int
    name: str
    time: datetime
    known_at: datetime
    value: float


def measured_series(probes: Collection[str], names: Collection[str]) -> list[MeasuredSeries]:
    """Return the series of *probes* of which a run has passed and measured one of the metrics *names*."""
    return fetch(MeasuredSeries, _SERIES, {"probes": list(probes), "names": list(names)})


def newest_values(
    segments: Collection[int], names: Collection[str], now: datetime, most: int
) -> list[RunValue]:
    """Return the *most* newest values, known *now*, of each metric of *names* of *segments*; oldest first."""
    parameters = {"segments": list(segments), "names": list(names), "now": now, "most": most}
    return fetch(RunValue, _VALUES, parameters)
