"""Standard Workload Format: the log of a batch system, a job a line, 18 fields (Feitelson, Tsafrir, Krakov:
Experience with using the Parallel Workloads Archive, JPDC 74, 2014; the format is at www.cs.huji.ac.il/labs/
parallel/workload/swf.html).

Every job becomes two runs, because two things became known at two times: ``wait`` from its submission to its
start, and ``run`` from its start to its end. A forecast that is replayed sees the wait of a job that runs,
but not its runtime. Times are whole seconds, and many jobs are submitted in the same one: the microseconds
of a slot are the number of the job (its last six digits), so that slots differ, and the second is still as
it was logged.

A wait of -1 is not known, or there was none: no run. What became of the job says the status: 1 passed, 0
failed, 5 (cancelled) is no data, and so is its wait if it did not run; -1, not known, counts as passed, for
it ran. 2 to 4 are parts of a job that has a line of its own, and are left out.
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
from monitor.imports.formats import text
from monitor.imports.formats.base import (
    Example,
    InvalidOption,
    Item,
    LeftOut,
    Measured,
    Misfit,
    Option,
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
    summary = "Standard Workload Format: batch jobs; a series of queue waits, and one of runtimes."
    measures = "application"
    options = {
        "unix_start": Option(
            "when the log begins, in seconds since 1970 (default: its header UnixStartTime)",
            metavar="SECONDS",
        ),
        "each_queue": Option("a pair of series for each queue of the system", "no", "yes|no", ("yes", "no")),
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
        except Misfit as misfit:
            raise InvalidOption(f"expected {misfit.expected}, got {misfit.got!r}", "unix_start") from None

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        start = self.start
        for number, line in enumerate(text.lines(stream), start=1):
            if line.startswith(";"):
                if (found := _START.match(line)) and self.start is None:
                    start = _header(number, found[1])
            elif words := line.split():
                if start is None:
                    raise Unreadable(
                        f"line {number}: a job, but no header '; UnixStartTime:' before it; is this SWF?"
                        " --unix-start says it in its place"
                    )
                yield from self._job(f"line {number}", words, start)

    def _job(self, where: str, words: list[str], start: float) -> Iterator[Item]:
        try:
            job = parse(words)
            if job.is_part:
                yield LeftOut(where, "part of a job that has a line of its own")
                return
            if job.submitted_seconds is None:
                raise Misfit("submit time", "a time that is known", words[1])
            submitted = time_at("submit time", start + job.submitted_seconds)
        except InvalidSwfField as error:
            yield Misfit(error.field, error.expected, error.got).at(where)
        except Misfit as misfit:
            yield misfit.at(where)
        else:
            yield from self._runs(where, job, submitted)

    def _runs(self, where: str, job: SwfJob, submitted: datetime) -> list[Item]:
        wait, run = job.wait_seconds, job.run_seconds
        if wait is None:
            return [LeftOut(where, "its wait is not known, so neither is when it ran")]
        slot = submitted.replace(microsecond=abs(job.number) % 1_000_000)
        asked = _asked(job)
        queue: dict[str, Value] = {"queue": job.queue} if self.each_queue else {}
        suffix = f"-q{job.queue.lstrip('-')}" if self.each_queue else ""
        outcome, reason = _OUTCOMES[job.status]
        waited = Measured(
            where,
            slot,
            wait,
            asked,
            (stage("queue_wait", "queue", wait),),
            f"wait{suffix}",
            {"of": "wait", **queue},
            *((outcome, "the job was cancelled while it waited") if job.never_ran else ()),
        )
        if run is None or job.never_ran:
            return [waited, LeftOut(where, "it did not run, or its runtime is not known")]
        ran = Measured(
            where,
            slot + timedelta(seconds=wait),
            run,
            asked,
            (stage("compute", "compute", run),),
            f"run{suffix}",
            {"of": "run", **queue},
            outcome,
            reason,
        )
        return [waited, ran]


def _header(number: int, said: str) -> float:
    try:
        return text.number("UnixStartTime", said)
    except Misfit as misfit:
        raise Unreadable(str(misfit.at(f"line {number}"))) from None


def _asked(job: SwfJob) -> tuple[Measurement, ...]:
    """What is known of a job when it is submitted: what it asked for and, where that is not said, what it
    got."""
    processors = job.processors if job.requested_processors is None else job.requested_processors
    asked = (
        ("job.processors", processors, "count"),
        ("job.requested.seconds", job.requested_seconds, "seconds"),
    )
    return tuple(Measurement(name, value, unit) for name, value, unit in asked if value is not None)
