"""The commands that ask, tell and send: what each takes, and how its answer reads."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gridcast_client import Client, Delivery, Forecast, InvalidInput, Ranking, arguments
from gridcast_client.result import DONE, NO_FORECAST, Result, delivered, width
from gridcast_client.texts import duration, percent, quantity, table


def ask_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", nargs="?", default="", help="the name of a series, or instead:")
    parser.add_argument("--application", default="", help="a probe, with --role or --resources")
    arguments.role(parser)
    parser.add_argument(
        "--resources", type=arguments.names, default=(), metavar="A,B", help="all, whatever their roles"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--metric", default="", help="any metric of the series; default: total.seconds")
    what.add_argument("--stage", default="", help="a stage: compute, queue_wait, ...")
    what.add_argument("--total", default="", choices=("total", "essential", "core"))
    arguments.start(parser)
    parser.add_argument("--quantiles", type=arguments.numbers, default=(0.5, 0.9, 0.95), metavar="P,P")
    parser.add_argument("--level", type=float, default=0.8, help="of the prediction interval; default: 0.8")
    parser.add_argument("--method", default="", help="a forecasting method; default: auto")
    parser.add_argument("--max-age", type=float, metavar="SECONDS", help="of the newest value")


def ask(client: Client, given: argparse.Namespace) -> Result:
    """How long the next run takes."""
    if bool(given.series) == bool(given.application):
        raise InvalidInput("expected either a series, or --application with --role or --resources")
    forecast = client.ask(
        given.series,
        application=given.application,
        roles=dict(given.role),
        resources=given.resources,
        metric=given.metric,
        stage=given.stage,
        total=given.total,
        at=given.at,
        horizon_seconds=given.horizon,
        quantiles=given.quantiles,
        level=given.level,
        method=given.method,
        max_age_seconds=given.max_age,
    )
    return Result(forecast, _forecast_text(forecast))


def _forecast_text(forecast: Forecast) -> str:
    unit, interval, success = forecast.unit, forecast.interval, forecast.success
    between = f"{quantity(interval.lower, unit)} to {quantity(interval.upper, unit)}"
    quantiles = ", ".join(f"{percent(p)}: {quantity(value, unit)}" for p, value in forecast.quantiles.items())
    lines = [
        f"{forecast.series}  {forecast.metric}",
        f"median     {quantity(forecast.median, unit)}; mean {quantity(forecast.mean, unit)}",
        f"interval   {between} ({percent(interval.level)})",
        f"quantiles  {quantiles}",
        f"data       {forecast.n} runs, the newest {duration(forecast.data_age_seconds)} old",
        f"forecast   {forecast.id}",
    ]
    if success is not None:
        retried = (
            f"; {duration(success.expected_seconds)} until a run has passed"
            if success.expected_seconds
            else ""
        )
        lines.insert(4, f"passes     {percent(success.probability)}{retried}")
    return "\n".join(lines)


def rank_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", nargs="*", help="names of series, or instead:")
    parser.add_argument("--application", default="", help="a probe, with --candidate")
    parser.add_argument(
        "--candidate",
        type=arguments.candidate,
        action="append",
        default=[],
        metavar="KEY:ROLE=A,B;ROLE=C",
        help="a key of your own, and the resources of each role",
    )
    arguments.start(parser)
    parser.add_argument(
        "--quantile", type=float, default=0.9, help="of the time until a run has passed; default: 0.9"
    )
    parser.add_argument("--best", action="store_true", help="print the key or series of the best only")


def rank(client: Client, given: argparse.Namespace) -> Result:
    """Where a run passes soonest: candidates, the best first."""
    if bool(given.series) == bool(given.candidate):
        raise InvalidInput("expected either names of series, or --application with --candidate")
    ranking = client.rank(
        {name: name for name in given.series} or dict(given.candidate),
        application=given.application,
        quantile=given.quantile,
        at=given.at,
        horizon_seconds=given.horizon,
    )
    status = DONE if ranking.ranked else NO_FORECAST
    if given.best:
        best = ranking.ranked[0] if ranking.ranked else None
        text = (best.key or best.series) if best else ""
        note = "" if best else "no candidate has a forecast"
        return Result(best, text, status, note=note)
    return Result(ranking, _ranking_text(ranking), status)


def _ranking_text(ranking: Ranking) -> str:
    texts = []
    if ranking.ranked:
        heads = (
            "rank",
            "candidate",
            f"{percent(ranking.quantile)} within",
            "median",
            "passes",
            "runs",
            "forecast",
        )
        rows = [
            (
                each.rank,
                each.key,
                duration(each.seconds),
                duration(each.median),
                percent(each.success_probability),
                each.n,
                each.forecast,
            )
            for each in ranking.ranked
        ]
        texts.append(table(heads, rows, width()))
    if ranking.unranked:
        without = [(each.key, each.code, each.detail) for each in ranking.unranked]
        texts.append(table(("no forecast", "code", "reason"), without, width()))
    return "\n\n".join(texts)


def tell_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("forecast", type=int, help="the number of the forecast")
    parser.add_argument("job", help="your name of the job")
    parser.add_argument("outcome", choices=("passed", "failed"))
    parser.add_argument(
        "--started",
        type=arguments.time,
        required=True,
        metavar="TIME",
        help="with a zone, or seconds since 1970",
    )
    parser.add_argument("--ended", type=arguments.time, required=True, metavar="TIME")
    parser.add_argument("--seconds", type=float, help="of what was forecast; default: from start to end")


def tell(client: Client, given: argparse.Namespace) -> Result:
    """Tell how a job ended; with a spool, an outcome that cannot be delivered now waits there."""
    how = client.tell if client.spool is None else client.tell_later
    told = how(
        given.forecast,
        given.job,
        given.outcome,
        started_at=given.started,
        ended_at=given.ended,
        seconds=given.seconds,
    )
    if isinstance(told, Delivery):
        return delivered(told, is_kept=True)
    return Result(told, f"{told.job} {told.outcome}" + (" (told before)" if told.is_duplicate else ""))


def send_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="reports as JSON or NDJSON; -: standard input"
    )
    parser.add_argument("--series", help="send one report of this series, with --outcome")
    parser.add_argument("--outcome", choices=("passed", "failed"), default="passed")
    parser.add_argument("--seconds", type=float, help="the duration")


def send(client: Client, given: argparse.Namespace) -> Result:
    """Send reports; with a spool, they wait there until gridcast has them."""
    if bool(given.files) == bool(given.series):
        raise InvalidInput(
            "expected either files of reports, or --series; deliver sends what waits in the spool"
        )
    if given.series and given.seconds is None:
        raise InvalidInput("--series needs --seconds")
    report = {"series": given.series, "seconds": given.seconds, "outcome": given.outcome}
    reports = [report] if given.series else _reports_in(given.files)
    return delivered(client.send(reports), is_kept=client.spool is not None)


def _reports_in(files: Iterable[str]) -> Iterator[Any]:
    for name in files:
        try:
            text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
        try:
            document = json.loads(text)
            yield from document if isinstance(document, list) else [document]
        except ValueError:  # of several documents: NDJSON
            yield from (line for line in text.split("\n") if line.strip())


def deliver_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def deliver(client: Client, _given: argparse.Namespace) -> Result:
    """Deliver what waits in the spool."""
    return delivered(client.deliver(), is_kept=False)
