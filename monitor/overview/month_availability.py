"""The availability of sites in the present month, for a page of the overview."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from django.db.models import Sum

from monitor.models import SiteDay


def month_availability(sites: Collection[int], now: datetime) -> dict[int, float]:
    """Return by primary key the share of the known time of this month (UTC) in which each of *sites* was up.

    Sites of which nothing is known this month are absent. *sites* are of one page: their days are read.
    """
    first = now.astimezone(UTC).date().replace(day=1)
    days = SiteDay.objects.of_sites().filter(site__in=sites, day__gte=first)
    sums = (
        days.order_by()
        .values_list("site")
        .annotate(Sum("up_seconds"), Sum("scheduled_seconds"), Sum("down_seconds"))
    )
    return {site: up / (up + scheduled + down) for site, up, scheduled, down in sums if up + scheduled + down}
