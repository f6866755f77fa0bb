"""Every number of the published study, as it was printed, is the one that gridcast compares with."""

from __future__ import annotations

import math
import re

import pytest

from forecasting.evaluation.published_predictions import ERRORS, MEAN_SECONDS, METRICS, STDEV_SECONDS
from forecasting.evaluation.study import METHODS
from monitor.testbed.demo.definition import LOCAL, series
from monitor.web.reports.published_numbers import COMBINED, GEON, TERAGRID

# Of PreCo on TeraGrid: seconds, then per cent with the coefficient of variation in brackets.
PREDICTIONS = """
| | total (i) | (ii) | (iii) | stage data | build | computation | queue |
| mean | 816.61 | 715.45 | 608.07 | 33.50 | 17.42 | 312.89 | 107.37 |
| standard deviation | 112.52 | 103.74 | 72.16 | 37.65 | 5.82 | 19.93 | 77.79 |
| TSP | 8.57 (90.32) | 8.47 (95.66) | 7.92 (106.65) | 29.44 (97.99) | 3.84 (165.64) | 4.39 (80.45) | 29.37 (91.05) |
| LRP full | 8.42 (90.74) | 8.73 (90.71) | 8.08 (110.68) | 27.62 (84.5) | 4.86 (136.44) | 5.83 (291.95) | 33.8 (74.25) |
| LRP last 10 | 9.13 (78.62) | 9.35 (83.49) | 9.44 (125.48) | 67.89 (415.24) | 6.29 (293.72) | 11.95 (408.4) | 28.31 (81.85) |
| LRP fixed | 9.96 (90.61) | 10.64 (90.24) | 10.57 (92.33) | 24.65 (78.9) | 4.55 (140.17) | 4.41 (85.34) | 37.13 (76.33) |
| TSP+LRP full | 8.99 (85.5) | 9.1 (87.69) | 8.54 (107.93) | 30.92 (82.14) | 4.79 (130.75) | 4.41 (75.72) | 34.05 (84.04) |
| TSP+LRP last 10 | 9.14 (81.84) | 9.11 (87.4) | 8.49 (97.04) | 65.88 (227.4) | 4.27 (121.68) | 5.38 (105.91) | 29.22 (83.44) |
| TSP+LRP fixed | 10.55 (87.17) | 11.11 (88.86) | 11.33 (98.15) | 28.43 (87.64) | 4.69 (133.39) | 4.55 (84.14) | 37.84 (84.64) |
"""  # noqa: E501  # as printed
HEADINGS = dict(
    zip(
        ("total (i)", "(ii)", "(iii)", "stage data", "build", "computation", "queue"),
        (
            "total.seconds",
            "total_essential.seconds",
            "total_core.seconds",
            "stage.stage_data.seconds",
            "stage.build_executable.seconds",
            "stage.compute.seconds",
            "stage.queue_wait.seconds",
        ),
        strict=True,
    )
)


def rows() -> dict[str, list[str]]:
    """Return the cells of each row of the printed table, by its label."""
    printed = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PREDICTIONS.split("\n") if line
    ]
    return {label: cells for label, *cells in printed}


def test_the_columns_are_those_of_the_printed_table() -> None:
    assert [HEADINGS[heading] for heading in rows()[""]] == list(METRICS)


def test_mean_and_deviation_of_preco_are_those_printed() -> None:
    for label, figures in (("mean", MEAN_SECONDS), ("standard deviation", STDEV_SECONDS)):
        assert list(map(float, rows()[label])) == [figures[metric] for metric in METRICS]
    assert TERAGRID.preco == {
        metric: (MEAN_SECONDS[metric], None, None, STDEV_SECONDS[metric]) for metric in METRICS
    }


@pytest.mark.parametrize("studied", METHODS, ids=lambda studied: studied.label)
def test_the_errors_of_each_method_are_those_printed(studied: object) -> None:
    label = studied.label.removesuffix(" first x")  # type: ignore[attr-defined]
    printed = [tuple(map(float, re.findall(r"[\d.]+", cell))) for cell in rows()[label]]
    assert printed == [ERRORS[studied.method][metric] for metric in METRICS]  # type: ignore[attr-defined]


def test_the_sums_that_follow_from_the_printed_means_are_those_of_the_weather() -> None:
    compute, core = MEAN_SECONDS["stage.compute.seconds"], MEAN_SECONDS["total_core.seconds"]
    assert core - compute == pytest.approx(295.18)
    setup = sum(MEAN_SECONDS[f"stage.{stage}.seconds"] for stage in ("stage_data", "build_executable"))
    between = MEAN_SECONDS["total.seconds"] - MEAN_SECONDS["total_essential.seconds"]
    assert between - setup == pytest.approx(50.24)
    together = math.hypot(STDEV_SECONDS["total_core.seconds"], STDEV_SECONDS["stage.queue_wait.seconds"])
    assert together == pytest.approx(STDEV_SECONDS["total_essential.seconds"], rel=0.03), "uncorrelated"


def test_gather_success_and_correlations_are_those_printed() -> None:
    assert GEON.durations["total_essential.seconds"] == (93.95, 84.66, 286.01, 15.63)
    assert TERAGRID.passed == {"gather": 0.58, "circle": 0.78}
    assert GEON.passed == {COMBINED: 0.56}
    assert TERAGRID.correlations == {"total_essential.seconds": 0.32, "total_core.seconds": 0.54}
    assert (GEON.preco, GEON.correlations) == ({}, {}), "PreCo ran on TeraGrid only"


def test_the_demo_uses_the_sites_of_the_study() -> None:
    found = {each.probe: each.bindings for each in series(LOCAL, scheduled=True)}
    assert found["preco"] == {"source": ["purdue"], "compute": ["ncsa"], "destination": ["sdsc"]}
    assert found["circle"] == {"ring": ["iu", "ornl", "purdue", "tacc", "sdsc", "ncsa", "anl"]}
    assert sorted(found["gather"]["sources"]) == ["anl", "iu", "ornl", "purdue", "tacc"]
