"""Create and revoke ping keys, which report runs of one series by the address of a ping alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.depot.access.audit_trail import note
from monitor.models import PingKey
from monitor.models.series import REPORTED_PROBE

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models import Series


class NotReported(Exception):
    """A reporter of gridcast runs the series: other programs may not report it."""

    def __init__(self, series: Series) -> None:
        super().__init__(
            f"the reporter {series.reporter} runs {series.name}; pings need 'probe: {REPORTED_PROBE}'"
        )


def create(series: Series, name: str, *, who: str, now: datetime) -> tuple[PingKey, str]:
    """Return a new key of *series*, for the program *name*, and its text, which is not stored.

    Raises:
        NotReported: no program outside of gridcast may report runs of *series*.
    """
    check_reported(series)
    key, text = PingKey.objects.issue(series, name=name, who=who, now=now)
    note("ping key", str(key), after={"name": name})
    return key, text


def revoke(key: PingKey, *, who: str, now: datetime) -> bool:
    """Refuse the next ping with *key*; return False if it was revoked before."""
    is_revoked = bool(PingKey.objects.filter(pk=key.pk).revoke(who=who, now=now))
    if is_revoked:
        note("ping key", str(key), before={"name": key.name}, after="revoked")
    return is_revoked


def check_reported(series: Series) -> None:
    """Raise NotReported unless programs outside of gridcast report runs of *series*."""
    if not series.is_reported:
        raise NotReported(series)
