"""Gather what the depot knows about storage; ``storage_blocks`` puts it beside the published numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from django.db import OperationalError, connection

from monitor.analysis.storage.areas import SeriesVerdict, StorageArea, areas_of, verdicts_at
from monitor.models import Forecast, Resource, StorageVerdict
from monitor.web.reports.published_storage import Rates

ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class Emulated:
    """What emulated devices do in virtual time, by profile; empty without a compiler.

    Attributes:
        times: of MADbench by writers and readers: seconds, or times over that of the best readers.
    """

    times: Mapping[str, Mapping[tuple[int, int], float]] = field(default_factory=dict)
    rates: Mapping[str, Rates] = field(default_factory=dict)


@dataclass(frozen=True)
class ElsewhereErrors:
    """Relative errors of the forecasts of *series* that were made where it had never run."""

    series: str
    n: int
    mean: float
    mean_absolute: float


@dataclass(frozen=True)
class StorageReport:
    """*verdicts* of sweeps by resource. *depot_problem* says why no depot was read; empty if one was."""

    made_at: datetime
    emulated: Emulated
    areas: Sequence[StorageArea] = ()
    verdicts: Mapping[str, Sequence[SeriesVerdict]] = field(default_factory=dict)
    elsewhere: Sequence[ElsewhereErrors] = ()
    depot_problem: str = ""


def storage_report(now: datetime, emulated: Emulated) -> StorageReport:
    """Return what all series of the depot say about storage; without a depot, the numbers that need none."""
    if problem := _depot_problem():
        return StorageReport(now, emulated, depot_problem=problem)
    areas = areas_of(StorageVerdict.objects.all(), Resource.objects.all())
    verdicts = {
        area.resource.name: verdicts_at(StorageVerdict.objects.all(), area.resource) for area in areas
    }
    return StorageReport(now, emulated, areas, verdicts, _elsewhere())


def _depot_problem() -> str:
    """Return why no depot can be read; empty if one can."""
    try:
        tables = connection.introspection.django_table_names(only_existing=True)
    except OperationalError as error:
        return str(error).partition("\n")[0]
    return "" if tables else "it has no tables yet"


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
