"""Logouts that begin at the provider (Back-Channel Logout 1.0), and those that end there (RP-Initiated)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from monitor.models import Identity, ProviderLogout
from monitor.models.identity import names_of
from monitor.web.accounts import identities
from monitor.web.accounts.provider import metadata
from monitor.web.accounts.provider.exchange import waiting_place
from monitor.web.accounts.provider.faults import ProviderUnusable
from monitor.web.accounts.provider.tokens import LEEWAY_SECONDS, LOGOUT_SECONDS, Signer, verify_logout_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from monitor.web.accounts.environment import IdentityProvider

_KEPT = timedelta(seconds=LOGOUT_SECONDS + 2 * LEEWAY_SECONDS)


def end_by_provider(
    token: str, provider: IdentityProvider, now: datetime, on_verified: Callable[[], None]
) -> Identity | None:
    """Suspend the identity whose user, as *token* says, has logged out at *provider*; None: it is unknown.

    A token may name a session there instead of a user: it means the one that logged in with it last.
    *on_verified* is called between the last question to the provider and the first change.

    Raises:
        ProviderFault: the token is no logout token of the provider for us, or was used before.
    """
    published = metadata.published_metadata(provider.url, now)
    signer = Signer(
        published.discovery,
        provider.client_id,
        published.keys,
        lambda: metadata.newer_keys(provider.url, now, waiting_place()),
    )
    claims = verify_logout_token(token, signer, now.timestamp())
    on_verified()
    if not ProviderLogout.objects.use(claims.jti, now + _KEPT):
        raise ProviderUnusable("logout token: it was used before")
    issuer, known = published.discovery.issuer, Identity.objects.select_related("user")
    if claims.sub is not None:
        identity = known.filter(account__uid=identities.uid_of(issuer, claims.sub)).first()
    else:
        named = known.filter(issuer__in=names_of(issuer), provider_sessions__contains=[claims.sid])
        identity = named.order_by("-verified_at").first()
    if identity is not None:
        identities.suspend(identity, f"logged out at {provider.name}", now)
    return identity


def logout_url(provider: IdentityProvider, back_to: str) -> str:
    """Return the address for the logout at *provider*, too; empty if it offers none."""
    published = metadata.stored_metadata(provider.url)
    endpoint = None if published is None else published.discovery.end_session_endpoint
    if endpoint is None:
        return ""
    query = urlencode({"client_id": provider.client_id, "post_logout_redirect_uri": back_to})
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"
