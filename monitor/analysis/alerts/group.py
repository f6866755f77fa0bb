"""Group alerts into incidents, one for each cause, and announce that the monitor is suspected.

An alert of failed runs joins the incident of its series. Other alerts open incidents of their own: one for a
reporter that is silent, lags or has a wrong clock, with the series that are silent because of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from monitor.analysis.alerts import reporter_conditions, write
from monitor.analysis.alerts.alert_causes import REPORTER_SILENT, AlertCause, AlertFacts, cause_of, of_series
from monitor.analysis.alerts.repeat_messages import repeat_messages
from monitor.analysis.alerts.rule_authors import tells_everything
from monitor.analysis.attribution.suspicion import suspect_the_monitor
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.models import (
    Alert,
    AlertRule,
    Heartbeat,
    Incident,
    IncidentEvent,
    IncidentSeries,
    Notification,
    Reporter,
    ReporterStatus,
)
from monitor.models.alert import Event
from monitor.models.incident import MONITOR, REPORTER, SERIES, IncidentAction
from monitor.models.reporter import HOME
from monitor.models.run import WITH_SIGNATURE
from monitor.runs.ledger import heartbeats

logger = logging.getLogger(__name__)
SILENT_AFTER = timedelta(minutes=2)  # reporters exchange with the server every minute


@transaction.atomic
def group_alerts(now: datetime) -> None:
    """Update the incidents of failed runs and of alerts, and suspect the monitor if many sites fail at once.

    Notifications of an alert become due when it has joined an incident; those of held incidents wait until
    the suspicion is settled. Idempotent; concurrent calls run one after the other.
    """
    lock_until_commit(AdvisoryLock.ALERTS)
    update_incidents(now)
    _move_alerts(now)
    _join_incidents(now)
    _resolve_incidents(now)
    _withhold_ended()
    suspect_the_monitor(now)
    _announce_suspicion(now)
    if lapsed := Alert.objects.drop_lapsed_acknowledgements():
        logger.info("%d acknowledgements lapsed: their users may not manage the alerts", lapsed)
    repeat_messages(now)


def _move_alerts(now: datetime) -> None:
    """Close each alert whose incident is resolved and whose series fails by another cause; open another."""
    failing = _failing_series()
    resolved = Alert.objects.open().filter(incident__resolved_at__isnull=False, incident__condition="")
    rows = resolved.filter(series__in=failing).select_related("rule", "incident")
    closed, opened = [], []
    for alert in rows:
        ending = alert.incident.resolution if alert.incident else ""
        opened.append(
            Alert(
                rule=alert.rule,
                series_id=alert.series_id,
                since=alert.since,
                opened_at=now,
                opened_by_id=alert.opened_by_id,
                text=alert.text,
            )
        )
        alert.closed_at, alert.closed_text = now, f"its incident was resolved: {ending}"
        closed.append(alert)
    write.write(opened, closed, {alert.rule_id: alert.rule.notify for alert in closed}, now)


def _join_incidents(now: datetime) -> None:
    """Put each open alert without an incident into that of its cause.

    A silent series of its own incident joins that of its reporter once the reporter is silent, too.
    """
    is_alone = Q(incident=None) | Q(incident__kind=SERIES, incident__resolved_at=None)
    rows = (
        Alert.objects.open()
        .filter(is_alone)
        .select_related("rule", "series__reporter", "reporter", "opened_by", "incident")
    )
    alerts = list(rows)
    if not alerts:
        return
    failing, silent = _failing_series(), silent_reporters(now)
    for alert in alerts:
        facts = _facts(alert)
        cause = cause_of(facts, silent)
        if cause is None and alert.series_id in failing:
            _join(alert, failing[alert.series_id], now)
        elif cause is not None or now - alert.opened_at >= write.GROUP_WAIT:
            _join(alert, _incident_of(cause or of_series(facts), alert, now), now)


def silent_reporters(now: datetime) -> set[str]:
    """Return the names of the reporters that have an alert for it, or were not heard for ``SILENT_AFTER``."""
    alerts = Alert.objects.open().filter(rule__condition=REPORTER_SILENT, reporter__isnull=False)
    unseen = ReporterStatus.objects.filter(
        seen_at__lt=now - SILENT_AFTER, reporter__in=Reporter.objects.remote()
    )
    home = Heartbeat.objects.filter(name=heartbeats.HOME_REPORTER, seen_at__lt=now - SILENT_AFTER)
    names = {
        *alerts.values_list("reporter__name", flat=True),
        *unseen.values_list("reporter__name", flat=True),
    }
    return names | ({HOME} if home.exists() else set())


def _failing_series() -> dict[int, Incident]:
    """Return the open incidents of failed runs by series."""
    rows = IncidentSeries.objects.filter(until=None).select_related("incident")
    return {row.series_id: row.incident for row in rows}


def _facts(alert: Alert) -> AlertFacts:
    reporter = alert.reporter or (alert.series.reporter if alert.series else None)
    return AlertFacts(
        condition=alert.rule.condition,
        series=alert.series.name if alert.series else "",
        reporter=reporter.name if reporter else "",
        has_failed_run=alert.opened_by is not None and alert.opened_by.state in WITH_SIGNATURE,
    )


def _incident_of(cause: AlertCause, alert: Alert, now: datetime) -> Incident:
    """Return the open incident of *cause*, or else the one that a user resolved since; else open one."""
    of_cause = Incident.objects.filter(kind=cause.kind, name=cause.name, condition=cause.condition)
    is_resolved = Q(resolved_at__gte=alert.since) & ~Q(resolved_by="")
    known = of_cause.filter(Q(resolved_at=None) | is_resolved)
    incident = known.order_by(F("resolved_at").desc(nulls_first=True)).first()
    if incident is None:
        incident = Incident.objects.create(
            **cause._asdict(), headline=_headline(cause, alert), since=alert.since, opened_at=now
        )
        IncidentEvent.objects.create(incident=incident, at=now, action=IncidentAction.OPENED)
        logger.warning("incident opened: %s", incident)
    return incident


def _headline(cause: AlertCause, alert: Alert) -> str:
    if cause.kind == REPORTER and cause.condition in reporter_conditions.names():
        return reporter_conditions.load(cause.condition).title
    return alert.rule.title or alert.rule.name


def _join(alert: Alert, incident: Incident, now: datetime) -> None:
    if alert.incident == incident:
        return
    alert.incident = incident
    alert.save(update_fields=["incident"])
    if alert.acknowledged_at is None and incident.is_acknowledged():
        alert.acknowledged_at, alert.acknowledged_by = now, incident.acknowledged_by
        alert.save(update_fields=["acknowledged_at", "acknowledged_by"])
    IncidentEvent.objects.create(
        incident=incident,
        at=now,
        action=IncidentAction.ALERTED,
        series_id=alert.series_id,
        text=f"{alert.rule.name}: {alert.text}",
    )
    waiting = alert.notifications.filter(due_at__gt=now, attempts=0)
    waiting.update(due_at=now)


def _resolve_incidents(now: datetime) -> None:
    """Resolve the incidents of alerts that have no open alert."""
    is_open = Exists(Alert.objects.open().filter(incident=OuterRef("pk")))
    for incident in Incident.objects.open().of_alerts().filter(~is_open):
        last = incident.alerts.order_by("-closed_at").first()
        ending = (
            f"the last alert was resolved: {last.closed_text}" if last else "its alerts joined another one"
        )
        incident.resolved_at, incident.resolution = now, ending
        incident.save()
        IncidentEvent.objects.create(
            incident=incident, at=now, action=IncidentAction.RESOLVED, text=incident.resolution
        )
        logger.info("incident resolved: %s", incident)


def _withhold_ended() -> None:
    """Withhold the messages of alerts that ended while held, unless their incident was announced before."""
    announced = Notification.objects.filter(
        alert__incident=OuterRef("alert__incident"), channel=OuterRef("channel"), attempts__gt=0, withheld=""
    )
    ended = Q(alert__closed_at__isnull=False) | Q(alert__incident__resolved_at__isnull=False)
    held = Notification.objects.filter(ended, ~Exists(announced), alert__incident__is_held=True)
    Notification.objects.filter(pk__in=held.order_by().values("pk")).withhold(
        "it ended while the monitor was suspected"
    )


def _announce_suspicion(now: datetime) -> None:
    """Queue one message to each channel that the monitor is suspected, and one that this is settled."""
    opened = Notification.objects.filter(incident=OuterRef("pk"), event=Event.OPENED)
    closed = Notification.objects.filter(incident=OuterRef("pk"), event=Event.CLOSED)
    suspicions = Incident.objects.filter(kind=MONITOR)
    for incident in suspicions.open().filter(~Exists(opened)):
        _queue(incident, Event.OPENED, _channels(), now)
    for incident in suspicions.filter(Exists(opened), ~Exists(closed), resolved_at__isnull=False):
        channels = incident.notifications.filter(event=Event.OPENED).values_list("channel", flat=True)
        _queue(incident, Event.CLOSED, channels, now)


def _queue(incident: Incident, event: Event, channels: Iterable[object], now: datetime) -> None:
    Notification.objects.bulk_create(
        Notification(incident=incident, event=event, channel=channel, due_at=now) for channel in channels
    )


def _channels() -> list[object]:
    """Return each channel of the rules in force once, of those whose author may see every site."""
    in_force = AlertRule.objects.filter(enabled=True, suspended="").order_by("sort_name")
    rules = in_force.values_list("notify", flat=True)
    by_text = {json.dumps(channel, sort_keys=True): channel for notify in rules for channel in notify}
    return [channel for channel in by_text.values() if tells_everything(channel)]
