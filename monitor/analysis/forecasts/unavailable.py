"""Find resources that cannot run anything because of maintenance, holds or repeated failures."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.analysis.availability.resource_results_sql import resource_results
from monitor.analysis.availability.site_states import closures_at
from monitor.models import Resource

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

OUTAGE_LASTS = timedelta(hours=1)  # an outage of now says nothing about later times


def find_unavailable(
    user: AbstractBaseUser | AnonymousUser, resources: Collection[str], at: datetime, now: datetime
) -> dict[str, str]:
    """Return the reason why each of *resources* cannot run anything at *at*, as known *now*, by name.

    Available resources are absent. A resource counts as broken when the newest runs that used it failed
    there, several in a row, and no run has passed there since. Only runs that *user* may see count.
    """
    sites = dict(Resource.objects.filter(name__in=resources).values_list("name", "site__name"))
    results = resource_results(user, resources) if at - now <= OUTAGE_LASTS else {}
    failing = {name: result.words for name, result in results.items() if result.is_failing(now)}
    closures = closures_at(set(sites.values()), at, now)
    return failing | {name: closures[site][0].text for name, site in sites.items() if site in closures}
