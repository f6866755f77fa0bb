"""What ran at this site: a line for each report, in a bounded file for the command ``ledger``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from reporters.fields import Fields, Unfit, parse_object
from reporters.report import Report, rfc3339

FILE = "runs.jsonl"
MAX_FILE_BYTES = 2_000_000  # and as much again in the file before
_MAX_LINE_BYTES = 8192
_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class PastRun:
    """A run as its report describes it. *slot* is RFC 3339."""

    run: str
    series: str
    slot: str
    outcome: str
    seconds: float
    reason: str


def add(directory: Path, report: Report) -> None:
    """Append *report* to the file in *directory*. Errors of the disk are raised as OSError."""
    past = PastRun(
        str(report.run),
        report.series,
        rfc3339(report.slot),
        report.outcome,
        round(report.seconds, 3),
        report.reason[:_REASON_CHARACTERS],
    )
    file = directory / FILE
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(asdict(past)).encode() + b"\n")
        size_bytes = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size_bytes > MAX_FILE_BYTES:
        file.replace(_before(file))


def read(directory: Path) -> Iterator[PastRun]:
    """Yield the runs in *directory*, oldest first; lines that a crash has cut are left out."""
    file = directory / FILE
    for each in (_before(file), file):
        if each.exists():
            with each.open("rb") as lines:
                yield from (past for past in map(_parsed, lines) if past is not None)


def _before(file: Path) -> Path:
    return file.with_name(f"{file.name}.1")


def _parsed(line: bytes) -> PastRun | None:
    try:
        fields = Fields(parse_object(line, max_bytes=_MAX_LINE_BYTES))
        run, series, slot = fields.text("run"), fields.text("series"), fields.text("slot")
        seconds, reason = fields.number("seconds"), fields.text("reason")
        return PastRun(run, series, slot, fields.text("outcome"), seconds, reason)
    except Unfit:
        return None
