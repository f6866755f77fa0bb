"""IOR: its JSON summary, ``-O summaryFormat=JSON,summaryFile=FILE`` (github.com/hpc/ior, src/ior-output.c).

Each repetition of a test is a run of the series ``API-shared-write``, ``API-fpp-read`` and so on. IOR prints
one time a test, without a zone: a repetition begins when the ones before it have ended. The microseconds of a
slot are the number of the test and of the repetition.

IOR writes numbers that it has not measured as NaN, which is no JSON: they are left out. On file systems that
have no inodes to count (FUSE), it prints ``-nan%`` as a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO

from monitor.runs.imports.formats import results, text
from monitor.runs.imports.formats.base import Example, ImportedRun, InvalidField, Item, Option, stage
from monitor.runs.imports.formats.documents import Document, number

_CTIME = "%a %b %d %H:%M:%S %Y"
_NOT_A_NUMBER = re.compile(rb'(":\s*)-?(?:nan|inf)(?=\s*[,}])')
_CHUNK_BYTES = 1 << 16
_OPTIONS = {
    "api": "api",
    "access": "access",
    "type": "type",
    "ordering in a file": "ordering",
    "nodes": "nodes",
    "tasks": "tasks",
    "segments": "segments",
    "xfersize": "transfer",
    "blocksize": "block",
}
_MOST_TESTS, _MOST_RESULTS = 1000, 1000  # six digits of a slot


@dataclass
class _IorTest:
    """One test: its options, and the seconds of its repetitions so far."""

    number: int
    start: object = None
    options: dict[str, Any] = field(default_factory=dict)
    repetitions: int = 0
    seconds: float = 0.0


class Importer:
    summary = "IOR JSON summary: one series per API, shared file or file per process, and direction."
    measures = "grid"
    options: Mapping[str, Option] = results.LOCAL_TIMES
    example = Example(
        b'{"Version": "4.1.0+dev", "Began": "Thu Nov 26 15:00:00 2026", "tests": [\n'
        b' {"TestID": 0, "StartTime": "Thu Nov 26 15:00:01 2026", "Used Inodes" : "-nan%",\n'
        b'  "Options": {"api": "POSIX", "access": "single-shared-file", "tasks": 4, "xfersize": "1 MiB"},\n'
        b'  "Results": [[\n'
        b'   {"access": "write", "bwMiB": 187.2, "iops": 190.1, "latency": 0.02, "openTime": 0.0011,\n'
        b'    "wrRdTime": 1.3, "closeTime": 0.0002, "totalTime": 1.3674},\n'
        b'   {"access": "read", "bwMiB": 401.5, "iops": nan, "latency": 0.01, "openTime": 0.0009,\n'
        b'    "wrRdTime": 0.6, "closeTime": 0.0001, "totalTime": 0.6376}]]}],\n'
        b' "Finished": "Thu Nov 26 15:00:04 2026"}\n'
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self.resource, self.zone = options["resource"], results.zone(options)

    def read(self, stream: BinaryIO) -> Iterator[Item]:
        document = Document(_WithoutNan(stream))
        for key in document.keys("a summary of IOR in JSON"):
            if key != "tests":
                document.skip()
                continue
            for place, first in enumerate(document.elements("of tests", document.next())):
                yield from self._test(_IorTest(place), document, first)

    def _test(self, test: _IorTest, document: Document, first: Any) -> Iterator[Item]:
        for key in document.keys("a test", first):
            if key == "StartTime":
                test.start = document.value()
            elif key == "Options":
                options = document.value()
                test.options = options if isinstance(options, dict) else {}
            elif key == "Results":
                for event in document.elements("of repetitions", document.next()):
                    yield from self._repetition(test, document.value(event))
            else:
                document.skip()

    def _repetition(self, test: _IorTest, repetition: Any) -> Iterator[Item]:
        test.repetitions += 1
        for result in repetition if isinstance(repetition, list) else [repetition]:
            where = f"test {test.number + 1}, repetition {test.repetitions}"
            try:
                yield self._run(where, test, result)
            except InvalidField as error:
                yield error.at(where)

    def _run(self, where: str, test: _IorTest, result: Any) -> ImportedRun:
        if not isinstance(result, dict) or result.get("access") not in ("read", "write"):
            raise InvalidField("access", "a result with the access read or write", result)
        if test.number >= _MOST_TESTS or test.repetitions > _MOST_RESULTS:
            raise InvalidField("tests", f"at most {_MOST_TESTS} tests of {_MOST_RESULTS} repetitions", where)
        access = str(result["access"])
        seconds = number("totalTime", result.get("totalTime"))
        if not 0 <= seconds <= text.MAX_SECONDS:
            raise InvalidField("totalTime", "a duration in seconds", seconds)
        began = results.elapsed("totalTime", self._start(test), test.seconds)
        test.seconds += seconds
        return ImportedRun(
            f"{where}, {access}",
            results.apart("repetitions", began, test.number * 1000 + test.repetitions - 1),
            seconds,
            _metrics(access, result),
            (stage("compute", "compute", seconds),),
            text.slug(str(test.options.get("api", "ior")).lower(), _files(test.options), access),
            results.scalars(test.options, _OPTIONS),
            resource=self.resource,
        )

    def _start(self, test: _IorTest) -> datetime:
        if not isinstance(test.start, str):
            raise InvalidField("StartTime", "a time such as Thu Nov 26 15:00:00 2026", test.start)
        return text.time("StartTime", " ".join(test.start.split()), self.zone, _CTIME)


def _files(options: Mapping[str, Any]) -> str:
    return "fpp" if options.get("access") == "file-per-process" else "shared"


def _metrics(access: str, result: Mapping[str, object]) -> Any:
    return results.measurements(
        [
            (f"{access}.bytes_per_second", result.get("bwMiB"), results.MIB, "bytes_per_second"),
            (f"{access}.operations_per_second", result.get("iops"), 1.0, "operations_per_second"),
            (f"{access}.latency.seconds", result.get("latency"), 1.0, "seconds"),
            ("open.seconds", result.get("openTime"), 1.0, "seconds"),
            (f"{access}.seconds", result.get("wrRdTime"), 1.0, "seconds"),
            ("close.seconds", result.get("closeTime"), 1.0, "seconds"),
        ]
    )


class _WithoutNan:
    """Reads *stream* line by line; the numbers ``nan`` and ``inf`` become null."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        line = self._stream.readline(_CHUNK_BYTES) if size else b""
        return _NOT_A_NUMBER.sub(rb"\1null", line)
