"""Availability: sites by month, one site by day, profiles, and recomputations."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.api.http.auth import require_manageable, require_site_permission
from monitor.api.http.problems import Refused
from monitor.availability import report
from monitor.availability.months import InvalidMonth, month_after, parse_month
from monitor.availability.recompute import (
    InvalidRecomputation,
    RecomputationRequest,
    describe_change,
    recompute,
)
from monitor.availability.report import MonthOfSite
from monitor.availability.timelines import StatusSeconds
from monitor.availability.versions import find_version
from monitor.models import ProfileVersion, Recomputation, RecomputedPeriod, Site, SiteDay, SiteMonth, Suite

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["availability"])
MOST_SITES = 200  # of a recomputation


class FiguresOut(Schema):
    """*availability* is up / (total - unknown), *reliability* up / (total - unknown - scheduled downtime);
    null where nothing remains."""

    availability: float | None
    reliability: float | None
    up_seconds: int
    down_seconds: int
    scheduled_seconds: int
    unknown_seconds: int


class MonthOut(FiguresOut):
    """A month of a site; *published_at* is null until it is final.

    *has_late_data*: its data changed after it was published, and it was not recomputed since.
    """

    site: str
    month: str
    profiles: list[str]
    published_at: datetime | None
    has_late_data: bool


class DayOut(FiguresOut):
    """A day (UTC), computed by the version *profile*, of the time before *until*."""

    day: date
    profile: str
    until: datetime


class ServiceOut(FiguresOut):
    """A service in the month, without maintenance."""

    service: str


class SiteMonthOut(MonthOut):
    """*services* is empty if you may not see all series at the site."""

    days: list[DayOut]
    services: list[ServiceOut]


class ProfileVersionOut(Schema):
    """A version of a profile; *sites* is empty for all sites that no other profile names.

    *rules* are those of the grid file; null if the profile *is_removed*, or if you may not see all suites.
    """

    name: str
    profile: str
    number: int
    valid_from: date
    created_at: datetime
    sites: list[str]
    is_removed: bool
    rules: dict[str, Any] | None


class ChangeOut(Schema):
    """What a recomputation changed: a month, with its first day in *day*, or a day.

    *before* is null if the period had no figures.
    """

    site: str
    day: date
    is_month: bool
    before: FiguresOut | None
    after: FiguresOut
    before_profile: str
    after_profile: str
    text: str


class RecomputationOut(Schema):
    """*profile* is the version by which all days were computed; null: each by the version that it had."""

    id: int
    requester: str
    reason: str
    at: datetime
    first: date
    last: date
    profile: str | None
    changes: list[ChangeOut]


class RecomputationIn(Schema):
    """The month of *sites* to recompute, such as `2026-03`; *profile* is a name of
    `/availability/profiles`, such as `production-2`."""

    sites: list[str]
    month: str
    reason: str
    profile: str | None = None


@router.get("/availability", response=list[MonthOut], summary="List the availability of all sites in a month")
def list_availability(request: HttpRequest, month: str = "") -> list[MonthOut]:
    """Sites at which you may see a series, by name. *month* such as `2026-03`; default: the present one."""
    now = timezone.now()
    months = report.months_of_sites(_month(month, now), now, request.user)
    return [MonthOut(**_month_fields(each)) for each in months]


@router.get(
    "/availability/profiles", response=list[ProfileVersionOut], summary="List the versions of profiles"
)
def list_profiles(request: HttpRequest) -> list[ProfileVersionOut]:
    """Names of sites that you may not see are left out."""
    sees_all_suites = not Suite.objects.exclude(pk__in=Suite.objects.visible_to(request.user)).exists()
    names = {site.pk: site.name for site in report.visible_sites(request.user).values()}
    return [
        ProfileVersionOut(
            name=str(version),
            sites=sorted(names[key] for key in version.site_keys if key in names),
            is_removed=version.rules is None,
            rules=version.rules if sees_all_suites else None,
            **{name: getattr(version, name) for name in _VERSION_FIELDS},
        )
        for version in ProfileVersion.objects.all()
    ]


_VERSION_FIELDS = ("profile", "number", "valid_from", "created_at")


@router.get(
    "/availability/recomputations",
    response=list[RecomputationOut],
    summary="List recomputations, newest first",
)
def list_recomputations(
    request: HttpRequest, site: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[RecomputationOut]:
    found = None if site is None else _site(request, site)
    return [_recomputation(row) for row in report.recomputations_for(request.user, found)[:limit]]


@router.post(
    "/availability/recomputations",
    response={201: RecomputationOut},
    summary="Recompute the availability of a month",
)
def request_recomputation(request: HttpRequest, order: RecomputationIn) -> Status[RecomputationOut]:
    require_site_permission(request)
    now = timezone.now()
    if len(order.sites) > MOST_SITES:
        raise Refused(422, "invalid", f"sites: expected at most {MOST_SITES}, got {len(order.sites)}")
    first = _month(order.month, now)
    version = find_version(order.profile) if order.profile is not None else None
    if order.profile is not None and version is None:
        raise Refused(422, "invalid", f"profile: there is no version {order.profile!r} of a profile")
    sites = [_site(request, name) for name in sorted(set(order.sites))]
    for site in sites:
        require_manageable(site, Site.objects.manageable_by(request.user))
    recomputation_request = RecomputationRequest(
        sites=sites,
        first=first,
        last=month_after(first) - timedelta(days=1),
        requester=request.user.get_username(),
        reason=order.reason,
        version=version,
    )
    try:
        record = recompute(recomputation_request, now)
    except InvalidRecomputation as error:
        raise Refused(422, "invalid", str(error)) from None
    return Status(201, _recomputation(report.recomputations_for(request.user).get(pk=record.pk)))


@router.get("/availability/sites/{site}", response=SiteMonthOut, summary="Show a month of a site by day")
def show_availability(request: HttpRequest, site: str, month: str = "") -> SiteMonthOut:
    now = timezone.now()
    found, first = _site(request, site), _month(month, now)
    shown = next(iter(report.months_of_sites(first, now, request.user, [found])), None)
    if shown is None:
        raise Refused(404, "no_availability", f"no availability of {site} is stored for {first:%Y-%m}")
    return SiteMonthOut(
        **_month_fields(shown),
        days=[
            DayOut(day=day.day, profile=str(day.version), until=day.until, **_figures(day))
            for day in shown.days
            if day is not None and day.version and day.until
        ],
        services=[
            ServiceOut(service=service.total.service, **_figures(service.total))
            for service in report.services_of_site(found, first, request.user)
        ],
    )


def _month(text: str, now: datetime) -> date:
    try:
        return parse_month(text, now)
    except InvalidMonth as error:
        raise Refused(422, "invalid", f"month: {error}") from None


def _site(request: HttpRequest, name: str) -> Site:
    found = report.visible_site(request.user, name)
    if found is None:
        raise Refused(404, "unknown_site", f"there is no site {name!r} with availability that you may see")
    return found


def _figures(row: SiteDay | SiteMonth) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FiguresOut.model_fields}


def _month_fields(month: MonthOfSite) -> dict[str, Any]:
    return {
        "site": month.site.name,
        "month": f"{month.total.month:%Y-%m}",
        "profiles": list(month.versions),
        "published_at": month.total.published_at,
        "has_late_data": month.total.has_late_data,
        **_figures(month.total),
    }


def _recomputation(row: Recomputation) -> RecomputationOut:
    return RecomputationOut(
        profile=str(row.version) if row.version else None,
        changes=[_change(period) for period in row.periods.all()],
        **{name: getattr(row, name) for name in ("id", "requester", "reason", "at", "first", "last")},
    )


def _change(period: RecomputedPeriod) -> ChangeOut:
    return ChangeOut(
        site=period.site_name,
        day=period.day,
        is_month=period.is_month,
        before=None if period.before is None else _of_seconds(StatusSeconds(*period.before)),
        after=_of_seconds(StatusSeconds(*period.after)),
        before_profile=period.before_version,
        after_profile=period.after_version,
        text=describe_change(period),
    )


def _of_seconds(seconds: StatusSeconds) -> FiguresOut:
    return FiguresOut(
        availability=seconds.availability,
        reliability=seconds.reliability,
        up_seconds=seconds.up,
        down_seconds=seconds.down,
        scheduled_seconds=seconds.scheduled,
        unknown_seconds=seconds.unknown,
    )
