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
from datetime import timedelta
from typing import BinaryIO

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

FIELDS = 18
_START = re.compile(r";\s*UnixStartTime:\s*(\S+)")
_UNKNOWN = -1.0
_PARTS = ("2", "3", "4")
_CANCELLED = "5"
_OUTCOMES = {
    "1": ("passed", ""),
    "-1": ("passed", ""),
    "0": ("failed", "the job failed (status 0)"),
    _CANCELLED: ("no_data", "the job was cancelled (status 5)"),
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
            if len(words) != FIELDS:
                raise Misfit("line", f"{FIELDS} fields", f"{len(words)}: {' '.join(words)}")
            if words[10] in _PARTS:
                yield LeftOut(where, "part of a job that has a line of its own")
                return
            yield from self._runs(where, words, start)
        except Misfit as misfit:
            yield misfit.at(where)

    def _runs(self, where: str, words: list[str], start: float) -> list[Item]:
        number = text.number("job number", words[0])
        submitted = time_at("submit time", start + text.seconds("submit time", words[1]))
        slot = submitted.replace(microsecond=int(abs(number)) % 1_000_000)
        wait, run = _known("wait time", words[2]), _known("run time", words[3])
        if words[10] not in _OUTCOMES:
            raise Misfit("status", "-1 to 5", words[10])
        asked = _asked(words)
        queue: dict[str, Value] = {"queue": words[14]} if self.each_queue else {}
        suffix = f"-q{words[14].lstrip('-')}" if self.each_queue else ""
        if wait is None:
            return [LeftOut(where, "its wait is not known, so neither is when it ran")]
        outcome, reason = _OUTCOMES[words[10]]
        never_began = words[10] == _CANCELLED and not run
        waited = Measured(
            where,
            slot,
            wait,
            asked,
            (stage("queue_wait", "queue", wait),),
            f"wait{suffix}",
            {"of": "wait", **queue},
            *((outcome, "the job was cancelled while it waited") if never_began else ()),
        )
        if run is None or never_began:
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


def _known(field: str, word: str) -> float | None:
    value = text.number(field, word)
    return None if value == _UNKNOWN else text.seconds(field, word)


def _asked(words: list[str]) -> tuple[Measurement, ...]:
    """What is known of a job when it is submitted: what it asked for and, where that is not said, what it
    got."""
    processors = text.number("requested processors", words[7])
    if processors == _UNKNOWN:
        processors = text.number("processors", words[4])
    asked_seconds = text.number("requested time", words[8])
    found = (
        Measurement("job.processors", processors, "count"),
        Measurement("job.requested.seconds", asked_seconds, "seconds"),
    )
    return tuple(metric for metric in found if metric.value != _UNKNOWN)
