"""What the runs of each day used: CPU time and copied bytes, in a file that survives restarts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reporters.fields import Fields, Unfit
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.usage import ResourceUsage

FILE = "usage.json"
_KEPT_DAYS = 8  # after a jump of the clock, the days around it still count
_MOST = 1e15


@dataclass(frozen=True)
class DayUsage:
    """The use of one day. A copied byte counts once, whatever the number of resources that count it."""

    cpu_seconds: float = 0.0
    copied_bytes: int = 0

    def __add__(self, other: DayUsage) -> DayUsage:
        return DayUsage(self.cpu_seconds + other.cpu_seconds, self.copied_bytes + other.copied_bytes)


def of_run(usage: Mapping[str, ResourceUsage], process_cpu_seconds: float) -> DayUsage:
    """Return the use of a run: *usage* as in its report, and the CPU time of its process and children."""
    sent = sum(used.bytes_sent for used in usage.values())
    received = sum(used.bytes_received for used in usage.values())
    jobs = sum(used.cpu_seconds for used in usage.values())
    return DayUsage(jobs + process_cpu_seconds, max(sent, received))


def added(days: Mapping[str, DayUsage], day: str, usage: DayUsage) -> dict[str, DayUsage]:
    """Return *days*, by names such as "2026-11-23", with *usage* added to *day*; the oldest days go."""
    total = {**days, day: days.get(day, DayUsage()) + usage}
    newest = sorted(total)[-_KEPT_DAYS:]
    return {name: total[name] for name in sorted({*newest, day})}


class UsageAccount:
    """The use of each day, in the file ``usage.json`` of *state*. One process writes it."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._days: dict[str, DayUsage] | None = None
        self._is_kept = True

    def of(self, day: str) -> DayUsage:
        """Return the use of *day*.

        Raises:
            StateError: the file cannot be read or is damaged; the use is unknown.
        """
        if self._days is None:
            self._days = _read(self._state)
        return self._days.get(day, DayUsage())

    def add(self, day: str, usage: DayUsage) -> None:
        """Add *usage* to *day*; ``keep`` writes it.

        Raises:
            StateError: the file cannot be read or is damaged.
        """
        self.of(day)
        self._days, self._is_kept = added(self._days or {}, day, usage), False

    def keep(self) -> None:
        """Write the file, unless it has all that was added.

        Raises:
            StateError: the file cannot be written.
        """
        if self._is_kept or self._days is None:
            return
        document = {
            name: {"cpu_seconds": used.cpu_seconds, "copied_bytes": used.copied_bytes}
            for name, used in self._days.items()
        }
        self._state.write_object(FILE, {"days": document})
        self._is_kept = True


def _read(state: StateDirectory) -> dict[str, DayUsage]:
    document = state.read_object(FILE)
    if document is None:
        return {}
    try:
        days = Fields(document).fields("days")
        return {day: _day(days.fields(day)) for day in days}
    except Unfit as error:
        raise StateError(f"cannot use {state.path / FILE}: {error}; remove it to count from zero") from None


def _day(fields: Fields) -> DayUsage:
    return DayUsage(
        fields.number("cpu_seconds", minimum=0, maximum=_MOST), fields.integer("copied_bytes", minimum=0)
    )
