"""Identities of users, as a login by the provider leaves them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from allauth.socialaccount.models import SocialAccount
from django.utils import timezone

from monitor.models import EndedSessions, Identity
from monitor.web.accounts.environment import IdentityProvider
from monitor.web.accounts.sessions import ENDED_KEY, IDENTITY_KEY

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

ISSUER = "https://id.example.org"
PROVIDER = IdentityProvider(ISSUER, "gridcast", "s", "Grid Login", ("openid",), "groups", (("viewer", "g"),))


def identity_of(user: User, *roles: str, **fields: Any) -> Identity:
    """Give *user* another identity, in force, which brought *roles*."""
    subject, now = f"{user.username}-{user.identities.count() + 1}", timezone.now()
    usual = {
        "account": SocialAccount.objects.create(user=user, provider="oidc", uid=subject),
        "issuer": ISSUER,
        "subject": subject,
        "verified_at": now,
        "valid_until": now + timedelta(days=14),
    }
    return Identity.objects.create(user=user, roles=list(roles), **{**usual, **fields})


def session_by(browser: Client, user: User, identity: Identity | None) -> Client:
    """Let a session of *user* begin in *browser* that acts by *identity*; None: by what is granted here."""
    browser.force_login(user)
    session = browser.session
    session[IDENTITY_KEY] = identity.pk if identity else None
    session[ENDED_KEY] = EndedSessions.objects.times(user.pk)
    session.save()
    return browser
