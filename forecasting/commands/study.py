"""``study``: the prediction table of the study of two grids, for measured runs."""

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
Seven methods forecast each metric of each run of an application at the time when it started: from its own
history (TSP), from the probe that ran last (LRP), and from a forecast of the probe (TSP+LRP). Prints mean
relative errors, each with its coefficient of variation, and beside them the errors of the total that were
published."""
EPILOG = """\
FILE.csv is as for backtest: group,series,kind,started_at,ended_at,value, and a column metric, such as
total.seconds or stage.compute.seconds; or the metric stands behind a colon in the name of the series, as in
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
    found = histories.read(arguments.files)
    cells = study.error_table(found, wanted=arguments.metric, warm_up=arguments.warm_up)
    if not any(cell.n for by_method in cells.values() for cell in by_method.values()):
        raise ForecastingError(f"{' '.join(arguments.files)}: {_why_nothing(arguments)}")
    if arguments.json:
        print(json.dumps(document(cells), indent=2, allow_nan=False))
    else:
        print("\n".join(lines(cells)))
    return 0


def _why_nothing(arguments: Namespace) -> str:
    of = f" of {', '.join(arguments.metric)}" if arguments.metric else ""
    return f"no group has an application and a probe with more than {arguments.warm_up} values{of} each"


def document(cells: Mapping[str, Mapping[str, StudyCell]]) -> dict[str, object]:
    return {
        "metrics": {
            metric: {method: asdict(cell) for method, cell in by_method.items()}
            for metric, by_method in cells.items()
        },
        "published_relative_error_of_total": {one.method: one.published / 100.0 for one in study.METHODS},
    }


_LABEL, _WIDTH = 24, 18


def lines(cells: Mapping[str, Mapping[str, StudyCell]]) -> Iterator[str]:
    """The table, a line each: a row a method, a column a metric."""
    headings = "".join(f"{_short(metric):>{_WIDTH}}" for metric in cells)
    yield f"{'':<{_LABEL}}{headings}   published total"
    for one in study.METHODS:
        shown = (f"{_shown(by_method[one.method]):>{_WIDTH}}" for by_method in cells.values())
        yield f"{one.label:<{_LABEL}}{''.join(shown)}{one.published:>17.2f}%"
    runs = (max(cell.n for cell in by_method.values()) for by_method in cells.values())
    yield f"{'runs':<{_LABEL}}" + "".join(f"{count:>{_WIDTH}}" for count in runs)


def _short(metric: str) -> str:
    """What distinguishes *metric* from others, such as compute for stage.compute.seconds."""
    return metric.removeprefix("stage.").removesuffix(".seconds") or "value"


def _shown(cell: StudyCell) -> str:
    if cell.relative_error is None:
        return "-"
    variation = "-" if cell.variation is None else f"{cell.variation:.2f}"
    return f"{cell.relative_error:.2%} ({variation})"
