"""The command ``replay``: print the forecast of a method after each value of a file."""

from __future__ import annotations

import csv
import math
import sys
from argparse import ArgumentDefaultsHelpFormatter, Namespace
from collections.abc import Iterable, Iterator, Sequence

from forecasting import methods
from forecasting.base import Abstained, ForecastingError
from forecasting.commands import Subparsers
from forecasting.methods import nws
from forecasting.reading.tables import rows

NEEDED = ("time", "value")
COLUMNS_OF_ANY = ("step", "median", "mean", "abstained")
NWS_COLUMNS = (
    "step",
    *(f"{loss}_{what}" for loss in ("mae", "mse") for what in ("forecast", "error", "method")),
    *(f"p{number:02}" for number in range(len(nws.PRIMARIES))),
)


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="print the forecast after each value",
        description="Reads CSV with the columns time and value, in order of time. Prints the forecast of the "
        "next value after each one. NWS prints both of its picks, each with the mean error of its forecasts "
        "so far (MSE: of their squares) and the number of the primary, and all 18 primaries. Any other "
        "method prints its median and its mean, or why it abstained.",
        formatter_class=ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--method", choices=methods.names(), default="nws", help="the method")
    parser.add_argument("--exact", action="store_true", help="NWS 2.0.5 bit for bit, oddities included")
    parser.add_argument("file", metavar="FILE.csv", help="- is standard input")


def run(arguments: Namespace) -> int:
    if arguments.method == "nws":
        lines = _replay_nws(list(_values(arguments.file)), exact=arguments.exact)
    elif arguments.exact:
        raise ForecastingError("--exact is an option of nws alone")
    else:
        lines = _replay(list(_values(arguments.file)), arguments.method)
    csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
    return 0


def _replay_nws(values: Iterable[tuple[float, float]], *, exact: bool) -> Iterator[Sequence[object]]:
    battery = nws.Method(exact=exact)
    yield NWS_COLUMNS
    for step, (time_seconds, value) in enumerate(values, start=1):
        battery.update(time_seconds, value)
        mae, mse = battery.pick("mae"), battery.pick("mse")
        yield step, *_cells(mae), *_cells(mse), *battery.primaries()


def _cells(pick: nws.Pick) -> tuple[float, float, int]:
    return pick.forecast, pick.error, pick.primary


def _replay(values: Iterable[tuple[float, float]], name: str) -> Iterator[Sequence[object]]:
    method = methods.load(name)()
    yield COLUMNS_OF_ANY
    for step, (time_seconds, value) in enumerate(values, start=1):
        method.update(time_seconds, value)
        try:
            forecast = method.forecast(time_seconds)
        except Abstained as abstained:
            yield step, "", "", abstained.reason
        else:
            yield step, forecast.median, forecast.mean, ""


def _values(file: str) -> Iterator[tuple[float, float]]:
    """Yield (time in seconds, value) for each row of *file*; times must not go back."""
    before = -math.inf
    for row in rows(file, NEEDED):
        time_seconds = row.time_seconds("time")
        if time_seconds < before:
            raise row.error(
                "time", f"no earlier time than in the line before, {before:.15g}", row.text("time")
            )
        before = time_seconds
        yield time_seconds, row.number("value")
