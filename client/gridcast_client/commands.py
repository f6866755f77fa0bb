"""What each command asks, and how its answer reads."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from gridcast_client import Client, Delivery, Forecast, GridcastError, InvalidInput, Ranking
from gridcast_client.texts import duration, percent, quantity, table

DONE, USAGE, NO_FORECAST, AGAIN, REFUSED = 0, 2, 3, 4, 5  # exit status


@dataclass(frozen=True)
class Result:
    """The *answer* for programs, the *text* for people, and the exit *status*."""

    answer: Any
    text: str
    status: int = DONE
    error: GridcastError | None = None
    note: str = ""


@dataclass(frozen=True)
class Command:
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Client, argparse.Namespace], Result]


def _width() -> int:
    """Return the width of the terminal; what a program reads is not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000


# ask


def _ask_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", nargs="?", default="", help="the name of a series, or instead:")
    parser.add_argument("--application", default="", help="a probe, with --role or --resources")
    _role_argument(parser)
    parser.add_argument(
        "--resources", type=_names, default=(), metavar="A,B", help="all, whatever their roles"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--metric", default="", help="any metric of the series; default: total.seconds")
    what.add_argument("--stage", default="", help="a stage: compute, queue_wait, ...")
    what.add_argument("--total", default="", choices=("total", "essential", "core"))
    _time_arguments(parser)
    parser.add_argument("--quantiles", type=_numbers, default=(0.5, 0.9, 0.95), metavar="P,P")
    parser.add_argument("--level", type=float, default=0.8, help="of the prediction interval; default: 0.8")
    parser.add_argument("--method", default="", help="a forecasting method; default: auto")
    parser.add_argument("--max-age", type=float, metavar="SECONDS", help="of the newest value")


def _ask(client: Client, arguments: argparse.Namespace) -> Result:
    """How long the next run takes."""
    forecast = client.ask(
        arguments.series,
        application=arguments.application,
        roles=dict(arguments.role),
        resources=arguments.resources,
        metric=arguments.metric,
        stage=arguments.stage,
        total=arguments.total,
        at=arguments.at,
        horizon_seconds=arguments.horizon,
        quantiles=arguments.quantiles,
        level=arguments.level,
        method=arguments.method,
        max_age_seconds=arguments.max_age,
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


# rank


def _rank_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", nargs="*", help="names of series, or instead:")
    parser.add_argument("--application", default="", help="a probe, with --candidate")
    parser.add_argument(
        "--candidate",
        type=_candidate,
        action="append",
        default=[],
        metavar="KEY:ROLE=A,B;ROLE=C",
        help="a key of your own, and the resources of each role",
    )
    _time_arguments(parser)
    parser.add_argument(
        "--quantile", type=float, default=0.9, help="of the time until a run has passed; default: 0.9"
    )
    parser.add_argument("--best", action="store_true", help="print the key or series of the best only")


def _rank(client: Client, arguments: argparse.Namespace) -> Result:
    """Where a run passes soonest: candidates, the best first."""
    ranking = client.rank(
        arguments.series,
        application=arguments.application,
        candidates=dict(arguments.candidate),
        quantile=arguments.quantile,
        at=arguments.at,
        horizon_seconds=arguments.horizon,
    )
    status = DONE if ranking.ranked else NO_FORECAST
    if arguments.best:
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
                each.key or each.series,
                duration(each.seconds),
                duration(each.median),
                percent(each.success_probability),
                each.n,
                each.forecast,
            )
            for each in ranking.ranked
        ]
        texts.append(table(heads, rows, _width()))
    if ranking.unranked:
        without = [
            (each.key or ", ".join(each.series) or each.candidate, each.code, each.detail)
            for each in ranking.unranked
        ]
        texts.append(table(("no forecast", "code", "reason"), without, _width()))
    return "\n\n".join(texts)


# tell


def _tell_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("forecast", type=int, help="the number of the forecast")
    parser.add_argument("job", help="your name of the job")
    parser.add_argument("outcome", choices=("passed", "failed"))
    parser.add_argument(
        "--started", type=_time, required=True, metavar="TIME", help="with a zone, or seconds since 1970"
    )
    parser.add_argument("--ended", type=_time, required=True, metavar="TIME")
    parser.add_argument("--seconds", type=float, help="of what was forecast; default: from start to end")


def _tell(client: Client, arguments: argparse.Namespace) -> Result:
    """Tell how a job ended; with a spool, an outcome that cannot be delivered now waits there."""
    tell = client.tell if client.spool is None else client.tell_later
    told = tell(
        arguments.forecast,
        arguments.job,
        arguments.outcome,
        started_at=arguments.started,
        ended_at=arguments.ended,
        seconds=arguments.seconds,
    )
    if isinstance(told, Delivery):
        return _delivered(told, is_kept=True)
    return Result(told, f"{told.job} {told.outcome}" + (" (told before)" if told.duplicate else ""))


# send, deliver


def _send_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="reports as JSON or NDJSON; -: standard input"
    )
    parser.add_argument("--series", help="send one report of this series, with --outcome")
    parser.add_argument("--outcome", choices=("passed", "failed"), default="passed")
    parser.add_argument("--seconds", type=float, help="the duration")


def _send(client: Client, arguments: argparse.Namespace) -> Result:
    """Send reports; with a spool, they wait there until gridcast has them."""
    if bool(arguments.files) == bool(arguments.series):
        raise InvalidInput(
            "expected either files of reports, or --series; deliver sends what waits in the spool"
        )
    if arguments.series and arguments.seconds is None:
        raise InvalidInput("--series needs --seconds")
    given = {"series": arguments.series, "seconds": arguments.seconds, "outcome": arguments.outcome}
    reports = [given] if arguments.series else _reports_in(arguments.files)
    return _delivered(client.send(reports), is_kept=client.spool is not None)


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
            yield from (line for line in text.splitlines() if line.strip())


def _deliver_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def _deliver(client: Client, _arguments: argparse.Namespace) -> Result:
    """Deliver what waits in the spool."""
    return _delivered(client.deliver(), is_kept=False)


def _delivered(delivery: Delivery, *, is_kept: bool) -> Result:
    """Return the result of a delivery; *is_kept*: what was given now is in the spool at least."""
    accepted = len(delivery.receipts) - len(delivery.refused)
    parts = [
        f"{accepted} reports accepted" if delivery.receipts else "",
        f"{len(delivery.told)} outcomes told",
    ]
    parts = [
        parts[0],
        parts[1] if delivery.told else "",
        f"{len(delivery.refused)} refused" if delivery.refused else "",
    ]
    parts.append(f"{delivery.waiting} files wait in the spool" if delivery.waiting else "")
    text = ", ".join(part for part in parts if part) or "nothing to deliver"
    refused = "\n".join(f"refused: {each.error}" for each in delivery.refused[:10])
    status = REFUSED if delivery.refused else DONE
    if delivery.error is not None and not (delivery.error.again and is_kept):
        status = AGAIN if delivery.error.again else REFUSED
    return Result(delivery, f"{text}\n{refused}".strip(), status, delivery.error)


# measure


def _measure_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", help="the series of the report")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="what to run")


def _measure(client: Client, arguments: argparse.Namespace) -> Result:
    """Run a command, and report how long it took and whether it passed."""
    argv = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not argv:
        raise InvalidInput("expected a command after --")
    began, clock = datetime.now(timezone.utc), time.monotonic()
    status = run_command(argv)
    seconds = time.monotonic() - clock
    report = {
        "series": arguments.series,
        "started_at": began.isoformat(),
        "seconds": round(seconds, 6),
        "outcome": "failed" if status else "passed",
    }
    try:
        sent = _delivered(client.send([report]), is_kept=client.spool is not None)
    except GridcastError as error:  # the command matters more than its report
        return Result(report, "", status, error, "the run was not reported")
    note = "" if sent.status == DONE and not sent.error else sent.text
    return Result(sent.answer, "", status, sent.error, note)


def run_command(argv: list[str]) -> int:
    """Run *argv* to its end and return its exit status as a shell does; pass SIGTERM and SIGHUP on to it."""
    try:
        process = subprocess.Popen(argv)
    except FileNotFoundError:
        raise InvalidInput(f"there is no program {argv[0]!r}") from None
    except OSError as error:
        raise InvalidInput(f"cannot run {argv[0]!r}: {error.strerror}") from None
    passed_on = (signal.SIGTERM, signal.SIGHUP)
    before = {
        number: signal.signal(number, lambda each, _: process.send_signal(each)) for number in passed_on
    }
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command, too
    try:
        status = process.wait()
    finally:
        signal.signal(signal.SIGINT, ignored)
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


# sites, resources, series, runs


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many; default: all")


def _sites(client: Client, arguments: argparse.Namespace) -> Result:
    """The sites, and whether runs may start there."""
    sites = list(islice(client.sites(), arguments.limit))
    rows = [(site.name, site.state, _since(site.since), site.why) for site in sites]
    return Result(sites, table(("site", "state", "since", "reason"), rows, _width()))


def _since(time_: datetime | None) -> str:
    return time_.astimezone().strftime("%Y-%m-%d %H:%M") if time_ else "-"


# Types of arguments


def _role_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role", type=_role, action="append", default=[], metavar="ROLE=A,B", help="resources of a role"
    )


def _time_arguments(parser: argparse.ArgumentParser) -> None:
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--at", type=_time, metavar="TIME", help="start of the run, with a zone; default: now")
    when.add_argument("--horizon", type=float, metavar="SECONDS", help="the same, from now")


def _time(text: str) -> datetime:
    """Return a time: RFC 3339, or seconds since 1970, as batch systems give it."""
    try:
        if text.replace(".", "", 1).isdigit():
            return datetime.fromtimestamp(float(text), timezone.utc)
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-03-01T12:00:00Z, got {text!r}"
        ) from None
    if parsed.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text}: expected a zone at its end, such as Z or +01:00")
    return parsed


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers, separated by commas, got {text!r}") from None


def _role(text: str) -> tuple[str, list[str]]:
    role, is_there, names = text.partition("=")
    if not (role and is_there and names):
        raise argparse.ArgumentTypeError(f"expected ROLE=RESOURCE,RESOURCE, got {text!r}")
    return role, _names(names)


def _candidate(text: str) -> tuple[str, Mapping[str, list[str]]]:
    key, _, roles = text.partition(":")
    if not (key and roles):
        raise argparse.ArgumentTypeError(f"expected KEY:ROLE=A,B;ROLE=C, got {text!r}")
    return key, dict(_role(role) for role in roles.split(";"))


COMMANDS: Mapping[str, Command] = {
    "ask": Command(_ask_arguments, _ask),
    "rank": Command(_rank_arguments, _rank),
    "tell": Command(_tell_arguments, _tell),
    "send": Command(_send_arguments, _send),
    "deliver": Command(_deliver_arguments, _deliver),
    "measure": Command(_measure_arguments, _measure),
    "sites": Command(_list_arguments, _sites),
}
