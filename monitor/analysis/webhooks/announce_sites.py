"""Tell webhooks that a site went down or came up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from monitor.analysis.availability.site_states import OperationalState, site_states
from monitor.analysis.webhooks.authors import judge_authors
from monitor.analysis.webhooks.enqueue import enqueue, site_deliveries
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import AnnouncedSite, Incident, Site, Webhook
from monitor.models.incident import MONITOR
from monitor.models.webhook import EventType
from reporters.report import rfc3339

_TOLD = {OperationalState.DOWN: True, OperationalState.UP: False}
# Runs of all series count. This user has no row in the database.
_SEES_ALL = User(username="webhooks", is_superuser=True)


@dataclass(frozen=True)
class SiteReport:
    """What is known of a site: whether it is down, since when, and why; *reasons* are texts."""

    is_down: bool
    since: datetime
    reasons: tuple[str, ...] = ()


def announce_present_states(now: datetime) -> list[EventType]:
    """Enqueue an event for each site that went down or came up; return the events.

    Nothing is told while the monitor itself is suspected, nor if no webhook receives the states of sites.
    """
    judge_authors(now)
    receivers = Webhook.objects.in_force().filter(events__overlap=[EventType.SITE_DOWN, EventType.SITE_UP])
    if not receivers.exists():
        AnnouncedSite.objects.all().delete()
        return []
    if Incident.objects.filter(kind=MONITOR, resolved_at=None).exists():
        return []
    states = site_states(_SEES_ALL, list(Site.objects.values_list("name", flat=True)), now)
    reports = {
        name: SiteReport(
            _TOLD[current.state], current.since or now, tuple(reason.text for reason in current.reasons)
        )
        for name, current in states.items()
        if current.state in _TOLD
    }
    return announce_sites(reports, now)


def announce_sites(reports: Mapping[str, SiteReport], now: datetime) -> list[EventType]:
    """Enqueue an event for each site whose state differs from the one that was told last; return the events.

    *reports* has the sites, by name, that are known to be down or up: a site in maintenance, held or unknown
    keeps the state that was told. A site that is up at first is not an event.
    """
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.ANNOUNCED_SITES):
            return []
        told = {row.site.name: row for row in AnnouncedSite.objects.select_related("site")}
        sites = Site.objects.in_bulk(
            [
                name
                for name, report in reports.items()
                if name not in told or told[name].is_down != report.is_down
            ],
            field_name="name",
        )
        events: list[EventType] = []
        for name, site in sites.items():
            report, before = reports[name], told.get(name)
            AnnouncedSite.objects.update_or_create(
                site=site, defaults={"is_down": report.is_down, "since": report.since}
            )
            if before is None and not report.is_down:
                continue
            event = EventType.SITE_DOWN if report.is_down else EventType.SITE_UP
            data: dict[str, Any] = {"since": rfc3339(report.since), "reasons": list(report.reasons)}
            if before is not None and before.is_down:
                data["down_since"] = rfc3339(before.since)
            enqueue(site_deliveries(event, name, report.since, data, now), now)
            events.append(event)
    return events
