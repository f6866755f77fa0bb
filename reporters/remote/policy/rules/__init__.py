"""The rules of a site policy: one file each, with a class ``Rule``. The folder is the registry.

The name of the file is the key of the policy under which the rule stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from reporters.config import Assignment
from reporters.registry import PluginRegistry
from reporters.remote.policy.usage import DayUsage

if TYPE_CHECKING:
    from reporters.remote.policy.shapes import ObjectShape

_NOTHING = DayUsage()


@dataclass(frozen=True)
class Situation:
    """The state of the reporter when a run is about to start.

    Attributes:
        clock, clock_name: the time zone of the policy, which sets both.
        probe_sha256: SHA-256 of the probe's source, as ``reporters.run.identity`` computes it.
        running_runs: the number of runs that are running.
        used: what the runs of this day used; None where it is unknown.
        load1: the one-minute load average of the reporter's host; None where it is unknown.
        scratch_used_bytes: the bytes that all runs together have in scratch directories of this host.
        requested_runs: for a requested run: how many of those started within the hour; None for another run.
    """

    now: datetime
    clock: tzinfo = timezone.utc
    clock_name: str = "UTC"
    probe_sha256: str = ""
    running_runs: int = 0
    used: DayUsage | None = _NOTHING
    load1: float | None = None
    scratch_used_bytes: int = 0
    requested_runs: int | None = None


class PolicyRule(Protocol):
    """A rule that refuses runs.

    Attributes:
        shape: declares the value of the rule in the policy.
        is_lasting: whether the rule refuses a run at any time; other rules depend on the situation.
    """

    shape: ObjectShape
    is_lasting: bool

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Make the rule of *values*, which *shape* has read."""

    def refusal(self, assignment: Assignment, situation: Situation) -> str:
        """Return why the rule refuses the run *assignment*; empty if the rule allows it."""

    def summary(self) -> Mapping[str, Any]:
        """Return the rule for the server, as a small JSON object."""


_registry = PluginRegistry[type[PolicyRule]](__name__, __path__, "Rule", noun="rule of a site policy")
names, load = _registry.names, _registry.load
