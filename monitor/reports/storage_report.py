"""Gather what the depot knows about storage; ``storage_blocks`` puts it beside the published numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from monitor.models import Forecast, Resource, StorageVerdict
from monitor.storage.areas import SeriesVerdict, StorageArea, areas_of, verdicts_at

ELSEWHERE = "elsewhere"
# By profile, then by writers and readers: seconds, or times over that of the best readers.
EmulatedValues = Mapping[str, Mapping[tuple[int, int], float]]


@dataclass(frozen=True)
class ElsewhereErrors:
    """Relative errors of the forecasts of *series* that were made where it had never run."""

    series: str
    n: int
    mean: float
    mean_absolute: float


@dataclass(frozen=True)
class StorageReport:
    """*verdicts* of sweeps by resource; *emulated* times of MADbench, empty without a compiler."""

    made_at: datetime
    areas: Sequence[StorageArea]
    verdicts: Mapping[str, Sequence[SeriesVerdict]]
    elsewhere: Sequence[ElsewhereErrors]
    emulated: EmulatedValues = field(default_factory=dict)


def storage_report(now: datetime, emulated: EmulatedValues) -> StorageReport:
    """Return what all series of the depot say about storage."""
    areas = areas_of(StorageVerdict.objects.all(), Resource.objects.all())
    verdicts = {
        area.resource.name: verdicts_at(StorageVerdict.objects.all(), area.resource) for area in areas
    }
    return StorageReport(now, areas, verdicts, _elsewhere(), emulated)


def _elsewhere() -> list[ElsewhereErrors]:
    """Return the errors of the scored forecasts of total times elsewhere, by series."""
    scored = Forecast.objects.scored().filter(method=ELSEWHERE, truth__gt=0)
    errors: dict[str, list[float]] = defaultdict(list)
    rows = scored.values_list("metric__segment__series__name", "median", "truth")
    for series, median, actual in rows:
        errors[series].append(median / float(actual or 1.0) - 1.0)
    return [
        ElsewhereErrors(series, len(values), fmean(values), fmean(map(abs, values)))
        for series, values in sorted(errors.items())
    ]
