"""A site policy in words, as far as the site disclosed it.

The summary comes from the site: any JSON object has to be displayed, however strange.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.core.units import humanised

MOST_LINES = 60
MOST_CHARACTERS = 500
_VERBS = {"forbid": "forbids", "allow": "allows only"}
_CAPS = {  # label and unit
    "concurrent_runs": ("Concurrent runs", ""),
    "cpu_hours_per_day": ("CPU time per day", "h"),
    "bytes_per_day": ("Copied per day", "bytes"),
    "scratch_bytes": ("Scratch", "bytes"),
    "load1": ("Load average, 1 min", ""),
    "per_hour": ("Requested runs per hour", ""),
}
_MOST_FORMATTED = 1e18  # greater numbers are shown as they are
_MODES = {
    "disclosure": {
        "full": "reports in full",
        "redacted": "reports without paths, host names and texts",
        "minimal": "ids, times, numbers and outcomes only",
    },
    "approval": {
        "auto": "changes take effect at once",
        "ask": "changes wait for approval at the site",
        "frozen": "no changes",
    },
}


@dataclass(frozen=True)
class PolicyLine:
    """A line of a policy; *is_refusal* is set if the line says what the site forbids."""

    label: str
    text: str
    is_refusal: bool = False


def policy_lines(summary: Any) -> list[PolicyLine]:
    """Return *summary* in words, what the site forbids first."""
    if not isinstance(summary, Mapping):
        return []
    lines = sorted(_lines(summary), key=lambda line: not line.is_refusal)
    return lines[:MOST_LINES]


def _lines(summary: Mapping[str, Any]) -> Iterator[PolicyLine]:
    rules, is_minimal = summary.get("rules"), summary.get("disclosure") == "minimal"
    for name, rule in (rules if isinstance(rules, Mapping) else {}).items():
        for key, value in (rule if isinstance(rule, Mapping) else {"": rule}).items():
            yield _rule_line(str(name), str(key), value, is_minimal=is_minimal)
    for key, value in summary.items():
        if key != "rules":
            words = _MODES.get(key, {}).get(value, "") if isinstance(value, str) else ""
            yield PolicyLine(_cut(str(key)).capitalize(), words or _text(value))


def _rule_line(rule: str, key: str, value: Any, *, is_minimal: bool) -> PolicyLine:
    """Return an entry of a rule; of an entry that is not disclosed, *value* is a count."""
    name = _cut(rule.replace("_", " "))
    if key in _VERBS:
        entries = _text(value) if isinstance(value, list) else f"{_text(value)} (not disclosed)"
        return PolicyLine(f"This site {_VERBS[key]} {name}", entries or "none", key == "forbid")
    label, unit = _CAPS.get(key, (_cut(key.replace("_", " ")).capitalize(), ""))
    if is_minimal:
        return PolicyLine(label, "limited (not disclosed)")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return PolicyLine(label, _text(value))
    is_plain = abs(value) >= _MOST_FORMATTED or not unit
    return PolicyLine(label, f"at most {_text(value) if is_plain else humanised(float(value), unit)}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return _cut(", ".join(_text(entry) for entry in value))
    if isinstance(value, Mapping):
        return _cut(", ".join(f"{key}: {_text(entry)}" for key, entry in value.items()))
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
