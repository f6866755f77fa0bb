"""Keep states and forecasts up to date: bounded work per call, one caller at a time, safe to kill.

A *state* is what the forecaster of a metric, or of the success of a series, has learned. Its inputs are
values of metrics or ends of runs. Each report leaves pending changes: the hours of series in which inputs
changed. Inputs are used in the order in which they became known. One transaction writes the state, the new
forecast and the scores of earlier forecasts, and deletes the pending change. If inputs that a state has
already used change (a report was late, or was parsed again), the state is reset: its inputs are read again
from the depot, part by part, and its old forecast is served until then. Values deleted by retention change
nothing.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import OperationalError, transaction
from django.db.models import Q

from forecasting.series import Forecaster
from monitor.analysis.forecasts import pending_changes, states
from monitor.analysis.forecasts.choose_predictors import choose_again, choose_new
from monitor.analysis.forecasts.defaults import HEADLINE
from monitor.analysis.forecasts.metric_state import STAGE, MetricUpdate, followed, metrics_of
from monitor.analysis.forecasts.success_state import SuccessHistory, SuccessUpdate, update_times
from monitor.analysis.forecasts.update import StateUpdate, read_part, use_changes
from monitor.core.db.advisory_locks import (
    AdvisoryLock,
    is_lock_timeout,
    session_lock,
    transaction_lock_timeout,
)
from monitor.depot.rollups import worker
from monitor.depot.series.current_segment import store_current_segments
from monitor.models import (
    CurrentSegment,
    ForecastPredictor,
    ForecastState,
    Metric,
    PendingChange,
    SuccessState,
)

if TYPE_CHECKING:
    from monitor.models import Outcome

WITHIN_SECONDS = 1.0  # approximate limit of a call
CHANGES_AT_ONCE = 500
METRICS_AT_ONCE = 50  # approximate size of a transaction
REQUESTED_INPUTS = 100  # a part that a request reads: about a tenth of a second
REQUESTED_STAGES = 50


@dataclass
class _Group:
    """The work for one series.

    Attributes:
        updates: the updates of its metrics.
        hours: the starts of the hours in which its inputs changed.
        changes: the keys of the pending changes.
    """

    series: int
    updates: list[MetricUpdate] = field(default_factory=list)
    hours: set[datetime] = field(default_factory=set)
    changes: set[int] = field(default_factory=set)


def refresh(now: datetime, *, within_seconds: float = WITHIN_SECONDS, wait: bool = False) -> bool:
    """Update states and forecasts with the inputs that became known by *now*; return whether work is left.

    The oldest pending change is processed first. No new batch begins after *within_seconds*. If another
    process is refreshing, this call waits for that process or, without *wait*, returns False at once.
    """
    with session_lock(AdvisoryLock.FORECASTS, wait=wait) as is_ours:
        if not is_ours:
            return False
        until = time.monotonic() + within_seconds
        worker.gather()
        has_more = _use_pending(now, until - within_seconds / 3)
        has_more |= choose_new()
        return _read_behind(now, until) or has_more


def refresh_all(now: datetime) -> None:
    """Update all states and forecasts with the inputs that became known by *now*, however long it takes."""
    while refresh(now, wait=True):
        pass


def refresh_requested(metric: Metric, now: datetime, until: float) -> bool:
    """Update the forecast of *metric*, for which a request is waiting; return whether it is up to date.

    No part begins after the monotonic time *until*. The inputs that are left are the first that ``refresh``
    reads. If another process is reading them, the call waits for it no longer than that.
    """
    is_complete = _read_requested(MetricUpdate(metric), now, until)
    with _giving_up_at_locks(until):
        if not is_complete:
            states.lock_or_create(ForecastState, [metric.pk])
            ForecastState.objects.filter(metric=metric).update(is_requested=True)
        _keep_current([metric])
        _update_times([metric], ())
    return is_complete


def refresh_companions(metric: Metric, now: datetime, until: float) -> None:
    """Update what an answer about *metric* has beside its forecast, while time remains.

    This is the success of the series and, if *metric* is the total, the stages of its segment. *until* is as
    in ``refresh_requested``.
    """
    _read_requested(SuccessUpdate(metric.segment.series_id), now, until)
    if metric.name != HEADLINE:
        return
    stages = Metric.objects.filter(segment=metric.segment, name__startswith=STAGE, name__endswith=".seconds")
    without = stages.filter(forecast_state__forecast=None).select_related("segment").order_by("pk")
    for stage in without[:REQUESTED_STAGES]:
        if time.monotonic() >= until:
            return
        _read_requested(MetricUpdate(stage), now, until)


def record_outcomes(outcomes: Iterable[Outcome]) -> None:
    """Note that the success states of their series have to use *outcomes*; the next refresh does so.

    The caller stores *outcomes* itself, in the same transaction.
    """
    changed = {
        (
            outcome.metric.segment.series_id,
            outcome.received_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0),
        )
        for outcome in outcomes
    }
    pending_changes.record(changed)


def reset(series: Collection[int]) -> int:
    """Reset the states of *series* (primary keys) and of all their metrics; return the number of metrics."""
    metrics = [metric.pk for metric in followed(segment__series__in=series)]
    with transaction.atomic():
        states.reset(SuccessState, states.lock_or_create(SuccessState, series))
    for begin in range(0, len(metrics), METRICS_AT_ONCE):
        batch = metrics[begin : begin + METRICS_AT_ONCE]
        with transaction.atomic():
            states.reset(ForecastState, states.lock_or_create(ForecastState, batch))
    return len(metrics)


def reset_outdated() -> int:
    """Reset the states that other versions of the methods have made; return the number of states."""
    of_metrics = states.reset_outdated(ForecastState, Forecaster)
    return of_metrics + states.reset_outdated(SuccessState, SuccessHistory)


def _use_pending(now: datetime, until: float) -> bool:
    """Use pending changes until the monotonic time *until*; return whether there may be more."""
    due = PendingChange.objects.filter(Q(due_at=None) | Q(due_at__lte=now)).order_by("pk")
    while changes := list(due[:CHANGES_AT_ONCE]):
        groups = _grouped(changes)
        waiting = Counter(key for group in groups for key in group.changes)
        for batch in _batches(groups):
            metrics = [update for group in batch for update in group.updates]
            success = [SuccessUpdate(group.series, group.hours) for group in batch if group.hours]
            used = {key for group in batch for key in group.changes}
            with transaction.atomic():
                updated = [update.metric for update in use_changes(metrics, now)]
                _keep_current(updated)
                ended = use_changes(success, now)
                _update_times(updated, {update.series for update in ended})
                waiting.subtract(key for group in batch for key in group.changes)
                pending_changes.delete([key for key in used if not waiting[key]])
            if time.monotonic() >= until:
                return True
    return False


def _grouped(changes: Sequence[PendingChange]) -> list[_Group]:
    """Return the updates that *changes* require, by series; the series with the oldest change is first."""
    by_series: dict[int, list[PendingChange]] = defaultdict(list)
    groups = {change.series_id: _Group(change.series_id) for change in changes}
    for change in changes:
        by_series[change.series_id].append(change)
        groups[change.series_id].hours.add(change.hour)
        groups[change.series_id].changes.add(change.pk)
    own = followed(segment__series__in=by_series)
    affected: dict[int, set[int]] = {metric.pk: {metric.segment.series_id} for metric in own}
    predicted = ForecastPredictor.objects.filter(series__in=by_series).order_by()
    for key, series in predicted.values_list("metric", "series").distinct():
        affected.setdefault(key, set()).add(series)
    others = affected.keys() - {metric.pk for metric in own}
    for metric in [*own, *(followed(pk__in=others) if others else ())]:
        relevant = [change for series in affected[metric.pk] for change in by_series[series]]
        group = groups.setdefault(metric.segment.series_id, _Group(metric.segment.series_id))
        group.updates.append(MetricUpdate(metric, {change.hour for change in relevant}))
        group.changes |= {change.pk for change in relevant}
    return sorted(groups.values(), key=lambda group: min(group.changes))


def _batches(groups: Iterable[_Group]) -> Iterator[list[_Group]]:
    """Yield batches of about ``METRICS_AT_ONCE`` updates."""
    batch: list[_Group] = []
    for group in groups:
        batch.append(group)
        if sum(1 + len(group.updates) for group in batch) >= METRICS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _read_behind(now: datetime, until: float) -> bool:
    """Read inputs, part by part, for states that have unread inputs; return whether there is more to read.

    No new part begins after the monotonic time *until*.
    """
    while True:
        metrics, series = states.behind(ForecastState), states.behind(SuccessState)
        if not metrics and not series:
            return False
        _read_metrics(metrics_of(pk__in=metrics), now)
        _read_success(series, now)
        if time.monotonic() >= until:
            return bool(states.behind(ForecastState) or states.behind(SuccessState))


def _read_metrics(metrics: Sequence[Metric], now: datetime) -> None:
    for metric in metrics:
        with transaction.atomic():
            read_part(MetricUpdate(metric), now)
    _keep_current(metrics)
    with transaction.atomic():
        _update_times(metrics, ())


def _read_requested(update: StateUpdate, now: datetime, until: float) -> bool:
    """Read all inputs of *update*, or as many parts as begin before the monotonic time *until*.

    Return whether all inputs are read.
    """
    is_behind = True
    while is_behind and time.monotonic() < until:
        with _giving_up_at_locks(until):
            is_behind = read_part(update, now, at_most=REQUESTED_INPUTS)
    return not is_behind


@contextmanager
def _giving_up_at_locks(until: float) -> Iterator[None]:
    """Open a transaction; roll it back if it still waits for a lock at about the monotonic time *until*.

    The process that holds the lock does the same work.
    """
    try:
        with transaction_lock_timeout(_milliseconds(until - time.monotonic())):
            yield
    except OperationalError as error:
        if not is_lock_timeout(error):
            raise


def _milliseconds(seconds: float) -> int:
    """Return *seconds* as a lock_timeout, of at most a minute; 0 would mean no timeout."""
    return max(round(min(seconds, 60.0) * 1000), 1)


def _read_success(series: Iterable[int], now: datetime) -> None:
    for key in sorted(series):
        with transaction.atomic():
            read_part(SuccessUpdate(key), now)


def _update_times(metrics: Iterable[Metric], done: Collection[int]) -> None:
    """Update the time until a run has passed for each series whose total is among *metrics*.

    Series in *done* are left out: their times are up to date.
    """
    totals = {metric.segment.series_id for metric in metrics if metric.name == HEADLINE}
    if left := totals.difference(done):
        update_times(left)


def _keep_current(metrics: Iterable[Metric]) -> None:
    """Update the stored current segment of each series whose *metrics* belong to a different segment."""
    segments = {metric.segment.series_id: metric.segment_id for metric in metrics}
    stored = dict(CurrentSegment.objects.filter(series__in=segments).values_list("series_id", "segment_id"))
    changed = [series for series, segment in segments.items() if stored.get(series) != segment]
    if changed:
        current = store_current_segments(changed)
        choose_again([now for series, now in current.items() if now and stored.get(series)])
