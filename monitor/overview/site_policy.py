"""A site policy in words, as far as the site disclosed it.

The summary comes from the site: any JSON object has to be displayed, however strange.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.units import humanised, unit_of

MOST_LINES = 60
MOST_CHARACTERS = 500
_VERBS = {"forbid": "forbids", "allow": "allows only"}
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
    if is_minimal:
        return PolicyLine(_cut(key.replace("_", " ")).capitalize(), "limited (not disclosed)")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    unit = unit_of(key) if is_number else ""
    text = humanised(float(value), unit) if unit and abs(value) < 1e18 else _text(value)
    return PolicyLine(_cut(key.replace("_", " ")).capitalize(), f"at most {text}" if is_number else text)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return _cut(", ".join(_text(entry) for entry in value))
    if isinstance(value, Mapping):
        return _cut(", ".join(f"{key}: {_text(entry)}" for key, entry in value.items()))
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
