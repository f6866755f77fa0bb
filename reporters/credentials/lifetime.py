"""Whether something that is valid for a while is so for long enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reporters.base import CredentialUnfit

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


@dataclass(frozen=True)
class Lifetime:
    """From when to when it is valid, in seconds since the epoch."""

    begins: float = -math.inf
    ends: float = math.inf

    def check(self, what: str, *, now: float, needed_seconds: float, resource: str | None = None) -> None:
        """Raise CredentialUnfit unless *what* is valid *now* and for *needed_seconds* more."""
        why = self._why_unfit(now, needed_seconds)
        if why:
            raise CredentialUnfit(f"{what} {why}", resource=resource)

    def _why_unfit(self, now: float, needed_seconds: float) -> str:
        left_seconds = self.ends - now
        if now < self.begins:
            return f"is not valid yet: it begins in {in_words(self.begins - now)}"
        if left_seconds <= 0:
            return f"expired {in_words(-left_seconds)} ago"
        if left_seconds < needed_seconds:
            return f"expires in {in_words(left_seconds)}, the run needs about {in_words(needed_seconds)}"
        return ""


def in_words(seconds: float) -> str:
    """A duration in the largest unit of which there are two, as in "4 min", "36 h", "90 s"."""
    for unit_seconds, unit in _UNITS:
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"
