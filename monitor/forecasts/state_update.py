"""Let one forecaster go on: hand it what became known, and keep what it knows and says then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.base import OutdatedState, Source
from forecasting.series import OWN_SERIES, Forecaster, Observation
from monitor.compression import pack_state, unpack_state
from monitor.db.timestamps import micros, moment
from monitor.forecasts.answer import Knowledge, kept, made_if_any, stale_at
from monitor.forecasts.defaults import METHOD
from monitor.forecasts.input_digest import Used, hashes, hours
from monitor.forecasts.inputs_sql import INPUT
from monitor.forecasts.states_sql import Followed, Kept

_SECOND = 1_000_000
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Input(NamedTuple):
    """A value of *metric*; times in microseconds, *hour* is the number of that of its *time*."""

    metric: int
    time: int
    known_at: int
    value: float
    hour: int
    hashed: int


def by_metric(rows: NDArray[np.void]) -> Mapping[int, list[Input]]:
    """Inputs as ``monitor.forecasts.inputs_sql`` reads them."""
    found: dict[int, list[Input]] = defaultdict(list)
    numbers = [*(rows[name].tolist() for name in INPUT.names or ()), hours(rows["time"]).tolist()]
    for row in zip(*numbers, hashes(rows).tolist(), strict=True):
        found[row[0]].append(Input(*row))
    return found


@dataclass
class Going:
    """A forecaster on its way; *heard* says which metrics it hears of, and as what."""

    followed: Followed
    heard: Mapping[int, Source]
    used: Used
    used_until: int  # microseconds
    forecaster: Forecaster = field(default_factory=lambda: Forecaster(METHOD))
    last_time: datetime | None = None
    last_value: float | None = None

    @classmethod
    def load(
        cls,
        followed: Followed,
        heard: Mapping[int, Source],
        used: Used,
        used_until: datetime | None,
        had: Kept | None,
    ) -> Going:
        """Go on with what is kept; None: begin.

        Raises:
            forecasting.base.OutdatedState: it was kept by other methods than today's.
        """
        until = micros(used_until or LONG_AGO)
        if had is None:
            return cls(followed, heard, used, until)
        forecaster = loaded(had.state)
        return cls(followed, heard, used, until, forecaster, had.last_time, had.last_value)

    @property
    def metric(self) -> int:
        return self.followed.metric

    @property
    def n(self) -> int:
        """How many values of its own were used."""
        return self.forecaster.used

    def learn(self, inputs: Iterable[Input]) -> None:
        """Use *inputs*, all of which became known later than what was used."""
        known = sorted(inputs, key=_order)
        if not known:
            return
        for one in known:
            self.used.add(one.hour, one.hashed)
            source = self.heard[one.metric]
            observation = Observation(one.time / _SECOND, one.known_at / _SECOND, one.value)
            self.forecaster.observe(observation, source)
            if source == OWN_SERIES and observation.usable:
                self.last_value = one.value
                self.last_time = max(self.last_time or LONG_AGO, moment(one.time))
        self.used_until = known[-1].known_at
        self.forecaster.learn_until(self.used_until / _SECOND)

    def row(self, *, is_behind: bool) -> dict[str, Any]:
        """As ``monitor.forecasts.states_sql`` keeps it."""
        return {
            "metric_id": self.followed.metric,
            "state": pack_state(self.forecaster.dump()),
            "versions": self.forecaster.versions(),
            "used_until": moment(self.used_until),
            "used": self.used.dump(),
            "is_behind": is_behind,
            "n": self.forecaster.used,
            "last_time": self.last_time,
            "last_value": self.last_value,
        }

    def answer(self, now: datetime) -> dict[str, Any] | None:
        """What it says of the next run, as ``monitor.forecasts.forecasts_sql`` keeps it; None if it abstains.

        It is asked as of its latest news, so that the same is said whenever that is used.
        """
        made = made_if_any(self.forecaster, self.followed.unit, moment(self.used_until))
        if made is None or self.last_time is None:
            return None
        knowledge = Knowledge(self.followed.metric, self.last_time, self.last_value, moment(self.used_until))
        too_old = stale_at(self.followed.began_at, self.last_time, made.n)
        return {**kept(made, knowledge, now), "stale_at": too_old}


def loaded(state: bytes) -> Forecaster:
    """The forecaster that is kept as *state*.

    Raises:
        forecasting.base.OutdatedState: it was kept by other methods than today's.
    """
    try:
        return Forecaster.load(unpack_state(state))
    except ValueError as error:
        raise OutdatedState(str(error)) from error


def _order(one: Input) -> tuple[int, int, int]:
    return one.known_at, one.time, one.metric
