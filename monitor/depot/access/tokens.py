"""Issue, rotate and revoke API tokens, within the rights of their users (docs/access.md).

Errors, all permanent::

    TokenError
    |-- InvalidTokenRequest     a value is invalid, or scopes, reporter and site do not fit
    |-- ExceedsRights    the user, the caller, or the token that asks, has not these rights
    |-- TooManyTokens    the user has the maximum number of usable tokens
    `-- TokenEnded       the token, or the one that asks, is revoked, expired, or was rotated before
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from monitor.depot.access.audit_trail import note
from monitor.depot.access.token_callers import (
    ExceedsRights,
    TokenError,
    check_caller,
    check_in_force,
    check_within,
    keep_identity,
)
from monitor.models import ApiToken, Reporter, Site
from monitor.models.alert import CHANGE_RULES
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.own_signature import MANAGE_SIGNATURES
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.role import act_as, identity_of, is_administrator
from monitor.models.site import OPERATE, may_manage_somewhere
from monitor.models.token import LIFETIME, MANAGE, OUTCOME, READ, REPORT, RUN, SCOPES
from monitor.models.webhook import MANAGE_WEBHOOKS

if TYPE_CHECKING:
    from monitor.models.site import SiteQuerySet
    from monitor.models.token import ApiTokenQuerySet

ENTRIES = ("site", "resource", "suite", "series")  # of the grid, which the API defines
MOST_DAYS = 3650
MOST_NAME_CHARACTERS = 100
MOST_TOKENS = 200  # usable ones of a user
GRACE = timedelta(days=1)  # that a rotated token stays valid, unless the caller says otherwise
MOST_GRACE = timedelta(days=30)
KEPT = timedelta(days=365)  # that tokens which ended stay listed
_MANAGING = (  # one of them suffices for the scope manage
    MANAGE_REPORTERS,
    MANAGE_SIGNATURES,
    MANAGE_WEBHOOKS,
    CHANGE_RULES,
    *(f"monitor.{verb}_{noun}" for verb in ("add", "change", "delete") for noun in ENTRIES),
)


class InvalidTokenRequest(TokenError):
    pass


class TooManyTokens(TokenError):
    pass


class TokenEnded(TokenError):
    pass


@dataclass(frozen=True)
class TokenRequest:
    """The token that *user* is to have.

    Attributes:
        days: how long it is valid; None: for ever.
        reporter: the reporter whose reports it sends; needed by the scope ``report``, and only by it.
        site: the only site at which it may run and manage anything.
    """

    user: User
    name: str
    scopes: Collection[str]
    days: int | None = LIFETIME.days
    reporter: str | None = None
    site: str | None = None


@dataclass(frozen=True)
class IssuedToken:
    """*text* is shown once, and stored nowhere.

    *dropped_scopes* are those that a rotated token had and its user's present roles do not permit.
    """

    token: ApiToken
    text: str
    dropped_scopes: Sequence[str] = ()


@transaction.atomic
def issue(
    request: TokenRequest, now: datetime, *, issuer: User | None, by: ApiToken | None = None
) -> IssuedToken:
    """Issue a token; *issuer* asks for it, None: at the command line, whose user may issue any token.

    It acts by the identity by which the user of *request* acts. With *by*, a program asks for it with its
    token: the new one has at most its rights, and no rotation prolongs it beyond the end of *by*.

    Raises:
        TokenError: as the module describes.
    """
    scopes = _checked_scopes(request)
    reporter, site = _reporter(request), _site(request)
    keep_identity(identity_of(request.user))
    check_in_force(request.user)
    if issuer is not None:
        check_caller(request.user, issuer)
        _check_rights(request, scopes, reporter, site)
    expires_at = _expiry(request, scopes, now, may_be_unlimited=issuer is None or is_administrator(issuer))
    if by is not None:
        site, expires_at = _within(by, scopes, reporter, site, expires_at)
        _lock([by], now)
    _check_number(request.user, now)
    text = ApiToken.objects.issue(
        request.user,
        request.name.strip(),
        scopes,
        reporter,
        site=site,
        expires_at=expires_at,
        is_unlimited=expires_at is None,
        family_expires_at=_end_of_derived(by),
        parent=by,
    )
    token = ApiToken.objects.with_text(text)
    note("token", _name(token), after=_fields(token))
    return IssuedToken(token, text)


@transaction.atomic
def rotate(
    token: ApiToken,
    now: datetime,
    *,
    caller: User | None,
    grace: timedelta = GRACE,
    by: ApiToken | None = None,
) -> IssuedToken:
    """Issue a token in place of *token*, which stays valid for *grace* or until it expires.

    *caller* asks for it, None: at the command line, whose user may have the text of any token. The new token
    has those rights of *token* that its user's roles permit now. It is valid for as long as *token* was when
    it was issued, but not beyond the end of the family. With *by*, another token asks for it, which has at
    least the rights of *token*: no rotation prolongs the new one beyond the end of *by*.

    Raises:
        TokenEnded: *token* is revoked, expired, or was rotated before, or *by* has ended.
        InvalidTokenRequest: *grace* is out of bounds.
        ExceedsRights: *caller* or *by* lacks a right of *token*, which may be suspended, or the roles of its
            user permit none of its scopes.
        TooManyTokens: the user would have too many valid tokens.
    """
    if not timedelta(0) <= grace <= MOST_GRACE:
        raise InvalidTokenRequest(f"grace: expected 0 s to {MOST_GRACE.total_seconds():.0f} s")
    keep_identity(token.identity_id)
    old = _lock([token, by] if by is not None else [token], now)[token.pk]
    if old.rotated_at is not None:
        raise TokenEnded(f"the token {_name(token)} was rotated before")
    check_in_force(old.user)
    if caller is not None:
        check_caller(old.user, caller)
    if by is not None:
        check_within(old, by)
    scopes, reporter = _present_rights(old)
    if grace:
        _check_number(old.user, now)
    own_end = None if old.expires_at is None else now + (old.expires_at - old.created_at)
    family_expires_at = _earliest([old.family_expires_at, _end_of_derived(by)])
    expires_at = _earliest([own_end, family_expires_at])
    text = ApiToken.objects.issue(
        old.user,
        old.name,
        scopes,
        reporter,
        site=old.site,
        expires_at=expires_at,
        is_unlimited=expires_at is None,
        family_expires_at=family_expires_at,
        parent=by or old,
    )
    before = _fields(old)
    old.rotated_at = now
    old.expires_at = now + grace if old.expires_at is None else min(old.expires_at, now + grace)
    old.save(update_fields=["rotated_at", "expires_at"])
    new = ApiToken.objects.with_text(text)
    note("token", _name(old), before=before, after={**_fields(old), "replaced_by": new.prefix})
    return IssuedToken(new, text, [scope for scope in old.scopes if scope not in scopes])


def check_scope_left(token: ApiToken) -> None:
    """Raise ExceedsRights if the present roles of its user permit none of the scopes of *token*."""
    stored = ApiToken.objects.select_related("user", "reporter", "site").filter(pk=token.pk).first()
    if stored is not None:
        act_as(stored.user, stored.identity_id)
        _present_rights(stored)


def revoke(tokens: ApiTokenQuerySet, now: datetime) -> int:
    """Revoke those of *tokens* that are not revoked yet; return their number.

    Of a family, also those that another request was issuing meanwhile: it has locked the token that they come
    of, so that they can be seen once that is locked here.
    """
    revoked: list[ApiToken] = []
    with transaction.atomic():
        while rows := list(tokens.filter(revoked_at=None).order_by("pk").select_for_update(of=("self",))):
            ApiToken.objects.filter(pk__in=[token.pk for token in rows]).update(revoked_at=now)
            revoked += rows
    for token in revoked:
        note("token", _name(token), before=_fields(token), after="revoked")
    return len(revoked)


def _lock(tokens: Iterable[ApiToken], now: datetime) -> dict[int, ApiToken]:
    """Lock *tokens*, by key, until the end of the transaction: what comes of them is revoked with them.

    Raises:
        TokenEnded: one of them is revoked or has expired.
    """
    wanted = {token.pk: token for token in tokens}
    rows = ApiToken.objects.select_related("user", "reporter", "site").usable(now).filter(pk__in=wanted)
    found = {token.pk: token for token in rows.order_by("pk").select_for_update(of=("self",))}
    for token in found.values():
        act_as(token.user, token.identity_id)
    for key, token in wanted.items():
        if key not in found:
            raise TokenEnded(f"the token {_name(token)} is revoked or has expired")
    return found


def expire(now: datetime) -> int:
    """Delete the tokens that ended more than ``KEPT`` ago; return their number.

    A token stays as long as those that came of it: a family is revoked by the links between its tokens.
    """
    ended = Q(expires_at__lt=now - KEPT) | Q(revoked_at__lt=now - KEPT)
    return ApiToken.objects.filter(ended, derived=None).delete()[0]


def offered_scopes(user: User) -> list[str]:
    """Return the scopes that a token of *user* can make use of."""
    may = {
        READ: True,
        RUN: any(may_manage_somewhere(user, permission) for permission in (OPERATE, CHANGE_WINDOWS)),
        REPORT: Reporter.objects.reportable_by(user).exists(),
        OUTCOME: user.has_perm("monitor.add_outcome"),
        MANAGE: any(may_manage_somewhere(user, permission) for permission in _MANAGING),
    }
    return [scope for scope in SCOPES if may[scope]]


def _present_rights(token: ApiToken) -> tuple[list[str], Reporter | None]:
    """Return the scopes of *token* that its user's present roles permit, and the reporter that they need.

    Raises:
        ExceedsRights: the roles permit none of the scopes.
    """
    user, scopes = token.user, set(token.scopes) & set(offered_scopes(token.user))
    if token.site is not None and not _manageable_sites(user).filter(pk=token.site.pk).exists():
        scopes -= {RUN, MANAGE}
    reporter = token.reporter
    if reporter is None or not Reporter.objects.reportable_by(user).filter(pk=reporter.pk).exists():
        scopes -= {REPORT}
    if not scopes:
        raise ExceedsRights(
            f"the present roles of {user} permit none of the scopes of the token: {', '.join(token.scopes)}"
        )
    return [scope for scope in SCOPES if scope in scopes], token.reporter if REPORT in scopes else None


def _manageable_sites(user: User) -> SiteQuerySet:
    return Site.objects.manageable_by(user) | Site.objects.manageable_by(user, MANAGE_REPORTERS)


def _check_number(user: User, now: datetime) -> None:
    """Raise TooManyTokens if *user* has the maximum number of tokens; locks the user, so counts are exact."""
    User.objects.select_for_update().get(pk=user.pk)
    if ApiToken.objects.filter(user=user).usable(now).count() >= MOST_TOKENS:
        raise TooManyTokens(
            f"{user} has {MOST_TOKENS} tokens that are valid: revoke some first, or rotate without grace"
        )


def _end_of_derived(by: ApiToken | None) -> datetime | None:
    """Return the end of all that comes of a token that *by* asks for: that of *by* itself."""
    return None if by is None else _earliest([by.expires_at, by.family_expires_at])


def _earliest(ends: Iterable[datetime | None]) -> datetime | None:
    """Return the earliest of *ends*, of which None is never."""
    return min((end for end in ends if end is not None), default=None)


def _checked_scopes(request: TokenRequest) -> list[str]:
    name = request.name.strip()
    if not name or len(name) > MOST_NAME_CHARACTERS or "\x00" in name:
        raise InvalidTokenRequest(f"name: expected 1 to {MOST_NAME_CHARACTERS} characters, got {len(name)}")
    unknown = sorted(set(request.scopes) - set(SCOPES))
    if unknown or not request.scopes:
        got = ", ".join(unknown)[:100] or "none"
        raise InvalidTokenRequest(f"scopes: expected some of {', '.join(SCOPES)}, got {got}")
    scopes = [scope for scope in SCOPES if scope in request.scopes]
    if (REPORT in scopes) != (request.reporter is not None):
        raise InvalidTokenRequest(
            "a token sends the reports of one reporter: the scope report and a reporter need each other"
        )
    if request.site is not None and not {RUN, MANAGE} & set(scopes):
        raise InvalidTokenRequest("site: only the scopes run and manage are bound to a site")
    return scopes


def _reporter(request: TokenRequest) -> Reporter | None:
    if request.reporter is None:
        return None
    found = None if "\x00" in request.reporter else Reporter.objects.filter(name=request.reporter).first()
    if found is None:
        raise InvalidTokenRequest(f"reporter: there is no reporter {request.reporter[:60]!r}")
    return found


def _site(request: TokenRequest) -> Site | None:
    if request.site is None:
        return None
    found = None if "\x00" in request.site else Site.objects.filter(name=request.site).first()
    if found is None:
        raise InvalidTokenRequest(f"site: there is no site {request.site[:60]!r}")
    return found


def _check_rights(
    request: TokenRequest, scopes: list[str], reporter: Reporter | None, site: Site | None
) -> None:
    """Raise ExceedsRights if the token could do what its user may not."""
    user = request.user
    beyond = sorted(set(scopes) - set(offered_scopes(user)))
    if beyond:
        raise ExceedsRights(f"the roles of {user} do not permit the scope {', '.join(beyond)}")
    if reporter is not None and not Reporter.objects.reportable_by(user).filter(pk=reporter.pk).exists():
        raise ExceedsRights(f"the roles of {user} do not permit reports of {reporter}")
    if site is not None and not _manageable_sites(user).filter(pk=site.pk).exists():
        raise ExceedsRights(f"the roles of {user} do not permit changes at {site}")


def _expiry(
    request: TokenRequest, scopes: list[str], now: datetime, *, may_be_unlimited: bool
) -> datetime | None:
    if request.days is None:
        if scopes != [READ] and not may_be_unlimited:
            raise ExceedsRights("only an administrator issues a token that writes and never expires")
        return None
    if not 1 <= request.days <= MOST_DAYS:
        raise InvalidTokenRequest(f"days: expected 1 to {MOST_DAYS}, got {request.days}")
    return now + timedelta(days=request.days)


def _within(
    by: ApiToken, scopes: list[str], reporter: Reporter | None, site: Site | None, expires_at: datetime | None
) -> tuple[Site | None, datetime | None]:
    """Return site and expiry of a token that the token *by* asks for."""
    if beyond := sorted(set(scopes) - set(by.scopes)):
        raise ExceedsRights(f"the token that asks has not the scope {', '.join(beyond)}")
    if reporter is not None and by.reporter_id != reporter.pk:
        raise ExceedsRights(f"the token that asks sends no reports of {reporter}")
    if by.site_id is not None and site is not None and site.pk != by.site_id:
        raise ExceedsRights("the token that asks is bound to another site")
    return site or by.site, _earliest([expires_at, by.expires_at])


def _name(token: ApiToken) -> str:
    return f"{token.user}: {token}"


def _fields(token: ApiToken) -> dict[str, object]:
    return {
        "scopes": token.scopes,
        "reporter": token.reporter.name if token.reporter else None,
        "site": token.site.name if token.site else None,
        "expires_at": token.expires_at,
        "family_expires_at": token.family_expires_at,
    }
