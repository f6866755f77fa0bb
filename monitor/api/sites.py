"""Sites and their present state: what a scheduler polls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Prefetch
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.api.http.auth import SCHEDULER_AUTH
from monitor.api.http.declare import declare
from monitor.api.http.lists import ListOut, Page, Sparse, list_named, show_item
from monitor.api.http.problems import Refused
from monitor.api.http.states import WithState, state_fields
from monitor.availability.site_states import OperationalState, site_states, sites_with_states
from monitor.models import Resource, Site

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.availability.site_states import CurrentState
    from monitor.models.site import SiteQuerySet

router = Router(tags=["sites"], auth=SCHEDULER_AUTH)


class ContactOut(Schema):
    """A contact of a site."""

    name: str = Field(description="The name of a person, team or service.", examples=["Help desk"])
    email: str = Field(description="The e-mail address; may be empty.", examples=["help@example.org"])


class SiteOut(WithState):
    """A site and its present state."""

    name: str = Field(description="The name of the site.", examples=["ncsa"])
    title: str = Field(description="The title on pages; may be empty.", examples=["NCSA, Urbana"])
    resources: list[str] = Field(
        description="The names of its resources that you may see.", examples=[["ncsa-login"]]
    )
    notes: str = Field(description="What operators should know, plain text; may be empty.", examples=[""])
    contacts: list[ContactOut] = Field(description="Whom to ask about the site.")


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
    found = _visible(request).filter(name=site).first()
    if found is None:
        raise Refused(404, "unknown_site", f"there is no site {site!r} that you may see")
    return show_item(query, _shown(found, site_states(request.user, [site], timezone.now())[site]), SiteOut)


def _visible(request: HttpRequest) -> SiteQuerySet:
    resources = Resource.objects.visible_to(request.user).order_by("name")
    return Site.objects.visible_to(request.user).prefetch_related(Prefetch("resources", resources))


def _shown(site: Site, current: CurrentState) -> dict[str, Any]:
    resources = [resource.name for resource in site.resources.all()]
    return {
        "name": site.name,
        "title": site.title,
        "resources": resources,
        "notes": site.notes,
        "contacts": site.contacts,
        **state_fields(current),
    }
