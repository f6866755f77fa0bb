"""States of metrics: what their forecasters know, and the forecast of the next run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from forecasting.base import Abstained, OutdatedState, Source
from forecasting.series import OWN_SERIES, Forecaster, Observation
from monitor.compression import pack_state, unpack_state
from monitor.db.timestamps import moment
from monitor.forecasts import followed_sql, forecasts_sql, predictors_sql
from monitor.forecasts.answer import compute, predictor_records, stale_at
from monitor.forecasts.defaults import HEADLINE, METHOD
from monitor.forecasts.followed_sql import FollowedMetric
from monitor.forecasts.input_digest import Input
from monitor.forecasts.inputs_sql import METRIC_VALUES
from monitor.forecasts.score import keep_newest, score
from monitor.forecasts.state_table import METRIC_STATES, StoredState
from monitor.forecasts.update import EPOCH, StateUpdate
from monitor.models import Forecast

PRUNE_EVERY = 16  # values
RECORD_PREDICTORS_EVERY = 8  # values
_SECOND = 1_000_000  # microseconds


class MetricUpdate(StateUpdate):
    """The state of one *metric*."""

    table = METRIC_STATES
    relation = METRIC_VALUES

    def __init__(self, metric: FollowedMetric, hours: Iterable[datetime] = ()) -> None:
        super().__init__(metric.key, metric.series, {metric.key: OWN_SERIES}, set(hours))
        self.metric = metric
        self.forecaster = Forecaster(METHOD)
        self.last_time: datetime | None = None
        self.last_value: float | None = None
        self.forecast: Forecast | None = None

    def __str__(self) -> str:
        return f"{self.metric.name} of {self.metric.series_name}"

    @classmethod
    def read_sources(cls, updates: Iterable[MetricUpdate]) -> None:
        by_metric: dict[int, dict[int, Source]] = {update.key: {update.key: OWN_SERIES} for update in updates}
        for predictor in followed_sql.predictors(by_metric):
            by_metric[predictor.metric][predictor.other] = Source(predictor.series_name, predictor.name)
        for update in updates:
            update.sources = by_metric[update.key]

    def load(self, stored: StoredState | None) -> None:
        if stored is not None:
            self.forecaster = load_forecaster(stored.state)
            self.last_time, self.last_value = stored.last_time, stored.last_value

    def learn(self, inputs: Sequence[Input]) -> None:
        for value in inputs:
            source = self.sources[value.key]
            observation = Observation(value.time / _SECOND, value.known_at / _SECOND, value.value)
            self.forecaster.observe(observation, source)
            if source == OWN_SERIES and observation.is_usable:
                self.last_value = value.value
                self.last_time = max(self.last_time or EPOCH, moment(value.time))
        self.forecaster.learn_until(inputs[-1].known_at / _SECOND)

    def answer(self, now: datetime) -> None:
        """Forecast the next run, as of the last input: the same whenever that is used."""
        if self.last_time is None:
            return
        try:
            self.forecast = compute(
                self.forecaster,
                self.metric.unit,
                moment(self.used_until),
                metric_id=self.key,
                issued_at=now,
                last_time=self.last_time,
                last_value=self.last_value,
            )
        except Abstained:
            self.forecast = None

    def row(self) -> dict[str, Any]:
        return {
            "metric_id": self.key,
            "state": pack_state(self.forecaster.dump()),
            "versions": self.forecaster.versions(),
            "n": self.forecaster.used,
            "last_time": self.last_time,
            "last_value": self.last_value,
        }

    @classmethod
    def publish(cls, updates: Sequence[MetricUpdate], now: datetime) -> None:
        """Score the forecasts issued before, and issue new ones."""
        score(now, [update.key for update in updates])
        forecasts_sql.publish(
            (update.forecast, stale_at(update.metric.began_at, update.forecast))
            for update in updates
            if update.forecast
        )
        forecasts_sql.withdraw([update.key for update in updates if update.forecast is None])
        forecasts_sql.explain({update.metric.segment for update in updates}, HEADLINE)
        _record_predictors(
            update for update in updates if update.forecaster.used % RECORD_PREDICTORS_EVERY == 0
        )
        # By the time of the newest input: an update by a predictor alone keeps the number of values.
        due = [update for update in updates if (update.key + update.used_until) % PRUNE_EVERY == 0]
        keep_newest({update.key: update.metric.name for update in due}, now)


def load_forecaster(packed: bytes) -> Forecaster:
    """Return the forecaster of a packed state.

    Raises:
        forecasting.base.OutdatedState: other methods than today's made it.
    """
    try:
        return Forecaster.load(unpack_state(packed))
    except ValueError as error:
        raise OutdatedState(str(error)) from error


def _record_predictors(updates: Iterable[MetricUpdate]) -> None:
    """Write how much each predictor helps."""
    rows = [
        {
            "metric": update.key,
            "series": record.predictor.series,
            "name": record.predictor.metric,
            "n": record.n,
            "gain": record.gain,
            "p_value": record.p_value,
            "is_kept": not record.dropped,
        }
        for update in updates
        if len(update.sources) > 1
        for record in predictor_records(update.forecaster)
    ]
    if rows:
        predictors_sql.record_gains(rows)
