"""The command ``sweet-spot``: tell how many readers and writers at once are best on a storage area."""

from __future__ import annotations

import json
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from forecasting.base import ForecastingError
from forecasting.commands import Subparsers
from forecasting.reading import sweeps
from forecasting.sweeps import sweet_spot
from forecasting.sweeps.advice import advice
from forecasting.sweeps.sweet_spot import SettingTime, Streams, SweetSpot

DESCRIPTION = """\
Compares numbers of readers and writers that may access a storage area at once. Prints the settings that
cannot be told from the fastest, the time that limiting saves against all streams at once, and a verdict:
helps, does not help (less than 3 %), or undecided, with the passes that a verdict probably needs."""
EPILOG = """\
FILE.csv has the columns readers, writers, pass (from 1) and seconds; barrier_seconds and spread_seconds (of
task ends) may be there: they are the price of a limit. The largest numbers of readers and writers are those
of all streams at once. The first pass is compared with the others, reported, and set aside.

The true best is among the marked settings with a probability of 95 %. The interval of the gain has 90 %,
also for the setting that looked best."""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "sweet-spot",
        help="tell how many readers and writers at once are best",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.csv")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one document instead of a table")
    shown.add_argument(
        "--advice", action="store_true", help="print what to set: tokens, MPI-IO, Slurm, bfq, Lustre"
    )


def run(arguments: Namespace) -> int:
    runs = sweeps.read_streams(arguments.file)
    try:
        spot = sweet_spot.sweet_spot(runs)
    except sweet_spot.UnusableStreams as error:
        raise ForecastingError(f"{arguments.file}: {error}") from None
    if arguments.json:
        print(json.dumps(_document(spot), indent=2, allow_nan=False))
    else:
        lines = [*_lines(arguments.file, spot), *(["", *advice(spot)] if arguments.advice else [])]
        print("\n".join(lines))
    return 0


def _document(spot: SweetSpot) -> dict[str, object]:
    document = asdict(spot)
    for place in (document, document["gain"], *document["settings"]):
        for key in {"unlimited", "streams"} & place.keys():
            place[key] = place[key]._asdict()
    return document


def _lines(file: str, spot: SweetSpot) -> Iterator[str]:
    yield f"{file}: {len(spot.settings)} settings, {spot.passes} passes after the first"
    if spot.first_pass is not None:
        first = spot.first_pass
        yield (
            f"first pass: set aside; {first.ratio - 1:+.1%} [{first.low - 1:+.1%}, {first.high - 1:+.1%}] "
            f"of the time of later ones, p = {first.p_value:.2g}"
        )
    prices = sorted({name for setting in spot.settings for name in setting.price_seconds})
    headings = "".join(f"{name.removesuffix('_seconds') + ' s':>12}" for name in prices)
    yield ""
    yield f"{'readers':>8}{'writers':>8}{'seconds':>12}{'slower':>9}{headings}"
    for setting in spot.settings:
        yield _row(setting, prices)
    yield ""
    yield _verdict(spot)


def _row(setting: SettingTime, prices: Sequence[str]) -> str:
    cells = "".join(
        f"{setting.price_seconds[name]:>12.4g}" if name in setting.price_seconds else f"{'-':>12}"
        for name in prices
    )
    mark = "   best" if setting.is_best else ""
    readers, writers = setting.streams
    slower = f"{setting.slower - 1:.1%}"
    return f"{readers:>8}{writers:>8}{setting.seconds:>12.4g}{slower:>9}{cells}{mark}"


def _verdict(spot: SweetSpot) -> str:
    gain = spot.gain
    if gain.saved < 0.0:
        change = f"takes {-gain.saved:.1%} [{-gain.high:.1%}, {-gain.low:.1%}] more time than"
    else:
        change = f"saves {gain.saved:.1%} [{gain.low:.1%}, {gain.high:.1%}] of the time of"
    against = f"{_named(gain.streams)} {change} {_named(spot.unlimited)}"
    if spot.verdict != "undecided":
        return f"a limit {spot.verdict}: {against}"
    passes = spot.passes_needed
    needed = f"about {passes}" if passes else f"more than {sweet_spot.MOST_PASSES}"
    return f"undecided: {against}; a verdict needs {needed} passes after the first"


def _named(streams: Streams) -> str:
    return f"readers {streams.readers}, writers {streams.writers}"
