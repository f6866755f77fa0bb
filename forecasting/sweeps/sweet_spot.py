"""How many readers and writers at once are best, and whether limiting them helps at all."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from forecasting.base import ForecastingError
from forecasting.reading.sweeps import StreamRow
from forecasting.sweeps.passes import PassEffect, first_pass

SET_CONFIDENCE = 0.95  # that the true best is in the set
GAIN_CONFIDENCE = 0.9
SMALLEST_GAIN = 0.03  # of the time: less is not worth a change
MOST_PASSES = 100

Verdict = Literal["helps", "does not help", "undecided"]


class UnusableStreams(ForecastingError):
    """A sweep of streams cannot be compared: passes, or the unlimited setting, are missing."""


class Streams(NamedTuple):
    """A setting: how many *readers* and *writers* run at once."""

    readers: int
    writers: int


@dataclass(frozen=True)
class SettingTime:
    """A setting and its mean time. *slower* is the ratio of its time to that of the fastest setting."""

    streams: Streams
    seconds: float
    slower: float
    is_best: bool  # cannot be told from the fastest
    price_seconds: Mapping[str, float]  # means by column


@dataclass(frozen=True)
class Gain:
    """The share of the unlimited setting's time that *streams* save, with its interval."""

    streams: Streams
    saved: float
    low: float
    high: float


@dataclass(frozen=True)
class SweetSpot:
    """*passes_needed* is an estimate of the passes for a verdict; None if there is one, or more than a
    hundred."""

    unlimited: Streams
    passes: int
    first_pass: PassEffect | None
    settings: Sequence[SettingTime]  # fastest first
    gain: Gain
    verdict: Verdict
    passes_needed: int | None


def sweet_spot(runs: Sequence[StreamRow]) -> SweetSpot:
    """Compare the settings of *runs*, pass by pass; times act by their logarithms.

    The first pass is compared with the others and set aside. Passes are blocks: what slows a whole pass
    slows all its settings. All settings are compared by Tukey's range, so the interval of the gain also
    holds for the setting that looked best.

    Source: J. W. Tukey, The Problem of Multiple Comparisons (1953); C. Y. Kramer, Biometrics 12 (1956).

    Raises:
        UnusableStreams: there are fewer than two settings, fewer than two passes after the first, or no runs
            with as many readers and writers as there are.
    """
    later = [run for run in runs if run.number > 1]
    settings = sorted({Streams(run.readers, run.writers) for run in later})
    unlimited = Streams(max(run.readers for run in runs), max(run.writers for run in runs))
    _check(later, settings, unlimited)
    fit = _fit(later, settings)
    order = np.argsort(fit.means)
    fastest = int(order[0])
    chosen = _best_gain(fit, settings, settings.index(unlimited))
    verdict = _verdict(chosen)
    return SweetSpot(
        unlimited=unlimited,
        passes=len({run.number for run in later}),
        first_pass=first_pass(_with_first_pass(runs)),
        settings=[_setting(later, settings, fit, int(number), fastest) for number in order],
        gain=chosen,
        verdict=verdict,
        passes_needed=_passes_needed(fit, chosen) if verdict == "undecided" else None,
    )


def _check(later: Sequence[StreamRow], settings: Sequence[Streams], unlimited: Streams) -> None:
    passes = len({run.number for run in later})
    if passes < 2:
        raise UnusableStreams(
            f"expected at least two passes after pass 1, which is set aside, got {passes or 'none'}"
        )
    if len(settings) < 2:
        raise UnusableStreams(
            "expected at least two settings of readers and writers after pass 1, got only "
            f"{settings[0].readers} readers and {settings[0].writers} writers"
        )
    if unlimited not in settings:
        raise UnusableStreams(
            f"expected runs of all streams at once after pass 1, {unlimited.readers} readers and "
            f"{unlimited.writers} writers: limited settings are compared with them"
        )
    if len(later) < len(settings) + passes:
        raise UnusableStreams("expected most settings in most passes: too few runs to estimate an error")


@dataclass(frozen=True)
class _StreamFit:
    """Mean logarithms of the settings' times, *errors* of all differences, and *degrees* of freedom."""

    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    degrees: int
    variance: float  # of one run

    def reach(self, confidence: float) -> NDArray[np.float64]:
        """Return half the width of the interval of each difference, for all of them together."""
        return self.errors * _tukey(confidence, len(self.means), self.degrees) / math.sqrt(2.0)


@cache
def _tukey(confidence: float, settings: int, degrees: int) -> float:
    return float(scipy.stats.studentized_range.ppf(confidence, settings, degrees))


def _fit(runs: Sequence[StreamRow], settings: Sequence[Streams]) -> _StreamFit:
    """Fit settings and passes by least squares to the logarithms of the times."""
    passes = sorted({run.number for run in runs})
    of_setting = np.zeros((len(runs), len(settings)))
    of_pass = np.zeros((len(runs), len(passes)))
    for row, run in enumerate(runs):
        of_setting[row, settings.index(Streams(run.readers, run.writers))] = 1.0
        of_pass[row, passes.index(run.number)] = 1.0
    # the effects of passes add up to 0
    matrix = np.column_stack([of_setting, of_pass[:, :-1] - of_pass[:, -1:]])
    times = np.log([run.seconds for run in runs])
    inverse = np.linalg.pinv(matrix.T @ matrix)
    coefficients = inverse @ (matrix.T @ times)
    residuals = times - matrix @ coefficients
    degrees = len(runs) - int(np.linalg.matrix_rank(matrix))
    variance = float(residuals @ residuals) / degrees
    own = inverse[: len(settings), : len(settings)]
    spread = np.diag(own)[:, None] + np.diag(own)[None, :] - own - own.T
    errors = np.sqrt(np.maximum(variance * spread, 0.0))
    return _StreamFit(coefficients[: len(settings)], errors, degrees, variance)


def _best_gain(fit: _StreamFit, settings: Sequence[Streams], unlimited: int) -> Gain:
    """Return the gain of the fastest limited setting over the *unlimited* one."""
    reach = fit.reach(GAIN_CONFIDENCE)
    limited = [number for number in range(len(settings)) if number != unlimited]
    chosen = min(limited, key=lambda number: fit.means[number])
    logarithm, half = fit.means[chosen] - fit.means[unlimited], reach[chosen, unlimited]
    saved, low, high = -np.expm1([logarithm, logarithm + half, logarithm - half])
    return Gain(settings[chosen], float(saved), float(low), float(high))


def _verdict(gain: Gain) -> Verdict:
    if gain.low >= SMALLEST_GAIN:
        return "helps"
    return "does not help" if gain.high < SMALLEST_GAIN else "undecided"


def _passes_needed(fit: _StreamFit, gain: Gain) -> int | None:
    """Return how many passes after the first would leave the smallest gain outside of the interval, if it
    stays."""
    distance = abs(math.log1p(-gain.saved) - math.log1p(-SMALLEST_GAIN))
    settings = len(fit.means)

    def decides(passes: int) -> bool:
        degrees = (settings - 1) * (passes - 1)
        return math.sqrt(fit.variance / passes) * _tukey(GAIN_CONFIDENCE, settings, degrees) < distance

    passes = bisect_left(range(MOST_PASSES + 1), True, lo=2, key=decides)
    return passes if passes <= MOST_PASSES else None


def _setting(
    runs: Sequence[StreamRow], settings: Sequence[Streams], fit: _StreamFit, number: int, fastest: int
) -> SettingTime:
    streams = settings[number]
    own = [run for run in runs if (run.readers, run.writers) == streams]
    names = sorted({name for run in own for name in run.price_seconds})
    behind = fit.means[number] - fit.means[fastest]
    return SettingTime(
        streams=streams,
        seconds=math.exp(fit.means[number]),
        slower=math.exp(behind),
        is_best=bool(behind <= fit.reach(SET_CONFIDENCE)[number, fastest]),
        price_seconds={
            name: statistics.fmean(run.price_seconds[name] for run in own if name in run.price_seconds)
            for name in names
        },
    )


def _with_first_pass(runs: Sequence[StreamRow]) -> list[list[float]]:
    by_setting: dict[Streams, list[StreamRow]] = {}
    for run in sorted(runs, key=lambda run: run.number):
        by_setting.setdefault(Streams(run.readers, run.writers), []).append(run)
    return [[run.seconds for run in own] for own in by_setting.values() if own[0].number == 1]
