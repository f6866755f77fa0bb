"""What pages, the API and commands show of the stored availability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Prefetch

from monitor.analysis.availability.months import month_after
from monitor.models import (
    ProfileVersion,
    Recomputation,
    RecomputedPeriod,
    Series,
    Site,
    SiteDay,
    SiteMonth,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.recomputation import RecomputationQuerySet

    AnyUser = AbstractBaseUser | AnonymousUser


@dataclass(frozen=True)
class MonthOfSite:
    """A month of a site with its days, of which those that have not begun are None.

    Attributes:
        versions: the names of the versions of profiles by which the days were computed.
        is_dirty: whether a day is being computed again.
    """

    site: Site
    total: SiteMonth
    days: Sequence[SiteDay | None]
    versions: Sequence[str]
    is_dirty: bool


@dataclass(frozen=True)
class ServiceOfSite:
    """A service in a month: its sum, and its days; None: it did not count."""

    total: SiteMonth
    days: Sequence[SiteDay | None]


def visible_site(user: AnyUser, name: str) -> Site | None:
    """Return the site *name*, if *user* may see a series there."""
    return visible_sites(user).get(name)


def visible_sites(user: AnyUser) -> Mapping[str, Site]:
    """Return the sites with stored availability that *user* may see, by name."""
    keys = SiteMonth.objects.visible_to(user).of_sites().order_by().values("site")
    return {site.name: site for site in Site.objects.filter(pk__in=keys)}


def sites_in_month(month: date, user: AnyUser) -> list[Site]:
    """Return the sites with a stored *month* that *user* may see, by name."""
    keys = SiteMonth.objects.of_sites().filter(month=month).order_by().values("site")
    return list(Site.objects.visible_to(user).filter(pk__in=keys).order_by("sort_name"))


def months_of_sites(
    month: date, now: datetime, user: AnyUser | None = None, sites: Collection[Site] | None = None
) -> list[MonthOfSite]:
    """Return *month* of each of *sites* (None: of all) that *user* may see (None: all), by name."""
    months, days = SiteMonth.objects.of_sites(), SiteDay.objects.of_sites()
    if user is not None:
        months, days = months.visible_to(user), days.visible_to(user)
    if sites is not None:
        months, days = months.filter(site__in=sites), days.filter(site__in=sites)
    by_site: dict[int, list[SiteDay]] = defaultdict(list)
    of_month = days.filter(day__gte=month, day__lt=month_after(month)).defer("computed_at")
    for day in of_month.prefetch_related("version"):  # many days have the same
        by_site[day.site_id].append(day)
    rows = months.filter(month=month).select_related("site").order_by("site__sort_name")
    return [_month_of_site(row, by_site[row.site_id], now) for row in rows]


def _month_of_site(total: SiteMonth, days: Sequence[SiteDay], now: datetime) -> MonthOfSite:
    today = now.astimezone(UTC).date()
    is_growing = any(day.is_dirty and day.day < today for day in days)
    versions = {str(day.version): day.version for day in days if day.version}
    names = sorted(versions, key=lambda name: (versions[name].profile, versions[name].number))
    return MonthOfSite(total.site, total, _placed(total.month, days), names, is_growing)


def _placed(month: date, days: Collection[SiteDay]) -> list[SiteDay | None]:
    """Return *days* at their places in the month."""
    by_day = {day.day: day for day in days}
    length = (month_after(month) - month).days
    return [by_day.get(month + timedelta(days=number)) for number in range(length)]


def present_months(sites: Collection[int], now: datetime) -> dict[int, SiteMonth]:
    """Return the present month (UTC) of each of *sites*, by primary key: the days stored, with today so far.

    Today is as of its last computation, see ``refresh``. Sites without results this month are absent.
    """
    first = now.astimezone(UTC).date().replace(day=1)
    return {row.site_id: row for row in SiteMonth.objects.of_sites().filter(site__in=sites, month=first)}


def services_of_site(site: Site, month: date, user: AnyUser | None = None) -> list[ServiceOfSite]:
    """Return the services of *site* in *month*, by name.

    With *user*, only if this user may see all series at the site: names and figures of services tell about
    the series that test them.
    """
    if user is not None and not _sees_all_series(user, site):
        return []
    totals = SiteMonth.objects.filter(site=site, month=month).exclude(service="")
    days = SiteDay.objects.filter(site=site, day__gte=month, day__lt=month_after(month)).exclude(service="")
    by_service: dict[str, list[SiteDay]] = defaultdict(list)
    for day in days:
        by_service[day.service].append(day)
    return [ServiceOfSite(total, _placed(month, by_service[total.service])) for total in totals]


def _sees_all_series(user: AnyUser, site: Site) -> bool:
    at_site = Series.objects.filter(bindings__resource__site=site)
    return not at_site.exclude(pk__in=Series.objects.visible_to(user).order_by().values("pk")).exists()


def recomputations_for(user: AnyUser | None, site: Site | None = None) -> RecomputationQuerySet:
    """Return recomputations, newest first, with the periods that *user* may see, of *site* if given."""
    rows, periods = Recomputation.objects.select_related("version"), RecomputedPeriod.objects.all()
    if user is not None:
        rows, periods = rows.visible_to(user), periods.visible_to(user)
    if site is not None:
        rows, periods = rows.filter(periods__site=site).distinct(), periods.filter(site=site)
    return rows.prefetch_related(Prefetch("periods", periods))


def present_versions(today: date, site: Site) -> list[ProfileVersion]:
    """Return the versions with rules that apply to *site*, and are valid on *today* or later."""
    versions = [
        version
        for version in ProfileVersion.objects.all()
        if not version.site_keys or site.pk in version.site_keys
    ]
    latest = {version.profile: version for version in versions if version.valid_from <= today}
    return [
        version
        for version in versions
        if version.rules is not None and (version.valid_from > today or latest[version.profile] == version)
    ]
