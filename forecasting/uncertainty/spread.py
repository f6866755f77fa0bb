"""How the next value is spread around its forecast: several opinions, weighed by how they fared, and held to
what they promised.

An opinion is the quantiles of a window: of the last values themselves (a short, a middle and a long one), or
of the last misses of a point: of the forecast, and of a quick and of a slow smoothing, whose misses look
different when a level drifts or jumps. Then, for each probability of ``QUANTILE_LEVELS`` by itself:

- **Blend.** The opinions' quantiles are averaged with weights that fall exponentially with how much their
  pinball loss exceeds the least, old losses counting less and less (Cesa-Bianchi, Lugosi, "Prediction,
  Learning, and Games", 2006, sections 2.1 and 2.11; each probability with weights of its own as in Berrisch,
  Ziel, "CRPS learning", Journal of Econometrics 237, 2023).
- **Correction.** The probability at which the blend is read off is moved a little towards more after every
  value that was outside and a little back after every one that was not, so that in the long run as many are
  outside as was said, however the series goes on: adaptive conformal inference (Gibbs, Candes, "Adaptive
  conformal inference under distribution shift", NeurIPS 2021), with steps that fall as evidence comes in
  (Angelopoulos, Barber, Bates, "Online conformal prediction with decaying step sizes", ICML 2024). It is
  bounded: an unlucky streak cannot make an interval absurd. An end makes up for half of what the other end
  misses, since where values tie an end may have no number that is missed as often as it should.

Order statistics are read off at the positions that are unbiased for the median whatever the distribution
(Hyndman, Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996, type 8), and
continued beyond the extremes of a window as a normal distribution would be.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecasting.base import LARGEST_VALUE, InvalidNumber, is_usable
from forecasting.uncertainty.intervals import QUANTILE_LEVELS, quantiles_around

Numbers = NDArray[np.float64]

_KEPT = 150
_VALUES, _FORECAST, _QUICK, _SLOW = range(4)  # rows of what is kept
_WINDOWS = (
    (_VALUES, 15),
    (_VALUES, 50),
    (_VALUES, _KEPT),
    (_FORECAST, _KEPT),
    (_QUICK, _KEPT),
    (_SLOW, _KEPT),
)
_OF_FORECAST, _OF_QUICK, _OF_SLOW = 3, 4, 5  # opinions: the first of these moves with the forecast
_QUICK_GAIN, _SLOW_GAIN = 0.75, 0.2

_FIRST_JUDGED = 10  # values; opinions formed from fewer say more about the window than about the series
_FIRST_TRUSTED = 20
_REMEMBERED = 0.995  # part of the losses that is kept at each value
_RATE = 2.0
# A weight beside the best; so that who is always slightly off does not blur who is exactly right.
_NEGLIGIBLE = 1e-3
_LEAST_STEP, _STEP_DELAY = 0.003, 200
_LOW, _HIGH = QUANTILE_LEVELS.index(0.05), QUANTILE_LEVELS.index(0.95)  # what is usual lies between
_SHARED = 0.5  # part of the misses of the other end that count as own
_ROOM = 0.7  # part of the nearer tail by which a probability is moved at most

_LEVELS: Numbers = np.array(QUANTILE_LEVELS)
_LOWER = slice(0, len(QUANTILE_LEVELS) // 2)
_REACH: Numbers = _ROOM * np.minimum(_LEVELS, 1.0 - _LEVELS)
_SMALLEST = sys.float_info.min
_ALL_LEVELS: Numbers = np.array([0.0, *QUANTILE_LEVELS, 1.0])


@dataclass(slots=True)
class Spread:
    """The spread of one series around the forecasts that it is told."""

    VERSION: ClassVar[int] = 2
    n: int = field(default=0, init=False)
    quick: float = field(default=0.0, init=False)
    slow: float = field(default=0.0, init=False)
    far: int = field(default=0, init=False)  # on which side of what is usual the newest value was far away
    recent: Numbers = field(default_factory=lambda: np.zeros((4, _KEPT)), init=False)  # newest last
    # of each opinion and probability: the quantile, relative to what the opinion is about; the loss
    opinions: Numbers = field(
        default_factory=lambda: np.zeros((len(_WINDOWS), len(QUANTILE_LEVELS))), init=False
    )
    losses: Numbers = field(
        default_factory=lambda: np.zeros((len(_WINDOWS), len(QUANTILE_LEVELS))), init=False
    )
    evidence: float = field(default=0.0, init=False)
    # the blend is fixed + following * (forecast - the first opinion)
    fixed: Numbers = field(default_factory=lambda: np.zeros(len(QUANTILE_LEVELS)), init=False)
    following: Numbers = field(default_factory=lambda: np.zeros(len(QUANTILE_LEVELS)), init=False)
    moved: Numbers = field(default_factory=lambda: np.zeros(len(QUANTILE_LEVELS)), init=False)

    def learn(self, point: float, value: float) -> None:
        """Take in a *value* whose forecast had been *point*.

        Raises:
            InvalidNumber: one is not finite; nothing was learned.
        """
        if not (is_usable(value) and math.isfinite(point)):
            raise InvalidNumber(f"expected a finite value and forecast, got {value!r} and {point!r}")
        point = _within(point)
        if not self.n:
            self.quick = self.slow = point
        if self.n >= _FIRST_JUDGED:
            self._correct(point, value)
            self._judge(point, value)
        self._remember(point, value)
        self._form()

    def around(self, point: float, probabilities: Sequence[float]) -> dict[float, float]:
        """Return the value that the next one undercuts with each of *probabilities*, given its forecast
        *point*, which is its median. More probable is never less.

        Raises:
            Abstained: fewer than two values were learned.
            InvalidNumber: a probability is not inside (0, 1).
        """
        if self.n < _FIRST_TRUSTED:
            return quantiles_around(
                point, sorted(self.recent[_FORECAST, _KEPT - self.n :].tolist()), probabilities
            )
        if not all(0.0 < probability < 1.0 for probability in probabilities):
            raise InvalidNumber(f"expected probabilities between 0 and 1, got {list(probabilities)}")
        quantiles = np.interp(probabilities, _ALL_LEVELS, _continued(self._answer(point))).tolist()
        return {
            probability: _on_its_side(probability, quantile, point)
            for probability, quantile in zip(probabilities, quantiles, strict=True)
        }

    def _answer(self, point: float) -> Numbers:
        """The corrected quantiles of ``QUANTILE_LEVELS``."""
        blend = self.fixed + self.following * (_within(point) - self.opinions[0])
        blend.sort()
        answer = np.interp(_LEVELS + self.moved, _ALL_LEVELS, _continued(blend))
        answer.sort()
        return answer

    def _correct(self, point: float, value: float) -> None:
        answer = self._answer(point)
        undercut = value <= answer
        undercut[_LOWER] = value < answer[_LOWER]  # ends belong to an interval
        excess = _LEVELS - undercut
        step = max(_LEAST_STEP, 1.0 / (self.n + _STEP_DELAY))
        self.moved += step * (excess - _SHARED * excess[::-1])
        self.moved = np.maximum(np.minimum(self.moved, _REACH), -_REACH)

    def _judge(self, point: float, value: float) -> None:
        about = np.array([0.0, 0.0, 0.0, point, self.quick, self.slow])
        misses = (value - about)[:, None] - self.opinions
        self.losses *= _REMEMBERED
        self.losses += np.maximum(_LEVELS * misses, (_LEVELS - 1.0) * misses)
        self.evidence = self.evidence * _REMEMBERED + 1.0

    def _remember(self, point: float, value: float) -> None:
        self.recent[:, :-1] = self.recent[:, 1:]
        self.recent[:, -1] = value, value - point, value - self.quick, value - self.slow
        self._smooth(value)
        self.n += 1

    def _smooth(self, value: float) -> None:
        """Let the smoothings follow. One value far away is mostly gone again, and followed no farther than
        values go as a rule; the second on that side is believed."""
        far = self._far(value)
        quick, slow = value - self.quick, value - self.slow
        if far and far != self.far:
            quick = _clipped(quick, self.opinions[_OF_QUICK])
            slow = _clipped(slow, self.opinions[_OF_SLOW])
        self.quick += _QUICK_GAIN * quick
        self.slow += _SLOW_GAIN * slow
        self.far = far

    def _far(self, value: float) -> int:
        """On which side of what is usual *value* is far away: -1, 1, or 0 if it is not."""
        if self.n < _FIRST_TRUSTED:
            return 0
        usual = self.opinions[_OF_SLOW]
        low, high = self.slow + float(usual[_LOW]), self.slow + float(usual[_HIGH])
        room = high - low
        return int(value > high + room) - int(value < low - room)

    def _form(self) -> None:
        """Form the opinions on the next value, and blend what can be blended before its forecast is there."""
        places = _places(min(self.n, _KEPT))
        ordered = _ordered(self.recent, min(self.n, _KEPT))
        lower = ordered.take(places.lower)
        self.opinions = lower + (ordered.take(places.upper) - lower) * places.between
        first = self.opinions[0]
        relative = self.opinions - first
        relative[_OF_FORECAST] = self.opinions[_OF_FORECAST]
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
    """Where, in what ``_ordered`` returns, the quantiles of each opinion are: *between* of the way from
    *lower* to *upper*, which may be less than nothing: beyond *lower*, seen from *upper*."""

    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    between: Numbers


@cache  # one for each number of values up to _KEPT
def _places(known: int) -> _Places:
    lower, upper, between = [], [], []
    for row, window in _WINDOWS:
        length = min(window, known)
        start = _start(row, window, known)
        for probability in QUANTILE_LEVELS:
            low, high, share = _place(length, probability)
            lower.append(start + low)
            upper.append(start + high)
            between.append(share)
    shape = len(_WINDOWS), len(QUANTILE_LEVELS)
    return _Places(
        np.array(lower).reshape(shape), np.array(upper).reshape(shape), np.array(between).reshape(shape)
    )


def _ordered(recent: Numbers, known: int) -> Numbers:
    """What is known of each row, then of the shorter windows of the values, each sorted; end to end."""
    rows = np.sort(recent[:, _KEPT - known :], axis=1).ravel()
    shorter = [
        np.sort(recent[row, _KEPT - min(window, known) :]) for row, window in _WINDOWS if window < _KEPT
    ]
    return np.concatenate([rows, *shorter])


def _start(row: int, window: int, known: int) -> int:
    if window == _KEPT:
        return row * known
    shorter = [length for _, length in _WINDOWS if length < window]
    return 4 * known + sum(min(length, known) for length in shorter)


def _place(length: int, probability: float) -> tuple[int, int, float]:
    """The places and the share between them of a quantile in *length* sorted numbers."""
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
    """*quantiles* with ends for the probabilities 0 and 1: as far out again as the last step."""
    ends = 2.0 * quantiles[0] - quantiles[1], 2.0 * quantiles[-1] - quantiles[-2]
    return np.concatenate(([ends[0]], quantiles, [ends[1]]))


def _clipped(miss: float, misses: Numbers) -> float:
    """*miss*, or what is usual instead, where *misses* are the quantiles."""
    return min(max(miss, float(misses[_LOW])), float(misses[_HIGH]))


def _within(point: float) -> float:
    """*point*, or the largest number that a value can be: what is beyond it would not add up."""
    return min(max(point, -LARGEST_VALUE), LARGEST_VALUE)


def _on_its_side(probability: float, quantile: float, median: float) -> float:
    if probability == 0.5:
        return median
    return min(quantile, median) if probability < 0.5 else max(quantile, median)
