"""API tokens: listed, issued, rotated and revoked, each user its own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from django.contrib.auth.models import User
from django.utils import timezone
from ninja import Query, Router, Schema, Status
from pydantic import Field

from monitor.depot.access import roles, tokens
from monitor.depot.access.token_callers import ExceedsRights, TokenError
from monitor.depot.access.tokens import IssuedToken, TokenEnded, TokenRequest, TooManyTokens
from monitor.models import ApiToken
from monitor.models.role import act_as, identity_of, is_administrator
from monitor.models.token import LIFETIME, MANAGE, READ
from monitor.web.accounts.confirmation import is_confirmed
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import OWN_TOKEN_AUTH, SCHEDULER_AUTH, require_token_rights, token_of
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import chosen
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, NameFilter, RowId

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models.token import ApiTokenQuerySet

router = Router(tags=["access"], auth=SCHEDULER_AUTH)

_STATUS: dict[type[TokenError], tuple[int, str]] = {
    ExceedsRights: (403, "not_allowed"),
    TokenEnded: (409, "token_ended"),
    TooManyTokens: (409, "too_many_tokens"),
}


class TokenOut(Schema):
    """*prefix*: the first characters. *site*: the only site at which it may change anything.

    *family_expires_at*: the end that no rotation puts off; null: none. *stopped*: why requests with it are
    refused although it has not ended, for example because its identity is suspended; empty: they are not.
    """

    id: int
    user: str
    name: str
    prefix: str
    scopes: list[str]
    reporter: str | None
    site: str | None
    state: Literal["valid", "rotated", "expired", "revoked"]
    stopped: str
    created_at: datetime
    expires_at: datetime | None
    family_expires_at: datetime | None
    last_used_at: datetime | None
    last_used_from: str


class TokenList(ListOut):
    tokens: list[TokenOut]


class TokenQuery(Page):
    user: NameFilter = ""


class TokenIssued(TokenOut):
    """*token*: the text to send. It is shown once and not stored.

    *dropped_scopes*: those of the rotated token that the present roles of its user do not permit.
    """

    token: str
    dropped_scopes: list[str] = []


class TokenIn(Body):
    """*days*: how long it is valid; null: for ever. *user*: only an administrator names another one."""

    name: str
    scopes: list[str] = [READ]
    days: int | None = LIFETIME.days
    reporter: str | None = None
    site: str | None = None
    user: str | None = None


class RevocationQuery(Schema):
    """*family*: whether to revoke the tokens that came of it, too."""

    family: bool = False


class RotationIn(Body):
    """*grace_seconds*: how long the rotated token stays valid, if it does not expire before."""

    grace_seconds: Annotated[int, Field(ge=0, le=int(tokens.MOST_GRACE.total_seconds()))] = int(
        tokens.GRACE.total_seconds()
    )


def _visible(request: HttpRequest) -> ApiTokenQuerySet:
    """Return the tokens of the user, of an administrator all; with a token, those within its rights."""
    rows, own = ApiToken.objects.visible_to(request.user), token_of(request)
    rows = rows if own is None else rows.within(own)
    return rows.with_admission().select_related("reporter", "site")


def _find(request: HttpRequest, token: int) -> ApiToken:
    """Return the token. Raises Refused if it is none of the user, or has rights that the caller's lacks."""
    if not ApiToken.objects.visible_to(request.user).filter(pk=token).exists():
        raise Refused(404, "unknown_token", f"there is no token {token} that you may see")
    found = _visible(request).filter(pk=token).first()
    if found is None:
        raise Refused(403, "not_allowed", f"the token {token} has rights that the token of the request lacks")
    return found


def _changeable(request: HttpRequest, token: int) -> ApiToken:
    """Return the token as ``_find`` does. Raises Refused for another than the caller's without ``manage``."""
    found, own = _find(request, token), token_of(request)
    if own is not None and own.pk != found.pk:
        require_token_rights(request)
    return found


@router.get(
    "/tokens", response=TokenList, operation_id="list_tokens", summary="List API tokens, newest first"
)
def list_tokens(request: HttpRequest, query: Query[TokenQuery]) -> HttpResponse:
    """Your own tokens; an administrator sees those of all users. Tokens that ended stay listed for a year.

    A program sees those with at most the identity, scopes, reporter and site of its own token.
    """
    rows, now = _visible(request).filter(**chosen(user__username=query.user)), timezone.now()
    return list_rows(query, rows, TokenList, order=["-id"], show=lambda token: _shown(token, now))


@router.get(
    "/tokens/{token}",
    response=TokenOut,
    operation_id="show_token",
    openapi_extra=declare(errors={404: ["unknown_token"]}, subject=_find),
    summary="Show an API token",
)
def show_token(request: HttpRequest, token: RowId, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return show_item(query, _shown(subject_of(request), timezone.now()), TokenOut)


@router.post(
    "/tokens",
    response={201: TokenIssued},
    operation_id="create_token",
    openapi_extra=declare(
        scope=MANAGE,
        errors={409: ["too_many_tokens"], 422: ["unknown_user"]},
        permission=require_token_rights,
        example={"name": "scheduler", "scopes": ["read"], "days": 30},
    ),
    summary="Issue an API token",
)
def create_token(request: HttpRequest, order: TokenIn) -> HttpResponse:
    """A request with a token needs its scope `manage`; the new token has at most its scopes and its time.

    A session issues a token that never expires only within five minutes after its user confirmed.
    """
    by = require_token_rights(request)
    issuer: User = request.user  # type: ignore[assignment]  # authenticated
    now = timezone.now()
    if by is None and order.days is None:
        _check_confirmed(request)
    asked = TokenRequest(
        user=_owner(issuer, order.user),
        name=order.name,
        scopes=order.scopes,
        days=order.days,
        reporter=order.reporter,
        site=order.site,
    )
    try:
        issued = tokens.issue(asked, now, issuer=issuer, by=by)
    except TokenError as error:
        raise _refused(error) from error
    return _issued(issued, now)


def _require_scope_left(request: HttpRequest) -> None:
    """Raise Refused if the present roles of the user permit none of the scopes of the token."""
    try:
        tokens.check_scope_left(request.auth)  # type: ignore[attr-defined]  # only tokens get here
    except TokenError as error:
        raise _refused(error) from error


@router.post(
    "/tokens/self/rotate",
    response={201: TokenIssued},
    operation_id="rotate_own_token",
    auth=OWN_TOKEN_AUTH,
    openapi_extra=declare(
        scope="",
        errors={409: ["token_ended", "too_many_tokens"]},
        permission=_require_scope_left,
        example={"grace_seconds": 60},
    ),
    summary="Replace the API token of the request by a new one",
)
def rotate_own_token(request: HttpRequest, order: RotationIn) -> HttpResponse:
    """For every valid token, whatever its scopes are. The new one ends with the family at the latest."""
    own: ApiToken = request.auth  # type: ignore[attr-defined]  # only tokens get here
    return _rotated(own, order, caller=own.user, by=None)


@router.post(
    "/tokens/{token}/rotate",
    response={201: TokenIssued},
    operation_id="rotate_token",
    openapi_extra=declare(
        scope=MANAGE,
        errors={404: ["unknown_token"], 409: ["token_ended", "too_many_tokens"]},
        subject=_changeable,
        example={"grace_seconds": 60},
    ),
    summary="Replace an API token by a new one with the same rights",
)
def rotate_token(request: HttpRequest, token: RowId, order: RotationIn) -> HttpResponse:
    """A program may rotate the token that it sends; with the scope `manage`, others with at most its rights.

    A session rotates tokens of the identity by which it acts, and those without one. The new one ends with
    its family at the latest, and with the token of the request.
    """
    found, own = subject_of(request), token_of(request)
    if own is None and found.expires_at is None:
        _check_confirmed(request)
    by = None if own is None or own.pk == found.pk else own
    caller: User = request.user  # type: ignore[assignment]  # authenticated
    return _rotated(found, order, caller=caller, by=by)


@router.delete(
    "/tokens/{token}",
    response={204: None},
    operation_id="revoke_token",
    openapi_extra=declare(scope=MANAGE, errors={404: ["unknown_token"]}, subject=_changeable),
    summary="Revoke an API token",
)
def revoke_token(request: HttpRequest, token: RowId, query: Query[RevocationQuery]) -> Status[None]:
    """Revoking a token again has no effect. With *family*, those that came of it are revoked, too.

    A session may revoke every token of its user, of whatever identity.

    A program may revoke the token that it sends; with the scope `manage`, others with at most its rights.
    """
    found = subject_of(request)
    # What came of a token has at most its rights, so the caller may revoke all of it.
    rows = ApiToken.objects.family(found) if query.family else ApiToken.objects.filter(pk=found.pk)
    tokens.revoke(rows, timezone.now())
    return Status(204, None)


def _check_confirmed(request: HttpRequest) -> None:
    """Raise Refused unless the user has confirmed within minutes: such a token outlives a stolen session."""
    if not is_confirmed(request):
        raise Refused(
            403,
            "not_allowed",
            "a session issues tokens that never expire only within five minutes after password or factor were"
            " entered again: use the page /account/tokens/, or a token with the scope manage",
        )


def _rotated(token: ApiToken, order: RotationIn, *, caller: User, by: ApiToken | None) -> HttpResponse:
    now, grace = timezone.now(), timedelta(seconds=order.grace_seconds)
    try:
        issued = tokens.rotate(token, now, caller=caller, grace=grace, by=by)
    except TokenError as error:
        raise _refused(error) from error
    return _issued(issued, now)


def _owner(issuer: User, name: str | None) -> User:
    if name is None or name == issuer.get_username():
        own = User.objects.get(pk=issuer.pk)
        act_as(own, identity_of(issuer))
        return own
    if not is_administrator(issuer):
        raise Refused(403, "not_allowed", "only an administrator issues tokens for other users")
    owner = User.objects.filter(username=name, is_active=True).first()
    if owner is None:
        raise Refused(422, "unknown_user", f"user: expected an active user, got {name[:150]!r}")
    act_as(owner, roles.usual_identity(owner))
    return owner


def _refused(error: TokenError) -> Refused:
    status, code = _STATUS.get(type(error), (422, "invalid"))
    return Refused(status, code, str(error))


def _issued(issued: IssuedToken, now: datetime) -> HttpResponse:
    shown = TokenIssued(
        **_fields(issued.token, now),
        stopped="",
        token=issued.text,
        dropped_scopes=list(issued.dropped_scopes),
    )
    return created(shown, status=201, location=f"/tokens/{issued.token.pk}")


def _shown(token: Any, now: datetime) -> dict[str, Any]:
    """Return the fields of ``TokenOut`` of a token of ``_visible``."""
    return {**_fields(token, now), "stopped": token.stopped_because(now, is_admitted=token.is_admitted)}


def _fields(token: ApiToken, now: datetime) -> dict[str, Any]:
    """Return the fields of ``TokenOut`` but *stopped*: a token that was just issued works."""
    names = ("id", "name", "prefix", "scopes", "created_at", "last_used_at", "last_used_from")
    return {
        **{name: getattr(token, name) for name in (*names, "expires_at", "family_expires_at")},
        "user": token.user.get_username(),
        "reporter": token.reporter.name if token.reporter else None,
        "site": token.site.name if token.site else None,
        "state": token.state(now),
    }
