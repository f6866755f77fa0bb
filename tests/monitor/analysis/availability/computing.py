"""Compute the availability of a site for tests, without storing it."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from monitor.analysis.availability.compute import ComputedDay, WantedDay, compute
from monitor.analysis.availability.timelines import StatusSeconds
from monitor.analysis.availability.versions import all_versions
from monitor.models import Site


def computed(site: str, first: date, until: datetime) -> list[ComputedDay]:
    """Return the days of *site* from *first* until *until*."""
    versions, key = all_versions(), Site.objects.get(name=site).pk
    days = [first + timedelta(days=number) for number in range((until.date() - first).days + 1)]
    return compute([WantedDay(key, day, versions.find(key, day)) for day in days], until)


def seconds_of(site: str, first: date, until: datetime) -> StatusSeconds:
    """Return the seconds of all these days."""
    parts = [day.seconds for day in computed(site, first, until)]
    return StatusSeconds(
        *(sum(getattr(part, name) for part in parts) for name in ("up", "unknown", "scheduled", "down"))
    )
