"""Which probes may run, by name or by the digest of their source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import probes
from reporters.config import Assignment
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ListShape, ObjectShape, TextShape

_NAME = "[a-z][a-z0-9_]*"
_DIGEST = "[0-9a-f]{64}"


def _unknown(name: str) -> str:
    return "" if name in probes.names() else f"known are {', '.join(probes.names())}"


class Rule:
    is_lasting = True
    shape = ObjectShape(
        {
            "allow": ListShape(
                TextShape(
                    f"{_NAME}(@{_DIGEST})?|{_DIGEST}",
                    "a probe: NAME, a SHA-256 of 64 hexadecimal digits, or NAME@SHA-256",
                ),
                "only these probes run: by name, by the SHA-256 of the source, or by both (NAME@SHA-256)",
            ),
            # A misspelt name here would allow the probe.
            "forbid": ListShape(
                TextShape(_NAME, "the name of a probe", problem=_unknown), "these probes never run"
            ),
        },
        description="which probes may run",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._allow: tuple[str, ...] | None = values.get("allow")
        self._forbid: tuple[str, ...] = values.get("forbid", ())

    def refusal(self, assignment: Assignment, situation: Situation) -> str:
        name, digest = assignment.probe, situation.probe_sha256
        if name in self._forbid:
            return f"the probe {name} is forbidden"
        if self._allow is None or name in self._allow:
            return ""
        if digest and (digest in self._allow or f"{name}@{digest}" in self._allow):
            return ""
        is_pinned = any(entry.startswith(f"{name}@") for entry in self._allow)
        if is_pinned:
            return f"the probe {name} with the SHA-256 {digest or 'unknown'} is not allowed"
        return f"the probe {name} is not allowed"

    def summary(self) -> Mapping[str, Any]:
        return {name: list(entries) for name, entries in self._values.items()}
