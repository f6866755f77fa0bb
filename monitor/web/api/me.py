"""The caller: its user, roles and rights, and its token."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema

from monitor.depot.access import roles, tokens
from monitor.models.role import roles_of
from monitor.web.api.http.auth import OWN_TOKEN_AUTH, PersonAuth, token_of
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import Sparse, show_item

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

    from monitor.models import ApiToken

router = Router(tags=["access"], auth=[*OWN_TOKEN_AUTH, PersonAuth(is_for_schedulers=True)])


class OwnTokenOut(Schema):
    """The token of the request. *family_expires_at*: the end that no rotation puts off; null: none."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    site: str | None
    expires_at: datetime | None
    family_expires_at: datetime | None


class MeOut(Schema):
    """*roles*: `viewer` without any other. *grants*: what was granted, such as `site_admin:ncsa`.

    *scopes*: those that a token of the user can make use of. *token*: that of the request, if it has one.
    """

    user: str
    roles: list[str]
    grants: list[str]
    scopes: list[str]
    token: OwnTokenOut | None


@router.get(
    "/me",
    response=MeOut,
    operation_id="show_me",
    openapi_extra=declare(scope=""),
    summary="Show who you are and what you may do",
)
def show_me(request: HttpRequest, query: Query[Sparse]) -> HttpResponse:
    """For every valid token, whatever its scopes are."""
    user: User = request.user  # type: ignore[assignment]  # authenticated
    token = token_of(request)
    me = {
        "user": user.get_username(),
        "roles": sorted(roles_of(user)),
        "grants": [str(grant) for grant in roles.present_grants(user)],
        "scopes": tokens.offered_scopes(user),
        "token": _token(token) if token else None,
    }
    return show_item(query, me, MeOut)


def _token(token: ApiToken) -> dict[str, Any]:
    site = token.site
    names = ("id", "name", "prefix", "scopes", "expires_at", "family_expires_at")
    return {**{name: getattr(token, name) for name in names}, "site": site.name if site else None}
