"""When may the next byte be accepted? Arithmetic of a link of fixed rate, on one monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """A link that was opened at *opened_at* and carries *bytes_per_second*; None is a link without limit."""

    opened_at: float
    bytes_per_second: float | None

    def due_at(self, bytes_accepted: int) -> float:
        """The moment before which byte number *bytes_accepted* does not arrive.

        Counted from the opening of the link and not from the byte before, so that whatever else takes time
        (log-in, disk, a busy machine) is made up for as long as the link has not fallen behind.
        """
        if self.bytes_per_second is None:
            return self.opened_at
        return self.opened_at + bytes_accepted / self.bytes_per_second

    def delay_seconds(self, bytes_accepted: int, now: float) -> float:
        """How long to wait at *now* until byte number *bytes_accepted* is due; never negative."""
        return max(0.0, self.due_at(bytes_accepted) - now)


def bytes_per_second(reference_bytes: int, seconds: float) -> float | None:
    """The rate that moves *reference_bytes* in *seconds*; None (no limit) where that is not positive."""
    return reference_bytes / seconds if seconds > 0 else None
