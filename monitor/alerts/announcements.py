"""Decide whether a notification is sent: one when an incident opens, and one when it ends, on each channel.

The decision is made when the notification is due, by the messages that the channel has got until then, so
that a worker that dies in between loses none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from django.db.models import Q

from monitor.failures.attribution import PartKind
from monitor.models import Alert, AlertRule, Attribution, Binding, Incident, Notification
from monitor.models.alert import Event


class Step(StrEnum):
    SEND = "send"
    WAIT = "wait"
    WITHHOLD = "withhold"


class Decision(NamedTuple):
    step: Step
    reason: str = ""


SEND = Decision(Step.SEND)


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


def decide(event: str, of: ChannelState, *, settled: str = "", not_at_fault: str = "") -> Decision:
    """Return what to do with the first attempt of a message that an alert of an incident *event*.

    *settled* says that a user has acknowledged or resolved the incident, *not_at_fault* that the recipients'
    sites are not at fault; both are empty otherwise. Pure.
    """
    if event == Event.CLOSED:
        if of.open_alerts:
            return Decision(Step.WITHHOLD, "other alerts of the incident are open")
        if of.openings + of.given_up + of.retried > of.closings:
            return SEND
        return Decision(Step.WITHHOLD, "the incident was not announced, or its end was")
    if reason := settled or not_at_fault:
        return Decision(Step.WITHHOLD, reason)
    if of.openings > of.closings:
        return Decision(Step.WITHHOLD, "the incident was announced")
    return Decision(Step.WAIT) if of.retried else SEND


def decision_of(notification: Notification) -> Decision:
    """Return what to do with *notification*, whose alert and incident are loaded.

    Attempts after the first one, messages about the monitor, and alerts without an incident are sent.
    """
    alert = notification.alert
    if notification.attempts or alert is None or alert.incident is None:
        return SEND
    is_opening = notification.event == Event.OPENED
    return decide(
        notification.event,
        _channel_state(notification, alert),
        settled=_settled(alert.incident),
        not_at_fault=_not_at_fault(alert, alert.incident) if is_opening else "",
    )


def open_alerts_on(notification: Notification) -> int:
    """Return how many alerts of the incident of *notification* are open and use its channel."""
    if notification.alert is None or notification.alert.incident is None:
        return 0
    of_incident = Alert.objects.open().filter(incident=notification.alert.incident)
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
    if incident.resolved_at is not None and incident.resolved_by:
        return f"{incident.resolved_by} has resolved the incident"
    return f"{incident.acknowledged_by} has acknowledged the incident" if incident.acknowledged_at else ""


def _not_at_fault(alert: Alert, incident: Incident) -> str:
    """Return why the sites of the rule need no message: another part explains the failures.

    A rule that also watches the series for another reason gets its message, and any rule does if no rule is
    about more than sites, or about the site at fault: a failure must be told.
    """
    if incident.condition or incident.kind not in set(PartKind):
        return ""
    at_fault = Attribution(kind=incident.kind, name=incident.name)
    if not _watches_sites_only(alert) or alert.rule.sites.filter(name__in=at_fault.sites).exists():
        return ""
    is_told = Q(everything=True) | Q(sites__name__in=at_fault.sites)
    for wide in ("suites", "series", "reporters"):
        is_told |= Q(**{f"{wide}__isnull": False})
    about_failures = AlertRule.objects.filter(is_told, enabled=True, condition=alert.rule.condition)
    return f"at fault is {at_fault}" if about_failures.exclude(notify=[]).exists() else ""


def _watches_sites_only(alert: Alert) -> bool:
    rule, series = alert.rule, alert.series
    if rule.everything or series is None:
        return False
    is_named = Q(series=series) | Q(suites=series.suite_id) | Q(reporters=series.reporter_id)
    of_sites = Binding.objects.filter(series=series, resource__site__in=rule.sites.all())
    return of_sites.exists() and not AlertRule.objects.filter(is_named, pk=rule.pk).exists()
