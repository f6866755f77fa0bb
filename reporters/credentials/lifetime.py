"""Check that the period of validity of a credential is long enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reporters.base import CredentialUnfit

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


@dataclass(frozen=True)
class Lifetime:
    """The period of validity of a credential, in seconds since the epoch."""

    begins: float = -math.inf
    ends: float = math.inf

    def check(
        self, credential: str, *, now: float, needed_seconds: float, resource: str | None = None
    ) -> None:
        """Raise CredentialUnfit unless the period covers *needed_seconds* from *now*.

        *credential* names the credential in the message, such as "proxy /tmp/x509up_u1000".
        """
        problem = self._problem(now, needed_seconds)
        if problem:
            raise CredentialUnfit(f"{credential} {problem}", resource=resource)

    def _problem(self, now: float, needed_seconds: float) -> str:
        left_seconds = self.ends - now
        if now < self.begins:
            return f"is not valid yet: valid in {format_duration(self.begins - now)}"
        if left_seconds <= 0:
            return f"expired {format_duration(-left_seconds)} ago"
        if left_seconds < needed_seconds:
            left, needed = format_duration(left_seconds), format_duration(needed_seconds)
            return f"expires in {left}, the run needs about {needed}"
        return ""


def format_duration(seconds: float) -> str:
    """Format a duration as a count of at least 2 of the largest possible unit: "4 min", "36 h", "90 s"."""
    for unit_seconds, unit in _UNITS:
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"
