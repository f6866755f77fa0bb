"""Quantiles of the next value around its forecast: an ensemble of experts with a conformal correction.

There are six experts. Each expert computes the quantiles of a window of numbers. Three experts use a short, a
middle and a long window of the last values. The other three experts use windows of the last errors of a
point, and add the quantiles to the point. The three points are the forecast, a quick smoothing and a slow
smoothing; their errors differ when a level drifts or jumps. Then, separately for each probability of
``QUANTILE_LEVELS``:

- **Blend.** The quantiles of the experts are averaged. The weight of an expert falls exponentially with the
  excess of its pinball loss over the least loss; old losses decay (Cesa-Bianchi, Lugosi, "Prediction,
  Learning, and Games", 2006, sections 2.1 and 2.11; with separate weights for each probability as in
  Berrisch, Ziel, "CRPS learning", Journal of Econometrics 237, 2023).
- **Correction.** The probability at which the blend is evaluated moves a little outwards after every value
  beyond the corrected quantile, and a little back after every other value. So in the long run the promised
  share of values is beyond the quantile, however the series continues: adaptive conformal inference (Gibbs,
  Candes, "Adaptive conformal inference under distribution shift", NeurIPS 2021), with decreasing steps
  (Angelopoulos, Barber, Bates, "Online conformal prediction with decaying step sizes", ICML 2024). The
  correction is bounded: an unlucky streak cannot make an interval absurd. An end of an interval compensates
  for half of the misses of the other end, since among tied values there may be no number with the right share
  of misses.

**Overlap.** If other runs ended while a run was under way, its value is compared with the quantiles issued
before its start. Runs side by side are less evidence than as many runs one after another: of a burst of n
runs the long windows keep about the square root of n values, and the losses of experts weigh one run by the
inverse of the overlap. In proportion to the usual overlap, quantiles of the last values
(``forecasting.uncertainty.fading_quantiles``) replace the blend. Quantiles for runs that overlap are farther
apart: a window of values from few bursts is a sample of few bursts. The correction moves faster, and farther,
since a miss comes late (Gibbs, Candes, "Conformal inference for online prediction with arbitrary distribution
shifts", JMLR 25, 2024, on the step and the delay of what it corrects).

Order statistics are evaluated at the positions that are unbiased for the median for any distribution
(Hyndman, Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996, type 8). Beyond
the extremes of a window quantiles are extrapolated like the quantiles of a normal distribution.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.base import LARGEST_VALUE, InvalidNumber, is_usable
from forecasting.learning.issued import IssuedAnswer, OutcomeSampling
from forecasting.uncertainty.intervals import QUANTILE_LEVELS, quantiles_around

Numbers = NDArray[np.float64]

_LENGTH = 150
_VALUES, _FORECAST, _QUICK, _SLOW = range(4)  # the rows of recent
_WINDOWS = (
    (_VALUES, 15),
    (_VALUES, 50),
    (_VALUES, _LENGTH),
    (_FORECAST, _LENGTH),
    (_QUICK, _LENGTH),
    (_SLOW, _LENGTH),
)
_SHORT = 15, 50  # windows of newest values
_SHORTER = max(_SHORT)
_OF_FORECAST, _OF_QUICK, _OF_SLOW = 3, 4, 5  # experts; the first of these moves with the forecast
_QUICK_GAIN, _SLOW_GAIN = 0.75, 0.2

_FIRST_SCORED = 10  # values; with fewer, the scores of experts say little about the series
_FIRST_USED = 20
_FIRST_KEPT = 2  # values, however many of them overlap: as many as an interval needs
_LOSS_DECAY = 0.995  # factor of old losses at each value
_RATE = 2.0
_NEGLIGIBLE = 1e-3  # ratio to the largest weight, below which a weight becomes 0: exact experts stay exact
_MIN_STEP, _STEP_DELAY = 0.003, 200
_LOW, _HIGH = QUANTILE_LEVELS.index(0.05), QUANTILE_LEVELS.index(0.95)  # the usual range of errors
_SHARED = 0.5  # share of the misses at the other end that counts for this one
_ROOM = 0.7  # share of the nearer tail by which a probability may be moved
_OVERLAP_RATE = 0.05  # the weight of the newest outcome in the usual overlap
_OVERLAP_STEPS = 1.5  # times the step for an outcome that overlaps
_OVERLAP_ROOM = 0.9
_KEPT_POWER = 0.5  # of the overlap, by which it thins the long windows
_WIDER, _WIDER_OUTSIDE = 0.05, 0.5  # logarithm of the widening per logarithm of the overlap; more far outside

_LEVELS: Numbers = np.array(QUANTILE_LEVELS)
_LOWER = slice(0, len(QUANTILE_LEVELS) // 2)
_TAILS: Numbers = np.minimum(_LEVELS, 1.0 - _LEVELS)
_REACH: Numbers = _ROOM * _TAILS
_MORE_REACH: Numbers = (_OVERLAP_ROOM - _ROOM) * _TAILS
_WIDENING: Numbers = _WIDER * (1.0 + _WIDER_OUTSIDE * np.log(0.2 / (2.0 * _TAILS)))  # _WIDER at 0.1 and 0.9
_SMALLEST = sys.float_info.min
_COUNT = len(QUANTILE_LEVELS)
_PARTS = slice(_COUNT), slice(_COUNT, _COUNT + 2), slice(_COUNT + 2, None)  # of what ``issue`` returns
_ALL_LEVELS: Numbers = np.array([0.0, *QUANTILE_LEVELS, 1.0])


@dataclass(slots=True)
class Spread:
    """Learns the distribution of the values of one series around their forecasts."""

    VERSION: ClassVar[int] = 6
    n: int = field(default=0, init=False)
    kept: int = field(default=0, init=False)  # values in recent, ever
    quick: float = field(default=0.0, init=False)
    slow: float = field(default=0.0, init=False)
    far: int = field(default=0, init=False)  # the side of the usual values on which the newest was far away
    recent: Numbers = field(default_factory=lambda: np.zeros((4, _LENGTH)), init=False)  # newest last
    newest: Numbers = field(default_factory=lambda: np.zeros(_SHORTER), init=False)  # values, newest last
    overlap: float = field(default=0.0, init=False)  # usual logarithm of 1 + overlap
    sampling: OutcomeSampling = field(default_factory=lambda: OutcomeSampling(_KEPT_POWER), init=False)
    # of each expert and probability: the quantile, relative to the point of the expert; the loss
    quantiles: Numbers = field(
        default_factory=lambda: np.zeros((len(_WINDOWS), len(QUANTILE_LEVELS))), init=False
    )
    losses: Numbers = field(
        default_factory=lambda: np.zeros((len(_WINDOWS), len(QUANTILE_LEVELS))), init=False
    )
    evidence: float = field(default=0.0, init=False)
    # the blend is ``fixed + following * (forecast - quantiles[0])``
    fixed: Numbers = field(default_factory=lambda: np.zeros(len(QUANTILE_LEVELS)), init=False)
    following: Numbers = field(default_factory=lambda: np.zeros(len(QUANTILE_LEVELS)), init=False)
    moved: Numbers = field(default_factory=lambda: np.zeros(len(QUANTILE_LEVELS)), init=False)

    def issue(self, point: float, fading: Numbers | None = None) -> Numbers:
        """Return what ``learn`` needs of the present state to score it later.

        *point* and *fading* are those of ``around``.
        """
        point = _within(point)
        answer = self._answer(point, fading)
        return np.concatenate([answer, (self.quick, self.slow), self.quantiles.ravel()])

    def learn(self, point: float, value: float, issued: IssuedAnswer | None = None) -> None:
        """Learn a *value* whose forecast was *point*.

        *issued* are the numbers of ``issue`` at the time of this forecast; None stands for the present ones.

        Raises:
            InvalidNumber: *point* or *value* is not finite, or the magnitude of *value* is above
                ``LARGEST_VALUE``; nothing was learned.
        """
        if not (is_usable(value) and math.isfinite(point)):
            raise InvalidNumber(f"expected a finite value and forecast, got {value!r} and {point!r}")
        point = _within(point)
        if not self.n:
            self.quick = self.slow = point
        issued = issued or IssuedAnswer(self.issue(point), 0)
        if self.n - issued.overlap >= (_FIRST_KEPT if issued.overlap else _FIRST_SCORED):
            answer, smoothed, quantiles = (issued.numbers[part] for part in _PARTS)
            self._correct(answer, value, issued.overlap)
            points = np.concatenate([(0.0, 0.0, 0.0, point), smoothed])
            self._score(points, quantiles.reshape(self.quantiles.shape), value, issued.overlap)
        self._keep(point, value, issued.overlap)
        self._form()

    def around(
        self, point: float, probabilities: Sequence[float], fading: Numbers | None = None
    ) -> dict[float, float]:
        """Return the quantiles of the next value, given its forecast *point*, which is the median.

        *fading* are the ``fading_quantiles`` for the same time; None: not used. The quantiles never fall with
        rising probability.

        Raises:
            Abstained: fewer than two values have been learned.
            InvalidNumber: a probability is not inside (0, 1).
        """
        if self.n < _FIRST_USED:
            return quantiles_around(
                point, sorted(self.recent[_FORECAST, _LENGTH - self.kept :].tolist()), probabilities
            )
        if not all(0.0 < probability < 1.0 for probability in probabilities):
            raise InvalidNumber(f"expected probabilities between 0 and 1, got {list(probabilities)}")
        quantiles = np.interp(probabilities, _ALL_LEVELS, _continued(self._answer(point, fading))).tolist()
        return {
            probability: _on_its_side(probability, quantile, point)
            for probability, quantile in zip(probabilities, quantiles, strict=True)
        }

    def _answer(self, point: float, fading: Numbers | None) -> Numbers:
        """Return the corrected quantiles at ``QUANTILE_LEVELS``; the arguments are those of ``around``."""
        blend = self.fixed + self.following * (_within(point) - self.quantiles[0])
        blend.sort()
        if self.overlap and fading is not None:
            blend += min(self.overlap, 1.0) * (fading - blend)
        answer = np.interp(_LEVELS + self.moved, _ALL_LEVELS, _continued(blend))
        answer.sort()
        if self.overlap:
            answer = point + np.exp(self.overlap * _WIDENING) * (answer - point)
        return answer

    def _correct(self, answer: Numbers, value: float, overlap: int) -> None:
        undercut = value <= answer
        undercut[_LOWER] = value < answer[_LOWER]  # ends belong to an interval
        excess = _LEVELS - undercut
        step = max(_MIN_STEP, 1.0 / (self.n + _STEP_DELAY))
        if overlap:
            step *= _OVERLAP_STEPS
        self.moved += step * (excess - _SHARED * excess[::-1])
        reach = _REACH + min(self.overlap, 1.0) * _MORE_REACH
        self.moved = np.maximum(np.minimum(self.moved, reach), -reach)

    def _score(self, points: Numbers, quantiles: Numbers, value: float, overlap: int) -> None:
        errors = (value - points)[:, None] - quantiles
        weight = 1.0 / (1.0 + overlap)
        decay = _LOSS_DECAY**weight
        self.losses *= decay
        self.losses += weight * np.maximum(_LEVELS * errors, (_LEVELS - 1.0) * errors)
        self.evidence = self.evidence * decay + weight

    def _keep(self, point: float, value: float, overlap: int) -> None:
        self.newest[:-1] = self.newest[1:]
        self.newest[-1] = value
        if overlap or self.overlap:
            rate = max(_OVERLAP_RATE, 1.0 / (self.n + 1))
            self.overlap += rate * (math.log1p(overlap) - self.overlap)
        if self.kept < _FIRST_KEPT or self.sampling.counts(overlap):
            self.recent[:, :-1] = self.recent[:, 1:]
            self.recent[:, -1] = value, value - point, value - self.quick, value - self.slow
            self.kept += 1
        self._smooth(value)
        self.n += 1

    def _smooth(self, value: float) -> None:
        """Update the quick and the slow smoothing.

        A first value far away moves a smoothing by at most a usual error, since the next value is mostly back
        at the old level. A second such value on the same side moves a smoothing without a limit.
        """
        far = self._far(value)
        quick, slow = value - self.quick, value - self.slow
        if far and far != self.far:
            quick = _clipped(quick, self.quantiles[_OF_QUICK])
            slow = _clipped(slow, self.quantiles[_OF_SLOW])
        self.quick += _QUICK_GAIN * quick
        self.slow += _SLOW_GAIN * slow
        self.far = far

    def _far(self, value: float) -> int:
        """Return 1 if *value* is far above the usual values, -1 if it is far below, else 0."""
        if self.n < _FIRST_USED:
            return 0
        usual = self.quantiles[_OF_SLOW]
        low, high = self.slow + float(usual[_LOW]), self.slow + float(usual[_HIGH])
        room = high - low
        return int(value > high + room) - int(value < low - room)

    def _form(self) -> None:
        """Compute the experts' quantiles for the next value, and how the blend depends on the forecast."""
        kept = min(self.kept, _LENGTH)
        places = _places(kept, min(self.n, _SHORTER))
        ordered = _ordered(self.recent, self.newest, kept, self.n)
        lower = ordered.take(places.lower)
        self.quantiles = lower + (ordered.take(places.upper) - lower) * places.between
        first = self.quantiles[0]
        relative = self.quantiles - first
        relative[_OF_FORECAST] = self.quantiles[_OF_FORECAST]
        relative[_OF_QUICK] += self.quick
        relative[_OF_SLOW] += self.slow
        weights = self._weights()
        self.fixed = first + np.add.reduce(weights * relative)
        self.following = weights[_OF_FORECAST]

    def _weights(self) -> Numbers:
        least = np.minimum.reduce(self.losses)
        with np.errstate(over="ignore"):
            excess = (self.losses - least) / np.maximum(least, _SMALLEST)
            weights: Numbers = np.exp(-_RATE * math.sqrt(max(self.evidence, 1.0)) * excess)
        weights *= weights >= _NEGLIGIBLE
        weights /= np.add.reduce(weights)
        return weights


class _Places(NamedTuple):
    """The two numbers between which each expert's quantiles lie, as indexes in the result of ``_ordered``.

    A quantile is at the share *between* of the way from *lower* to *upper*. If the share is negative, the
    quantile is beyond *lower*, seen from *upper*.
    """

    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    between: Numbers


@lru_cache(maxsize=1024)
def _places(kept: int, newest: int) -> _Places:
    """Return the places in the result of ``_ordered`` for *kept* numbers of each row and *newest* values."""
    lower, upper, between = [], [], []
    for row, window in _WINDOWS:
        is_long = window == _LENGTH
        length = kept if is_long else min(window, newest)
        start = (
            row * kept if is_long else 4 * kept + sum(min(each, newest) for each in _SHORT if each < window)
        )
        for probability in QUANTILE_LEVELS:
            low, high, share = _place(length, probability)
            lower.append(start + low)
            upper.append(start + high)
            between.append(share)
    shape = len(_WINDOWS), len(QUANTILE_LEVELS)
    return _Places(
        np.array(lower).reshape(shape), np.array(upper).reshape(shape), np.array(between).reshape(shape)
    )


def _ordered(recent: Numbers, newest: Numbers, kept: int, count: int) -> Numbers:
    """Return the last *kept* numbers of each row of *recent*, then the last values of the shorter windows.

    There are *count* values in all; the numbers of each row and of each window are sorted.
    """
    rows = recent[:, _LENGTH - kept :].copy()
    shorter = [newest[_SHORTER - min(window, count) :].copy() for window in _SHORT]
    for numbers in (rows, *shorter):
        numbers.sort()
    return np.concatenate((rows.ravel(), *shorter))


def _place(length: int, probability: float) -> tuple[int, int, float]:
    """Return (lower, upper, between) of a quantile in *length* sorted numbers; ``_Places`` explains them."""
    position = (length + 1.0 / 3.0) * probability - 2.0 / 3.0
    last = length - 1
    if 0.0 <= position <= last:
        low = int(position)
        return low, min(low + 1, last), position - low
    extreme = (2.0 / 3.0) / (length + 1.0 / 3.0)
    normal = NormalDist()
    beyond = abs(normal.inv_cdf(probability) / normal.inv_cdf(extreme)) if length > 1 else 1.0
    return 0 if position < 0.0 else last, length // 2, 1.0 - max(beyond, 1.0)


def _continued(quantiles: Numbers) -> Numbers:
    """Return *quantiles* with an end added at each side, for the probabilities 0 and 1.

    The distance of an end from the outermost quantile is the distance of the two outermost quantiles.
    """
    ends = 2.0 * quantiles[0] - quantiles[1], 2.0 * quantiles[-1] - quantiles[-2]
    return np.concatenate(([ends[0]], quantiles, [ends[1]]))


def _clipped(error: float, quantiles: Numbers) -> float:
    """Return *error*, limited to the usual range of errors; *quantiles* are the quantiles of errors."""
    return min(max(error, float(quantiles[_LOW])), float(quantiles[_HIGH]))


def _within(point: float) -> float:
    """Return *point*, limited to +- ``LARGEST_VALUE``, so that sums are finite."""
    return min(max(point, -LARGEST_VALUE), LARGEST_VALUE)


def _on_its_side(probability: float, quantile: float, median: float) -> float:
    if probability == 0.5:
        return median
    return min(quantile, median) if probability < 0.5 else max(quantile, median)
