"""Availability: sites by month, one site by day, profiles, and recomputations."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.analysis.availability import report
from monitor.analysis.availability.months import InvalidMonth, month_after, parse_month
from monitor.analysis.availability.recompute import (
    InvalidRecomputation,
    RecomputationRequest,
    describe_change,
    recompute,
)
from monitor.analysis.availability.report import MonthOfSite
from monitor.analysis.availability.timelines import StatusSeconds
from monitor.analysis.availability.versions import find_version
from monitor.models import ProfileVersion, Recomputation, RecomputedPeriod, Site, SiteDay, SiteMonth, Suite
from monitor.models.natural_order import sort_name
from monitor.models.token import RUN
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_items, list_rows, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Name, NameFilter, RowId

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

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
    profile_versions: list[str]
    published_at: datetime | None
    has_late_data: bool


class DayOut(FiguresOut):
    """A day (UTC), computed by *profile_version*, of the time before *until*."""

    day: date
    profile_version: str
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
    before_profile_version: str
    after_profile_version: str
    text: str


class RecomputationOut(Schema):
    """The days from *first_day* to *last_day*, computed again on request by *profile_version*; null: each by
    the version that it had."""

    id: int
    requested_by: str
    requested_at: datetime
    reason: str
    first_day: date
    last_day: date
    profile_version: str | None
    changes: list[ChangeOut]


class RecomputationIn(Body):
    """The month of *sites* to compute again, by the version that each day had, or by *profile_version*."""

    sites: Annotated[list[Name], Field(min_length=1, max_length=MOST_SITES)]
    month: str
    reason: str
    profile_version: str | None = None


class SiteMonthList(ListOut):
    months: list[MonthOut]


class ProfileVersionList(ListOut):
    profile_versions: list[ProfileVersionOut]


class RecomputationList(ListOut):
    recomputations: list[RecomputationOut]


class MonthQuery(Page):
    month: str = ""


class SiteMonthQuery(Sparse):
    month: str = ""


class RecomputationQuery(Page):
    site: NameFilter = ""


@router.get(
    "/availability",
    response=SiteMonthList,
    operation_id="list_availability",
    summary="List the availability of all sites in a month",
)
def list_availability(request: HttpRequest, query: Query[MonthQuery]) -> HttpResponse:
    """Sites at which you may see a series, by name."""
    now = timezone.now()
    months = report.months_of_sites(_month(query.month, now), now, request.user)
    return list_items(
        query,
        months,
        SiteMonthList,
        key=lambda month: (month.site.name,),
        show=lambda month: MonthOut(**_month_fields(month)),
    )


@router.get(
    "/availability/profiles",
    response=ProfileVersionList,
    operation_id="list_availability_profiles",
    summary="List the versions of profiles",
)
def list_availability_profiles(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """Names of sites that you may not see are left out."""
    sees_all_suites = not Suite.objects.exclude(pk__in=Suite.objects.visible_to(request.user)).exists()
    names = {site.pk: site.name for site in report.visible_sites(request.user).values()}

    def shown(version: ProfileVersion) -> ProfileVersionOut:
        return ProfileVersionOut(
            name=str(version),
            sites=sorted((names[key] for key in version.site_keys if key in names), key=sort_name),
            is_removed=version.rules is None,
            rules=version.rules if sees_all_suites else None,
            **{name: getattr(version, name) for name in _VERSION_FIELDS},
        )

    rows = ProfileVersion.objects.all()
    return list_rows(query, rows, ProfileVersionList, order=["profile", "number"], show=shown)


_VERSION_FIELDS = ("profile", "number", "valid_from", "created_at")


@router.get(
    "/availability/recomputations",
    response=RecomputationList,
    operation_id="list_recomputations",
    openapi_extra=declare(errors={404: ["unknown_site"]}),
    summary="List recomputations, newest first",
)
def list_recomputations(request: HttpRequest, query: Query[RecomputationQuery]) -> HttpResponse:
    site = _site(request, query.site) if query.site else None
    rows = report.recomputations_for(request.user, site)
    return list_rows(query, rows, RecomputationList, order=["-at", "-id"], show=_recomputation)


@router.get(
    "/availability/recomputations/{recomputation}",
    response=RecomputationOut,
    operation_id="show_recomputation",
    openapi_extra=declare(errors={404: ["unknown_recomputation"]}),
    summary="Show a recomputation",
)
def show_recomputation(request: HttpRequest, recomputation: RowId, query: Query[Sparse]) -> HttpResponse:
    row = report.recomputations_for(request.user).filter(pk=recomputation).first()
    if row is None:
        detail = f"there is no recomputation {recomputation} that you may see"
        raise Refused(404, "unknown_recomputation", detail)
    return show_item(query, _recomputation(row), RecomputationOut)


@router.post(
    "/availability/recomputations",
    response={201: RecomputationOut},
    operation_id="create_recomputation",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_site"]},
        permission=require_site_permission,
        example={"sites": ["ncsa"], "month": "2026-03", "reason": "late reports"},
    ),
    summary="Recompute the availability of a month",
)
def create_recomputation(request: HttpRequest, order: RecomputationIn) -> HttpResponse:
    now = timezone.now()
    first = _month(order.month, now)
    name = order.profile_version
    version = find_version(name) if name is not None else None
    if name is not None and version is None:
        raise Refused(422, "invalid", f"profile_version: there is no version {name!r} of a profile")
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
    shown = _recomputation(report.recomputations_for(request.user).get(pk=record.pk))
    return created(shown, status=201, location=f"/availability/recomputations/{record.pk}")


@router.get(
    "/availability/sites/{site}",
    response=SiteMonthOut,
    operation_id="show_availability",
    openapi_extra=declare(errors={404: ["no_availability", "unknown_site"]}),
    summary="Show a month of a site by day",
)
def show_availability(request: HttpRequest, site: str, query: Query[SiteMonthQuery]) -> HttpResponse:
    now = timezone.now()
    found, first = _site(request, site), _month(query.month, now)
    shown = next(iter(report.months_of_sites(first, now, request.user, [found])), None)
    if shown is None:
        raise Refused(404, "no_availability", f"no availability of {site} is stored for {first:%Y-%m}")
    site_month = SiteMonthOut(
        **_month_fields(shown),
        days=[
            DayOut(day=day.day, profile_version=str(day.version), until=day.until, **_figures(day))
            for day in shown.days
            if day is not None and day.version and day.until
        ],
        services=[
            ServiceOut(service=service.total.service, **_figures(service.total))
            for service in report.services_of_site(found, first, request.user)
        ],
    )
    return show_item(query, site_month, SiteMonthOut)


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
        "profile_versions": list(month.versions),
        "published_at": month.total.published_at,
        "has_late_data": month.total.has_late_data,
        **_figures(month.total),
    }


def _recomputation(row: Recomputation) -> RecomputationOut:
    return RecomputationOut(
        id=row.pk,
        requested_by=row.requester,
        requested_at=row.at,
        reason=row.reason,
        first_day=row.first,
        last_day=row.last,
        profile_version=str(row.version) if row.version else None,
        changes=[_change(period) for period in row.periods.all()],
    )


def _change(period: RecomputedPeriod) -> ChangeOut:
    return ChangeOut(
        site=period.site_name,
        day=period.day,
        is_month=period.is_month,
        before=None if period.before is None else _of_seconds(StatusSeconds(*period.before)),
        after=_of_seconds(StatusSeconds(*period.after)),
        before_profile_version=period.before_version,
        after_profile_version=period.after_version,
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
