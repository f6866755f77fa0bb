"""Find resources that cannot run anything because of maintenance, holds or repeated failures."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from monitor.forecasts.lookup import visibility
from monitor.forecasts.statements import fetch
from monitor.ledger.holds import describe_hold
from monitor.ledger.maintenance import open_windows
from monitor.models import Hold, Resource
from monitor.models.hold import HoldKind
from monitor.models.run import State
from monitor.models.series import VISIBLE

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

LEAST_FAILURES = 3  # in a row, of all series together
FAILURES_EXPIRE = timedelta(days=2)  # a resource that has not been used for so long may work again
OUTAGE_LASTS = timedelta(hours=1)  # an outage of now says nothing about later times

# How often in a row the newest runs failed at each resource, and since when, unless one passed there since.
# Only visible series count: users do not learn that other series fail.
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
    HAVING sum(failures) >= {LEAST_FAILURES} AND max(ended_at) > %(since)b
)
SELECT failing.name, failing.failures, failing.since FROM failing
JOIN monitor_resource AS resource ON resource.name = failing.name
WHERE NOT EXISTS (
    SELECT FROM monitor_binding AS binding JOIN seen AS latest USING (series_id)
    WHERE binding.resource_id = resource.id AND latest.state = '{State.PASSED}'
        AND latest.ended_at >= failing.since)
"""  # noqa: S608  # constants of this module


class FailingResource(NamedTuple):
    """A resource at which the newest *failures* runs failed; *since* is the slot of the first of them."""

    name: str
    failures: int
    since: datetime


def find_unavailable(
    user: AbstractBaseUser | AnonymousUser, resources: Collection[str], at: datetime, now: datetime
) -> dict[str, str]:
    """Return the reason why each of *resources* cannot run anything at *at*, as known *now*, by name.

    Available resources are absent. A resource counts as broken when the newest runs that used it failed
    there, ``LEAST_FAILURES`` or more in a row, and no run has passed there since. Only runs that *user* may
    see count.
    """
    sites = dict(Resource.objects.filter(name__in=resources).values_list("name", "site__name"))
    failing = _failing(user, resources, now) if at - now <= OUTAGE_LASTS else {}
    closed = _closed(frozenset(sites.values()), at, now)
    return failing | {name: closed[site] for name, site in sites.items() if site in closed}


def _closed(sites: frozenset[str], at: datetime, now: datetime) -> dict[str, str]:
    """Return the reason why each of *sites* is closed at *at*, by name: a hold or maintenance.

    Open sites are absent.
    """
    holds = Hold.objects.at(now).exclude(until__lte=at).filter(kind=HoldKind.SITE, name__in=sites)
    reasons = {hold.name: f"the site {hold.name} is {describe_hold(hold)}" for hold in holds}
    for window in open_windows(at):
        closed = sites & window.sites if window.sites else sites
        reasons |= {site: f"the site {site} is closed, {window.reason}" for site in closed}
    return reasons


def _failing(
    user: AbstractBaseUser | AnonymousUser, resources: Collection[str], now: datetime
) -> dict[str, str]:
    parameters = {"resources": list(resources), "since": now - FAILURES_EXPIRE, **visibility(user)}
    return {
        name: f"the last {failures} runs failed at {name}, since {since:%Y-%m-%d %H:%M} UTC"
        for name, failures, since in fetch(FailingResource, _FAILING, parameters)
    }
