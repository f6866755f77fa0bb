"""Where nothing can run: sites in maintenance, sites that are held, resources that fail whoever comes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from monitor.db import binary
from monitor.forecasts.lookup import who
from monitor.ledger.holds import describe_hold
from monitor.ledger.maintenance import open_windows
from monitor.models import Hold, Resource
from monitor.models.hold import HoldKind
from monitor.models.run import State
from monitor.models.series import VISIBLE

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

LEAST_FAILURES = 3  # in a row, of all series together
NO_LONGER_NEWS = timedelta(days=2)  # what has not been tried for so long may work again
LASTS = timedelta(hours=1)  # nobody knows whether an outage of now goes on for longer

# How often in a row the newest runs failed at each resource, and since when; unless one passed since. Of what
# the one who asks may see: of what others run he shall not even learn that it fails.
_FAILING = f"""
WITH seen AS NOT MATERIALIZED (
    SELECT latest.* FROM monitor_latestrun AS latest
    JOIN monitor_series AS series ON series.id = latest.series_id WHERE {VISIBLE}
), trail AS (
    SELECT failed_resource AS name, ended_at,
        length(replace(substring(outcomes FROM '[fts]+$'), 's', '')) AS failures,
        slots[length(outcomes) - length(substring(outcomes FROM '[fts]+$')) + 1] AS since
    FROM seen
    WHERE failed_resource = ANY (%(resources)b) AND state IN ('{State.FAILED}', '{State.TIMED_OUT}')
), failing AS (
    SELECT name, sum(failures)::bigint AS failures, min(since) AS since FROM trail GROUP BY name
    HAVING sum(failures) >= {LEAST_FAILURES} AND max(ended_at) > %(news)b
)
SELECT failing.name, failing.failures, failing.since FROM failing
JOIN monitor_resource AS resource ON resource.name = failing.name
WHERE NOT EXISTS (
    SELECT FROM monitor_binding AS binding JOIN seen AS latest USING (series_id)
    WHERE binding.resource_id = resource.id AND latest.state = '{State.PASSED}'
        AND latest.ended_at >= failing.since)
"""  # noqa: S608  # our own words


def down(
    user: AbstractBaseUser | AnonymousUser, resources: Collection[str], at: datetime, now: datetime
) -> dict[str, str]:
    """Those of *resources*, by name, at which nothing can run at *at*, as far as is known at *now*: why.

    A resource is out of order when the newest runs that took it failed there, ``LEAST_FAILURES`` or more in
    a row, and none has passed there since: runs of series that *user* may see.
    """
    sites = dict(Resource.objects.filter(name__in=resources).values_list("name", "site__name"))
    failing = dict(_failing(user, resources, now)) if at - now <= LASTS else {}
    closed = _closed(frozenset(sites.values()), at, now)
    return failing | {name: closed[site] for name, site in sites.items() if site in closed}


def _closed(sites: frozenset[str], at: datetime, now: datetime) -> dict[str, str]:
    """Why nothing runs at each of *sites* that is closed."""
    holds = Hold.objects.at(now).exclude(until__lte=at).filter(kind=HoldKind.SITE, name__in=sites)
    found = {hold.name: f"the site {hold.name} is {describe_hold(hold)}" for hold in holds}
    for work in open_windows(at):
        closed = sites & work.sites if work.sites else sites
        found |= {site: f"the site {site} is closed, {work.reason}" for site in closed}
    return found


def _failing(
    user: AbstractBaseUser | AnonymousUser, resources: Collection[str], now: datetime
) -> Iterator[tuple[str, str]]:
    asked = {"resources": list(resources), "news": now - NO_LONGER_NEWS, **who(user)}
    with binary.cursor() as cursor:
        for name, failures, since in cursor.execute(_FAILING.encode(), asked).fetchall():
            yield (
                name,
                f"the last {failures} runs failed at {name}, since {since:%Y-%m-%d %H:%M} UTC",
            )
