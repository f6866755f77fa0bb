"""fio: the output of ``--output-format=json`` (Jens Axboe; fio.readthedocs.io, "JSON output").

Each direction in which a job moved data is a run of the series ``JOB-read``, ``JOB-write`` or ``JOB-trim``.
fio gives one time, of its output: a run ends then. Messages before the document are ignored. The last three
digits of a slot are the number of the job, since jobs of one name may run at once; ``json+`` has the same
keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, BinaryIO

from monitor.runs.imports.formats import results, text
from monitor.runs.imports.formats.base import (
    Example,
    ImportedRun,
    InvalidField,
    Item,
    MalformedRecord,
    Option,
    SkippedRecord,
    Unreadable,
    stage,
    time_at,
)
from monitor.runs.imports.formats.documents import Document, number

_DIRECTIONS = ("read", "write", "trim")
_MOST_MESSAGES = 10_000
_MOST_JOBS = 1000  # the number of the job is three digits of its slot
_OPTIONS = {
    "rw": "pattern",
    "bs": "block",
    "size": "size",
    "iodepth": "queue_depth",
    "direct": "direct",
    "ioengine": "engine",
    "numjobs": "jobs",
}


class Importer:
    summary = "fio JSON: one series per job and direction, JOB-read, JOB-write and JOB-trim."
    measures = "grid"
    options: Mapping[str, Option] = results.RESOURCE
    example = Example(
        b'{"fio version": "fio-3.33", "timestamp": 1795706643, "timestamp_ms": 1795706643765, "jobs": [\n'
        b' {"jobname": "random", "error": 0, "job options": {"rw": "randread", "bs": "4k", "direct": "1"},\n'
        b'  "read": {"io_bytes": 540672, "bw_bytes": 14612756, "iops": 3567.567568, "runtime": 37,\n'
        b'   "total_ios": 132, "lat_ns": {"mean": 274631.454545}},\n'
        b'  "write": {"io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}}]}\n'
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.resource = options["resource"]

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        document = Document(_WithoutMessages(stream))
        ended: float | None = None
        global_options: dict[str, Any] = {}
        for key in document.keys("the output of fio --output-format=json"):
            if key in ("timestamp", "timestamp_ms"):
                seconds = document.value()
                if isinstance(seconds, int | float):
                    ended = seconds / 1000 if key == "timestamp_ms" else float(seconds)
            elif key == "global options":
                value = document.value()
                global_options = value if isinstance(value, dict) else {}
            elif key == "jobs":
                for place, first in enumerate(document.elements("of jobs", document.next()), start=1):
                    yield from self._job(place, document.value(first), ended, global_options)
            else:
                document.skip()

    def _job(
        self, place: int, job: Any, ended: float | None, global_options: dict[str, Any]
    ) -> Iterator[Item]:
        where = f"job {place}"
        try:
            if not isinstance(job, dict):
                raise InvalidField("job", "an object", job)
            if place > _MOST_JOBS:
                raise InvalidField("jobs", f"at most {_MOST_JOBS} jobs", place)
            yield from self._directions(where, place, job, ended, global_options)
        except InvalidField as error:
            yield error.at(where)

    def _directions(
        self, where: str, place: int, job: dict[str, Any], ended: float | None, global_options: dict[str, Any]
    ) -> Iterator[ImportedRun | SkippedRecord | MalformedRecord]:
        name = job.get("jobname")
        if not isinstance(name, str) or not name:
            raise InvalidField("jobname", "a name", name)
        if ended is None:
            raise InvalidField("timestamp", "a time in seconds since 1970, before the jobs", None)
        if error := number("error", job.get("error", 0)):
            yield SkippedRecord(where, f"the job ended with error {error:g}")
            return
        given = job.get("job options")
        options = {**global_options, **(given if isinstance(given, dict) else {})}
        measured = 0
        for direction in _DIRECTIONS:
            counters = job.get(direction)
            if not isinstance(counters, dict) or not number("total_ios", counters.get("total_ios", 0)):
                continue
            measured += 1
            seconds = number(f"{direction}.runtime", counters.get("runtime")) / 1000
            if not 0 <= seconds <= text.MAX_SECONDS:
                raise InvalidField(f"{direction}.runtime", "a duration in milliseconds", seconds * 1000)
            slot = time_at("timestamp", ended - seconds)
            yield ImportedRun(
                f"{where}, {direction}",
                slot.replace(microsecond=slot.microsecond // 1000 * 1000) + timedelta(microseconds=place - 1),
                seconds,
                _metrics(direction, counters),
                (stage("compute", "compute", seconds),),
                text.slug(name, direction),
                results.scalars(options, _OPTIONS),
                resource=self.resource,
            )
        if not measured:
            yield SkippedRecord(where, "the job moved no data")


def _metrics(direction: str, counters: dict[str, Any]) -> Any:
    latency = counters.get("lat_ns")
    mean = latency.get("mean") if isinstance(latency, dict) else None
    return results.measurements(
        [
            (f"{direction}.bytes_per_second", counters.get("bw_bytes"), 1.0, "bytes_per_second"),
            (f"{direction}.operations_per_second", counters.get("iops"), 1.0, "operations_per_second"),
            (f"{direction}.latency.seconds", mean, 1e-9, "seconds"),
            (f"{direction}.bytes", counters.get("io_bytes"), 1.0, "bytes"),
        ]
    )


class _WithoutMessages:
    """Reads *stream* from the first line that begins with a brace. Raises Unreadable if there is none."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._has_begun = stream, False

    def read(self, size: int) -> bytes:
        if self._has_begun or not size:  # the parser reads nothing first, to see that it gets bytes
            return self._stream.read(size)
        self._has_begun = True
        for _ in range(_MOST_MESSAGES):
            line = self._stream.readline(text.MAX_LINE_BYTES)
            if not line:
                break
            if line.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
                return line
        raise Unreadable("expected the output of fio --output-format=json, got no JSON object")
