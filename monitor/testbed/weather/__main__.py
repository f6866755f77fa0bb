"""Print the published figures of a weather profile, or its predictions, beside those of simulated runs."""

from __future__ import annotations

import argparse

from monitor.testbed.weather import profiles
from monitor.testbed.weather.climate import STEPS_PER_HOUR
from monitor.testbed.weather.comparison import EXTREMES_RUNS, compare
from monitor.testbed.weather.generator import Weather
from monitor.testbed.weather.predictions import fixed_errors, lines, predictions


def main() -> int:
    """Print the tables; return 0, or 1 if a figure is not within its tolerance."""
    parser = argparse.ArgumentParser(prog="python -m monitor.testbed.weather", description=__doc__)
    parser.add_argument("--profile", choices=profiles.names(), default="teragrid")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=10_000, help=f"at least {EXTREMES_RUNS}")
    parser.add_argument("--every", type=int, default=STEPS_PER_HOUR, help="steps of 200 s between two runs")
    parser.add_argument(
        "--predictions",
        type=int,
        metavar="SEEDS",
        help="print the study's table of predictions instead: medians over so many seeds from --seed on",
    )
    options = parser.parse_args()
    if options.predictions is not None:
        if options.predictions < 1 or options.seed < 0:
            parser.error("expected at least 1 seed, from 0 on")
        seeds = range(options.seed, options.seed + options.predictions)
        tables = predictions(options.profile, seeds)
        print(*lines(tables, fixed_errors(options.profile, seeds)), sep="\n")
        return 0
    if options.runs < EXTREMES_RUNS or options.seed < 0 or options.every < 1:
        parser.error(
            f"expected at least {EXTREMES_RUNS} runs, a seed from 0 on, and at least 1 step between runs"
        )
    weather = Weather(options.profile, options.seed)
    rows = compare(weather.profile, weather.draws(options.runs, options.every))
    print("| subject | figure | published | drawn | difference | tolerance | holds |")
    print("|---|---|---:|---:|---:|---:|---|")
    print(*rows, sep="\n")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
