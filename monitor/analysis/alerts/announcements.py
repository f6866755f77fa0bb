"""Decide whether a notification is sent: one when an incident opens, and one when it ends, on each channel.

The decision is made when the notification is due, by the messages that the channel has got until then, so
that a worker that dies in between loses none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from django.contrib.auth.models import AnonymousUser

from monitor.analysis.alerts.concerned_sites import not_at_fault
from monitor.analysis.alerts.rule_authors import foreign_secret, out_of_sight, tells_everything
from monitor.models import Alert, Incident, Notification
from monitor.models.alert import Event

if TYPE_CHECKING:
    from datetime import datetime


class Handling(StrEnum):
    SEND = "send"
    WAIT = "wait"
    WITHHOLD = "withhold"


class Decision(NamedTuple):
    handling: Handling
    reason: str = ""


SEND = Decision(Handling.SEND)


@dataclass(frozen=True)
class ChannelState:
    """The other messages about an incident on one channel, without those that were withheld.

    Attributes:
        openings, closings: how many were delivered.
        retried: how many openings were refused, and are retried.
        given_up: how many openings were given up.
        open_alerts: how many other alerts of the incident are open and use the channel.
    """

    openings: int = 0
    closings: int = 0
    retried: int = 0
    given_up: int = 0
    open_alerts: int = 0


def decide(event: str, of: ChannelState, *, settled: str = "") -> Decision:
    """Return what to do with the first attempt of a message that an alert of an incident *event*.

    *settled* says that a user has acknowledged or resolved the incident; it is empty otherwise. Pure.
    """
    if event == Event.CLOSED:
        if of.open_alerts:
            return Decision(Handling.WITHHOLD, "other alerts of the incident are open")
        if of.openings + of.given_up + of.retried > of.closings:
            return SEND
        return Decision(Handling.WITHHOLD, "the incident was not announced, or its end was")
    if settled:
        return Decision(Handling.WITHHOLD, settled)
    if event == Event.OPENED and of.openings > of.closings:
        return Decision(Handling.WITHHOLD, "the incident was announced")
    return Decision(Handling.WAIT) if of.retried else SEND


def decision_of(notification: Notification, now: datetime) -> Decision:
    """Return what to do with *notification* at *now*; its alert and incident are loaded.

    Attempts after the first one, messages about the monitor, and alerts without an incident are sent; but
    nothing that the author of the rule may not see now, nor signed with a secret that is not the author's.
    """
    alert = notification.alert
    if reason := _not_permitted(notification):
        return Decision(Handling.WITHHOLD, reason)
    if alert is not None and notification.event == Event.REPEATED and _is_seen_to(alert):
        return Decision(Handling.WITHHOLD, "the alert is resolved or acknowledged")
    if notification.attempts or alert is None or alert.incident is None:
        return SEND
    is_opening = notification.event == Event.OPENED
    state, settled = _channel_state(notification, alert), _settled(alert.incident)
    decision = decide(notification.event, state, settled=settled)
    if decision == SEND and is_opening and _has_silence(alert.incident):
        decision = silenced(alert.closed_at, alert.incident.silenced_until or now, now)
    if decision == SEND and is_opening and (reason := not_at_fault(alert, alert.incident)):
        return Decision(Handling.WITHHOLD, reason)
    return decision


def _not_permitted(notification: Notification) -> str:
    """Return why the author of a rule does not get a message now: the monitor suspected names many sites."""
    alert, channel = notification.alert, notification.channel
    if alert is not None:
        return out_of_sight(alert) or foreign_secret(alert.rule, channel)
    if tells_everything(channel):
        return ""
    return "no rule with this channel has an author who may see every site, and use its secret"


def _is_seen_to(alert: Alert) -> bool:
    return alert.closed_at is not None or alert.acknowledged_at is not None


def silenced(closed_at: datetime | None, until: datetime, now: datetime) -> Decision:
    """Return what to do with the message that an alert opened, of an incident that is silenced *until*.

    It waits until then; if the alert was closed before, it is never sent. Pure.
    """
    if closed_at is not None and closed_at <= until:
        return Decision(Handling.WITHHOLD, "it ended while the incident was silenced")
    return Decision(Handling.WAIT) if now < until else SEND


def open_alerts_on(notification: Notification) -> int:
    """Return how many alerts of the incident of *notification* are open and use its channel.

    Those that the author of its rule may not see do not count.
    """
    if notification.alert is None or notification.alert.incident is None:
        return 0
    rule = notification.alert.rule
    author = rule.present_author() or AnonymousUser()
    visible = Alert.objects.visible_to(author) if rule.author_name else Alert.objects.all()
    of_incident = visible.open().filter(incident=notification.alert.incident)
    return of_incident.filter(notifications__channel=notification.channel).distinct().count()


def _channel_state(notification: Notification, alert: Alert) -> ChannelState:
    attempted = Notification.objects.filter(
        alert__incident=alert.incident, channel=notification.channel, withheld="", attempts__gt=0
    )
    rows = list(attempted.exclude(pk=notification.pk))
    openings = [row for row in rows if row.event == Event.OPENED]
    others = Alert.objects.open().filter(incident=alert.incident, notifications__channel=notification.channel)
    return ChannelState(
        openings=sum(row.sent_at is not None for row in openings),
        closings=sum(row.event == Event.CLOSED for row in rows),
        retried=sum(row.due_at is not None for row in openings),
        given_up=sum(row.is_given_up for row in openings),
        open_alerts=others.exclude(pk=alert.pk).distinct().count(),
    )


def _settled(incident: Incident) -> str:
    """Return that a user has resolved or acknowledged *incident*; empty: no user that may do so now.

    An incident grows: its alerts at other sites are announced although a site admin has acknowledged it.
    """
    if incident.resolved_at is not None and incident.resolved_by:
        return f"{incident.resolved_by} has resolved the incident"
    return f"{incident.acknowledged_by} has acknowledged the incident" if incident.is_acknowledged() else ""


def _has_silence(incident: Incident) -> bool:
    """Return whether a user that may change *incident* now has silenced it, until a time that may be past."""
    return incident.silenced_until is not None and incident.is_manageable_by(incident.silenced_by)
