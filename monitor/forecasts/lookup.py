"""Look up stored forecasts that a user may see, of what the next runs of series will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import probes
from monitor.forecasts import lookup_sql
from monitor.models.visibility import sees_all
from monitor.series.current_segment import store_current_segments, store_missing_segments

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.forecasts.lookup_sql import ForecastAnswer, RankCandidate, StoredForecast


def look_up(
    user: AbstractBaseUser | AnonymousUser, series: str, metric: str, at: datetime
) -> ForecastAnswer | None:
    """Return the forecast of *metric* of the series of that name; None if *user* may see none."""
    answer = lookup_sql.read_answer(series, metric, at, visibility(user))
    if answer is None or is_settled(answer):
        return answer
    store_current_segments([answer.series])
    return lookup_sql.read_answer(series, metric, at, visibility(user))


def candidates(
    user: AbstractBaseUser | AnonymousUser,
    by: str,
    asked: Sequence[str],
    *,
    application: str,
    metric: str,
    probability: float,
) -> list[RankCandidate]:
    """Return the series that *user* may see and that are *asked* for.

    *by* is ``series``, or, for one *application*, ``path`` or ``resources`` as ``CurrentSegment`` has them;
    *probability* is that of the quantile.
    """

    def read() -> list[RankCandidate]:
        return lookup_sql.read_candidates(
            by,
            asked,
            application=application,
            metric=metric,
            probability=probability,
            visibility=visibility(user),
        )

    if by != "series":
        store_missing_segments(application)
    found = read()
    outdated = [candidate.series for candidate in found if not is_settled(candidate)]
    if not outdated:
        return found
    store_current_segments(outdated)
    return read()


def is_settled(stored: StoredForecast) -> bool:
    """Return whether the stored path and segment are those of the next run."""
    here = _version_here(stored.application) if stored.is_home else None
    return stored.is_current and (here is None or here == stored.version)


def visibility(user: AbstractBaseUser | AnonymousUser) -> Mapping[str, object]:
    """Return the parameters of ``monitor.models.series.VISIBLE`` for *user*, logged in and active."""
    return {"user": user.pk, "sees_all": sees_all(user)}


def _version_here(application: str) -> str | None:
    try:
        return probes.load(application).version
    except Exception:  # noqa: BLE001  # no such probe, or its file is broken: each of its runs reports that
        return None
