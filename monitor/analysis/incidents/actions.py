"""What users do about an incident; each action is an entry of its timeline."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from monitor.depot.access.audit_trail import note
from monitor.models import Alert, Incident, IncidentEvent
from monitor.models.incident import IncidentAction

LONGEST_SILENCE = timedelta(days=31)


class IncidentIsResolved(ValueError):
    """The incident was resolved before: only comments can be added to it. Permanent."""

    def __init__(self, incident: Incident) -> None:
        super().__init__(
            f"incident {incident.pk} is resolved since {incident.resolved_at:%Y-%m-%d %H:%M} UTC"
        )


@transaction.atomic
def acknowledge(key: int, user: str, now: datetime) -> Incident:
    """Note that *user* works on the incident and its alerts; the first acknowledgement that counts stays.

    Alerts that join the incident later are not announced, while *user* may still change the incident.

    Raises:
        IncidentIsResolved: it needs none any more.
    """
    incident = _open(key)
    if not incident.is_acknowledged():
        incident.acknowledged_at, incident.acknowledged_by = now, user
        incident.save()
        Alert.objects.filter(incident=incident).acknowledge(user, now)
        _record(incident, IncidentAction.ACKNOWLEDGED, user, now)
    return incident


@transaction.atomic
def assign(key: int, to: str, user: str, now: datetime) -> Incident:
    """Assign the incident to the user *to*; empty: to no user.

    Raises:
        IncidentIsResolved: it cannot be assigned any more.
    """
    incident = _open(key)
    if incident.assigned_to != to:
        incident.assigned_to = to
        incident.save()
        _record(incident, IncidentAction.ASSIGNED, user, now, to or "no user")
    return incident


@transaction.atomic
def silence(key: int, until: datetime | None, text: str, user: str, now: datetime) -> Incident:
    """Announce no alert of the incident before *until* (None: announce again), because of *text*.

    It is in force while *user* may still change the incident, with all that it affects then.
    What is still open then is announced. The end of an incident that was announced before is, at any time.

    Raises:
        IncidentIsResolved: it is not announced any more.
    """
    incident = _open(key)
    incident.silenced_until, incident.silenced_by = until, user if until else ""
    incident.save()
    end = f"until {until:%Y-%m-%d %H:%M} UTC" if until else "no longer"
    _record(incident, IncidentAction.SILENCED, user, now, f"{end}: {text}" if text else end)
    return incident


@transaction.atomic
def comment(key: int, text: str, user: str, now: datetime) -> Incident:
    """Add *text* to the timeline, also of a resolved incident."""
    incident = Incident.objects.select_for_update(of=("self",)).get(pk=key)
    _record(incident, IncidentAction.COMMENTED, user, now, text)
    return incident


@transaction.atomic
def resolve(key: int, text: str, user: str, now: datetime) -> Incident:
    """Resolve the incident with *text*, what removed the cause. Only later failures open another one.

    Raises:
        IncidentIsResolved: it was resolved before.
    """
    incident = _open(key)
    incident.resolved_at, incident.resolved_by, incident.resolution = now, user, text
    incident.save()
    incident.affected.filter(until=None).update(until=now)
    _record(incident, IncidentAction.RESOLVED, user, now, text)
    return incident


def _open(key: int) -> Incident:
    incident = Incident.objects.select_for_update(of=("self",)).get(pk=key)
    if incident.resolved_at is not None:
        raise IncidentIsResolved(incident)
    return incident


def _record(incident: Incident, action: IncidentAction, user: str, now: datetime, text: str = "") -> None:
    IncidentEvent.objects.create(incident=incident, at=now, action=action, user=user, text=text)
    note("incident", f"{incident.pk}: {incident}", after=f"{action}: {text}" if text else action)
