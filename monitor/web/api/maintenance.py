"""Maintenance windows: list, announce, declare after the fact, change, end and delete."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field, StringConstraints

from monitor.analysis.availability.declare import announce_or_declare, withdraw_and_recompute
from monitor.analysis.availability.recompute import InvalidRecomputation
from monitor.models import MaintenanceWindow, Site
from monitor.models.hold import MAX_REASON_CHARACTERS
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.token import RUN
from monitor.runs.maintenance import announcements
from monitor.runs.maintenance.announcements import Announcement
from monitor.runs.maintenance.changes import (
    ForeignWindow,
    MaintenanceError,
    NotPermitted,
    Reason,
    UnsuitableState,
    WindowExists,
)
from monitor.runs.maintenance.listing import (
    LONGEST_PERIOD,
    ListedWindow,
    MaintenanceState,
    WindowPeriod,
    listed_window,
    listed_windows,
)
from monitor.runs.maintenance.times import MAX_DURATION_SECONDS, WindowTimes
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import WindowFilter
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_named, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Name, NameFilter, Time

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["maintenance"])

_STATUS: dict[type[Exception], tuple[int, str]] = {
    NotPermitted: (403, "not_allowed"),
    WindowExists: (409, "name_taken"),
    ForeignWindow: (409, "foreign_window"),
    UnsuitableState: (409, "unsuitable_state"),
}
MOST_SITES = 1000  # of a window

WindowName = Annotated[str, StringConstraints(pattern=r"^[-a-zA-Z0-9_]+$", max_length=50)]
Title = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
Why = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_REASON_CHARACTERS)]
_REASON = Field(description="Why, kept with the change.", examples=["new disks"])


class OccurrenceOut(Schema):
    """One opening of a window: from its start until before its end."""

    starts_at: datetime = Field(description="When it starts.", examples=["2026-03-01T08:00:00Z"])
    ends_at: datetime = Field(description="When it ends.", examples=["2026-03-02T08:00:00Z"])


class MaintenanceOut(Schema):
    """A maintenance window. It occurs once, or for *duration_seconds* at each time of a *schedule*."""

    name: str = Field(description="The name of the window.", examples=["sdsc-disks"])
    title: str = Field(
        description="The title on pages, and in reasons of skipped slots.", examples=["New disks"]
    )
    state: MaintenanceState = Field(
        description="`open`, `planned` if it opens later, or `over`.", examples=["planned"]
    )
    occurrence: OccurrenceOut | None = Field(
        description="The present opening, or else the next one; null if the window is over."
    )
    is_everywhere: bool = Field(description="Whether it is at every site.", examples=[False])
    sites: list[str] = Field(
        description="The sites of it that you may see; empty if it is at every site.", examples=[["sdsc"]]
    )
    starts_at: datetime | None = Field(
        description="The start; with a schedule, no opening is earlier, and null is no limit.",
        examples=["2026-03-01T08:00:00Z"],
    )
    ends_at: datetime | None = Field(
        description="The end; with a schedule, no opening starts later, and null is no limit.",
        examples=["2026-03-02T08:00:00Z"],
    )
    schedule: str = Field(
        description="Five cron fields, when each opening starts; empty: it occurs once.",
        examples=["0 8 * * tue"],
    )
    timezone: str = Field(description="The time zone of the schedule.", examples=["UTC"])
    duration_seconds: int | None = Field(
        description="How long each opening lasts; null without a schedule.", examples=[14400]
    )
    source: str = Field(
        description="The feed that announced it; `declared`: after the fact; empty: a user or grid file.",
        examples=[""],
    )
    url: str = Field(description="The announcement of a feed; may be empty.", examples=[""])


class MaintenanceList(ListOut):
    """A page of maintenance windows, by name."""

    maintenance: list[MaintenanceOut]


class MaintenanceQuery(Page, WindowFilter):
    """The windows to list: those open at some time from *start* until before *end*, at most 400 days."""

    site: NameFilter = Field("", description="The name of a site: windows there.", examples=["sdsc"])
    state: MaintenanceState | None = Field(None, description="The state of the window.", examples=["open"])


class MaintenanceTimes(Body):
    """When a window is open."""

    starts_at: Time | None = Field(
        None,
        description="The start; with a schedule, no opening is earlier.",
        examples=["2026-03-01T08:00:00Z"],
    )
    ends_at: Time | None = Field(
        None,
        description="The end; with a schedule, no opening starts later.",
        examples=["2026-03-02T08:00:00Z"],
    )
    schedule: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="Five cron fields without `H`: the starts of openings.", examples=[""]
    )
    timezone: Annotated[str, StringConstraints(max_length=50)] = Field(
        "UTC", description="The time zone of the schedule, an IANA name.", examples=["UTC"]
    )
    duration_seconds: Annotated[int, Field(ge=1, le=MAX_DURATION_SECONDS)] | None = Field(
        None, description="How long each opening lasts, with a schedule.", examples=[None]
    )


class MaintenanceIn(MaintenanceTimes):
    """A window to announce: *starts_at* and *ends_at*, or *schedule* and *duration_seconds*."""

    name: WindowName = Field(description="The name of the window.", examples=["sdsc-disks"])
    title: Title = Field("", description="The title on pages; empty: the reason.", examples=["New disks"])
    sites: Annotated[list[Name], Field(max_length=MOST_SITES)] = Field(
        description="The names of the sites; empty: every site.", examples=[["sdsc"]]
    )
    reason: Why = _REASON


class MaintenanceChangeIn(MaintenanceTimes):
    """What changes of a window; what is left out stays as it is."""

    title: Title = Field("", description="The title on pages.", examples=["New disks and controllers"])
    sites: Annotated[list[Name], Field(max_length=MOST_SITES)] = Field(
        [], description="The names of the sites; empty: every site.", examples=[["sdsc"]]
    )
    reason: Why = _REASON


class MaintenanceEndIn(Body):
    """Why a window ends now."""

    reason: Why = _REASON


class DeletionQuery(Schema):
    """Why a window is deleted."""

    reason: Why = _REASON


@router.get(
    "/maintenance",
    response=MaintenanceList,
    operation_id="list_maintenance",
    openapi_extra=declare(errors={422: ["window_too_long"]}),
    summary="List maintenance windows",
)
def list_maintenance(request: HttpRequest, query: Query[MaintenanceQuery]) -> HttpResponse:
    """The windows at every site, and those at sites that you may see, by name."""
    now, period = timezone.now(), _period(query)
    windows = MaintenanceWindow.objects.all()
    if query.site:
        site = Site.objects.visible_to(request.user).filter(name=query.site).first()
        windows = windows.at_site(site) if site else windows.none()

    def named(after: str, at_most: int) -> list[dict[str, Any]]:
        listed = listed_windows(
            windows, request.user, now, after=after, at_most=at_most, state=query.state, period=period
        )
        return [_fields(each) for each in listed]

    return list_named(query, named, MaintenanceList, key="name")


@router.get(
    "/maintenance/{window}",
    response=MaintenanceOut,
    operation_id="show_maintenance",
    openapi_extra=declare(errors={404: ["unknown_maintenance"]}),
    summary="Show a maintenance window",
)
def show_maintenance(request: HttpRequest, window: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return show_item(query, _shown(request, _found(request, window)), MaintenanceOut)


def _require(request: HttpRequest) -> None:
    require_site_permission(request, CHANGE_WINDOWS)


def _changeable(request: HttpRequest, window: str) -> MaintenanceWindow:
    found = _found(request, window)
    try:
        announcements.check_may_announce(list(found.sites.all()), request.user)
    except MaintenanceError as error:
        raise _refused(error) from error
    return found


@router.post(
    "/maintenance",
    response={201: MaintenanceOut},
    operation_id="create_maintenance",
    openapi_extra=declare(
        scope=RUN,
        permission=_require,
        errors={409: ["name_taken"], 422: ["unknown_site"]},
        example={
            "name": "ncsa-disks",
            "sites": ["ncsa"],
            "starts_at": "2100-03-01T08:00:00Z",
            "ends_at": "2100-03-02T08:00:00Z",
            "reason": "new disks",
        },
    ),
    summary="Announce a maintenance window, or declare one after the fact",
)
def create_maintenance(request: HttpRequest, order: MaintenanceIn) -> HttpResponse:
    """No scheduled run starts at the sites while the window is open. A window whose end lies in the past is
    declared: the availability of its days is recomputed, also of months that are final."""
    announcement = Announcement(order.title, _sites(request, order.sites), _times(order.model_dump()))
    reason = _reason(request, order.reason)
    try:
        announcements.check_may_announce(announcement.sites, request.user)
        window = announce_or_declare(order.name, announcement, reason)
    except (MaintenanceError, InvalidRecomputation) as error:
        raise _refused(error) from error
    return created(_shown(request, window), status=201, location=f"/maintenance/{window.name}")


@router.patch(
    "/maintenance/{window}",
    response=MaintenanceOut,
    operation_id="change_maintenance",
    openapi_extra=declare(
        scope=RUN,
        errors={
            404: ["unknown_maintenance"],
            409: ["unsuitable_state", "foreign_window"],
            422: ["unknown_site"],
        },
        permission=_require,
        subject=_changeable,
        example={"title": "New disks and fans", "reason": "fans came too"},
    ),
    summary="Change a maintenance window that is not over",
)
def change_maintenance(request: HttpRequest, window: str, order: MaintenanceChangeIn) -> MaintenanceOut:
    """An open window keeps its start. You need the permission at its former and at its new sites."""
    old, given = Announcement.of(subject_of(request)), order.model_dump(exclude_unset=True)
    try:
        announcement = Announcement(
            given.get("title", old.title),
            _sites(request, order.sites) if "sites" in given else old.sites,
            _times({**vars(old.times), **given}),
        )
        announcements.check_may_announce(announcement.sites, request.user)
        changed = announcements.change(window, announcement, _reason(request, order.reason))
    except MaintenanceError as error:
        raise _refused(error) from error
    return _shown(request, changed)


@router.post(
    "/maintenance/{window}/end",
    response=MaintenanceOut,
    operation_id="end_maintenance",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_maintenance"], 409: ["unsuitable_state", "foreign_window"]},
        permission=_require,
        subject=_changeable,
        example={"reason": "done early"},
    ),
    summary="End an open maintenance window now",
)
def end_maintenance(request: HttpRequest, window: str, order: MaintenanceEndIn) -> MaintenanceOut:
    """Slots of its sites run again. Of a recurring window, no further opening starts."""
    try:
        return _shown(request, announcements.end(window, _reason(request, order.reason)))
    except MaintenanceError as error:
        raise _refused(error) from error


@router.delete(
    "/maintenance/{window}",
    response={204: None},
    operation_id="delete_maintenance",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_maintenance"], 409: ["unsuitable_state", "foreign_window"]},
        permission=_require,
        subject=_changeable,
    ),
    summary="Delete a maintenance window",
)
def delete_maintenance(
    request: HttpRequest,
    window: str,
    query: Query[DeletionQuery],
) -> HttpResponse:
    """As if it had never been: the availability of the days of a window that has begun is recomputed."""
    try:
        withdraw_and_recompute(subject_of(request), _reason(request, query.reason))
    except (MaintenanceError, InvalidRecomputation) as error:
        raise _refused(error) from error
    return HttpResponse(status=204)


def _times(fields: dict[str, Any]) -> WindowTimes:
    return WindowTimes(**{name: fields[name] for name in WindowTimes.__dataclass_fields__})


def _reason(request: HttpRequest, why: str) -> Reason:
    return Reason(request.user.get_username(), why, timezone.now())


def _sites(request: HttpRequest, names: list[str]) -> list[Site]:
    sites = list(Site.objects.visible_to(request.user).filter(name__in=names))
    unknown = sorted(set(names) - {site.name for site in sites})
    if unknown:
        raise Refused(422, "unknown_site", f"sites: there is no site {unknown[0]!r} that you may see")
    return sites


def _found(request: HttpRequest, name: str) -> MaintenanceWindow:
    found = MaintenanceWindow.objects.visible_to(request.user).filter(name=name).first()
    if found is None:
        raise Refused(404, "unknown_maintenance", f"there is no maintenance window {name!r} that you may see")
    return found


def _period(query: MaintenanceQuery) -> WindowPeriod | None:
    """Return the period of *query*; the missing end of one is 400 days away."""
    query.within(MaintenanceWindow.objects.none(), "starts_at")  # refuses an empty window
    if query.start is None and query.end is None:
        return None
    start = query.start or (query.end or timezone.now()) - LONGEST_PERIOD
    end = query.end or start + LONGEST_PERIOD
    if end - start > LONGEST_PERIOD:
        raise Refused(422, "window_too_long", f"expected at most {LONGEST_PERIOD.days} days")
    return WindowPeriod(start, end)


def _refused(error: Exception) -> Refused:
    status, code = _STATUS.get(type(error), (422, "invalid"))
    return Refused(status, code, str(error))


def _shown(request: HttpRequest, window: MaintenanceWindow) -> MaintenanceOut:
    listed = listed_window(window, request.user, timezone.now())
    return MaintenanceOut.model_validate(_fields(listed))


def _fields(listed: ListedWindow) -> dict[str, Any]:
    window, occurrence = listed.window, listed.occurrence
    same = ("name", "title", "starts_at", "ends_at", "schedule", "timezone", "duration_seconds")
    return {
        **{name: getattr(window, name) for name in (*same, "source", "url")},
        "state": listed.state.value,
        "occurrence": occurrence and {"starts_at": occurrence.starts_at, "ends_at": occurrence.ends_at},
        "is_everywhere": listed.is_everywhere,
        "sites": list(listed.sites),
    }
