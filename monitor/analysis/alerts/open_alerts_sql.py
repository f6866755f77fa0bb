"""The SQL of the number of open alerts without acknowledgement, which every page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.core.db import binary
from monitor.models import Alert
from monitor.models.suite import VISIBLE, visibility
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.alert import AlertQuerySet

_PENDING = "alert.closed_at IS NULL AND alert.acknowledged_at IS NULL"
# Alerts of series that a user without ``sees_all`` may see, and all alerts of reporters, which are few.
_COUNTS = f"""
SELECT (
    SELECT count(*) FROM monitor_alert AS alert JOIN monitor_series AS series ON series.id = alert.series_id
    WHERE {_PENDING} AND {VISIBLE}
), (
    SELECT count(*) FROM monitor_alert AS alert WHERE {_PENDING} AND alert.reporter_id IS NOT NULL
)
"""  # noqa: S608  # constants


def open_alerts(user: AbstractBaseUser | AnonymousUser) -> int:
    """Return as ``Alert.objects.visible_to(user).open()`` counts those that are not acknowledged."""
    if not user.is_authenticated or not user.is_active or sees_all(user):
        return _pending(user).count()
    of_series, of_reporters = binary.row(_COUNTS, visibility(user))
    return int(of_series) + (_pending(user).exclude(reporter=None).count() if of_reporters else 0)


def _pending(user: AbstractBaseUser | AnonymousUser) -> AlertQuerySet:
    return Alert.objects.visible_to(user).open().filter(acknowledged_at=None)
