"""Weather profiles: the figures of each stage, their correlations, and the share of faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from monitor.testbed.weather.conditions import MECHANISMS
from monitor.testbed.weather.figures import Figures, RuntimeFigures, WeatherError
from monitor.web.reports.published_numbers import PublishedDuration

STAGES = tuple(MECHANISMS.values())
SETUP_AND_CLEANUP = frozenset({"init", "stage_data", "build_executable", "cleanup"})

# The three totals, each with the stages whose sum it is.
TOTALS = {
    "total": STAGES,
    "total_essential": tuple(s for s in STAGES if s not in SETUP_AND_CLEANUP),
    "total_core": tuple(s for s in STAGES if s not in SETUP_AND_CLEANUP | {"queue_wait"}),
}


class BadProfile(WeatherError):
    """A profile is inconsistent or lacks a stage."""


def runtime_figures(durations: Mapping[str, PublishedDuration]) -> dict[str, RuntimeFigures]:
    """Return the figures of *durations*, of which minima and maxima are published."""
    return {
        name: RuntimeFigures(mean, low, high, stdev)
        for name, (mean, low, high, stdev) in durations.items()
        if low is not None and high is not None
    }


def of_totals(correlations: Mapping[str, float]) -> dict[str, float]:
    """Return *correlations*, which are by metric, by the name of the total."""
    return {metric.removesuffix(".seconds"): value for metric, value in correlations.items()}


@dataclass(frozen=True)
class Published:
    """Published figures that are no parameters of the weather; ``comparison`` compares them with runs.

    Attributes:
        totals: of Gather, by total.
        preco: mean and standard deviation of the stages and totals of PreCo, by stage and total.
        correlations: between Gather and PreCo, by total.
        passed: shares of runs, by "gather", "circle", ...
    """

    totals: Mapping[str, RuntimeFigures] = field(default_factory=dict)
    preco: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    correlations: Mapping[str, float] = field(default_factory=dict)
    passed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """The parameters of one grid's weather.

    The runtime of a stage follows a latent state of mean 0 and variance 1.

    Attributes:
        gather, preco: figures of the runtimes by stage.
        coupling: correlation of the states of Gather and PreCo at one step, by stage.
        memory: share of the variance that drifts over hours and days; the rest is white noise.
        load: correlation of the common parts of the states of two stages: a busy grid is slow everywhere.
        link: the same correlation for the two transfers, which share a network.
        passed_gather: share of runs of Gather and of PreCo that pass.
        passed_circle: share of runs of Circle that pass.
        published: further published figures.
    """

    gather: Mapping[str, RuntimeFigures]
    preco: Mapping[str, Figures]
    coupling: Mapping[str, float]
    memory: float
    load: float
    link: float
    passed_gather: float = 1.0  # and PreCo, which meets the same faults
    passed_circle: float = 1.0
    published: Published = Published()

    def __post_init__(self) -> None:
        """Raise BadProfile if a stage is missing or unknown, or if the success rates are impossible."""
        for name in ("gather", "preco", "coupling"):
            missing = set(STAGES) ^ set(getattr(self, name))
            if missing:
                raise BadProfile(
                    f"{name} must have each stage once; missing or unknown: {', '.join(sorted(missing))}"
                )
        if not 0.2 <= self.passed_gather <= self.passed_circle <= 1.0:
            raise BadProfile(
                "success rates must be 0.2 <= gather <= circle <= 1, "
                f"not {self.passed_gather} and {self.passed_circle}"
            )
