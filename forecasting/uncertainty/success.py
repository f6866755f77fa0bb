"""Whether the next run on a path succeeds.

A path is what the runs of an application need: its sites and what lies between them. Whether a run succeeded
is known from its end on. Eight simple opinions each give the probability that a run succeeds which starts at
a given time. They differ in which runs they count:

- all; those of lately, by weights that halve in a day, a week, or a month;
- those that met the same *situation*: as many runs in a row had ended alike, or as much time had passed since
  the last one (an outage goes on, and is over one day); those at the same hour of the day (UTC); and those
  after as many alike, with the odds of the hour on top. The longer nobody has looked, the less a situation
  means.

Each is the mean of a Beta distribution whose prior is a broader opinion, so that few runs say little. They
are averaged, each weighted by how probable it had found what happened. That costs hardly more than the best
of them alone (Vovk, "Aggregating strategies", COLT 1990); as a small share of the weight is spread anew each
time, hardly more than the best of each period (Herbster, Warmuth, "Tracking the best expert", Machine
Learning 32, 1998). So an hour of the day, or an episode, counts where the data show it.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from forecasting.base import Abstained, InvalidNumber, require_not_past

HALF_LIVES_SECONDS = (86_400.0, 7 * 86_400.0, 30 * 86_400.0)
OPINIONS = ("all", "day", "week", "month", "streak", "since", "hour", "streak and hour")
_HOUR_SECONDS = 3600.0
_HOURS = 24
_STREAKS = 7  # 1, 2-3, 4-7, ..., 64 and more
_GAPS = 20  # below a minute, below three, below seven, ..., a year
_SHARE = 1e-3  # of the weight is spread anew at each outcome
_EAGERNESS = 0.5  # below 1, as runs that fail together are hardly more evidence than one
_LEAST = 1e-4  # no opinion is more certain than this
_USUAL_OVER = 20  # runs, or fewer while there are fewer
_MOST_MOMENTS = 32


class Tally(NamedTuple):
    """How many runs there were, and how many of them succeeded; weighted runs are less than whole."""

    runs: float = 0.0
    successes: float = 0.0

    def and_one(self, succeeded: bool) -> Tally:
        return Tally(self.runs + 1.0, self.successes + succeeded)

    def faded(self, factor: float) -> Tally:
        return Tally(self.runs * factor, self.successes * factor)

    def mean(self, prior: float, weight: float) -> float:
        """The mean of the Beta distribution after these runs, where *prior* counts as much as *weight*
        runs."""
        return (self.successes + weight * prior) / (self.runs + weight)


class Moment(NamedTuple):
    """What was known from *known_at_seconds* on: how the last *streak* runs had ended, when the newest of all
    runs had begun, and the tallies of lately."""

    known_at_seconds: float
    newest_seconds: float
    succeeded: bool
    streak: int
    lately: tuple[Tally, ...]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended that began at *time_seconds*, and from when on that was known."""

    time_seconds: float
    known_at_seconds: float
    succeeded: bool


@dataclass(frozen=True, slots=True)
class SuccessChance:
    """The probability that a run succeeds at the *first* try, and that a repetition does, *later*, after a
    failure. *n* outcomes are known; the newest run of them began *age_seconds* before the time asked
    about."""

    first: float
    later: float
    n: int
    age_seconds: float


def _tallies(count: int) -> list[Tally]:
    return [Tally()] * count


@dataclass(slots=True)
class SuccessForecaster:
    """Follows the runs on one path.

    Outcomes may be handed over in any order and early: each is used from the first forecast on that asks
    about a time at which it was known, in the order in which they became known. What is learned from an
    outcome is what had been known when its run began, however many others ended in the meantime.
    """

    VERSION: ClassVar[int] = 1
    n: int = field(default=0, init=False)
    used_until_seconds: float = field(default=-math.inf, init=False)
    _all: Tally = field(default=Tally(), init=False)
    _after: list[Tally] = field(default_factory=lambda: _tallies(2), init=False)
    _streaks: list[Tally] = field(default_factory=lambda: _tallies(2 * _STREAKS), init=False)
    _gaps: list[Tally] = field(default_factory=lambda: _tallies(2 * _GAPS), init=False)
    _hours: list[Tally] = field(default_factory=lambda: _tallies(_HOURS), init=False)
    _weights: list[float] = field(default_factory=lambda: [1.0 / len(OPINIONS)] * len(OPINIONS), init=False)
    _moments: list[Moment] = field(default_factory=list, init=False)  # the newest last
    _longest_seconds: float = field(default=0.0, init=False)  # that a run took
    _usual_seconds: float = field(default=0.0, init=False)  # between the beginnings of a run and of the next
    _waiting: list[tuple[float, float, bool]] = field(default_factory=list, init=False)  # a heap

    def observe(self, outcome: RunOutcome) -> None:
        """Take note of *outcome*; it is used once it is known.

        Raises:
            InvalidNumber: a time is not finite.
        """
        if not (math.isfinite(outcome.time_seconds) and math.isfinite(outcome.known_at_seconds)):
            raise InvalidNumber(f"expected finite times, got {outcome}")
        heapq.heappush(self._waiting, (outcome.known_at_seconds, outcome.time_seconds, outcome.succeeded))

    def learn_until(self, at_seconds: float) -> None:
        """Use all that was known at *at_seconds*.

        Raises:
            InvalidNumber: the time is not finite.
            Abstained: ``past``: what was not known at *at_seconds* has been used.
        """
        require_not_past(at_seconds, self.used_until_seconds, "outcomes")
        while self._waiting and self._waiting[0][0] <= at_seconds:
            self._learn(*heapq.heappop(self._waiting))

    def forecast(self, at_seconds: float) -> SuccessChance:
        """Say how probably a run succeeds that starts at *at_seconds*, from what was known then.

        Raises:
            Abstained: ``too_few``: nothing is known; ``past``: outcomes are in use that were not known then.
            InvalidNumber: the time is not finite.
        """
        self.learn_until(at_seconds)
        if not self._moments:
            raise Abstained("too_few", "no run on this path has ended")
        now = self._moments[-1]
        failed = now._replace(succeeded=False, streak=1 if now.succeeded else now.streak + 1)
        return SuccessChance(
            first=self._average(self._opinions(now, at_seconds)),
            later=self._average(self._opinions(failed, at_seconds)),
            n=self.n,
            age_seconds=max(0.0, at_seconds - now.newest_seconds),
        )

    def shares(self) -> dict[str, float]:
        """How much each of ``OPINIONS`` counts at present; together they are 1."""
        return dict(zip(OPINIONS, self._weights, strict=True))

    def _learn(self, known_at_seconds: float, time_seconds: float, succeeded: bool) -> None:
        moment = self._moment_at(time_seconds)
        if moment:
            self._weigh(self._opinions(moment, time_seconds), succeeded)
            self._count(moment, time_seconds, succeeded)
        self._all = self._all.and_one(succeeded)
        hour = _hour(time_seconds)
        self._hours[hour] = self._hours[hour].and_one(succeeded)
        self._remember(known_at_seconds, time_seconds, succeeded)
        self.n += 1
        self.used_until_seconds = known_at_seconds

    def _moment_at(self, time_seconds: float) -> Moment | None:
        """What was known at *time_seconds*, or what of then is remembered next after it."""
        for moment in reversed(self._moments):
            if moment.known_at_seconds <= time_seconds:
                return moment
        return self._moments[0] if self._moments else None

    def _opinions(self, moment: Moment, at_seconds: float) -> list[float]:
        """The probabilities by ``OPINIONS``."""
        after, streak, gap = _situation(moment, at_seconds)
        gone_seconds = max(0.0, at_seconds - moment.newest_seconds)
        broad = self._all.mean(0.5, 1.0)  # Jeffreys' prior
        lately = [
            tally.faded(0.5 ** (gone_seconds / half_life)).mean(broad, 2.0)
            for tally, half_life in zip(moment.lately, HALF_LIVES_SECONDS, strict=True)
        ]
        alike = self._after[after].mean(broad, 3.0)
        relaxed = self._relaxed(gone_seconds)
        in_a_row = broad + relaxed * (self._streaks[streak].mean(alike, 3.0) - broad)
        hourly = self._hours[_hour(at_seconds)].mean(broad, 4.0)
        both = _sigmoid(_logit(in_a_row) + _logit(hourly) - _logit(broad))
        opinions = (broad, *lately, in_a_row, self._gaps[gap].mean(in_a_row, 3.0), hourly, both)
        return list(map(_bounded, opinions))

    def _relaxed(self, gone_seconds: float) -> float:
        """What is left of a situation's meaning: of a Markov chain with two states, the difference between
        what follows on each shrinks by the same factor with each step, here the usual time between runs."""
        if not self._usual_seconds or gone_seconds <= self._usual_seconds:
            return 1.0
        failed, succeeded = (tally.mean(0.5, 1.0) for tally in self._after)
        return math.pow(max(0.0, succeeded - failed), gone_seconds / self._usual_seconds - 1.0)

    def _average(self, opinions: list[float]) -> float:
        return math.fsum(weight * opinion for weight, opinion in zip(self._weights, opinions, strict=True))

    def _weigh(self, opinions: list[float], succeeded: bool) -> None:
        earned = [
            weight * (opinion if succeeded else 1.0 - opinion) ** _EAGERNESS
            for weight, opinion in zip(self._weights, opinions, strict=True)
        ]
        kept = (1.0 - _SHARE) / math.fsum(earned)
        self._weights = [kept * one + _SHARE / len(earned) for one in earned]

    def _count(self, moment: Moment, time_seconds: float, succeeded: bool) -> None:
        gone_seconds = max(0.0, time_seconds - moment.newest_seconds)
        self._usual_seconds += (gone_seconds - self._usual_seconds) / min(self.n, _USUAL_OVER)
        after, streak, gap = _situation(moment, time_seconds)
        self._after[after] = self._after[after].and_one(succeeded)
        self._streaks[streak] = self._streaks[streak].and_one(succeeded)
        self._gaps[gap] = self._gaps[gap].and_one(succeeded)

    def _remember(self, known_at_seconds: float, time_seconds: float, succeeded: bool) -> None:
        """Note what is known from now on; forget moments before which no run began that is to be expected."""
        before = (
            self._moments[-1] if self._moments else Moment(0.0, time_seconds, succeeded, 0, (Tally(),) * 3)
        )
        newest = max(before.newest_seconds, time_seconds)
        streak = before.streak + 1 if before.succeeded == succeeded else 1
        gone_seconds = newest - before.newest_seconds
        lately = tuple(
            tally.faded(0.5 ** (gone_seconds / half_life)).and_one(succeeded)
            for tally, half_life in zip(before.lately, HALF_LIVES_SECONDS, strict=True)
        )
        self._moments.append(Moment(known_at_seconds, newest, succeeded, streak, lately))
        self._longest_seconds = max(self._longest_seconds, known_at_seconds - time_seconds)
        needed_seconds = known_at_seconds - self._longest_seconds
        while len(self._moments) > _MOST_MOMENTS or (
            len(self._moments) > 1 and self._moments[1].known_at_seconds <= needed_seconds
        ):
            del self._moments[0]


def _situation(moment: Moment, at_seconds: float) -> tuple[int, int, int]:
    """Which tallies of ``_after``, ``_streaks`` and ``_gaps`` count for a run at *at_seconds*."""
    gone_minutes = max(0.0, at_seconds - moment.newest_seconds) / 60.0
    streak = min(moment.streak.bit_length(), _STREAKS) - 1
    gap = min(int(math.log2(1.0 + gone_minutes)), _GAPS - 1)
    return moment.succeeded, moment.succeeded * _STREAKS + streak, moment.succeeded * _GAPS + gap


def _hour(at_seconds: float) -> int:
    return int(at_seconds // _HOUR_SECONDS % _HOURS)


def _bounded(probability: float) -> float:
    return min(max(probability, _LEAST), 1.0 - _LEAST)


def _logit(probability: float) -> float:
    bounded = _bounded(probability)
    return math.log(bounded / (1.0 - bounded))


def _sigmoid(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))
