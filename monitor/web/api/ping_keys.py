"""Ping keys: secrets in the addresses of pings, each for one series."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.conf import settings
from django.utils import timezone
from ninja import Path, Query, Router, Schema
from pydantic import Field

from monitor.depot.access import ping_keys
from monitor.depot.access.ping_keys import NotReported
from monitor.models import PingKey, Series
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.token import MANAGE
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["reports"])
_UNKNOWN = {404: ["unknown_series"]}
_UNKNOWN_KEY = {404: ["unknown_ping_key", "unknown_series"]}
KeyId = Annotated[int, Path(ge=1, lt=2**63, description="The id of the key.")]
Name = Annotated[str, Path(description="The name of a series.", examples=["nightly-backup"])]


class PingKeyIn(Body):
    name: str = Field("", max_length=100, description="The program that will use the key.")


class PingKeyOut(Schema):
    """A ping key, without its text; *used_at* is the time of the last ping, to the minute."""

    id: int
    series: str
    name: str
    prefix: str
    created_at: datetime
    created_by: str
    used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str


class PingKeyList(ListOut):
    ping_keys: list[PingKeyOut]


class NewPingKey(PingKeyOut):
    """A new ping key; its *key* is not stored, and no other answer contains it. *url* is its address."""

    key: str
    url: str = Field(description="The address of a ping; keep it secret.")


def _require(request: HttpRequest) -> None:
    require_site_permission(request, MANAGE_REPORTERS, MANAGE)


def _found(request: HttpRequest, series: str, key: int) -> PingKey:
    found = _series(request, series).ping_keys.select_related("series").filter(pk=key).first()
    if found is None:
        raise Refused(404, "unknown_ping_key", f"the series {series} has no ping key {key}")
    return found


def _series(request: HttpRequest, series: str) -> Series:
    """Return the series. Raises Refused unless the caller may manage reporters at its sites."""
    visible = Series.objects.visible_to(request.user).select_related("reporter")
    found = visible.filter(name=series).first() if "\x00" not in series else None
    if found is None:
        raise Refused(404, "unknown_series", f"there is no series {series!r} that you may see")
    require_manageable(found, Series.objects.manageable_by(request.user, MANAGE_REPORTERS))
    return found


_OF_SERIES: dict[str, Any] = {
    "scope": MANAGE,
    "errors": _UNKNOWN,
    "permission": _require,
    "subject": _series,
}
_OF_KEY = {**_OF_SERIES, "errors": _UNKNOWN_KEY, "subject": _found}


@router.get(
    "/series/{series}/ping-keys",
    response=PingKeyList,
    operation_id="list_ping_keys",
    openapi_extra=declare(**_OF_SERIES),
    summary="List the ping keys of a series, newest first",
)
def list_ping_keys(request: HttpRequest, series: Name, query: Query[Page]) -> HttpResponse:
    rows = PingKey.objects.filter(series=subject_of(request)).select_related("series")
    return list_rows(query, rows, PingKeyList, order=["-pk"], show=_out)


@router.get(
    "/series/{series}/ping-keys/{key}",
    response=PingKeyOut,
    operation_id="show_ping_key",
    openapi_extra=declare(**_OF_KEY),
    summary="Show a ping key of a series",
)
def show_ping_key(request: HttpRequest, series: Name, key: KeyId, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return show_item(query, _out(subject_of(request)), PingKeyOut)


@router.post(
    "/series/{series}/ping-keys",
    response={201: NewPingKey},
    operation_id="create_ping_key",
    openapi_extra=declare(
        **{**_OF_SERIES, "errors": {**_UNKNOWN, 409: ["not_reported"]}}, example={"name": "cron of backup1"}
    ),
    summary="Create a ping key for a series",
)
def create_ping_key(request: HttpRequest, series: Name, order: PingKeyIn) -> HttpResponse:
    found: Series = subject_of(request)
    try:
        key, text = ping_keys.create(found, order.name, who=request.user.get_username(), now=timezone.now())
    except NotReported as error:
        raise Refused(409, "not_reported", str(error)) from error
    server = settings.GRIDCAST_URL or request.build_absolute_uri("/").rstrip("/")
    shown = NewPingKey(**_out(key).model_dump(), key=text, url=f"{server}/api/v1/ping/{text}")
    return created(shown, status=201, location=f"/series/{found.name}/ping-keys/{key.pk}")


@router.post(
    "/series/{series}/ping-keys/{key}/revoke",
    response=PingKeyOut,
    operation_id="revoke_ping_key",
    openapi_extra=declare(**_OF_KEY),
    summary="Revoke a ping key: its next ping is refused",
)
def revoke_ping_key(request: HttpRequest, series: Name, key: KeyId) -> PingKeyOut:
    found: PingKey = subject_of(request)
    ping_keys.revoke(found, who=request.user.get_username(), now=timezone.now())
    found.refresh_from_db(fields=["revoked_at", "revoked_by"])
    return _out(found)


def _out(key: PingKey) -> PingKeyOut:
    return PingKeyOut(
        id=key.pk,
        series=key.series.name,
        name=key.name,
        prefix=key.prefix,
        created_at=key.created_at,
        created_by=key.created_by,
        used_at=key.used_at,
        revoked_at=key.revoked_at,
        revoked_by=key.revoked_by,
    )
