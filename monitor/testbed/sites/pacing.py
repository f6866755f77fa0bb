"""Compute when the next byte of a link of fixed rate is due; all times are on one monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """A link that was opened at *opened_at* and carries *bytes_per_second* (None: no limit)."""

    opened_at: float
    bytes_per_second: float | None

    def due_at(self, bytes_accepted: int) -> float:
        """Return the earliest time at which byte number *bytes_accepted* may arrive.

        The time counts from the opening of the link, not from the previous byte, so that other delays (login,
        disk, a busy machine) do not add to the drawn time unless they are longer.
        """
        if self.bytes_per_second is None:
            return self.opened_at
        return self.opened_at + bytes_accepted / self.bytes_per_second

    def delay_seconds(self, bytes_accepted: int, now: float) -> float:
        """Return the seconds from *now* until byte number *bytes_accepted* is due; never negative."""
        return max(0.0, self.due_at(bytes_accepted) - now)


def bytes_per_second(reference_bytes: int, seconds: float) -> float | None:
    """Return the rate that moves *reference_bytes* in *seconds*; None (no limit) unless *seconds* > 0."""
    return reference_bytes / seconds if seconds > 0 else None
