"""Standard Workload Format: the log of a batch system, one job per line, 18 fields (Feitelson, Tsafrir,
Krakov: Experience with using the Parallel Workloads Archive, JPDC 74, 2014; the format is described at
www.cs.huji.ac.il/labs/parallel/workload/swf.html).

Each job becomes two runs, because its wait is known when it starts and its runtime when it ends: ``wait``
from submission to start, and ``run`` from start to end. A replayed forecast sees the wait of a running job,
but not its runtime. Times are whole seconds, and many jobs are submitted in the same second: the microseconds
of a slot are the last six digits of the job number, so that slots differ.

A job with a wait of -1 (unknown, or no wait) is skipped. The status gives the outcome: 1 is passed, 0 failed,
5 (cancelled) no data, also for the wait if the job never ran; -1 (unknown) counts as passed. 2 to 4 are parts
of a job that has a line of its own; they are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import BinaryIO

from forecasting.reading.swf import (
    CANCELLED,
    COMPLETED,
    FAILED,
    UNKNOWN_STATUS,
    InvalidSwfField,
    SwfJob,
    parse,
)
from monitor.runs.imports.formats import text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    InvalidOption,
    Item,
    Option,
    SkippedRecord,
    Unreadable,
    stage,
    time_at,
)
from probes.base import Measurement, Value

_START = re.compile(r";\s*UnixStartTime:\s*(\S+)")
_OUTCOMES = {
    COMPLETED: ("passed", ""),
    UNKNOWN_STATUS: ("passed", ""),
    FAILED: ("failed", "the job failed (status 0)"),
    CANCELLED: ("no_data", "the job was cancelled (status 5)"),
}


class Importer:
    summary = "Standard Workload Format: batch jobs; one series of queue waits and one of runtimes."
    measures = "application"
    options = {
        "unix_start": Option(
            "start of the log, in seconds since 1970 (default: its header UnixStartTime)",
            metavar="SECONDS",
        ),
        "each_queue": Option("a pair of series for each queue", "no", "yes|no", ("yes", "no")),
    }
    example = Example(
        b"; UnixStartTime: 1027839845\n"
        b"   11   342072     32  43306   32  43307    -1   32  43200    -1  1   4   1  -1 -1  1 -1 -1\n"
        b"   12   342072      5    553   40 552.21    -1   40  43200    -1  0   4   1  -1 -1  1 -1 -1\n"
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.each_queue = options["each_queue"] == "yes"
        try:
            self.start = text.number("unix_start", options["unix_start"]) if options["unix_start"] else None
        except InvalidField as error:
            raise InvalidOption(f"expected {error.expected}, got {error.got!r}", "unix_start") from None

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        start = self.start
        for number, line in enumerate(text.lines(stream), start=1):
            if line.startswith(";"):
                if (header := _START.match(line)) and self.start is None:
                    start = _start_time(number, header[1])
            elif words := line.split():
                if start is None:
                    raise Unreadable(
                        f"line {number}: a job, but no header '; UnixStartTime:' before it; is this SWF?"
                        " --unix-start replaces the header"
                    )
                yield from self._job(f"line {number}", words, start)

    def _job(self, where: str, words: list[str], start: float) -> Iterator[Item]:
        try:
            job = parse(words)
            if job.is_part:
                yield SkippedRecord(where, "part of a job that has a line of its own")
                return
            if job.submitted_seconds is None:
                raise InvalidField("submit time", "a known time", words[1])
            submitted = time_at("submit time", start + job.submitted_seconds)
        except InvalidSwfField as error:
            yield InvalidField(error.field, error.expected, error.got).at(where)
        except InvalidField as error:
            yield error.at(where)
        else:
            yield from self._runs(where, job, submitted)

    def _runs(self, where: str, job: SwfJob, submitted: datetime) -> list[Item]:
        wait, run = job.wait_seconds, job.run_seconds
        if wait is None:
            return [SkippedRecord(where, "its wait is unknown, and so is its start")]
        slot = submitted.replace(microsecond=abs(job.number) % 1_000_000)
        requested = _requested(job)
        queue: dict[str, Value] = {"queue": job.queue} if self.each_queue else {}
        suffix = f"-q{job.queue.lstrip('-')}" if self.each_queue else ""
        outcome, reason = _OUTCOMES[job.status]
        wait_run = ImportedRun(
            where,
            slot,
            wait,
            requested,
            (stage("queue_wait", "queue", wait),),
            f"wait{suffix}",
            {"of": "wait", **queue},
            *((outcome, "the job was cancelled while it waited") if job.never_ran else ()),
        )
        if run is None or job.never_ran:
            return [wait_run, SkippedRecord(where, "it did not run, or its runtime is unknown")]
        compute_run = ImportedRun(
            where,
            slot + timedelta(seconds=wait),
            run,
            requested,
            (stage("compute", "compute", run),),
            f"run{suffix}",
            {"of": "run", **queue},
            outcome,
            reason,
            is_resource_at_fault=False,  # it may be the program
        )
        return [wait_run, compute_run]


def _start_time(number: int, value: str) -> float:
    try:
        return text.number("UnixStartTime", value)
    except InvalidField as error:
        raise Unreadable(str(error.at(f"line {number}"))) from None


def _requested(job: SwfJob) -> tuple[Measurement, ...]:
    """Return the request of a job, which is known at its submission.

    A job that requested no number of processors has the number of allocated processors instead.
    """
    processors = job.processors if job.requested_processors is None else job.requested_processors
    requested = (
        ("job.processors", processors, "count"),
        ("job.requested.seconds", job.requested_seconds, "seconds"),
    )
    return tuple(Measurement(name, value, unit) for name, value, unit in requested if value is not None)
