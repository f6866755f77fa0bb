"""The command ``jobs``: convert the log of a batch system to series of the run times of its jobs."""

from __future__ import annotations

import csv
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from pathlib import PurePath
from typing import Any

from forecasting.commands import Subparsers
from forecasting.reading import histories, swf
from forecasting.reading.swf import COMPLETED, UNKNOWN_STATUS, SwfJob, known_name
from forecasting.reading.tables import STANDARD_INPUT, UnreadableFile

DESCRIPTION = """\
Converts the log of a batch system to series of run times, as backtest reads them: one row for each job that
completed, with its start, its end and its run time in seconds. The jobs with equal fields --by are a series.
Rows are written while the log is read."""
EPILOG = """\
FILE.swf is in the Standard Workload Format and may be compressed by gzip; - is standard input. The group of
all series is the name of the log. Jobs that failed or were cancelled, parts of jobs, and jobs whose wait or
run time is unknown are left out; standard error has their number."""
FIELDS = ("user", "group", "program", "queue", "partition", "processors", "requested")
UNKNOWN = "unknown"
_PASSED = (COMPLETED, UNKNOWN_STATUS)


def add(subparsers: Subparsers) -> None:
    parser: ArgumentParser = subparsers.add_parser(
        "jobs",
        help="convert the log of a batch system to series of run times",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.swf[.gz]")
    parser.add_argument(
        "--by",
        type=_fields,
        default=("user", "program"),
        metavar="FIELD,...",
        help=f"fields that the jobs of a series share (user,program); of {', '.join(FIELDS)}",
    )


def run(arguments: Namespace) -> int:
    rows = csv.writer(sys.stdout, lineterminator="\n")
    group = "jobs" if arguments.file == STANDARD_INPUT else PurePath(arguments.file).name
    group = group.removesuffix(".gz").removesuffix(".swf")
    written = left_out = 0
    for job, start_seconds in swf.jobs(arguments.file):
        if not _is_measured(job):
            left_out += 1
            continue
        if not written:
            rows.writerow((*histories.COLUMNS, histories.RUN))
        rows.writerow((group, *_row(job, start_seconds, arguments.by)))
        written += 1
    if not written:
        raise UnreadableFile(f"{arguments.file}: expected jobs that completed, in SWF; got none")
    print(f"{arguments.file}: {written} jobs, {left_out} lines left out", file=sys.stderr)
    return 0


def _is_measured(job: SwfJob) -> bool:
    times = job.submitted_seconds, job.wait_seconds, job.run_seconds
    return job.status in _PASSED and None not in times


def _row(job: SwfJob, start_seconds: float, by: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the cells of *job* from ``series`` on; its times are known."""
    wait, run_seconds = job.wait_seconds or 0.0, job.run_seconds or 0.0
    started_at = start_seconds + (job.submitted_seconds or 0.0) + wait
    series = "/".join(_text(job, field) for field in by)
    return (
        *(series, "application"),
        *(f"{number:.15g}" for number in (started_at, started_at + run_seconds, run_seconds)),
        job.number,
    )


def _text(job: SwfJob, field: str) -> str:
    if field == "processors":
        processors = job.requested_processors or job.processors
        return f"{processors:g}" if processors else UNKNOWN
    if field == "requested":
        return f"{job.requested_seconds:g}" if job.requested_seconds else UNKNOWN
    return known_name(getattr(job, field)) or UNKNOWN


def _fields(text: str) -> tuple[str, ...]:
    fields = tuple(text.split(","))
    for field in fields:
        if field not in FIELDS:
            raise ArgumentTypeError(f"expected fields of {', '.join(FIELDS)}, got {field!r}")
    return fields
