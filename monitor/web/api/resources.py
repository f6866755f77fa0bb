"""Resources of sites: what they offer, and their present state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from monitor.analysis.availability.site_states import OperationalState, resource_states, resources_with_states
from monitor.models import Resource
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import chosen
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_named, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter
from monitor.web.api.http.states import WithState, state_fields

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.analysis.availability.site_states import CurrentState
    from monitor.models.site import ResourceQuerySet

router = Router(tags=["sites"], auth=SCHEDULER_AUTH)


class ResourceOut(WithState):
    """A resource, its kinds of access, and its present state. Hosts and paths are not shown."""

    name: str = Field(description="The name of the resource.", examples=["ncsa-login"])
    site: str = Field(description="The name of its site.", examples=["ncsa"])
    shell: str | None = Field(description="How programs are run there; null: not at all.", examples=["ssh"])
    transfer: str | None = Field(
        description="How files are copied from and to it; null: not at all.", examples=["gridftp"]
    )
    batch: str | None = Field(description="How jobs are submitted; null: not at all.", examples=["slurm"])


class ResourceList(ListOut):
    """A page of resources, by name."""

    resources: list[ResourceOut]


class ResourceQuery(Page):
    """The resources to list."""

    site: NameFilter = Field("", description="The name of a site.", examples=["ncsa"])
    state: OperationalState | None = Field(None, description="The present state.", examples=["down"])


@router.get(
    "/resources",
    response=ResourceList,
    operation_id="list_resources",
    summary="List resources and their states",
)
def list_resources(request: HttpRequest, query: Query[ResourceQuery]) -> HttpResponse:
    """The resources of the series that you may see, by name."""
    now = timezone.now()
    visible = _visible(request).filter(**chosen(site__name=query.site))

    def named(after: str, at_most: int) -> list[dict[str, Any]]:
        rows = resources_with_states(
            request.user, visible, now, after=after, at_most=at_most, state=query.state
        )
        return [_shown(resource, current) for resource, current in rows]

    return list_named(query, named, ResourceList, key="name")


@router.get(
    "/resources/{resource}",
    response=ResourceOut,
    operation_id="show_resource",
    openapi_extra=declare(errors={404: ["unknown_resource"]}),
    summary="Show a resource and its state",
)
def show_resource(request: HttpRequest, resource: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    found = _visible(request).filter(name=resource).first()
    current = resource_states(request.user, [resource], timezone.now()).get(resource)
    if found is None or current is None:
        raise Refused(404, "unknown_resource", f"there is no resource {resource!r} that you may see")
    return show_item(query, _shown(found, current), ResourceOut)


def _visible(request: HttpRequest) -> ResourceQuerySet:
    return Resource.objects.visible_to(request.user).select_related("site")


def _shown(resource: Resource, current: CurrentState) -> dict[str, Any]:
    ways = {way: getattr(resource, way).get("kind") for way in ("shell", "transfer", "batch")}
    return {"name": resource.name, "site": resource.site.name, **ways, **state_fields(current)}
