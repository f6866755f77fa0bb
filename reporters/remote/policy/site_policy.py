"""A site policy in force: which runs it refuses, and what it tells the server of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone, tzinfo
from typing import Any, TypeVar

from reporters.config import Assignment
from reporters.remote.policy.rules import PolicyRule, Situation

PREFIX = "policy: "
UNREADABLE = f"{PREFIX}unreadable"
MAX_BYTES = 256 * 1024  # of the file
FULL = "full"  # the disclosure of a site that discloses all

Limit = TypeVar("Limit", int, float)


class UnreadablePolicy(Exception):
    """A policy cannot be read. *error* is for the operator, *told* for the server: it quotes no value."""

    def __init__(self, error: str, told: str) -> None:
        super().__init__(error)
        self.error = error
        self.told = told


@dataclass(frozen=True)
class SitePolicy:
    """What a site allows. Without rules it refuses nothing.

    Attributes:
        status: "in_force", "absent" (there is no file) or "unreadable" (every run is refused).
        sha256: of the file.
        error: why the policy is unreadable, for the operator of the site.
        told_error: the same for the server; quotes no value of the policy.
        rules: by name.
        disclosure: "full", "redacted" or "minimal".
        approval: "auto", "ask" or "frozen".
    """

    status: str
    sha256: str = ""
    error: str = ""
    told_error: str = ""
    rules: Mapping[str, PolicyRule] = field(default_factory=dict)
    clock: tzinfo = timezone.utc
    clock_name: str = "UTC"
    disclosure: str = FULL
    approval: str = "auto"

    def refusal(self, assignment: Assignment, situation: Situation) -> str:
        """Return why the policy refuses the run *assignment* now: "policy: ...", or an empty text."""
        if self.status == "unreadable":
            return f"{UNREADABLE}: {self.told_error}"
        local = replace(situation, clock=self.clock, clock_name=self.clock_name)
        in_order = sorted(self.rules.values(), key=lambda rule: not rule.is_lasting)
        refusals = (rule.refusal(assignment, local) for rule in in_order)
        return next((PREFIX + reason for reason in refusals if reason), "")

    def constrained(self, assignment: Assignment) -> Assignment:
        """Return *assignment* with the caps that the runner applies: on the load of each resource, and on the
        size of a file that a program writes at this host.
        """
        return replace(
            assignment,
            max_load1=_lower(assignment.max_load1, self._caps.get("load1")),
            max_file_bytes=_lower(assignment.max_file_bytes, self.scratch_bytes),
        )

    def concurrent_runs(self, capacity: int) -> int:
        """Return how many runs may run at the same time: *capacity*, or fewer by the policy."""
        return min(capacity, int(self._caps.get("concurrent_runs", capacity)))

    @property
    def scratch_bytes(self) -> int | None:
        """The most bytes that all runs together may have in scratch directories; None: no limit."""
        return int(self._caps["scratch_bytes"]) if "scratch_bytes" in self._caps else None

    def day(self, now: datetime) -> str:
        """Return the day of *now* by the policy's clock, such as "2026-11-23"; daily caps count by it."""
        return now.astimezone(self.clock).date().isoformat()

    def summary(self) -> Mapping[str, Any]:
        """Return the policy for the server, as far as its disclosure allows."""
        modes = {"disclosure": self.disclosure, "approval": self.approval}
        if self.status != "in_force":
            return modes if self.status == "unreadable" else {}
        told = {name: rule.summary() for name, rule in self.rules.items()}
        if self.disclosure == "full":
            return {**modes, "timezone": self.clock_name, "rules": told}
        if self.disclosure == "redacted":
            open_rules = {
                name: told[name] for name in ("caps", "hours", "probes", "requests") if name in told
            }
            return {**modes, "timezone": self.clock_name, "rules": {**_counts(told), **open_rules}}
        return {**modes, "rules": _counts(told)}

    @property
    def _caps(self) -> Mapping[str, float]:
        caps = self.rules.get("caps")
        return caps.summary() if caps is not None else {}


def _lower(limit: Limit | None, cap: Limit | None) -> Limit | None:
    """Return the lower of two limits; None is no limit."""
    return min((value for value in (limit, cap) if value is not None), default=None)


def _counts(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many entries each rule has, without the entries."""
    return {
        name: {key: len(value) if isinstance(value, list) else 1 for key, value in rule.items()}
        for name, rule in told.items()
    }


ABSENT = SitePolicy("absent")


def unreadable(error: str, told_error: str, *, sha256: str = "") -> SitePolicy:
    """Return a policy that refuses every run, discloses the minimum and approves no change."""
    return SitePolicy("unreadable", sha256, error, told_error, disclosure="minimal", approval="frozen")
