"""The wire format, version 1: one JSON object per run. Shared with the server.

A report describes one run, identified by (series, slot). ``run_id`` derives the UUID from series and slot, so
a report delivered twice is stored once. ``from_json`` keeps unknown fields in ``extra``, ``to_json`` writes
them back. Reports of another version are refused. A report has at most ``MAX_BYTES``: ``to_json`` cuts longer
reports and notes each cut.

Errors::

    ReportError              permanent: sending the same bytes again gives the same answer
    |-- MalformedReport      names the field, what was expected and what was there
    `-- UnsupportedVersion   names the version that is supported
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import Any, Callable, TypeVar

from probes import CATEGORIES
from reporters.fields import Fields, Unfit, parse_object, parse_time, shown
from reporters.host_clock import MOST_CORRECTION_SECONDS as MOST_CORRECTION_SECONDS  # noqa: PLC0414  # exported
from reporters.host_clock import Clock as Clock  # noqa: PLC0414  # exported
from reporters.host_clock import parse_clock
from reporters.truncate import Unwritable, fitted
from reporters.usage import ResourceUsage

VERSION = 1
MAX_BYTES = 256 * 1024

OUTCOMES = (
    "passed",
    "failed",
    "broken",
    "no_data",
    "timed_out",
    "skipped",
)  # the ledger adds missed
LEVELS = ("debug", "info", "warning", "error")
_NAMESPACE = uuid.UUID("6d1c8f0e-5a0b-5d4e-9b51-0c9f0a6f5c11")
MOST_STAGES = 200
MOST_METRICS = 1_000
NAME_CHARACTERS = 200
UNIT_CHARACTERS = 50
STAGE_CHARACTERS = NAME_CHARACTERS - len("stage..seconds")  # the name of its metric is one, too
MOST_CPU_SECONDS = 1e15  # more than any machine has; sums stay finite

Item = TypeVar("Item")


class ReportError(ValueError):
    """The base class of the errors of this module."""


class MalformedReport(ReportError):
    """A field is missing, of the wrong type or outside its range."""


class UnsupportedVersion(ReportError):
    """The report has another version of the format."""


def run_id(series: str, slot: datetime) -> uuid.UUID:
    """Return the identity of the run of *series* at *slot*, a version 5 UUID that never changes."""
    return run_id_at(series, rfc3339(slot))


def run_id_at(series: str, slot: str) -> uuid.UUID:
    """Return the identity of the run of *series* at *slot*, a time as ``rfc3339`` formats it."""
    return uuid.uuid5(_NAMESPACE, f"{series}@{slot}")


def rfc3339(time: datetime) -> str:
    """Format *time* in UTC with microseconds and a Z. Raises ValueError for a time without a zone."""
    if time.tzinfo is None:
        raise ValueError(f"expected a time with a zone, got {time!r}")
    return time.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_rfc3339(text: str) -> datetime:
    """Parse an RFC 3339 time with any offset. Raises ValueError for any other text."""
    return parse_time(text)


@dataclass(frozen=True)
class StageTiming:
    name: str
    category: str
    seconds: float
    started_after_seconds: float


@dataclass(frozen=True)
class MetricValue:
    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Failure:
    """The first error of a run, with the texts of the error unchanged."""

    stage: str
    resource: str | None
    message: str
    exit_status: int | None = None
    stderr_tail: str = ""


@dataclass(frozen=True)
class LogLine:
    level: str
    seconds: float  # since the start of the run
    text: str


@dataclass(frozen=True)
class ProbeIdentity:
    name: str
    version: str
    sha256: str  # of the probe's source file; empty where the probe could not be loaded


@dataclass(frozen=True)
class Environment:
    hostname: str
    kernel: str
    python: str
    tools: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    run: uuid.UUID
    series: str
    slot: datetime
    reporter: str
    probe: ProbeIdentity
    parameters: Mapping[str, Any]
    started_at: datetime
    seconds: float
    outcome: str
    reason: str
    stages: Sequence[StageTiming]
    metrics: Sequence[MetricValue]
    failure: Failure | None
    log: Sequence[LogLine]
    environment: Environment
    clock: Clock
    bindings: Mapping[str, Sequence[str]]  # role -> resource names, in order
    usage: Mapping[str, ResourceUsage]  # by resource; those without any usage are left out
    version: int = VERSION
    extra: Mapping[str, Any] = field(default_factory=dict)  # unknown fields

    @property
    def began_at(self) -> datetime:
        """The start of the run by the server's clock; ``started_at`` is by the host's."""
        try:
            return self.clock.corrected(self.started_at)
        except OverflowError:
            raise MalformedReport("clock.correction_seconds: the corrected started_at is no time") from None


def totals(stages: Iterable[StageTiming]) -> dict[str, float]:
    """Return the metrics ``total.seconds``, ``total_essential.seconds`` and ``total_core.seconds``.

    Each is a sum of stage durations: over all stages; without the categories setup and cleanup; without
    setup, cleanup and queue. Stages that ran at the same time all count in full.
    """
    timed = list(stages)

    def total_without(*categories: str) -> float:
        return math.fsum(stage.seconds for stage in timed if stage.category not in categories)

    return {
        "total.seconds": total_without(),
        "total_essential.seconds": total_without("setup", "cleanup"),
        "total_core.seconds": total_without("setup", "cleanup", "queue"),
    }


def to_json(report: Report) -> bytes:
    """Write *report* as compact JSON, sorted by name, of at most ``MAX_BYTES``.

    A report that is too long loses lines from the middle of its log and the middles of its longest texts.
    Each cut leaves a note.

    Raises:
        MalformedReport: a value has no JSON form, or the fields that are never cut are too large.
    """
    try:
        return fitted(_document(report), MAX_BYTES)
    except Unwritable as error:
        raise MalformedReport(str(error)) from None


def _document(report: Report) -> dict[str, Any]:
    document: dict[str, Any] = {
        "version": report.version,
        "run": str(report.run),
        "series": report.series,
        "slot": rfc3339(report.slot),
        "reporter": report.reporter,
        "probe": dict(vars(report.probe)),
        "parameters": dict(report.parameters),
        "started_at": rfc3339(report.started_at),
        "seconds": report.seconds,
        "outcome": report.outcome,
        "reason": report.reason,
        "stages": [dict(vars(stage)) for stage in report.stages],
        "metrics": [dict(vars(metric)) for metric in report.metrics],
        "failure": None if report.failure is None else dict(vars(report.failure)),
        "log": [dict(vars(line)) for line in report.log],
        "environment": {**vars(report.environment), "tools": dict(report.environment.tools)},
        "clock": _clock_document(report.clock),
        "bindings": {role: list(names) for role, names in report.bindings.items()},
        "usage": {resource: dict(vars(used)) for resource, used in report.usage.items()},
    }
    _merge_extra(report.extra, document)
    return document


def _clock_document(clock: Clock) -> dict[str, Any]:
    correction = {"correction_seconds": clock.correction_seconds} if clock.correction_seconds else {}
    return {"sent_at": rfc3339(clock.sent_at), "synchronised": clock.synchronised, **correction}


def _merge_extra(extra: Mapping[str, Any], document: dict[str, Any]) -> None:
    """Merge *extra*, a result of ``Fields.unread``, into *document* without overwriting a known field."""
    for name, value in extra.items():
        present = document.get(name)
        if name not in document:
            document[name] = value
        elif isinstance(present, dict):
            _merge_extra(value, present)
        elif isinstance(present, list):
            for index, item_extra in value.items():
                _merge_extra(item_extra, present[int(index)])


def from_json(data: bytes | str) -> Report:
    """Parse a report strictly.

    Raises:
        MalformedReport: *data* are not a report; the message names the field.
        UnsupportedVersion: the report has another version.
    """
    try:
        return from_document(parse_object(data, max_bytes=MAX_BYTES))
    except Unfit as error:
        raise MalformedReport(str(error)) from None


def from_document(document: Mapping[str, Any]) -> Report:
    """Read the object that ``reporters.fields.parse_object`` has parsed; raises as ``from_json``."""
    try:
        fields = Fields(document)
        version = fields.integer("version")
        if version != VERSION:
            raise UnsupportedVersion(
                f"version {version} is not supported; the supported version is {VERSION}"
            )
        return _report(fields)
    except Unfit as error:
        raise MalformedReport(str(error)) from None


def _report(fields: Fields) -> Report:
    series = fields.text("series", maximum=NAME_CHARACTERS, empty=False)
    slot = fields.time("slot")
    run = run_id(series, slot)
    if "run" in fields and fields.text("run") != str(run):  # a sender need not know how it is derived
        raise fields.refuse("run", f"{run} for this series and slot")
    return Report(
        run=run,
        series=series,
        slot=slot,
        reporter=fields.text("reporter", maximum=NAME_CHARACTERS, empty=False),
        probe=_probe(fields.fields("probe")),
        parameters=fields.mapping("parameters"),
        started_at=fields.time("started_at"),
        seconds=fields.number("seconds", minimum=0),
        outcome=fields.choice("outcome", OUTCOMES),
        reason=fields.text("reason"),
        stages=_distinct(fields.each("stages", at_most=MOST_STAGES), _stage, STAGE_CHARACTERS),
        metrics=_distinct(fields.each("metrics", at_most=MOST_METRICS), _metric),
        failure=_failure(fields),
        log=tuple(_log_line(line) for line in fields.each("log")),
        environment=_environment(fields.fields("environment")),
        clock=parse_clock(fields.fields("clock")),
        bindings=_bindings(fields.fields("bindings")),
        usage=_usage(fields.fields("usage")),
        extra=fields.unread(),
    )


def _probe(fields: Fields) -> ProbeIdentity:
    return ProbeIdentity(
        name=fields.text("name", maximum=NAME_CHARACTERS, empty=False),
        version=fields.text("version", maximum=NAME_CHARACTERS),
        sha256=fields.text("sha256", pattern="([0-9a-f]{64})?"),
    )


def _distinct(
    each: Sequence[Fields], read: Callable[[Fields], Item], maximum: int = NAME_CHARACTERS
) -> tuple[Item, ...]:
    """Return ``read(fields)`` for each of *each*, whose ``name``, of *maximum* characters, must be unique."""
    seen: set[str] = set()
    for fields in each:
        name = fields.text("name", maximum=maximum, empty=False)
        if name in seen:
            raise fields.refuse("name", "a unique name")
        seen.add(name)
    return tuple(read(fields) for fields in each)


def _stage(fields: Fields) -> StageTiming:
    return StageTiming(
        name=fields.text("name"),
        category=fields.choice("category", CATEGORIES),
        seconds=fields.number("seconds", minimum=0),
        started_after_seconds=fields.number("started_after_seconds", minimum=0),
    )


def _metric(fields: Fields) -> MetricValue:
    return MetricValue(
        name=fields.text("name"),
        value=fields.number("value"),
        unit=fields.text("unit", maximum=UNIT_CHARACTERS, empty=False),
    )


def _failure(report: Fields) -> Failure | None:
    if report.value("failure", "an object or null") is None:
        return None
    fields = report.fields("failure")
    return Failure(
        stage=fields.text("stage", maximum=NAME_CHARACTERS, empty=False),
        resource=fields.optional("resource", partial(fields.text, maximum=NAME_CHARACTERS)),
        message=fields.text("message"),
        exit_status=fields.optional("exit_status", fields.integer),
        stderr_tail=fields.text("stderr_tail"),
    )


def _log_line(fields: Fields) -> LogLine:
    return LogLine(
        level=fields.choice("level", LEVELS),
        seconds=fields.number("seconds", minimum=0),
        text=fields.text("text"),
    )


def _environment(fields: Fields) -> Environment:
    tools = fields.fields("tools")
    return Environment(
        hostname=fields.text("hostname"),
        kernel=fields.text("kernel"),
        python=fields.text("python"),
        tools={name: tools.text(name) for name in tools},
    )


def _bindings(fields: Fields) -> dict[str, tuple[str, ...]]:
    return {name: fields.texts(name, maximum=NAME_CHARACTERS) for name in _names(fields)}


def _names(fields: Fields) -> Iterable[str]:
    """Yield the names in an object that a sender chooses."""
    for name in fields:
        if not 0 < len(name) <= NAME_CHARACTERS:
            raise Unfit(f"{fields.path(shown(name))}: expected a name of 1 to {NAME_CHARACTERS} characters")
        yield name


def _usage(fields: Fields) -> dict[str, ResourceUsage]:
    return {resource: _usage_at_one(fields.fields(resource)) for resource in _names(fields)}


def _usage_at_one(fields: Fields) -> ResourceUsage:
    return ResourceUsage(
        bytes_sent=fields.integer("bytes_sent", minimum=0),
        bytes_received=fields.integer("bytes_received", minimum=0),
        cpu_seconds=fields.number("cpu_seconds", minimum=0, maximum=MOST_CPU_SECONDS),
    )
