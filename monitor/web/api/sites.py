"""Sites and their present state, what a scheduler polls; and what is told about a site."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from django.db.models import Prefetch
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field, StringConstraints

from monitor.analysis.availability.site_states import OperationalState, site_states, sites_with_states
from monitor.models import Resource, Site
from monitor.models.site import MOST_CONTACTS, MOST_NOTES
from monitor.models.token import RUN
from monitor.operations.gridfile.site_details import (
    CONFIGURED,
    InvalidSiteDetails,
    SiteDetails,
    change_details,
    may_configure,
)
from monitor.web.api.http.auth import SCHEDULER_AUTH, require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_named, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body
from monitor.web.api.http.states import WithState, state_fields

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.analysis.availability.site_states import CurrentState
    from monitor.models.site import SiteQuerySet

router = Router(tags=["sites"], auth=SCHEDULER_AUTH)


_PUBLIC = "Whether visitors see its state and availability without a login."
_LATITUDE = "Degrees, north positive; null: its place on the map is not known."


class ContactOut(Schema):
    """A contact of a site."""

    name: str = Field(description="The name of a person, team or service.", examples=["Help desk"])
    email: str = Field(description="The e-mail address; may be empty.", examples=["help@example.org"])


class SiteOut(WithState):
    """A site and its present state."""

    name: str = Field(description="The name of the site.", examples=["ncsa"])
    title: str = Field(description="The title on pages; may be empty.", examples=["NCSA, Urbana"])
    latitude: float | None = Field(description=_LATITUDE, examples=[40.11])
    longitude: float | None = Field(description="Degrees, east positive.", examples=[-88.22])
    is_public: bool = Field(description=_PUBLIC, examples=[False])
    resources: list[str] = Field(
        description="The names of its resources that you may see.", examples=[["ncsa-login"]]
    )
    notes: str = Field(description="What operators should know, plain text; may be empty.", examples=[""])
    contacts: list[ContactOut] = Field(description="Whom to ask about the site.")


class ContactIn(Body):
    """A contact of a site."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] = Field(
        description="The name of a person, team or service.", examples=["Help desk"]
    )
    email: Annotated[str, StringConstraints(max_length=254)] = Field(
        "", description="The e-mail address; may be empty.", examples=["help@example.org"]
    )


class SiteChangeIn(Body):
    """What changes of a site; what is left out stays as it is."""

    title: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="The title on pages.", examples=["NCSA, Urbana"]
    )
    latitude: Annotated[float, Field(ge=-90, le=90)] | None = Field(
        None, description=_LATITUDE, examples=[40.11]
    )
    longitude: Annotated[float, Field(ge=-180, le=180)] | None = Field(
        None, description="Degrees, east positive.", examples=[-88.22]
    )
    is_public: bool = Field(
        False,
        description="Whether visitors see its state and availability without a login.",
        examples=[False],
    )
    notes: Annotated[str, StringConstraints(max_length=MOST_NOTES)] = Field(
        "", description="What operators should know, plain text.", examples=[""]
    )
    contacts: Annotated[list[ContactIn], Field(max_length=MOST_CONTACTS)] = Field(
        [], description="Whom to ask about the site."
    )


class SiteList(ListOut):
    """A page of sites, by name."""

    sites: list[SiteOut]


class SiteQuery(Page):
    """The state of the sites to list."""

    state: OperationalState | None = Field(None, description="The present state.", examples=["down"])


@router.get("/sites", response=SiteList, operation_id="list_sites", summary="List sites and their states")
def list_sites(request: HttpRequest, query: Query[SiteQuery]) -> HttpResponse:
    """The sites of the series that you may see, by name. Polling is cheap: no history is read, and
    `If-None-Match` answers 304 while nothing changes."""
    now = timezone.now()

    def named(after: str, at_most: int) -> list[dict[str, Any]]:
        rows = sites_with_states(
            request.user, _visible(request), now, after=after, at_most=at_most, state=query.state
        )
        return [_shown(site, current) for site, current in rows]

    return list_named(query, named, SiteList, key="name")


@router.get(
    "/sites/{site}",
    response=SiteOut,
    operation_id="show_site",
    openapi_extra=declare(errors={404: ["unknown_site"]}),
    summary="Show a site and its state",
)
def show_site(request: HttpRequest, site: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    found = _found(request, site)
    return show_item(query, _shown(found, site_states(request.user, [site], timezone.now())[site]), SiteOut)


def _manageable(request: HttpRequest, site: str) -> Site:
    found = _found(request, site)
    require_manageable(found, Site.objects.manageable_by(request.user))
    return found


@router.patch(
    "/sites/{site}",
    response=SiteOut,
    operation_id="change_site",
    openapi_extra=declare(
        scope=RUN,
        errors={404: ["unknown_site"]},
        permission=require_site_permission,
        subject=_manageable,
        example={"notes": "Home is on a new file system.", "latitude": 40.11, "longitude": -88.22},
    ),
    summary="Change what is told about a site",
)
def change_site(request: HttpRequest, site: str, order: SiteChangeIn) -> dict[str, Any]:
    """A site admin changes notes, contacts and the place of the own sites; *title* and *is_public* need the
    role operator. `/grid/sites/{name}` has the limits of a site."""
    found: Site = subject_of(request)
    given = {key: value for key, value in order.model_dump().items() if key in order.model_fields_set}
    if given.keys() & set(CONFIGURED) and not may_configure(request.user):
        raise Refused(403, "not_allowed", f"{' and '.join(CONFIGURED)} need the permission to change sites")
    try:
        change_details(found, replace(SiteDetails.of(found), **given))
    except InvalidSiteDetails as error:
        raise Refused(422, "invalid", str(error)) from None
    return _shown(found, site_states(request.user, [site], timezone.now())[site])


def _found(request: HttpRequest, name: str) -> Site:
    found = _visible(request).filter(name=name).first()
    if found is None:
        raise Refused(404, "unknown_site", f"there is no site {name!r} that you may see")
    return found


def _visible(request: HttpRequest) -> SiteQuerySet:
    resources = Resource.objects.visible_to(request.user).order_by("sort_name")
    return Site.objects.visible_to(request.user).prefetch_related(Prefetch("resources", resources))


def _shown(site: Site, current: CurrentState) -> dict[str, Any]:
    resources = [resource.name for resource in site.resources.all()]
    return {
        "name": site.name,
        "title": site.title,
        "latitude": site.latitude,
        "longitude": site.longitude,
        "is_public": site.is_public,
        "resources": resources,
        "notes": site.notes,
        "contacts": site.contacts,
        **state_fields(current),
    }
