"""The command ``study``: print the table of errors of the study of two grids, for measured runs."""

from __future__ import annotations

import json
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from forecasting.base import ForecastingError
from forecasting.commands import Subparsers, add_warm_up, positive
from forecasting.evaluation import study
from forecasting.evaluation.published_predictions import ERRORS, MEAN_SECONDS, METRICS, STDEV_SECONDS
from forecasting.evaluation.study import StudyColumn
from forecasting.evaluation.study_table import compared
from forecasting.reading import histories

DESCRIPTION = """\
Seven methods forecast each metric of each run of an application at its start: from its own history (TSP),
from the newest run of a probe (LRP), and from a forecast of the probe (TSP+LRP). Prints mean relative errors,
each with its coefficient of variation, beside the published ones and their difference."""
EPILOG = """\
FILE.csv is as for backtest: group,series,kind,started_at,ended_at,value, and a column metric, such as
total.seconds or stage.compute.seconds; or the name of the series ends with the metric after a colon, as in
preco:total.seconds. Without either there is one metric. Each application is paired with each probe of its
group, a run counts once in each pair, and a metric is predicted from the same metric of the probe."""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "study",
        help="the prediction table of the study of two grids",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME", help="show this one; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print one document instead of a table")
    parser.add_argument(
        "--scale",
        type=positive,
        default=1.0,
        metavar="N",
        help="multiply mean and deviation by N: runs of a demo N times as fast as the grid (1)",
    )
    add_warm_up(parser, study.WARM_UP)


def run(arguments: Namespace) -> int:
    all_histories = histories.read(arguments.files)
    columns = study.error_table(all_histories, wanted=arguments.metric, warm_up=arguments.warm_up)
    if not any(column.n for column in columns.values()):
        raise ForecastingError(f"{' '.join(arguments.files)}: {_empty_reason(arguments)}")
    if arguments.json:
        scaled = {"seconds_of_the_grid_per_second": arguments.scale, **document(columns)}
        print(json.dumps(scaled, indent=2, allow_nan=False))
    else:
        print("\n".join(lines(columns, arguments.scale)))
    return 0


def _empty_reason(arguments: Namespace) -> str:
    suffix = f" of {', '.join(arguments.metric)}" if arguments.metric else ""
    return f"no group has an application and a probe with more than {arguments.warm_up} values{suffix} each"


def document(columns: Mapping[str, StudyColumn]) -> dict[str, object]:
    """Return the columns as JSON values, with the published ones: errors as shares, seconds as measured."""
    return {
        "metrics": {metric: asdict(column) for metric, column in columns.items()},
        "published": {
            metric: {
                "mean": MEAN_SECONDS[metric],
                "stdev": STDEV_SECONDS[metric],
                "cells": {
                    method: {
                        "relative_error": errors[metric].percent / 100.0,
                        "variation": errors[metric].variation_percent / 100.0,
                    }
                    for method, errors in ERRORS.items()
                },
            }
            for metric in METRICS
        },
    }


_LABEL, _WIDTH = 24, 18


def lines(columns: Mapping[str, StudyColumn], scale: float) -> Iterator[str]:
    """Yield the lines of the table: three rows for each method, a column for each metric."""
    yield _line("", [_short(metric) for metric in columns])
    for row in compared(columns, scale):
        yield _line(row.label, row.here)
        yield _line("  published", row.published)
        yield _line("  difference", row.difference)
    yield _line("runs", [str(column.n) for column in columns.values()])
    yield ""
    yield "Errors: per cent of the actual value (coefficient of variation of the errors, per cent)."
    yield "Published: of PreCo on TeraGrid, forecast from Gather; seconds. Differences of errors: points."
    if scale != 1:
        yield f"Mean and standard deviation: measured values times {scale:g}."
    yield 'A "-" stands for a figure that was not published, or cannot be computed from these runs.'


def _line(label: str, cells: Sequence[str]) -> str:
    return f"{label:<{_LABEL}}{''.join(f'{cell:>{_WIDTH}}' for cell in cells)}"


def _short(metric: str) -> str:
    """Return the distinctive part of *metric*: "compute" for "stage.compute.seconds"."""
    return metric.removeprefix("stage.").removesuffix(".seconds") or "value"
