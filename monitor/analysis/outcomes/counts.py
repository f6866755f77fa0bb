"""Count failures by cause and time, and success rates raw and adjusted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from monitor.analysis.outcomes.read import RunOutcomes
from monitor.core.db.timestamps import micros, moment
from monitor.core.units import coarse_seconds
from monitor.models import FailureSignature, Run, Series
from monitor.models.run import WITH_SIGNATURE, State

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from numpy.typing import NDArray

    from monitor.models.run import RunQuerySet

EPOCH = datetime(2000, 1, 3, tzinfo=UTC)  # a Monday: intervals of whole days begin at midnight UTC


@dataclass(frozen=True)
class FailureRange:
    """A time range, divided into *intervals* intervals of equal length.

    *first* is its exact beginning; None: the range begins with an interval.
    """

    interval: timedelta
    intervals: int
    first: datetime | None = None

    @property
    def interval_label(self) -> str:
        return coarse_seconds(self.interval.total_seconds())

    def begin(self, now: datetime) -> datetime:
        """Return the first instant of the range that ends *now*."""
        return self.first or self.starts(now)[0]

    def starts(self, now: datetime) -> list[datetime]:
        """Return the start of each interval, oldest first; *now* lies in the last one."""
        last = EPOCH + (now - EPOCH) // self.interval * self.interval
        return [last - number * self.interval for number in reversed(range(self.intervals))]


RANGES = {  # of the API
    "24h": FailureRange(timedelta(hours=1), 24),
    "7d": FailureRange(timedelta(hours=6), 28),
    "30d": FailureRange(timedelta(days=1), 30),
    "90d": FailureRange(timedelta(days=3), 30),
}
LONGEST = timedelta(days=365)  # of a range without a beginning
_MOST_INTERVALS = 30
_INTERVALS = (
    *(timedelta(minutes=n) for n in (5, 10, 15, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 3, 7, 14)),
)


def failure_range(start: datetime | None, end: datetime) -> FailureRange:
    """Return the range from *start* (None: ``LONGEST`` before *end*) to *end*, in intervals of round length.

    Its intervals begin at round times: the first one may begin before *start*.
    """
    first = start or end - LONGEST
    rough = (end - first) / _MOST_INTERVALS
    whole_days = timedelta(days=math.ceil(rough / timedelta(days=1)))
    interval = next((each for each in _INTERVALS if each >= rough), whole_days)
    intervals = (end - EPOCH) // interval - (first - EPOCH) // interval + 1
    return FailureRange(interval, intervals, first)


class RunGroup(NamedTuple):
    """The number of *runs* in a state, with a cause, of a series or a probe (*of*).

    *place* is where they failed, a resource or a stage; it is empty for passed runs, and if that does not
    matter. *signature* is a primary key; None for a passed run and for one that is not classified yet.
    *in_maintenance* tells whether they failed during planned maintenance of a site of theirs.
    """

    of: str
    place: str
    state: str
    signature: int | None
    in_maintenance: bool
    runs: int


@dataclass(frozen=True)
class SuccessRates:
    """Success rates of runs that passed, failed, broke or timed out.

    Attributes:
        passed: the number of passed runs.
        failed: the number of runs that failed, broke or timed out.
        excused: those of the failed runs whose cause does not count against a site, or that failed during
            planned maintenance.
    """

    passed: int
    failed: int
    excused: int

    @property
    def raw(self) -> float | None:
        """The share of all runs that passed; None without runs."""
        return _share(self.passed, self.failed)

    @property
    def adjusted(self) -> float | None:
        """The same share without the excused runs."""
        return _share(self.passed, self.failed - self.excused)


def _share(passed: int, failed: int) -> float | None:
    return passed / (passed + failed) if passed + failed else None


@dataclass(frozen=True)
class CauseCount:
    """The failures with one cause.

    Attributes:
        signature: None for failures that are not classified yet.
        runs, series: how many runs failed, and of how many series.
        first, latest: the first and the latest slot of such a run.
        by_interval: failed runs in each interval of the range, oldest first.
    """

    signature: FailureSignature | None
    runs: int
    series: int
    first: datetime
    latest: datetime
    by_interval: Sequence[int]


@dataclass(frozen=True)
class FailureCounts:
    """Failures in a range: success rates, causes with the most frequent first, starts of the intervals."""

    rates: SuccessRates
    causes: Sequence[CauseCount]
    starts: Sequence[datetime]

    @property
    def most_per_interval(self) -> int:
        """The most failures of one cause in one interval."""
        return max((count for cause in self.causes for count in cause.by_interval), default=0)


def success_rates(counts: Iterable[RunGroup], excused: Mapping[int, bool]) -> SuccessRates:
    """Return the rates of *counts*; *excused* tells which signatures do not count against a site. Pure."""
    passed = failed = excused_runs = 0
    for count in counts:
        if count.state == State.PASSED:
            passed += count.runs
        else:
            failed += count.runs
            if count.in_maintenance or (count.signature is not None and excused[count.signature]):
                excused_runs += count.runs
    return SuccessRates(passed, failed, excused_runs)


def runs_at_site(user: AbstractBaseUser | AnonymousUser, site: str) -> RunQuerySet:
    """Return the runs that *user* may see, of series that use *site* (empty: of all series).

    It is decided for each run: the caller reads few.
    """
    runs = Run.objects.each_visible_to(user)
    return (
        runs.filter(series__in=Series.objects.filter(bindings__resource__site__name=site)) if site else runs
    )


def outcomes_in(
    range_: FailureRange,
    now: datetime,
    user: AbstractBaseUser | AnonymousUser,
    site: str = "",
    series: str = "",
) -> RunOutcomes:
    """Return the outcomes in *range_*, which ends *now*, that *user* may see, as ``RunOutcomes`` does."""
    return RunOutcomes(user, range_.begin(now), now + timedelta.resolution, site=site, series=series)


def count_failures(
    outcomes: RunOutcomes, range_: FailureRange, now: datetime, signature: FailureSignature | None = None
) -> FailureCounts:
    """Count the failures in *range_*, which ends *now*; with *signature*, only those by this cause."""
    starts, failed = range_.starts(now), outcomes.failed_unnamed
    if signature is not None:
        failed = failed[failed["signature"] == signature.pk]
    keys, cause = np.unique(failed["signature"], return_inverse=True)
    signatures = FailureSignature.objects.in_bulk(keys[keys > 0].tolist())
    causes = _causes(outcomes, failed, cause, [signatures.get(key) for key in keys.tolist()], starts, range_)
    passed = int(outcomes.passed_by_hour.runs.sum()) if signature is None else 0
    rates = SuccessRates(passed, len(failed), int(is_excused(failed, signatures.values()).sum()))
    causes.sort(key=lambda cause: (-cause.runs, cause.latest))
    return FailureCounts(rates, causes, starts)


def is_excused(failed: NDArray[np.void], signatures: Iterable[FailureSignature]) -> NDArray[np.bool_]:
    """Return which of the *failed* runs do not count against a site; *signatures* are their causes. Pure."""
    excused = [signature.pk for signature in signatures if not signature.counts_against_site]
    is_during: NDArray[np.bool_] = failed["in_maintenance"]
    return is_during | np.isin(failed["signature"], np.array(excused, np.int64))


def _causes(
    outcomes: RunOutcomes,
    failed: NDArray[np.void],
    cause: NDArray[np.int64],
    signatures: Sequence[FailureSignature | None],
    starts: Sequence[datetime],
    range_: FailureRange,
) -> list[CauseCount]:
    """Count the *failed* runs, in order of their slots, by *cause*: the positions of their *signatures*."""
    interval = (failed["slot"] - micros(starts[0])) // (range_.interval // timedelta.resolution)
    intervals = len(starts)
    by_interval = np.bincount(cause * intervals + interval, minlength=len(signatures) * intervals)
    has_failed = np.zeros((len(signatures), len(outcomes.series)), np.bool_)
    has_failed[cause, outcomes.positions(failed["series"])] = True
    first, latest = np.zeros((2, len(signatures)), np.int64)
    latest[cause] = failed["slot"]  # of several items for a cause the last one stays
    first[cause[::-1]] = failed["slot"][::-1]
    return [
        CauseCount(signature, sum(counts), series, moment(began), moment(ended), counts)
        for signature, counts, series, began, ended in zip(
            signatures,
            by_interval.reshape(-1, intervals).tolist(),
            has_failed.sum(axis=1).tolist(),
            first.tolist(),
            latest.tolist(),
            strict=True,
        )
    ]


def runs_of(
    runs: RunQuerySet, signature: FailureSignature, since: datetime, until: datetime, most: int
) -> list[Run]:
    """Return the newest of *runs* with slots from *since* to *until* that failed by *signature*.

    Return at most *most*.
    """
    failed = runs.filter(signature=signature, slot__gte=since, slot__lte=until, state__in=WITH_SIGNATURE)
    return list(failed.select_related("series").order_by("-slot")[:most])
