"""What a chart of a series shows: which metric, and by run or by hour, day, week, month or year."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from monitor.depot.rollups.statistics import EVERY, Every

MOST_RUNS = 600  # of a chart by run: a stacked bar for each
MOST_RUNS_ASKED = 2000  # if the reader chooses runs
MOST_POINTS = 2000  # of a trace
BY_RUN_UP_TO = timedelta(days=45)
READABLE_POINTS = {"hour": 14 * 24 + 1, "day": 800, "week": 800, "month": 800}  # a coarser interval follows
LENGTHS: Mapping[Every, timedelta] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=28),
    "year": timedelta(days=365),
}
RUN = "run"
INTERVALS = (RUN, *EVERY)
LINEAR, LOGARITHMIC = "linear", "log"
SCALES = (LINEAR, LOGARITHMIC)
TOTAL = "total.seconds"


@dataclass(frozen=True)
class ChartChoice:
    """What the reader chose; an empty *interval*: what suits the range.

    Attributes:
        metric: a name of a metric; ``TOTAL`` is shown with the stages that it consists of.
        interval: one of ``INTERVALS``.
        scale: one of ``SCALES``: the axis of values.
    """

    metric: str = TOTAL
    interval: str = ""
    scale: str = LINEAR


def read_choice(query: Mapping[str, str], metrics: Iterable[str]) -> ChartChoice:
    """Return the choice in a query string; what is unknown counts as not chosen."""
    metric, interval, scale = (query.get(name, "") for name in ("metric", "interval", "scale"))
    return ChartChoice(
        metric if metric in set(metrics) else TOTAL,
        interval if interval in INTERVALS else "",
        scale if scale in SCALES else LINEAR,
    )


def most_runs(chosen: str) -> int:
    """Return how many runs a chart has at most, if the reader chose the interval *chosen*."""
    return MOST_RUNS_ASKED if chosen == RUN else MOST_RUNS


def interval_for(span: timedelta, *, has_more_runs: bool, chosen: str = "") -> str:
    """Return the interval of a chart of *span*: the *chosen* one, if a trace can have so many points.

    *has_more_runs*: whether the range has more runs than ``most_runs``. A reader who chooses runs gets the
    newest of them.
    """
    if chosen == RUN or (not chosen and not has_more_runs and span <= BY_RUN_UP_TO):
        return RUN
    limits = {every: READABLE_POINTS.get(every, MOST_POINTS) for every in EVERY}
    if chosen:
        limits = dict.fromkeys(EVERY[EVERY.index(chosen) :], MOST_POINTS)
    return next((every for every, most in limits.items() if span / LENGTHS[every] < most), EVERY[-1])
