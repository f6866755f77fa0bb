"""Compute the verdict of each series that measures a storage area, after its new runs."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import F, OuterRef, Q, Subquery

from forecasting.base import ForecastingError
from forecasting.sweeps.effects import effects_of
from forecasting.sweeps.rate_history import rate_history
from forecasting.sweeps.sweet_spot import sweet_spot
from monitor.analysis.performance.sweeps import FEWEST_PASSES, PREFIXES, as_streams, as_sweep, stored_sweeps
from monitor.analysis.storage.uses import MeasuredUse, measured_uses, probes
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot.samples.read import histories
from monitor.models import Run, Series, StorageVerdict
from monitor.models.run import State

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from monitor.analysis.performance.sweeps import StoredSweep
    from monitor.depot.samples.read import Point

HISTORY = timedelta(days=180)
WITHIN_SECONDS = 3.0  # the duration of one call; then other tasks of the process run
FULLNESS = "scratch.full"
NUMBER = "sweep.pass"  # the first pass is set aside, if there are others


def refresh_verdicts(now: datetime, *, within_seconds: float = WITHIN_SECONDS) -> int:
    """Compute outdated verdicts, those that waited longest first, until the time is up; return their number.

    The rest follows at the next call. Does nothing while another process computes verdicts.
    """
    with session_lock(AdvisoryLock.STORAGE) as is_ours:
        if not is_ours:
            return 0
        ends_at = time.monotonic() + within_seconds
        count = 0
        for series in outdated():
            if count and time.monotonic() > ends_at:
                break
            compute_verdict(series, now)
            count += 1
        return count


def outdated() -> QuerySet[Series]:
    """Return the series with a passed run that is newer than their verdict."""
    passed = Run.objects.filter(series=OuterRef("pk"), state=State.PASSED).order_by("-slot")
    is_older = Q(storage_verdict__isnull=True) | Q(storage_verdict__newest__lt=F("newest"))
    return (
        Series.objects.filter(probe__in=probes())
        .annotate(newest=Subquery(passed.values("slot")[:1]))
        .filter(is_older, newest__isnull=False)
        .order_by(F("storage_verdict__computed_at").asc(nulls_first=True), "pk")
    )


def compute_verdict(series: Series, now: datetime) -> StorageVerdict:
    """Compute and store the verdict of *series*, which ``outdated`` annotated with its newest slot."""
    newest = getattr(series, "newest", None) or now
    start = newest - HISTORY
    sweeps = stored_sweeps(series, start=start)
    content: dict[str, Any] = {"uses": _uses(series, sweeps, start)}
    if series.probe in PREFIXES:
        before = StorageVerdict.objects.filter(series=series).first()
        content.update(_analysis(series, sweeps, start, before.content if before else {}))
    verdict, _ = StorageVerdict.objects.update_or_create(
        series=series, defaults={"computed_at": now, "newest": newest, "content": content}
    )
    return verdict


def _uses(series: Series, sweeps: Sequence[StoredSweep], start: datetime) -> dict[str, Any]:
    chosen = measured_uses(series.probe, series.parameters, lambda: _medians(sweeps))
    names = [use.metric for use in chosen] + [FULLNESS, NUMBER]
    points = histories(series, names, start=start)
    full = {point.time: point.value for point in points.get(FULLNESS, ())}
    set_aside = {point.time for point in points.get(NUMBER, ()) if point.value == 1.0}
    varied = sweeps[-1].varied if sweeps else ()
    found = {}
    for use in chosen:
        measured = [point for point in points.get(use.metric, ()) if point.value > 0]
        if later := [point for point in measured if point.time not in set_aside] or measured:
            settings = {name: level for name, level in (use.settings or {}).items() if name in varied}
            found[use.use] = {**_use(use, later, full), "settings": settings}
    return found


def _use(use: MeasuredUse, positive: Sequence[Point], full: Mapping[datetime, float]) -> dict[str, Any]:
    history = rate_history(
        [point.time.timestamp() for point in positive],
        [point.value * use.factor for point in positive],
        [full.get(point.time, math.nan) for point in positive] if full else None,
    )
    return {"metric": use.metric, "history": asdict(history)}


def _medians(sweeps: Sequence[StoredSweep]) -> dict[str, float]:
    """Return the median of each combination of the newest sweep, by the name of its metric."""
    if not sweeps:
        return {}
    values: dict[str, list[float]] = {}
    for value in sweeps[-1].values:
        cell = ",".join(
            f"{factor}={level}" for factor, level in zip(sweeps[-1].factors, value.levels, strict=True)
        )
        values.setdefault(f"sweep.{cell}.bytes_per_second", []).append(value.value)
    return {metric: statistics.median(measured) for metric, measured in values.items()}


def _analysis(
    series: Series, sweeps: Sequence[StoredSweep], start: datetime, before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the state of the newest sweep, and the analysis of the newest one with enough whole passes."""
    if not sweeps:
        return {}
    newest = sweeps[-1]
    whole = _whole_passes_of(series, newest, start)
    needed = FEWEST_PASSES[series.probe]
    state = {
        "began_at": newest.began_at.isoformat(),
        "pass": newest.passes,
        "whole_passes": whole,
        "needed_passes": needed,
    }
    usable = _whole_passes(newest, whole) if whole >= needed else None
    if usable is None:
        earlier = [sweep for sweep in sweeps[:-1] if sweep.passes >= needed]
        usable = earlier[-1] if earlier else None
    if usable is None:
        return {"sweep": state}
    of = {"began_at": usable.began_at.isoformat(), "passes": usable.passes}
    if before.get("of") == of:
        kept = {key: before[key] for key in ("effects", "streams", "refusal") if key in before}
        return {"sweep": state, "of": of, **kept}
    return {"sweep": state, "of": of, **_analysed(usable)}


def _whole_passes_of(series: Series, sweep: StoredSweep, start: datetime) -> int:
    """Return the last pass of *sweep* after which nothing remained to be measured; 0 if there is none."""
    prefix = PREFIXES[series.probe]
    names = [f"{prefix}.{name}" for name in ("pass", "began", "remaining")]
    points = histories(series, names, start=start, passed_only=False)
    numbers, begins, remaining = (
        {point.time: point.value for point in points.get(name, ())} for name in names
    )
    ended = [
        number
        for slot, number in numbers.items()
        if remaining.get(slot) == 0 and begins.get(slot) == sweep.began_at.timestamp()
    ]
    return int(max(ended, default=0))


def _whole_passes(sweep: StoredSweep, passes: int) -> StoredSweep:
    return replace(sweep, values=[value for value in sweep.values if value.number <= passes])


def _analysed(sweep: StoredSweep) -> dict[str, Any]:
    try:
        if sweep.probe == "streams":
            return {"streams": asdict(sweet_spot(as_streams(sweep)))}
        found = effects_of(as_sweep(sweep))
    except ForecastingError as error:
        return {"refusal": str(error)}
    document = asdict(found)
    for effect, term in zip(document["terms"], found.terms, strict=True):
        effect["is_claimed"] = term.is_claimed
    return {"effects": document}
