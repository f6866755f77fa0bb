"""Which predictor and which method a metric is forecast from, and whether that helps at all.

Every candidate, a method that listens to one predictor, is held against the forecast from the metric's own
history at each value, before it learns it: nothing is chosen by what came later. In two layers: of each
predictor the method that lost least so far is its pick; of the picks that one is chosen which, as it was
picked then, lost least, if it lost less than the own history and that is no chance. A predictor whose picks
do not help is dropped: its candidates are still scored, so that it may come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import scipy  # its parts are loaded when they are used

from forecasting import methods, predictor_values
from forecasting.base import Abstained, DataAge, ForecastMethod, InvalidNumber, Source, ValueForecast
from forecasting.learning.pairing import PairedMethod
from forecasting.series import Observation
from forecasting.state import MethodsByName
from forecasting.uncertainty.intervals import LEAST_RESIDUALS, Residuals

METHODS = ("lrp", "lrp_last_10", "lrp_ridge", "lrp_robust", "matching", "tsp_lrp")
OWN = "blend"
CHANCE = 0.05  # a gain that chance makes more often than this is not believed
_LARGEST_SQUARABLE = 1e145


@dataclass(slots=True)
class LossComparison:
    """The losses of two forecasts of the same values, as they come."""

    n: int = field(default=0, init=False)
    own_loss: float = field(default=0.0, init=False)  # mean
    loss: float = field(default=0.0, init=False)  # mean
    _gain: float = field(default=0.0, init=False)  # mean
    _squares: float = field(default=0.0, init=False)  # of gains, around their mean

    def add(self, own_loss: float, loss: float) -> None:
        """Take in the loss of the own history's forecast, and of the other one."""
        own_loss, loss = min(own_loss, _LARGEST_SQUARABLE), min(loss, _LARGEST_SQUARABLE)
        self.n += 1
        self.own_loss += (own_loss - self.own_loss) / self.n
        self.loss += (loss - self.loss) / self.n
        gain = own_loss - loss
        off = gain - self._gain
        self._gain += off / self.n
        self._squares += off * (gain - self._gain)

    @property
    def gain(self) -> float:
        """The share of the own history's loss that is saved; negative where it is worse."""
        return self._gain / self.own_loss if self.own_loss else 0.0

    @property
    def p_value(self) -> float:
        """How often chance alone makes a gain as large, if there is none: small where the other one helps.

        One step ahead. Sources: Diebold, Mariano, "Comparing predictive accuracy", Journal of Business and
        Economic Statistics 13 (1995); with the correction for few values and Student's distribution of
        Harvey, Leybourne, Newbold, "Testing the equality of prediction mean squared errors", International
        Journal of Forecasting 13 (1997).
        """
        if self.n < 2 or not self._squares:
            return 1.0 if self._gain <= 0.0 or self.n < 2 else 0.0
        deviation = math.sqrt(self._squares / self.n / self.n)  # of the mean; Diebold and Mariano
        statistic = self._gain / deviation * math.sqrt((self.n - 1) / self.n)  # Harvey and others
        return float(scipy.special.stdtr(self.n - 1, -statistic))

    @property
    def helps(self) -> bool:
        """Whether the other one lost less, by more than chance."""
        return self.gain > 0.0 and self.p_value <= CHANCE


@dataclass(frozen=True)
class Candidate:
    """How one method on one *predictor* did: mean losses over *n* values, and the *gain* as their ratio less
    one; *used* tells the chosen one, and *helps* whether the gain is more than chance (*p_value*)."""

    predictor: Source
    method: str
    n: int
    own_loss: float
    loss: float
    gain: float
    p_value: float
    helps: bool
    used: bool


@dataclass(slots=True)
class Trial:
    """One method with its misses: of the own history, or listening to one predictor."""

    method: MethodsByName
    misses: Residuals = field(default_factory=Residuals, init=False)
    record: LossComparison = field(default_factory=LossComparison, init=False)

    def only(self) -> ForecastMethod:
        (method,) = self.method.values()
        return method

    def said(self, at_seconds: float, probability: float) -> float | None:
        """Return the median, or the quantile of another *probability*; None where there is none yet."""
        median = self._median(at_seconds)
        if median is None or probability == 0.5:
            return median
        if len(self.misses) < LEAST_RESIDUALS:
            return None
        return self.misses.around(median, [probability])[probability]

    def learn(self, time_seconds: float, value: float) -> None:
        """Take in the next *value*."""
        median = self._median(time_seconds)
        if median is not None:
            self.misses.add(value - median)
        self.only().update(time_seconds, value)

    def _median(self, at_seconds: float) -> float | None:
        method = self.only()
        if isinstance(
            method, PairedMethod
        ):  # which has an answer without its predictor, but that is not on trial
            return method.forecast_from_predictor(at_seconds)
        try:
            return method.forecast(at_seconds).median
        except Abstained:
            return None


def _trial(name: str) -> Trial:
    return Trial(MethodsByName({name: methods.load(name)()}))


@dataclass(slots=True)
class Trials:
    """All methods on one predictor, and how the one that was best so far did."""

    by_method: dict[str, Trial]
    record: LossComparison = field(default_factory=LossComparison, init=False)

    def pick(self) -> str:
        """The method that lost least so far, as a share of what the own history lost; the first of equals."""
        return max(self.by_method, key=lambda name: self.by_method[name].record.gain)


@dataclass(slots=True)
class Choice:
    """Follows one metric: it gets values by ``update`` and ``observe_predictor``, as methods do.

    The loss is the absolute miss, or for a *probability* other than one half the pinball loss of that
    quantile. A predictor is tried from when it is first heard of.
    """

    among: tuple[str, ...] = METHODS
    own: str = OWN
    probability: float = 0.5
    _age: DataAge = field(default_factory=DataAge, init=False)
    _own: Trial = field(default_factory=lambda: Trial(MethodsByName()), init=False)
    _trials: dict[str, Trials] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.probability < 1.0:
            raise InvalidNumber(f"expected a probability between 0 and 1, got {self.probability!r}")
        if not self._own.method:  # it is there when a state was loaded
            self._own = _trial(self.own)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        """Take note of a value of a candidate predictor, as methods do; own stages are ignored."""
        predictor_values.require_usable(time_seconds, known_at_seconds, value)
        if not source.series:
            return
        key = predictor_values.key(source)
        if key not in self._trials:
            self._trials[key] = Trials({name: _trial(name) for name in self.among})
        for trial in self._trials[key].by_method.values():
            method = trial.only()
            method.observe_predictor(source, time_seconds, known_at_seconds, value)

    def update(self, time_seconds: float, value: float) -> None:
        """Score everybody by the next value of the metric, and let them learn it."""
        self._age.add(time_seconds, value)
        own = self._own.said(time_seconds, self.probability)
        for trials in self._trials.values():
            self._score(trials, own, time_seconds, value)
        self._own.learn(time_seconds, value)

    def candidates(self) -> list[Candidate]:
        """Everybody's record, the best first; those that do not help are there too."""
        chosen = self._chosen()
        rows = [
            self._row(key, name, trial, used=(key, name) == chosen)
            for key, trials in self._trials.items()
            for name, trial in trials.by_method.items()
        ]
        return sorted(rows, key=lambda row: (-row.gain, row.predictor, row.method))

    def dropped(self) -> list[Source]:
        """The predictors that do not help, in the order in which they were heard of."""
        return [
            predictor_values.source(key) for key, trials in self._trials.items() if not trials.record.helps
        ]

    def forecast(self, at_seconds: float) -> ValueForecast:
        """What the chosen candidate expects; the own history where none helps.

        Raises:
            Abstained: no value is known yet.
        """
        chosen = self._chosen()
        trial = self._trials[chosen[0]].by_method[chosen[1]] if chosen else self._own
        return trial.only().forecast(at_seconds)

    def _score(self, trials: Trials, own: float | None, time_seconds: float, value: float) -> None:
        picked = trials.pick()
        for name, trial in trials.by_method.items():
            said = trial.said(time_seconds, self.probability)
            if own is not None and said is not None:
                losses = self._loss(own, value), self._loss(said, value)
                if name == picked:
                    trials.record.add(*losses)
                trial.record.add(*losses)
            trial.learn(time_seconds, value)

    def _loss(self, said: float, value: float) -> float:
        over = said - value
        return over * (1.0 - self.probability) if over > 0.0 else -over * self.probability

    def _chosen(self) -> tuple[str, str] | None:
        helping = [key for key, trials in self._trials.items() if trials.record.helps]
        if not helping:
            return None
        key = max(helping, key=lambda key: self._trials[key].record.gain)
        return key, self._trials[key].pick()

    def _row(self, key: str, name: str, trial: Trial, *, used: bool) -> Candidate:
        record = trial.record
        return Candidate(
            predictor=predictor_values.source(key),
            method=name,
            n=record.n,
            own_loss=record.own_loss,
            loss=record.loss,
            gain=record.gain,
            p_value=record.p_value,
            helps=record.helps,
            used=used,
        )


def choose(
    observations: Iterable[Observation],
    heard: Iterable[tuple[Source, Observation]],
    *,
    among: tuple[str, ...] = METHODS,
    own: str = OWN,
    probability: float = 0.5,
) -> Choice:
    """Return the choice after all *observations* of a metric, and all that was *heard* of other sources; each
    is used when it was known, what cannot be used is left out.

    Raises:
        UnknownMethod: one of *among*, or *own*.
        InvalidNumber: *probability* is not inside (0, 1).
    """
    choice = Choice(among, own, probability)
    events = [
        (one.known_at_seconds, 1, one.time_seconds, one.value, ("", "")) for one in observations if one.usable
    ]
    events += [
        (one.known_at_seconds, 0, one.time_seconds, one.value, source) for source, one in heard if one.usable
    ]
    for known_at, is_own, time, value, source in sorted(events):
        if is_own:
            choice.update(time, value)
        else:
            choice.observe_predictor(Source(*source), time, known_at, value)
    return choice
