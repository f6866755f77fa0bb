"""The command ``study``: print the table of errors of the study of two grids, for measured runs."""

from __future__ import annotations

import json
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from forecasting.base import ForecastingError
from forecasting.commands import Subparsers, add_warm_up
from forecasting.evaluation import study
from forecasting.evaluation.study import StudyCell
from forecasting.reading import histories

DESCRIPTION = """\
Seven methods forecast each metric of each run of an application at its start: from its own history (TSP),
from the newest run of a probe (LRP), and from a forecast of the probe (TSP+LRP). Prints mean relative errors,
each with its coefficient of variation, beside the published errors of the total."""
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
    add_warm_up(parser)


def run(arguments: Namespace) -> int:
    all_histories = histories.read(arguments.files)
    cells = study.error_table(all_histories, wanted=arguments.metric, warm_up=arguments.warm_up)
    if not any(cell.n for by_method in cells.values() for cell in by_method.values()):
        raise ForecastingError(f"{' '.join(arguments.files)}: {_empty_reason(arguments)}")
    if arguments.json:
        print(json.dumps(document(cells), indent=2, allow_nan=False))
    else:
        print("\n".join(lines(cells)))
    return 0


def _empty_reason(arguments: Namespace) -> str:
    suffix = f" of {', '.join(arguments.metric)}" if arguments.metric else ""
    return f"no group has an application and a probe with more than {arguments.warm_up} values{suffix} each"


def document(cells: Mapping[str, Mapping[str, StudyCell]]) -> dict[str, object]:
    return {
        "metrics": {
            metric: {method: asdict(cell) for method, cell in by_method.items()}
            for metric, by_method in cells.items()
        },
        "published_relative_error_of_total": {
            studied.method: studied.published / 100.0 for studied in study.METHODS
        },
    }


_LABEL, _WIDTH = 24, 18


def lines(cells: Mapping[str, Mapping[str, StudyCell]]) -> Iterator[str]:
    """Yield the lines of the table: a row for each method, a column for each metric."""
    headings = "".join(f"{_short(metric):>{_WIDTH}}" for metric in cells)
    yield f"{'':<{_LABEL}}{headings}   published total"
    for studied in study.METHODS:
        errors = (f"{error_text(by_method[studied.method]):>{_WIDTH}}" for by_method in cells.values())
        yield f"{studied.label:<{_LABEL}}{''.join(errors)}{studied.published:>17.2f}%"
    runs = (max(cell.n for cell in by_method.values()) for by_method in cells.values())
    yield f"{'runs':<{_LABEL}}" + "".join(f"{count:>{_WIDTH}}" for count in runs)


def _short(metric: str) -> str:
    """Return the distinctive part of *metric*: "compute" for "stage.compute.seconds"."""
    return metric.removeprefix("stage.").removesuffix(".seconds") or "value"


def error_text(cell: StudyCell) -> str:
    if cell.relative_error is None:
        return "-"
    variation = "-" if cell.variation is None else f"{cell.variation:.2f}"
    return f"{cell.relative_error:.2%} ({variation})"
