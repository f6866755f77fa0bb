"""The command ``choose``: find the probe and the method that forecast an application best, if any helps."""

from __future__ import annotations

import json
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from forecasting.base import ForecastingError, Source
from forecasting.commands import Subparsers, probability
from forecasting.evaluation import choice
from forecasting.evaluation.choice import PredictorCandidate
from forecasting.reading import histories
from forecasting.reading.histories import RunHistory

DESCRIPTION = """\
Compares each method on each probe of a group with the forecast from the application's own history, run by
run, from what was known when the run started. Prints the share of the own forecast's loss that each saves,
with the p-value of Diebold and Mariano. Marks the one that would be used, and those that do not help and are
dropped."""
EPILOG = """\
FILE.csv is as for backtest. The loss is the absolute error of the median, or the pinball loss of
--quantile."""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "choose",
        help="choose the probe and the method for each application",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE.csv")
    parser.add_argument(
        "--quantile",
        type=probability,
        default=0.5,
        metavar="Q",
        help="the quantile to forecast (0.5, the median)",
    )
    parser.add_argument("--json", action="store_true", help="print one document instead of tables")


def run(arguments: Namespace) -> int:
    all_histories = histories.read(arguments.files)
    tables = {
        str(target): _candidates(target, all_histories, arguments.quantile)
        for target in all_histories
        if target.kind == "application"
    }
    if not any(tables.values()):
        raise ForecastingError(f"{' '.join(arguments.files)}: no group has an application and a probe")
    if arguments.json:
        print(json.dumps(_document(tables), indent=2, allow_nan=False))
    else:
        print("\n".join(line for name, rows in tables.items() for line in _lines(name, rows)))
    return 0


def _candidates(
    target: RunHistory, all_histories: Sequence[RunHistory], quantile: float
) -> list[PredictorCandidate]:
    of_predictors = histories.predictor_values_for(target, all_histories)
    return choice.choose(target.observations, of_predictors, probability=quantile).candidates()


def _document(tables: Mapping[str, Sequence[PredictorCandidate]]) -> dict[str, object]:
    return {
        name: [{**asdict(row), "predictor": _named(row.predictor)} for row in rows]
        for name, rows in tables.items()
    }


def _lines(name: str, rows: Sequence[PredictorCandidate]) -> Iterator[str]:
    yield f"{name}: {_chosen(rows)}"
    for row in rows:
        mark = "used" if row.used else "" if row.helps else "no help"
        yield (
            f"  {_named(row.predictor):<28} {row.method:<12} {row.gain:>8.1%}  p = {row.p_value:<8.2g} "
            f"{row.n:>6} runs  {mark}"
        )


def _chosen(rows: Sequence[PredictorCandidate]) -> str:
    used = next((row for row in rows if row.used), None)
    return f"{used.method} on {_named(used.predictor)}" if used else "its own history"


def _named(source: Source) -> str:
    return "/".join(filter(None, source))
