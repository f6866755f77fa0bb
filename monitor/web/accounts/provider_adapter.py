"""What django-allauth asks about the identity provider of the environment, whose groups give the roles."""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from allauth.account.internal.flows.login import record_authentication
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.contrib.auth.models import User
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from monitor.core.clipping import clipped
from monitor.models import Identity
from monitor.models.role import identity_of
from monitor.web.accounts import attempts, events, group_roles, identities, users
from monitor.web.accounts.confirmation import AT_PROVIDER, CONFIRMED_SECONDS, is_confirmed, is_offered
from monitor.web.accounts.environment import AUTH_TIME
from monitor.web.accounts.provider.tokens import LEEWAY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from allauth.socialaccount.models import SocialLogin
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.http import HttpRequest

    from monitor.web.accounts.environment import IdentityProvider

logger = logging.getLogger(__name__)

PROVIDER = "openid_connect"
PROVIDER_ID = "oidc"


def identity_provider() -> IdentityProvider:
    """Return the configured provider; only called where there is one."""
    if settings.GRIDCAST_IDENTITY_PROVIDER is None:
        raise SocialApp.DoesNotExist
    return settings.GRIDCAST_IDENTITY_PROVIDER


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def list_apps(
        self, _request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """Return the provider of the environment; allauth's table of providers is not used."""
        configured = settings.GRIDCAST_IDENTITY_PROVIDER
        if configured is None or provider not in {None, PROVIDER, PROVIDER_ID}:
            return []
        app = SocialApp(
            provider=PROVIDER,
            provider_id=PROVIDER_ID,
            name=configured.name,
            client_id=configured.client_id,
            secret=configured.client_secret,
            settings={
                "server_url": configured.url,
                "oauth_pkce_enabled": True,
                "scope": list(configured.scopes),
            },
        )
        return [app] if client_id in {None, app.client_id} else []

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Give the identity the roles of the groups that the provider names now; refuse one without any.

        An identity of before is suspended then, with its sessions and tokens, until a login names a group.
        """
        sociallogin.email_addresses = []  # accounts are matched by the provider's subject, never by mail
        now, names = timezone.now(), self._roles(sociallogin)
        is_first = not sociallogin.is_existing and sociallogin.state.get("process") == AuthProcess.LOGIN
        if names and is_first:
            users.lock_names()  # of two first logins at once, one makes the account, and the other finds it
            sociallogin.lookup()
        if names and sociallogin.is_existing:
            self.admit(sociallogin)
        elif not names:
            for identity in Identity.objects.filter(account_id=sociallogin.account.pk):
                identities.suspend(identity, f"{identity_provider().name} named no group with a role", now)
            raise _refused(request, sociallogin, "no_role")
        state = sociallogin.state
        if state.get("is_confirmation"):
            self._confirm(request, sociallogin)
        elif state.get("process") == AuthProcess.CONNECT:
            has_room = sociallogin.is_existing or _has_room(request.user, sociallogin.account)
            if not _is_begun_by(request, state) or not is_confirmed(request) or not has_room:
                raise _refused(request, sociallogin, "not_connected")
            attempts.take_back_start(request)

    def _confirm(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Take a login there as the confirmation of the user here, if it is that user, and recent."""
        login, now = sociallogin.verified_login, time.time()
        is_same = sociallogin.is_existing and sociallogin.user.pk == request.user.pk
        acts_by = identity_of(request.user)
        of_session = Identity.objects.filter(pk=acts_by or 0, account_id=sociallogin.account.pk)
        if not _is_begun_by(request, sociallogin.state) or not is_same or not (acts_by is None or of_session):
            raise _refused(request, sociallogin, "confirmed_by_another")
        if not is_offered(request, AT_PROVIDER):
            raise _refused(request, sociallogin, "confirms_here")
        at = login.auth_time if identity_provider().confirm == AUTH_TIME else sociallogin.state["begun_at"]
        if at is None or not -LEEWAY_SECONDS <= now - at <= CONFIRMED_SECONDS:
            raise _refused(request, sociallogin, "confirmed_too_early")
        record_authentication(
            request,
            request.user,
            "socialaccount",
            reauthenticated=True,
            provider=sociallogin.account.provider,
            uid=sociallogin.account.uid,
        )
        attempts.take_back_start(request)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """Accept a user with a role, unless a local account has the name: it may be another person's."""
        try:
            users.check_foreign_name(sociallogin.user.get_username())
        except users.InvalidName as error:
            logger.warning("no account by the provider: %s", error)
            reason = "name_taken" if isinstance(error, users.NameTaken) else "name_refused"
            raise _refused(request, sociallogin, reason) from error
        return True

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: Any = None) -> User:
        user: User = super().save_user(request, sociallogin, form)
        self.admit(sociallogin)
        return user

    def admit(self, sociallogin: SocialLogin) -> Identity:
        """Store that the provider has named the user of *sociallogin*, with the roles of its groups."""
        login, names = sociallogin.verified_login, self._roles(sociallogin)
        return identities.admit(
            sociallogin.account, login.issuer, login.subject, names, timezone.now(), login.provider_session
        )

    def get_connect_redirect_url(self, _request: HttpRequest, _account: SocialAccount) -> str:
        return reverse("account")

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, **_: Any
    ) -> None:
        events.refuse(request, "", f"{provider.name}: {clipped(str(exception or error))}")
        reason = "cancelled" if str(error) == "cancelled" else "provider_failed"
        raise ImmediateHttpResponse(_page(request, reason, HTTPStatus.UNAUTHORIZED))

    def _roles(self, sociallogin: SocialLogin) -> set[str]:
        configured = identity_provider()
        groups = group_roles.groups_in(sociallogin.verified_login.claims, configured.groups_claim)
        return group_roles.present_roles(group_roles.roles_of_groups(groups, configured.roles))


def _has_room(user: AbstractBaseUser | AnonymousUser, account: SocialAccount) -> bool:
    """Return whether *user* may have the new *account* as well; another callback of the user waits for this.

    One that began earlier may have connected the same account meanwhile.
    """
    Identity.objects.lock_of(user.pk)
    of_user = Identity.objects.filter(user_id=user.pk or 0)
    is_taken = SocialAccount.objects.filter(provider=account.provider, uid=account.uid).exists()
    return not is_taken and of_user.count() < identity_provider().most_identities


def _is_begun_by(request: HttpRequest, state: Mapping[str, Any]) -> bool:
    """Return whether the user of the session has begun the step of *state*, and no other user before it."""
    return request.user.is_authenticated and request.user.pk == state.get("begun_by")


def _refused(request: HttpRequest, sociallogin: SocialLogin, reason: str) -> ImmediateHttpResponse:
    name = sociallogin.user.get_username()
    events.refuse_by_provider(request, name, identity_provider().name, reason)
    return ImmediateHttpResponse(_page(request, reason, HTTPStatus.FORBIDDEN, name))


def _page(request: HttpRequest, reason: str, status: HTTPStatus, name: str = "") -> Any:
    context = {"reason": reason, "name": name, "provider": identity_provider().name}
    return render(request, "pages/login_refused.html", context, status=status)
