"""Choose the predictor and the method that forecast a metric best, or the metric's own history alone.

A candidate is one method with one predictor. All candidates compete with the *own history*, which is the
forecast from earlier values of the metric alone. Each new value is scored before it is learned: its losses
are added to the sums of the candidates and of the own history. So later values never influence a choice.

The choice has two steps. First, each predictor has a pick: the method that saves the largest share of the own
history's loss so far. The loss of a predictor is the loss of its picks; the loss of a method counts only
while the method is the pick. Second, each predictor whose loss is not significantly below the loss of the own
history is dropped. Among the other predictors, the predictor that saves most is chosen, with its pick. If all
predictors are dropped, the own history forecasts. The candidates of a dropped predictor are still scored, so
the predictor may be chosen later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from forecasting import methods, predictor_values
from forecasting.base import Abstained, DataAge, ForecastMethod, InvalidNumber, Source, ValueForecast
from forecasting.learning.loss_comparison import LossComparison
from forecasting.learning.pairing import PairedMethod
from forecasting.series import Observation
from forecasting.state import MethodsByName
from forecasting.uncertainty.intervals import MIN_RESIDUALS, Residuals

METHODS = ("lrp", "lrp_last_10", "lrp_ridge", "lrp_robust", "matching", "tsp_lrp")
OWN = "blend"


@dataclass(frozen=True)
class PredictorCandidate:
    """The record of a candidate: one *method* with one *predictor*.

    Attributes:
        n: number of scored values.
        own_loss: mean loss of the own history.
        loss: mean loss of the candidate, for the same values.
        gain: share of *own_loss* that the candidate saves.
        p_value: probability of such a gain by chance alone.
        helps: whether the gain is significant.
        used: whether the candidate is the chosen candidate.
    """

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
class MethodTrial:
    """One method, with the own history alone or with one predictor in addition, and the method's record."""

    methods: MethodsByName  # exactly one
    residuals: Residuals = field(default_factory=Residuals, init=False)
    record: LossComparison = field(default_factory=LossComparison, init=False)

    def method(self) -> ForecastMethod:
        (method,) = self.methods.values()
        return method

    def quantile(self, at_seconds: float, probability: float) -> float | None:
        """Return the forecast quantile of *probability*; None if the method has no forecast yet."""
        median = self._median(at_seconds)
        if median is None or probability == 0.5:
            return median
        if len(self.residuals) < MIN_RESIDUALS:
            return None
        return self.residuals.around(median, [probability])[probability]

    def learn(self, time_seconds: float, value: float) -> None:
        """Learn the next *value*."""
        median = self._median(time_seconds)
        if median is not None:
            self.residuals.add(value - median)
        self.method().update(time_seconds, value)

    def _median(self, at_seconds: float) -> float | None:
        method = self.method()
        if isinstance(method, PairedMethod):  # its forecast without the predictor is not on trial
            return method.forecast_from_predictor(at_seconds)
        try:
            return method.forecast(at_seconds).median
        except Abstained:
            return None


def _trial(name: str) -> MethodTrial:
    return MethodTrial(MethodsByName({name: methods.load(name)()}))


@dataclass(slots=True)
class PredictorTrials:
    """All methods with one predictor, and the *record* of the predictor's picks."""

    by_method: dict[str, MethodTrial]
    record: LossComparison = field(default_factory=LossComparison, init=False)

    def pick(self) -> str:
        """Return the name of the method with the highest gain so far; the first of several such methods."""
        return max(self.by_method, key=lambda name: self.by_method[name].record.gain)


@dataclass(slots=True)
class PredictorChoice:
    """Follows one metric and chooses its predictor and method. Learns like a forecasting method.

    The loss is the pinball loss of the quantile of *probability*; for one half this is the absolute error,
    halved. A predictor is on trial from its first value on.
    """

    among: tuple[str, ...] = METHODS
    own: str = OWN
    probability: float = 0.5
    _age: DataAge = field(default_factory=DataAge, init=False)
    _own: MethodTrial = field(default_factory=lambda: MethodTrial(MethodsByName()), init=False)
    _trials: dict[str, PredictorTrials] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.probability < 1.0:
            raise InvalidNumber(f"expected a probability between 0 and 1, got {self.probability!r}")
        if not self._own.methods:  # a loaded state has one
            self._own = _trial(self.own)

    def observe_predictor(
        self, source: Source, time_seconds: float, known_at_seconds: float, value: float
    ) -> None:
        """Learn a *value* of a predictor; values of the metric's own series (its stages) are ignored."""
        predictor_values.require_usable(time_seconds, known_at_seconds, value)
        if not source.series:
            return
        key = predictor_values.key(source)
        if key not in self._trials:
            self._trials[key] = PredictorTrials({name: _trial(name) for name in self.among})
        for trial in self._trials[key].by_method.values():
            trial.method().observe_predictor(source, time_seconds, known_at_seconds, value)

    def update(self, time_seconds: float, value: float) -> None:
        """Score all candidates by the next *value* of the metric; then all candidates learn the value."""
        self._age.add(time_seconds, value)
        own = self._own.quantile(time_seconds, self.probability)
        for trials in self._trials.values():
            self._score(trials, own, time_seconds, value)
        self._own.learn(time_seconds, value)

    def candidates(self) -> list[PredictorCandidate]:
        """Return the records of all candidates, whether they help or not; the highest gain comes first."""
        chosen = self._chosen()
        rows = [
            self._candidate(key, name, trial, used=(key, name) == chosen)
            for key, trials in self._trials.items()
            for name, trial in trials.by_method.items()
        ]
        return sorted(rows, key=lambda row: (-row.gain, row.predictor, row.method))

    def dropped(self) -> list[Source]:
        """Return the predictors that do not help, in the order of their first values."""
        return [
            predictor_values.source(key) for key, trials in self._trials.items() if not trials.record.helps
        ]

    def forecast(self, at_seconds: float) -> ValueForecast:
        """Return the forecast of the chosen candidate, or of the own history if no candidate helps.

        Raises:
            Abstained: no value is known yet.
        """
        chosen = self._chosen()
        trial = self._trials[chosen[0]].by_method[chosen[1]] if chosen else self._own
        return trial.method().forecast(at_seconds)

    def _score(self, trials: PredictorTrials, own: float | None, time_seconds: float, value: float) -> None:
        picked = trials.pick()
        for name, trial in trials.by_method.items():
            quantile = trial.quantile(time_seconds, self.probability)
            if own is not None and quantile is not None:
                losses = self._loss(own, value), self._loss(quantile, value)
                if name == picked:
                    trials.record.add(*losses)
                trial.record.add(*losses)
            trial.learn(time_seconds, value)

    def _loss(self, quantile: float, value: float) -> float:
        excess = quantile - value
        return excess * (1.0 - self.probability) if excess > 0.0 else -excess * self.probability

    def _chosen(self) -> tuple[str, str] | None:
        helping = [key for key, trials in self._trials.items() if trials.record.helps]
        if not helping:
            return None
        key = max(helping, key=lambda key: self._trials[key].record.gain)
        return key, self._trials[key].pick()

    def _candidate(self, key: str, name: str, trial: MethodTrial, *, used: bool) -> PredictorCandidate:
        record = trial.record
        return PredictorCandidate(
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
    of_predictors: Iterable[tuple[Source, Observation]],
    *,
    among: tuple[str, ...] = METHODS,
    own: str = OWN,
    probability: float = 0.5,
) -> PredictorChoice:
    """Return the choice after learning all *observations* of a metric and all observations *of_predictors*.

    Observations are used in the order in which they became known; unusable observations are ignored.

    Args:
        among: names of the methods of the candidates.
        own: name of the method of the own history.
        probability: probability of the quantile whose losses are compared; 0.5 is the median.

    Raises:
        UnknownMethod: *own* or one of *among* is not a file in ``forecasting/methods/``.
        InvalidNumber: *probability* is not inside (0, 1).
    """
    choice = PredictorChoice(among, own, probability)
    events = [
        (observation.known_at_seconds, 1, observation.time_seconds, observation.value, ("", ""))
        for observation in observations
        if observation.is_usable
    ]
    events += [
        (observation.known_at_seconds, 0, observation.time_seconds, observation.value, source)
        for source, observation in of_predictors
        if observation.is_usable
    ]
    for known_at, is_own, time, value, source in sorted(events):
        if is_own:
            choice.update(time, value)
        else:
            choice.observe_predictor(Source(*source), time, known_at, value)
    return choice
