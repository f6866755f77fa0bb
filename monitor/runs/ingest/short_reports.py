"""Read short reports, which leave out what the server knows, and complete them. Pure functions of values.

A short report needs a series and an outcome. It may have any field of a report (``reporters.report``), and
``ended_at``, ``rid``, a failure or a log as plain text; docs/reports.md describes it for senders.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from monitor.models.ping import MAX_RID_CHARACTERS
from monitor.models.series import REPORTED_PROBE
from reporters import report as wire
from reporters.fields import Fields, Unfit, parse_object
from reporters.host_clock import parse_clock
from reporters.report import rfc3339

SENT = "sent"  # the field of a completed report that has the SHA-256 of the body as it was sent
STAGE = "run"  # the stage of a run that reports none
RID_PATTERN = rf"[!-~]{{1,{MAX_RID_CHARACTERS}}}"  # visible ASCII characters
FIELDS = (
    "version", "run", "series", "slot", "reporter", "probe", "parameters", "started_at", "seconds", "outcome",
    "reason", "stages", "metrics", "failure", "log", "environment", "clock", "bindings", "usage",
)  # fmt: skip
ONLY_SHORT = ("ended_at", "rid")
_NESTED = ("stages", "metrics", "log", "usage")  # fields with many objects
NEEDED = tuple(name for name in FIELDS if name != "run")
_TIMES = ("started_at", "ended_at", "seconds")
_FAILURES = {"failed": "failed", "broken": "broke", "timed_out": "ran out of time"}
_MOST_LOG_LINES = 2_000


@dataclass(frozen=True)
class ReportedSeries:
    """A series that is reported from outside, as its reports need it; *key* is its primary key."""

    key: int
    name: str
    reporter: str
    parameters: Mapping[str, Any]
    bindings: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class ShortReport:
    """A short report as it was sent; None: not given.

    Attributes:
        sha256: of the body; equal bodies are the same report, although the server completes each for itself.
        rid: the sender's id of the run; "": none.
        started_at: by the clock of the sender's host.
        correction_seconds: what is added to *started_at*, because that clock was off.
        lacks: what it lacks of a whole report.
    """

    document: Mapping[str, Any]
    sha256: str
    series: str
    rid: str
    slot: datetime | None
    started_at: datetime | None
    seconds: float | None
    correction_seconds: float
    lacks: str

    def at(self, now: datetime) -> datetime:
        """Return when the run started by our clock, if it was reported at *now*; *now* if that is no time."""
        try:
            if self.started_at is None:
                return now - timedelta(seconds=self.seconds or 0.0)
            return self.started_at + timedelta(seconds=self.correction_seconds)
        except OverflowError:  # ``complete`` refuses the duration or the correction
            return now


def read(body: bytes) -> ShortReport | wire.Report:
    """Read a report that a program outside of gridcast has sent: a whole one, or a short one.

    Raises:
        ReportError: it is neither, or has an unknown field.
    """
    try:
        document = parse_object(body, max_bytes=wire.MAX_BYTES)
        _refuse_unknown(document)
        lacks = next((f"{name}: it is missing" for name in NEEDED if name not in document), "")
        if not lacks and not document.keys() & set(ONLY_SHORT):
            try:
                return _read_whole(document)
            except wire.MalformedReport as error:
                if not _is_short(document):
                    raise
                lacks = str(error)  # a part of a field
        return _short(document, hashlib.sha256(body).hexdigest(), lacks)
    except Unfit as error:
        raise wire.MalformedReport(str(error)) from None


def _read_whole(document: Mapping[str, Any]) -> wire.Report:
    report = wire.from_document(document)
    _refuse_unread(report.extra)
    return report


def _is_short(document: Mapping[str, Any]) -> bool:
    """Return whether *document*, which has every field, is a report as soon as the parts are filled in."""
    try:
        _read_whole({**document, **_filled(document, None)})
    except (wire.MalformedReport, Unfit):
        return False
    return True


def _refuse_unknown(document: Mapping[str, Any]) -> None:
    known = (*FIELDS, *ONLY_SHORT)
    for name in document:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise Unfit(f"{name[: wire.NAME_CHARACTERS]}: a report has no such field{hint}")


def _refuse_unread(extra: Mapping[str, Any]) -> None:
    """Raise Unfit if the parser has not read a field; *extra* is nested as ``Fields.unread``."""
    for name, unread in extra.items():
        for inner, value in unread.items():
            path = f"{name}.{inner}"
            if name in _NESTED:
                path = f"{name}[{inner}].{next(iter(value))}"
            raise Unfit(f"{path[: wire.NAME_CHARACTERS]}: a report has no such field")


def _short(document: dict[str, Any], sha256: str, lacks: str) -> ShortReport:
    fields = Fields(document)
    given = [name for name in _TIMES if name in document]
    started_at = fields.time("started_at") if "started_at" in document else None
    ended_at = fields.time("ended_at") if "ended_at" in document else None
    seconds = fields.number("seconds", minimum=0) if "seconds" in document else None
    if len(given) == len(_TIMES):
        raise fields.refuse("ended_at", "at most two of started_at, ended_at and seconds")
    if given in (["started_at"], ["ended_at"]):
        raise Unfit(f"seconds: expected a number beside {given[0]}, but it is missing")
    if started_at and ended_at:
        seconds = (ended_at - started_at).total_seconds()
        if seconds < 0:
            raise fields.refuse("ended_at", "a time that is not before started_at")
    elif ended_at is not None and seconds is not None:
        started_at = _before(ended_at, seconds)
    fields.choice("outcome", wire.OUTCOMES)
    return ShortReport(
        document,
        sha256,
        series=fields.text("series", maximum=wire.NAME_CHARACTERS, empty=False),
        rid=fields.text("rid", pattern=RID_PATTERN) if "rid" in document else "",
        slot=fields.time("slot") if "slot" in document else None,
        started_at=started_at,
        seconds=seconds,
        correction_seconds=parse_clock(fields.fields("clock")).correction_seconds
        if "clock" in document
        else 0.0,
        lacks=lacks or "ended_at and rid: a whole report has neither",
    )


def _before(time: datetime, seconds: float) -> datetime:
    try:
        return time - timedelta(seconds=seconds)
    except OverflowError:
        raise Unfit(f"seconds: expected a duration that began after the year 1, got {seconds:g}") from None


def complete(
    short: ShortReport,
    series: ReportedSeries,
    slot: datetime,
    now: datetime,
    announced_at: datetime | None = None,
) -> wire.Report:
    """Return the whole report that *short*, received at *now*, stands for: the run of *series* at *slot*.

    A run whose start was announced at *announced_at* began then, unless the report says otherwise.

    Raises:
        ReportError: a field is invalid.
    """
    seconds = short.seconds
    if announced_at is not None and seconds is None:
        seconds = max((now - announced_at).total_seconds(), 0.0)
    try:
        started_at = short.started_at or announced_at or _before(now, seconds or 0.0)
        document = {
            **_known(series, now),
            **_filled(short.document, seconds),
            "slot": rfc3339(slot),
            "started_at": rfc3339(started_at),
            "seconds": seconds or 0.0,
        }
        report = _read_whole(document)
    except Unfit as error:
        raise wire.MalformedReport(str(error)) from None
    if short.started_at is None:  # the start is by our clock, which needs no correction
        report = replace(report, clock=replace(report.clock, correction_seconds=0.0))
    return replace(report, extra={SENT: {"sha256": short.sha256}})


def _known(series: ReportedSeries, now: datetime) -> dict[str, Any]:
    """Return the fields that the server knows."""
    return {
        "version": wire.VERSION,
        "reporter": series.reporter,
        "parameters": dict(series.parameters),
        "bindings": {role: list(names) for role, names in series.bindings.items()},
        "clock": {"sent_at": rfc3339(now), "synchronised": False},
        "usage": {},
        "metrics": [],
    }


def _filled(sent: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    """Return the fields of *sent*, with the parts that a sender may leave out."""
    document = {name: value for name, value in sent.items() if name not in ONLY_SHORT}
    outcome = document["outcome"] if document["outcome"] in wire.OUTCOMES else ""
    if document.get("failure") is None and outcome in _FAILURES:
        document["failure"] = f"reported as {outcome}"
    failure = _failure(document.get("failure"))
    reason = ""
    if isinstance(failure, dict) and outcome in _FAILURES:
        reason = f"{failure['stage']} {_FAILURES[outcome]}: {failure['message']}"
    run = [] if seconds is None or outcome == "skipped" else [{"name": STAGE, "seconds": seconds}]
    return {
        "reason": reason,
        **document,
        "failure": failure,
        "probe": _with({"name": REPORTED_PROBE, "version": "", "sha256": ""}, document.get("probe", {})),
        "stages": _stages(document.get("stages", run)),
        "log": _log(document.get("log", [])),
        "environment": _with(
            {"hostname": "", "kernel": "", "python": "", "tools": {}}, document.get("environment", {})
        ),
    }


def _with(defaults: Mapping[str, Any], value: Any) -> Any:
    """Return the object *value* with *defaults*; anything else is left to the parser, which refuses it."""
    return {**defaults, **value} if isinstance(value, dict) else value


def _each(value: Any, fill: Callable[[Any], Any]) -> Any:
    return [fill(item) for item in value] if isinstance(value, list) else value


def _failure(value: Any) -> Any:
    if isinstance(value, str):
        value = {"message": value}
    defaults = {"stage": STAGE, "resource": None, "message": "", "exit_status": None, "stderr_tail": ""}
    return _with(defaults, value)


def _stages(value: Any) -> Any:
    """Return stages that follow one another, unless they say when they started."""
    after = 0.0

    def fill(stage: Any) -> Any:
        nonlocal after
        filled = _with({"category": "compute", "started_after_seconds": after}, stage)
        seconds = filled.get("seconds") if isinstance(filled, dict) else None
        after += seconds if isinstance(seconds, int | float) and seconds >= 0 else 0.0
        return filled

    return _each(value, fill)


def _log(value: Any) -> Any:
    """Return lines of a log: of a text each line, of a long text the first and the last ones."""
    if isinstance(value, str):
        lines = value.splitlines()
        surplus = len(lines) - _MOST_LOG_LINES
        if surplus > 0:
            half = _MOST_LOG_LINES // 2
            lines = [*lines[:half], f"[{surplus} lines cut here]", *lines[-half:]]
        value = [*lines]
    return _each(value, _log_line)


def _log_line(value: Any) -> Any:
    line = {"text": value} if isinstance(value, str) else value
    return _with({"level": "info", "seconds": 0.0}, line)


def sent_sha256(body: bytes) -> str:
    """Return the SHA-256 of the body that a completed report was sent as; "" if *body* was sent as it is."""
    try:
        sent = json.loads(body).get(SENT)
    except (ValueError, AttributeError, RecursionError):
        return ""
    return str(sent.get("sha256", "")) if isinstance(sent, dict) else ""
