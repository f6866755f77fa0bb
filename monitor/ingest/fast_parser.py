"""Read a report fast. What is not plainly one, as our reporters write it, is read by ``reporters.report``.

That one is strict and says what is wrong; this one is ten times as fast, and takes nothing that the other
refuses, nor reads it differently: what it is not sure of it leaves to the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, MsgspecError, Raw, Struct
from msgspec.json import Decoder

from monitor.models.segment import Identity
from reporters import report as wire
from reporters.fields import parse_object

if TYPE_CHECKING:
    from reporters.usage import ResourceUsage

_REMEMBERED = 1024  # what is measured: the reports of a series say the same again and again
_REMEMBERED_BYTES = 4096  # of each, at most
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_AFTER_QUOTES = (b'" ', b'"\t', b'"\n', b'"\r')  # a name that is followed by them would not be counted

# No whole number outside of 64 bits is taken, where a broken one is: so large ones are left to the other.
_Number = Annotated[float, Meta(gt=-(2.0**63), lt=2.0**63)]
_Seconds = Annotated[float, Meta(ge=0, lt=2.0**63)]
_CpuSeconds = Annotated[float, Meta(ge=0, le=1e15)]
_Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Version = Annotated[str, Meta(max_length=200)]
_Sha256 = Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")]
_Time = Annotated[str, Meta(pattern=r"\A[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{6}Z\Z")]


class _Plain(Struct, forbid_unknown_fields=True, gc=False):
    """An object of the wire format with the fields that version 1 has."""


class _Stage(_Plain):
    name: _Name
    category: Literal["setup", "transfer", "queue", "compute", "cleanup"]
    seconds: _Seconds
    started_after_seconds: _Seconds


class _Metric(_Plain):
    name: _Name
    value: _Number
    unit: _Name


class _Failure(_Plain):
    stage: _Name
    resource: str | None
    message: str
    exit_status: _Integer | None
    stderr_tail: str


class _LogLine(_Plain):
    level: Literal["debug", "info", "warning", "error"]
    seconds: _Seconds
    text: str


class _Probe(_Plain):
    name: _Name
    version: _Version
    sha256: _Sha256


class _Environment(_Plain):
    hostname: str
    kernel: str
    python: str
    tools: dict[str, str]


class _Clock(_Plain):
    sent_at: _Time
    synchronised: bool


class _Used(_Plain):
    bytes_sent: _Count
    bytes_received: _Count
    cpu_seconds: _CpuSeconds


class _Report(_Plain):
    version: Literal[1]
    run: str
    series: _Name
    slot: _Time
    reporter: _Name
    probe: _Probe
    parameters: Raw
    started_at: _Time
    seconds: _Seconds
    outcome: Literal["passed", "failed", "broken", "no_data", "timed_out", "skipped"]
    reason: str
    stages: list[_Stage]
    metrics: list[_Metric]
    failure: _Failure | None
    log: list[_LogLine]
    environment: _Environment
    clock: _Clock
    bindings: dict[str, list[str]]
    usage: dict[str, _Used]


def _names_in(*objects: type[_Plain]) -> int:
    return sum(len(one.__struct_fields__) for one in objects)


_NAMES = _names_in(_Report, _Probe, _Environment, _Clock)
_decode = Decoder(_Report).decode


class Unsure(Exception):
    """It may be a report, and it may be none."""


class ParsedReport(Struct, frozen=True, gc=False):
    """What the depot takes out of a report; see ``reporters.report.Report``."""

    run: UUID
    series: str
    slot: datetime
    reporter: str
    started_at: datetime
    seconds: float
    outcome: str
    reason: str
    stages: Sequence[wire.StageTiming | _Stage]
    metrics: Sequence[wire.MetricValue | _Metric]
    failure: wire.Failure | _Failure | None
    measured: Identity
    usage: Mapping[str, ResourceUsage | _Used]


def read(body: bytes) -> ParsedReport:
    """The report that *body* is.

    Raises:
        ReportError: it is none; see ``reporters.report.from_json``.
    """
    try:
        return fast(body)
    except Unsure:
        return slow(body)


def slow(body: bytes) -> ParsedReport:
    """As ``read``, whatever it looks like."""
    report = wire.from_json(body)
    return ParsedReport(
        run=report.run,
        series=report.series,
        slot=report.slot,
        reporter=report.reporter,
        started_at=report.started_at,
        seconds=report.seconds,
        outcome=report.outcome,
        reason=report.reason,
        stages=report.stages,
        metrics=report.metrics,
        failure=report.failure,
        measured=Identity(report.probe.name, report.probe.version, report.parameters, report.bindings),
        usage=report.usage,
    )


def fast(body: bytes) -> ParsedReport:
    """As ``read``, of what is plainly a report.

    Raises:
        Unsure: anything else.
    """
    if len(body) > wire.MAX_BYTES or b"\\u" in body:  # texts that cannot be stored are written so
        raise Unsure
    try:
        return _told(_decode(body), body)
    except (MsgspecError, ValueError, RecursionError):  # it says what is wrong in its own words
        raise Unsure from None


def _told(report: _Report, body: bytes) -> ParsedReport:
    measured, names = _measured(report)
    if _names_told(report) + names != _names_written(body):
        raise Unsure
    if not (_are_distinct(report.stages) and _are_distinct(report.metrics)):
        raise Unsure
    datetime.fromisoformat(report.clock.sent_at)
    slot = datetime.fromisoformat(report.slot)
    run = wire.run_id(report.series, slot)
    if str(run) != report.run:
        raise Unsure
    return ParsedReport(
        run=run,
        series=report.series,
        slot=slot,
        reporter=report.reporter,
        started_at=datetime.fromisoformat(report.started_at),
        seconds=report.seconds,
        outcome=report.outcome,
        reason=report.reason,
        stages=report.stages,
        metrics=report.metrics,
        failure=report.failure,
        measured=measured,
        usage=report.usage,
    )


def _are_distinct(named: Sequence[_Stage] | Sequence[_Metric]) -> bool:
    return len({one.name for one in named}) == len(named)


def _names_told(report: _Report) -> int:
    """How many names its objects have together; those in its parameters are not counted."""
    return (
        _NAMES
        + 4 * len(report.stages)
        + 3 * (len(report.metrics) + len(report.log))
        + (5 if report.failure else 0)
        + len(report.environment.tools)
        + len(report.bindings)
        + 4 * len(report.usage)
    )


def _names_written(text: bytes) -> int:
    """How many names are written in JSON, at least: more than were told when one is there twice.

    Raises Unsure where some might not be counted.
    """
    plain = _ESCAPED.sub(b"", text) if b"\\" in text else text  # what is left of quotes begins or ends a text
    if any(after in plain for after in _AFTER_QUOTES):
        raise Unsure
    return plain.count(b'":')


def _measured(report: _Report) -> tuple[Identity, int]:
    """What it measured, and how many names there are in its parameters."""
    said = bytes(report.parameters)
    bound = tuple((role, tuple(names)) for role, names in report.bindings.items())
    identity = _identity if len(said) <= _REMEMBERED_BYTES else _identity.__wrapped__
    return identity(report.probe.name, report.probe.version, said, bound)


@lru_cache(_REMEMBERED)
def _identity(
    probe: str, version: str, parameters: bytes, bound: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[Identity, int]:
    read: Any = parse_object(b'{"parameters":%b}' % parameters, max_bytes=2 * wire.MAX_BYTES)["parameters"]
    if not isinstance(read, dict):
        raise Unsure
    return Identity(probe, version, read, dict(bound)), _names_written(parameters)
