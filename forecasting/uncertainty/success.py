"""The probability that the next run on a path succeeds.

A path is the sites that the runs of an application need, and the network between the sites. The outcome of a
run is known from its end on. Each of eight simple experts estimates the probability that a run which starts
at a given time succeeds. The experts count different runs:

- all runs; recent runs, by weights that halve in a day, a week, or a month;
- runs in the same *situation*: after an equally long streak of the same outcome, or after an equally long gap
  since the last run (an outage lasts for a while, and ends); runs at the same hour of the day (UTC); and runs
  after an equal streak, combined with the odds of the hour. The longer the gap, the less a situation counts.

Each estimate is the mean of a Beta distribution whose prior is a broader expert, so a few runs change little.
The forecast is the mean of the experts, weighted by the probabilities that they gave to the outcomes so far.
The loss of the forecast is hardly more than the loss of the best expert alone (Vovk, "Aggregating
strategies", COLT 1990). A small share of the weight is redistributed at each outcome, so the loss is also
hardly more than the loss of the best expert of each period (Herbster, Warmuth, "Tracking the best expert",
Machine Learning 32, 1998). So an hour of the day, or an episode, counts where the data show its influence.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from forecasting.base import Abstained, InvalidNumber, require_not_past

HALF_LIVES_SECONDS = (86_400.0, 7 * 86_400.0, 30 * 86_400.0)
EXPERTS = ("all", "day", "week", "month", "streak", "since", "hour", "streak and hour")
_HOUR_SECONDS = 3600.0
_HOURS = 24
_STREAKS = 7  # 1, 2-3, 4-7, ..., 64 and more
_GAPS = 20  # below a minute, below three, below seven, ..., a year
_SHARE = 1e-3  # share of the total weight that is redistributed at each outcome
_LEARNING_RATE = 0.5  # below 1, as runs that fail together are hardly more evidence than one
_MIN_PROBABILITY = 1e-4  # the least probability of an outcome in an estimate
_USUAL_OVER = 20  # runs that determine the usual gap
_MAX_MOMENTS = 32


class SuccessTally(NamedTuple):
    """The number of runs and of successes among them; fractional if runs are weighted."""

    runs: float = 0.0
    successes: float = 0.0

    def and_one(self, succeeded: bool) -> SuccessTally:
        return SuccessTally(self.runs + 1.0, self.successes + succeeded)

    def faded(self, factor: float) -> SuccessTally:
        return SuccessTally(self.runs * factor, self.successes * factor)

    def mean(self, prior: float, weight: float) -> float:
        """Return the estimated probability of success; the probability *prior* counts as *weight* runs.

        The estimate is the mean of a Beta distribution.
        """
        return (self.successes + weight * prior) / (self.runs + weight)


class Moment(NamedTuple):
    """A snapshot: what is known from *known_at_seconds* on.

    Attributes:
        newest_seconds: start of the newest run.
        succeeded: whether the newest run succeeded.
        streak: number of last runs with this outcome.
        recent: a tally of runs for each of ``HALF_LIVES_SECONDS``.
    """

    known_at_seconds: float
    newest_seconds: float
    succeeded: bool
    streak: int
    recent: tuple[SuccessTally, ...]


@dataclass(frozen=True, slots=True)
class PathOutcome:
    """The outcome of a run that started at *time_seconds*, known from *known_at_seconds* on.

    *ended_at_seconds* is the end of a run that was reported later; None: it ended when it became known.
    """

    time_seconds: float
    known_at_seconds: float
    succeeded: bool
    ended_at_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SuccessChance:
    """The probability that a run succeeds.

    Attributes:
        first: probability that the first try succeeds.
        later: probability that a try after a failed try succeeds.
        n: number of known outcomes.
        age_seconds: time from the start of the newest known run to the requested time.
    """

    first: float
    later: float
    n: int
    age_seconds: float


def _tallies(count: int) -> list[SuccessTally]:
    return [SuccessTally()] * count


@dataclass(slots=True)
class SuccessForecaster:
    """Forecasts the success of runs on one path.

    Outcomes may be observed in any order, even before they become known. They are learned in the order in
    which they become known, before the first forecast for a later time. An outcome is learned with the
    knowledge at the start of its run, however many other runs ended in the meantime. An outcome that becomes
    known after that of a run which started later than this run ended counts as old: it tells nothing about
    the present situation, and is scored only if the knowledge at its start is still kept.
    """

    VERSION: ClassVar[int] = 2
    n: int = field(default=0, init=False)
    used_until_seconds: float = field(default=-math.inf, init=False)
    _all: SuccessTally = field(default=SuccessTally(), init=False)
    _after: list[SuccessTally] = field(default_factory=lambda: _tallies(2), init=False)
    _streaks: list[SuccessTally] = field(default_factory=lambda: _tallies(2 * _STREAKS), init=False)
    _gaps: list[SuccessTally] = field(default_factory=lambda: _tallies(2 * _GAPS), init=False)
    _hours: list[SuccessTally] = field(default_factory=lambda: _tallies(_HOURS), init=False)
    _weights: list[float] = field(default_factory=lambda: [1.0 / len(EXPERTS)] * len(EXPERTS), init=False)
    _moments: list[Moment] = field(default_factory=list, init=False)  # the newest last
    _longest_seconds: float = field(default=0.0, init=False)  # duration of a run
    _usual_seconds: float = field(default=0.0, init=False)  # between the starts of two runs
    _waiting: list[tuple[float, float, bool, float]] = field(default_factory=list, init=False)  # a heap

    def observe(self, outcome: PathOutcome) -> None:
        """Store an *outcome* until it becomes known.

        Raises:
            InvalidNumber: a time of *outcome* is not finite.
        """
        started_at, known_at, ended_at = (
            outcome.time_seconds,
            outcome.known_at_seconds,
            outcome.ended_at_seconds,
        )
        if ended_at is None:
            ended_at = known_at
        if not all(map(math.isfinite, (started_at, known_at, ended_at))):
            raise InvalidNumber(f"expected finite times, got {outcome}")
        heapq.heappush(self._waiting, (known_at, started_at, outcome.succeeded, ended_at))

    def learn_until(self, at_seconds: float) -> None:
        """Learn all outcomes that were known at *at_seconds*.

        Raises:
            InvalidNumber: *at_seconds* is not finite.
            Abstained: ``past``: this forecaster has already learned outcomes that became known after
                *at_seconds*.
        """
        require_not_past(at_seconds, self.used_until_seconds, "outcomes")
        while self._waiting and self._waiting[0][0] <= at_seconds:
            self._learn(*heapq.heappop(self._waiting))

    def forecast(self, at_seconds: float) -> SuccessChance:
        """Return the probability that a run which starts at *at_seconds* succeeds, from what was known then.

        Raises:
            Abstained: ``too_few``: no outcome is known; ``past``: see ``learn_until``.
            InvalidNumber: *at_seconds* is not finite.
        """
        self.learn_until(at_seconds)
        if not self._moments:
            raise Abstained("too_few", "no run on this path has ended")
        now = self._moments[-1]
        failed = now._replace(succeeded=False, streak=1 if now.succeeded else now.streak + 1)
        return SuccessChance(
            first=self._average(self._estimates(now, at_seconds)),
            later=self._average(self._estimates(failed, at_seconds)),
            n=self.n,
            age_seconds=max(0.0, at_seconds - now.newest_seconds),
        )

    def weights(self) -> dict[str, float]:
        """Return the present weight of each of ``EXPERTS``; 1 in total."""
        return dict(zip(EXPERTS, self._weights, strict=True))

    def _learn(
        self, known_at_seconds: float, time_seconds: float, succeeded: bool, ended_at_seconds: float
    ) -> None:
        is_old = bool(self._moments) and ended_at_seconds < self._moments[-1].newest_seconds
        moment = self._moment_at(time_seconds)
        if moment and not (is_old and moment.known_at_seconds > time_seconds):
            self._update_weights(self._estimates(moment, time_seconds), succeeded)
            self._add_to_tallies(moment, time_seconds, succeeded)
        self._all = self._all.and_one(succeeded)
        hour = _hour(time_seconds)
        self._hours[hour] = self._hours[hour].and_one(succeeded)
        if is_old:
            self._add_old(known_at_seconds, time_seconds, succeeded)
        else:
            self._add_moment(known_at_seconds, time_seconds, succeeded)
        self.n += 1
        self.used_until_seconds = known_at_seconds

    def _moment_at(self, time_seconds: float) -> Moment | None:
        """Return the newest moment known at *time_seconds*, else the oldest stored moment, else None."""
        for moment in reversed(self._moments):
            if moment.known_at_seconds <= time_seconds:
                return moment
        return self._moments[0] if self._moments else None

    def _estimates(self, moment: Moment, at_seconds: float) -> list[float]:
        """Return the probability of success by each of ``EXPERTS``, from what *moment* knows."""
        after, streak, gap = _situation(moment, at_seconds)
        gap_seconds = max(0.0, at_seconds - moment.newest_seconds)
        broad = self._all.mean(0.5, 1.0)  # Jeffreys' prior
        recent = [
            tally.faded(0.5 ** (gap_seconds / half_life)).mean(broad, 2.0)
            for tally, half_life in zip(moment.recent, HALF_LIVES_SECONDS, strict=True)
        ]
        by_last = self._after[after].mean(broad, 3.0)
        relaxed = self._relaxed(gap_seconds)
        by_streak = broad + relaxed * (self._streaks[streak].mean(by_last, 3.0) - broad)
        hourly = self._hours[_hour(at_seconds)].mean(broad, 4.0)
        both = _sigmoid(_logit(by_streak) + _logit(hourly) - _logit(broad))
        estimates = (broad, *recent, by_streak, self._gaps[gap].mean(by_streak, 3.0), hourly, both)
        return list(map(_bounded, estimates))

    def _relaxed(self, gap_seconds: float) -> float:
        """Return the factor, at most 1, by which a situation counts after a gap of *gap_seconds*.

        In a Markov chain of two states, the influence of the present state shrinks by the same factor with
        each step; a step is the usual time between runs.
        """
        if not self._usual_seconds or gap_seconds <= self._usual_seconds:
            return 1.0
        failed, succeeded = (tally.mean(0.5, 1.0) for tally in self._after)
        return math.pow(max(0.0, succeeded - failed), gap_seconds / self._usual_seconds - 1.0)

    def _average(self, estimates: list[float]) -> float:
        return math.fsum(weight * estimate for weight, estimate in zip(self._weights, estimates, strict=True))

    def _update_weights(self, estimates: list[float], succeeded: bool) -> None:
        earned = [
            weight * (estimate if succeeded else 1.0 - estimate) ** _LEARNING_RATE
            for weight, estimate in zip(self._weights, estimates, strict=True)
        ]
        kept = (1.0 - _SHARE) / math.fsum(earned)
        self._weights = [kept * weight + _SHARE / len(earned) for weight in earned]

    def _add_to_tallies(self, moment: Moment, time_seconds: float, succeeded: bool) -> None:
        gap_seconds = max(0.0, time_seconds - moment.newest_seconds)
        self._usual_seconds += (gap_seconds - self._usual_seconds) / min(self.n, _USUAL_OVER)
        after, streak, gap = _situation(moment, time_seconds)
        self._after[after] = self._after[after].and_one(succeeded)
        self._streaks[streak] = self._streaks[streak].and_one(succeeded)
        self._gaps[gap] = self._gaps[gap].and_one(succeeded)

    def _add_moment(self, known_at_seconds: float, time_seconds: float, succeeded: bool) -> None:
        """Add the moment after an outcome.

        The outcome *succeeded* of the run that started at *time_seconds* became known at *known_at_seconds*.
        """
        before = (
            self._moments[-1]
            if self._moments
            else Moment(0.0, time_seconds, succeeded, 0, (SuccessTally(),) * 3)
        )
        newest = max(before.newest_seconds, time_seconds)
        streak = before.streak + 1 if before.succeeded == succeeded else 1
        gap_seconds = newest - before.newest_seconds
        recent = tuple(
            tally.faded(0.5 ** (gap_seconds / half_life)).and_one(succeeded)
            for tally, half_life in zip(before.recent, HALF_LIVES_SECONDS, strict=True)
        )
        self._longest_seconds = max(self._longest_seconds, known_at_seconds - time_seconds)
        self._keep(Moment(known_at_seconds, newest, succeeded, streak, recent))

    def _add_old(self, known_at_seconds: float, time_seconds: float, succeeded: bool) -> None:
        """Add the moment after an old outcome: it counts among the recent runs, by its age."""
        before = self._moments[-1]
        age_seconds = max(0.0, before.newest_seconds - time_seconds)
        recent = tuple(
            SuccessTally(tally.runs + weight, tally.successes + weight * succeeded)
            for tally, half_life in zip(before.recent, HALF_LIVES_SECONDS, strict=True)
            for weight in (0.5 ** (age_seconds / half_life),)
        )
        self._keep(before._replace(known_at_seconds=known_at_seconds, recent=recent))

    def _keep(self, moment: Moment) -> None:
        """Add *moment*, and drop moments that later outcomes do not need.

        A later outcome is learned with the moment at the start of its run, so moments are kept for the
        duration of the longest run so far.
        """
        self._moments.append(moment)
        needed_seconds = moment.known_at_seconds - self._longest_seconds
        while len(self._moments) > _MAX_MOMENTS or (
            len(self._moments) > 1 and self._moments[1].known_at_seconds <= needed_seconds
        ):
            del self._moments[0]


def _situation(moment: Moment, at_seconds: float) -> tuple[int, int, int]:
    """Return the indexes in ``_after``, ``_streaks`` and ``_gaps`` for a run at *at_seconds*."""
    gap_minutes = max(0.0, at_seconds - moment.newest_seconds) / 60.0
    streak = min(moment.streak.bit_length(), _STREAKS) - 1
    gap = min(int(math.log2(1.0 + gap_minutes)), _GAPS - 1)
    return moment.succeeded, moment.succeeded * _STREAKS + streak, moment.succeeded * _GAPS + gap


def _hour(at_seconds: float) -> int:
    return int(at_seconds // _HOUR_SECONDS % _HOURS)


def _bounded(probability: float) -> float:
    return min(max(probability, _MIN_PROBABILITY), 1.0 - _MIN_PROBABILITY)


def _logit(probability: float) -> float:
    bounded = _bounded(probability)
    return math.log(bounded / (1.0 - bounded))


def _sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))
