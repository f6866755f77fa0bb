"""Weather profiles: the figures of each stage, their correlations, and the share of faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from monitor.testbed.weather.conditions import MECHANISMS
from monitor.testbed.weather.figures import RuntimeFigures, WeatherError

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


@dataclass(frozen=True)
class Published:
    """Figures that result from the draws and are not parameters: a comparison checks them."""

    totals: Mapping[str, RuntimeFigures] = field(default_factory=dict)
    correlations: Mapping[str, float] = field(default_factory=dict)  # between Gather and PreCo, by total
    passed: Mapping[str, float] = field(default_factory=dict)  # shares of runs, by "gather", "circle", ...


@dataclass(frozen=True)
class Profile:
    """The parameters of one grid's weather. ``gather`` and ``preco`` have figures by stage name.

    A stage's runtime follows a latent state of mean 0 and variance 1, of which the share *memory* drifts over
    hours and days and the rest is white noise. The states of Gather and PreCo at one step have the
    correlation ``coupling[stage]``; the common parts of two stages of one probe have the correlation *load*
    (a busy grid is slow everywhere), those of the two transfers *link* (they share a network).
    """

    gather: Mapping[str, RuntimeFigures]
    preco: Mapping[str, RuntimeFigures]
    coupling: Mapping[str, float]
    memory: float
    load: float
    link: float
    passed_gather: float = 1.0  # and PreCo, which meets the same faults
    passed_circle: float = 1.0
    published: Published = Published()

    def __post_init__(self) -> None:
        """Raise BadProfile if a stage is missing or Gather passes more often than Circle."""
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
