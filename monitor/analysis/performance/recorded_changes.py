"""List what changed around a series, as far as it was recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from django.db.models import Q

from monitor.analysis.performance.matched_changes import ChangePoint, RecordedChange
from monitor.core.db.timestamps import moment
from monitor.depot.series.segment_diff import segment_changes
from monitor.models import Binding, RawReport, Segment
from monitor.runs.maintenance.windows import planned_windows

if TYPE_CHECKING:
    from monitor.analysis.performance.passed_runs import PassedRuns
    from monitor.models import Series


class _EnvironmentOnly(msgspec.Struct):
    environment: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(_EnvironmentOnly)


def recorded_changes(
    series: Series, runs: PassedRuns, points: Collection[ChangePoint], tolerance: timedelta
) -> list[RecordedChange]:
    """Return the changes of *series* near *points*, in order of time.

    Changes of the probe, its version, the parameters and the resources are those between the segments of
    consecutive *runs*; ends of maintenance windows at its sites; and differences of the environment (host,
    kernel, Python, tools) between consecutive reports, while the depot has these.
    """
    if not points:
        return []
    changes = [*_of_segments(runs), *_of_environment(series, points, tolerance)]
    first = min(point.last_before for point in points) - tolerance
    last = max(point.first_after for point in points) + tolerance
    changes += _ends_of_maintenance(series, first, last)
    return sorted(changes, key=lambda change: (change.time, change.kind, change.text))


def _of_segments(runs: PassedRuns) -> Iterator[RecordedChange]:
    segments = Segment.objects.in_bulk(np.unique(runs.segments).tolist())
    for place in np.flatnonzero(np.diff(runs.segments)).tolist():
        before, after = (segments[key] for key in runs.segments[place : place + 2].tolist())
        for change in segment_changes(before, after):
            yield RecordedChange(moment(runs.slots[place + 1]), change.kind.value, str(change))


def _ends_of_maintenance(series: Series, since: datetime, until: datetime) -> Iterator[RecordedChange]:
    bound = Binding.objects.filter(series=series).order_by()
    sites = set(bound.values_list("resource__site__name", flat=True))
    for window in planned_windows(since, until):
        if window.covers(sites) and window.ends_at <= until:
            yield RecordedChange(window.ends_at, "maintenance", f"maintenance ended: {window.title}")


def _of_environment(
    series: Series, points: Iterable[ChangePoint], tolerance: timedelta
) -> Iterator[RecordedChange]:
    near = Q()
    for point in points:
        since, until = point.last_before - tolerance, point.first_after + tolerance
        near |= Q(slot__gte=since, slot__lte=until, run__slot__gte=since, run__slot__lte=until)
    reports = RawReport.objects.filter(near, run__series=series).order_by("slot")
    environments = ((report.slot, _decoder.decode(report.body).environment) for report in reports.iterator())
    for (_, before), (slot, after) in pairwise(environments):
        for text in environment_changes(before, after):
            yield RecordedChange(slot, "environment", text)


def environment_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the differences of two environments of reports: ``kernel Linux 6.1 -> Linux 6.2``."""
    old, new = _flat(before), _flat(after)
    return [
        f"{name} {old.get(name, 'unknown')} -> {new.get(name, 'unknown')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]


def _flat(environment: Mapping[str, Any]) -> dict[str, str]:
    tools = environment.get("tools")
    flat = {name: str(value) for name, value in environment.items() if isinstance(value, str)}
    return flat | ({name: str(version) for name, version in tools.items()} if isinstance(tools, dict) else {})
