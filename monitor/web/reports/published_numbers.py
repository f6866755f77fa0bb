"""The published numbers of the study of two grids: TeraGrid and GEON, watched for half a year.

Durations are in seconds, of Gather over about 4,000 hourly runs; shares of passed runs are without those that
failed by a proxy that was not renewed, or in announced maintenance, those of TeraGrid of the first six weeks.
``docs/weather.md`` says how ambiguous ones are understood. A number that is not here was not published: its
cell in a report is "-". The predictions are in ``forecasting.evaluation.published_predictions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from forecasting.evaluation.published_predictions import MEAN_SECONDS, METRICS, STDEV_SECONDS

COMBINED = "combined"


class PublishedDuration(NamedTuple):
    """Mean, minimum, maximum and standard deviation of a duration, in seconds, in the order of the study.

    None: not published.
    """

    mean: float
    min: float | None
    max: float | None
    stdev: float

    @property
    def cv(self) -> float:
        return self.stdev / self.mean


@dataclass(frozen=True)
class PublishedGrid:
    """The published numbers of one grid; what is missing here was not published.

    Attributes:
        durations: of Gather, by metric.
        passed: share of runs that passed, by probe; COMBINED: Gather and Circle both passed.
        preco: durations of PreCo, by metric; empty: it did not run there.
        correlations: between Gather and PreCo that started at the same time, by total.
        has_batch_system: False: jobs were forked on login nodes; the queue wait is the start-up of a job.
    """

    title: str
    durations: Mapping[str, PublishedDuration]
    passed: Mapping[str, float] = field(default_factory=dict)
    preco: Mapping[str, PublishedDuration] = field(default_factory=dict)
    correlations: Mapping[str, float] = field(default_factory=dict)
    has_batch_system: bool = True

    def stages(self) -> dict[str, PublishedDuration]:
        """Return the durations of the stages of Gather, by stage."""
        return _stages(self.durations)

    def preco_stages(self) -> dict[str, PublishedDuration]:
        return _stages(self.preco)

    def totals(self) -> dict[str, PublishedDuration]:
        """Return the totals of Gather by name: ``total``, ``total_essential``, ``total_core``."""
        return {
            metric.split(".")[0]: duration
            for metric, duration in self.durations.items()
            if not metric.startswith("stage.")
        }


def _stages(durations: Mapping[str, PublishedDuration]) -> dict[str, PublishedDuration]:
    return {
        metric.split(".")[1]: duration
        for metric, duration in durations.items()
        if metric.startswith("stage.")
    }


TERAGRID = PublishedGrid(
    title="TeraGrid",
    durations={
        "stage.init.seconds": PublishedDuration(36.03, 26.11, 847.85, 37.14),
        "stage.stage_data.seconds": PublishedDuration(38.41, 33.48, 418.47, 21.18),
        "stage.build_executable.seconds": PublishedDuration(15.35, 4.44, 70.46, 3.91),
        "stage.transfer_data.seconds": PublishedDuration(8.38, 5.28, 194.09, 9.20),
        "stage.queue_wait.seconds": PublishedDuration(84.53, 25.94, 1008.60, 101.13),
        "stage.compute.seconds": PublishedDuration(18.40, 17.99, 61.21, 2.04),
        "stage.transfer_results.seconds": PublishedDuration(15.72, 13.38, 130.53, 7.76),
        "stage.cleanup.seconds": PublishedDuration(10.76, 3.14, 413.46, 20.37),
        "total.seconds": PublishedDuration(227.62, 145.37, 1142.66, 116.02),
        "total_essential.seconds": PublishedDuration(127.05, 63.51, 1055.52, 102.46),
        "total_core.seconds": PublishedDuration(42.51, 36.87, 260.31, 14.36),
    },
    passed={"gather": 0.58, "circle": 0.78},
    preco={
        metric: PublishedDuration(MEAN_SECONDS[metric], None, None, STDEV_SECONDS[metric])
        for metric in METRICS
    },
    correlations={"total_essential.seconds": 0.32, "total_core.seconds": 0.54},
)

GEON = PublishedGrid(
    title="GEON",
    durations={
        "stage.init.seconds": PublishedDuration(96.66, 73.30, 181.38, 9.30),
        "stage.stage_data.seconds": PublishedDuration(70.26, 63.14, 139.87, 8.39),
        "stage.build_executable.seconds": PublishedDuration(33.28, 29.54, 62.04, 7.50),
        "stage.transfer_data.seconds": PublishedDuration(29.12, 21.02, 81.30, 11.68),
        "stage.queue_wait.seconds": PublishedDuration(38.40, 29.85, 69.58, 2.14),
        "stage.compute.seconds": PublishedDuration(10.58, 10.15, 22.67, 0.94),
        "stage.transfer_results.seconds": PublishedDuration(15.88, 14.31, 189.03, 9.00),
        "stage.cleanup.seconds": PublishedDuration(74.84, 50.14, 427.74, 20.21),
        "total.seconds": PublishedDuration(369.01, 324.80, 720.24, 34.79),
        "total_essential.seconds": PublishedDuration(93.95, 84.66, 286.01, 15.63),
    },
    passed={COMBINED: 0.56},
    has_batch_system=False,
)

GRIDS: Mapping[str, PublishedGrid] = {"teragrid": TERAGRID, "geon": GEON}
