"""The policy of a running agent: which runs it admits, what their reports tell, and what the server learns.

One gate for one state directory. The policy is read again when its file changes. Thread-safe.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from reporters.config import Assignment, ResourceConfig
from reporters.remote.policy.file import PolicyFile
from reporters.remote.policy.pseudonyms import secret_of
from reporters.remote.policy.request_times import RequestTimes
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.scratch_use import scratch_used_bytes
from reporters.remote.policy.site_policy import FULL, SitePolicy
from reporters.remote.policy.usage import DayUsage, UsageAccount, of_run
from reporters.remote.state_directory import SITE_POLICY, StateDirectory, StateError
from reporters.report import Report, to_json

if TYPE_CHECKING:
    from reporters.remote.policy.disclosure import Disclosure


@dataclass(frozen=True)
class Admission:
    """Whether a run may start.

    *assignment* is the run with the caps of the policy; None if it is refused, and *reason* says why.
    """

    assignment: Assignment | None
    reason: str = ""


def host_load1() -> float | None:
    """Return the one-minute load average of this host; None where the system has none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


class PolicyGate:
    """Applies the site policy of *state*; *load1* returns the load average of this host.

    Raises:
        StateError: the secret of the pseudonyms can be neither read nor written.
    """

    def __init__(self, state: StateDirectory, *, load1: Callable[[], float | None] = host_load1) -> None:
        self._file = PolicyFile(state.path / SITE_POLICY)
        self._account, self._requests = UsageAccount(state), RequestTimes(state)
        self._secret = secret_of(state)
        self._load1 = load1
        self._reading, self._counting = threading.Lock(), threading.Lock()
        self._made: tuple[tuple[str, Mapping[str, str]], Disclosure] | None = None

    @property
    def policy(self) -> SitePolicy:
        """The policy as it is now."""
        with self._reading:
            return self._file.current()

    def admit(
        self,
        assignment: Assignment,
        policy: SitePolicy,
        *,
        running_runs: int,
        now: datetime,
        is_requested: bool = False,
    ) -> Admission:
        """Return whether *assignment* may start by *policy* while *running_runs* other runs are running.

        *is_requested*: the run counts as one that a user requested.
        """
        situation = Situation(
            now=now,
            probe_sha256=probe_sha256(assignment.probe),
            running_runs=running_runs,
            used=self._used(policy.day(now)),
            load1=self._load1(),
            scratch_used_bytes=0 if policy.scratch_bytes is None else scratch_used_bytes(assignment),
            requested_runs=self._requests.within_hour(now) if is_requested else None,
        )
        reason = policy.refusal(assignment, situation)
        return Admission(None, reason) if reason else Admission(policy.constrained(assignment))

    def count_request(self, now: datetime) -> None:
        """Count the start of a requested run.

        Raises:
            StateError: the file cannot be written; the start counts until the next start of the agent.
        """
        self._requests.add(now)

    def count(self, report: Report, *, process_cpu_seconds: float, now: datetime) -> None:
        """Count what a run used for the caps of the day.

        *process_cpu_seconds* is the CPU time of the run's processes on this host.

        Raises:
            StateError: the counters of earlier starts cannot be read.
        """
        used, day = of_run(report.usage, process_cpu_seconds), self.policy.day(now)
        if used != DayUsage():
            with self._counting:
                self._account.add(day, used)

    def keep_counters(self) -> None:
        """Write what ``count`` has counted, for the next start; not after each run, as it is flushed to disk.

        Raises:
            StateError: the counters cannot be written; they still count until the next start.
        """
        with self._counting:
            self._account.keep()

    def disclosed(self, report: Report, resources: Iterable[ResourceConfig]) -> bytes:
        """Return the JSON of *report* as the site discloses it; *resources* are those of the assignment.

        Raises:
            MalformedReport: *report* is too large.
        """
        bound = {name for names in report.bindings.values() for name in names}
        used = [resource for resource in resources if resource.name in bound]
        disclosure = self._disclosure(used)
        return to_json(report) if disclosure is None else disclosure.report(report)

    def disclosed_status(
        self, document: Mapping[str, Any], resources: Iterable[ResourceConfig]
    ) -> dict[str, Any]:
        """Return *document*, the JSON of an exchange, as the site discloses it."""
        disclosure = self._disclosure(resources)
        return dict(document) if disclosure is None else disclosure.status(document)

    def status(self) -> dict[str, Any]:
        """Return the field ``policy`` of an exchange."""
        policy = self.policy
        return {
            "status": policy.status,
            "sha256": policy.sha256,
            "error": policy.told_error,
            "summary": dict(policy.summary()),
        }

    def _disclosure(self, resources: Iterable[ResourceConfig]) -> Disclosure | None:
        """Return what removes texts from reports and status; None if the site discloses all."""
        level = self.policy.disclosure
        if level == FULL:
            return None
        # Imported here, with the probes' classes that it needs: most agents never disclose less than all.
        from reporters.remote.policy.disclosure import Disclosure, known_words  # noqa: PLC0415

        words = known_words(resources) if level == "redacted" else {}
        made = self._made
        if made is None or made[0] != (level, words):  # the search for many words takes time to prepare
            made = self._made = ((level, words), Disclosure(level, self._secret, words))
        return made[1]

    def _used(self, day: str) -> DayUsage | None:
        with self._counting:
            try:
                return self._account.of(day)
            except StateError:
                return None


def probe_sha256(name: str) -> str:
    """Return the SHA-256 of the source of the probe *name*, as its reports have it; empty if there is none.

    The probe is not imported: the agent keeps its memory small.
    """
    try:
        source = pkgutil.get_data("probes", f"{name}.py") if name.isidentifier() else None
    except OSError:
        return ""
    return "" if source is None else hashlib.sha256(source).hexdigest()
