"""Forecasts that are ready to be told, of what the next runs of series will do, to who may see them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import probes
from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.forecasts import lookup_sql as depot
from monitor.models.visibility import sees_all
from monitor.series.current_segment import store_current_segments, store_missing_segments

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.forecasts.lookup_sql import Candidate, Place, Ready

LEAST, MOST = QUANTILE_LEVELS[0], QUANTILE_LEVELS[-1]


def ready(user: AbstractBaseUser | AnonymousUser, series: str, metric: str, at: datetime) -> Ready | None:
    """Of the series of that name; None if there is none that *user* may see."""
    found = depot.one(series, metric, at, who(user))
    if found is None or is_settled(found.place):
        return found
    store_current_segments([found.place.series])
    return depot.one(series, metric, at, who(user))


def candidates(
    user: AbstractBaseUser | AnonymousUser,
    by: str,
    asked: Collection[str],
    *,
    application: str,
    metric: str,
    probability: float,
) -> list[Candidate]:
    """Of those series that *user* may see and that are *asked* for *by* ``series``, or, of one *application*,
    by ``path`` or ``resources`` (``monitor.models.current_segment``); *probability* is of the quantile."""
    between = place_of(probability)

    def read() -> list[Candidate]:
        return list(depot.many(by, list(asked), application, metric, between, who(user)))

    if by != "series":
        store_missing_segments(application)
    found = read()
    behind = [one.place.series for one in found if not is_settled(one.place)]
    if not behind:
        return found
    store_current_segments(behind)
    return read()


def is_settled(place: Place) -> bool:
    """Whether what is kept of a series is what its next run will do."""
    here = _version_here(place.application) if place.is_home else None
    return place.is_current and (here is None or here == place.version)


def quantile(quantiles: Sequence[float], probability: float) -> float:
    """Of *quantiles* of the grid, the one of *probability*: between two of them it lies between theirs."""
    left, right, share = place_of(probability)
    low, high = quantiles[left], quantiles[right]
    return low if left == right else low * (1.0 - share) + high * share


def place_of(probability: float) -> tuple[int, int, float]:
    """The two places in the grid that *probability*, from ``LEAST`` to ``MOST``, lies between, and how far on
    from the one to the other."""
    right = bisect_left(QUANTILE_LEVELS, probability)
    if QUANTILE_LEVELS[right] == probability:
        return right, right, 0.0
    left = right - 1
    return (
        left,
        right,
        (probability - QUANTILE_LEVELS[left]) / (QUANTILE_LEVELS[right] - QUANTILE_LEVELS[left]),
    )


def who(user: AbstractBaseUser | AnonymousUser) -> Mapping[str, object]:
    """What a statement of the depot is told of *user*, who is logged in, and active
    (``monitor.models.series.VISIBLE``)."""
    return {"user": user.pk, "sees_all": sees_all(user)}


def _version_here(application: str) -> str | None:
    try:
        return probes.load(application).version
    except Exception:  # noqa: BLE001  # there is none, or its file is broken: its runs say so, each
        return None
