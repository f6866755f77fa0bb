"""The JSON Schema of the reports that programs outside of gridcast send.

It accepts what the server accepts and refuses what it refuses, except for what JSON Schema cannot say: unique
names in lists, the id that a series and a slot have, days of the calendar, and sizes and depths of documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.runs.ingest.short_reports import RID_PATTERN
from probes import CATEGORIES
from reporters import report as wire

Schema = dict[str, Any]
_TIME = (
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
)
_NO_NUL = r"^[^\u0000]*$"
_MOST = 2**63 - 1

MEANINGS: Mapping[str, str] = {
    "version": "Version of the format; default: 1.",
    "run": "Id of the run, which the server computes from series and slot; if it is given, it must agree.",
    "series": "Name of the series.",
    "slot": "Time at which the run was due; default: the slot of the schedule at the start of the run.",
    "rid": "The sender's id of the run: pairs an end with its start, and makes retries harmless.",
    "reporter": "Reporter of the series; if it is given, it must be that of the token.",
    "probe": "What measured; a new version begins a new segment. Default: the probe `reported`.",
    "parameters": "Parameters of the run; default: those of the series. Others begin a new segment.",
    "started_at": "Start of the run; needs `seconds` or `ended_at`.",
    "ended_at": "End of the run, instead of `started_at` or `seconds`.",
    "seconds": "Duration of the run; without a start or an end, the run ended when the report arrived.",
    "outcome": "How the run ended.",
    "reason": "Why it did not pass; default: made from `failure`.",
    "stages": "Timed steps, one after another; default: one stage, `run`, of the whole duration.",
    "metrics": "What was measured, with units; names are unique.",
    "failure": "The first error: its text, or an object.",
    "log": "The log: its text, or a list of lines.",
    "environment": "The host that ran it.",
    "clock": "The sender's clock; default: the server's.",
    "bindings": "Resources by role; default: those of the series. Others begin a new segment.",
    "usage": "What the run used, by resource.",
}


def schema() -> Schema:
    """Return the schema, in draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report",
        "description": (
            "The report of one run, version 1. A series with `probe: reported` needs only `series` and"
            " `outcome`; the reports of a reporter that runs probes have every field but `run`. At most"
            f" {wire.MAX_BYTES // 1024} KiB."
        ),
        "type": "object",
        "required": ["series", "outcome"],
        "properties": _properties(),
        "additionalProperties": False,
        "not": {"required": ["started_at", "ended_at", "seconds"]},
        "dependentSchemas": {
            "started_at": {"anyOf": [{"required": ["seconds"]}, {"required": ["ended_at"]}]},
            "ended_at": {"anyOf": [{"required": ["seconds"]}, {"required": ["started_at"]}]},
        },
        "examples": examples(),
        "$defs": _definitions(),
    }


def examples() -> list[Schema]:
    """Return short reports: the shortest, and one with most of what a program may know."""
    return [
        {"series": "nightly-backup", "seconds": 12.3, "outcome": "passed"},
        {
            "series": "nightly-backup",
            "rid": "2026-03-01-alpha",
            "started_at": "2026-03-01T03:00:02Z",
            "ended_at": "2026-03-01T03:04:40Z",
            "outcome": "failed",
            "metrics": [{"name": "backup.bytes", "value": 7.5e9, "unit": "bytes"}],
            "stages": [
                {"name": "dump", "seconds": 200},
                {"name": "copy", "seconds": 78, "category": "transfer"},
            ],
            "failure": {"stage": "copy", "message": "No space left on device", "exit_status": 1},
            "log": "dumped 7.5 GB\nrsync: No space left on device",
        },
    ]


def _properties() -> Mapping[str, Schema]:
    log = {"anyOf": [_ref("text"), {"type": "array", "items": {"anyOf": [_ref("text"), _ref("line")]}}]}
    by_role = {"type": "array", "items": _ref("short")}
    properties: Mapping[str, Schema] = {
        "version": {"const": wire.VERSION},
        "run": {"type": "string", "format": "uuid"},
        "series": _ref("name"),
        "slot": _ref("time"),
        "rid": {"type": "string", "pattern": f"^{RID_PATTERN}$"},
        "reporter": _ref("name"),
        "probe": _ref("probe"),
        "parameters": {"type": "object"},
        "started_at": _ref("time"),
        "ended_at": _ref("time"),
        "seconds": {"type": "number", "minimum": 0},
        "outcome": {"enum": list(wire.OUTCOMES)},
        "reason": _ref("text"),
        "stages": {"type": "array", "items": _ref("stage"), "maxItems": wire.MOST_STAGES},
        "metrics": {"type": "array", "items": _ref("metric"), "maxItems": wire.MOST_METRICS},
        "failure": {"anyOf": [{"type": "null"}, _ref("text"), _ref("failure")]},
        "log": log,
        "environment": _ref("environment"),
        "clock": _ref("clock"),
        "bindings": {"type": "object", "propertyNames": _ref("name"), "additionalProperties": by_role},
        "usage": {"type": "object", "propertyNames": _ref("name"), "additionalProperties": _ref("usage")},
    }
    return {name: {**value, "description": MEANINGS[name]} for name, value in properties.items()}


def _definitions() -> Mapping[str, Schema]:
    most, time = wire.NAME_CHARACTERS, "RFC 3339 with a zone, such as 2026-03-01T03:00:00Z."
    return {
        "text": {"type": "string", "pattern": _NO_NUL},
        "short": {"type": "string", "pattern": _NO_NUL, "maxLength": most},
        "name": {"type": "string", "pattern": _NO_NUL, "minLength": 1, "maxLength": most},
        "time": {"type": "string", "pattern": _TIME, "description": time},
        "seconds": {"type": "number", "minimum": 0},
        "count": {"type": "integer", "minimum": 0, "maximum": _MOST},
        **_parts(),
    }


def _parts() -> Mapping[str, Schema]:
    """Return the schemas of the objects in a report."""
    name, text, seconds, null = _ref("name"), _ref("text"), _ref("seconds"), {"type": "null"}
    status = {"anyOf": [null, {"type": "integer", "minimum": -_MOST - 1, "maximum": _MOST}]}
    sha256 = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
    category = {"enum": list(CATEGORIES), "default": "compute"}
    level = {"enum": list(wire.LEVELS), "default": "info"}
    clock = {"sent_at": _ref("time"), "synchronised": {"type": "boolean"}}
    most = wire.MOST_CORRECTION_SECONDS
    correction = {
        "type": "number",
        "minimum": -most,
        "maximum": most,
        "description": "What the server adds to started_at: the clock of the sender was off.",
    }
    tools = {"type": "object", "propertyNames": text, "additionalProperties": text}
    return {
        "probe": _object({"name": name, "version": _ref("short"), "sha256": sha256}),
        "stage": _object(
            {"name": {**name, "maxLength": wire.STAGE_CHARACTERS}, "category": category, "seconds": seconds,
             "started_after_seconds": seconds},
            "name", "seconds",
        ),
        "metric": _object(
            {"name": name, "value": {"type": "number"}, "unit": {**name, "maxLength": wire.UNIT_CHARACTERS}},
            "name", "value", "unit",
        ),
        "failure": _object(
            {"stage": name, "resource": {"anyOf": [null, _ref("short")]}, "message": text,
             "exit_status": status, "stderr_tail": text}
        ),
        "line": _object({"level": level, "seconds": seconds, "text": text}, "text"),
        "environment": _object({"hostname": text, "kernel": text, "python": text, "tools": tools}),
        "clock": _object({**clock, "correction_seconds": correction}, *clock),
        "usage": _object(
            {"bytes_sent": _ref("count"), "bytes_received": _ref("count"),
             "cpu_seconds": {**seconds, "maximum": wire.MOST_CPU_SECONDS}},
            "bytes_sent", "bytes_received", "cpu_seconds",
        ),
    }  # fmt: skip


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
