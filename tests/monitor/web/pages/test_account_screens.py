"""The pages that refuse a login or a confirmation, on each screen, light and dark."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.shortcuts import render
from django.template.loader import get_template
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from monitor.models import DoorOpening
from monitor.web.accounts import events
from monitor.web.accounts.environment import IdentityProvider
from monitor.web.accounts.sessions import IDENTITY_KEY
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import Visitors, look

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
REFUSALS = "pages/login_refused.html"
REASONS = re.findall(r'reason == "(\w+)"', str(get_template(REFUSALS).template.source))  # type: ignore[attr-defined]
LONG = "a.name-of-an-institution-without-end@students.physics.example.org"
WHY = "the identity provider named no group with a role since 30 Nov 2026 and GRIDCAST_LOCAL_LOGIN is nobody"
EXPECTED = "the server responded with a status of 403"


@pytest.fixture
def by_provider(visitors: Visitors, settings: Settings) -> User:
    """An administrator by the provider alone, with a long name, who browses."""
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        "https://id.example.org", "x", "x", "Example Grid login", ("openid",), "groups", ()
    )
    user, browser = builders.user(LONG), Client()
    identity = identity_of(user, "administrator")
    browser.force_login(user)
    session = browser.session
    session[IDENTITY_KEY] = identity.pk
    session.save()
    visitors.session = browser.cookies["sessionid"].value
    return user


def test_pages_of_an_account_without_a_local_door_look_well(visitors: Visitors, by_provider: User) -> None:
    until = timezone.now() + timedelta(hours=1)
    paths = {"confirm": "/account/app/", "password": "/account/password/", "closed": "/account/"}
    wrong = [fault for name, path in paths.items() for fault in look(visitors, path, f"door/{name}")]
    DoorOpening.objects.create(user=by_provider, until=until)
    wrong += look(visitors, "/account/", "door/opened")
    wrong += look(visitors, f"/access/users/{by_provider.pk}/", "door/user")
    assert not [fault for fault in wrong if EXPECTED not in fault], "\n".join(wrong)


@pytest.mark.parametrize("screen", ["desk", "phone"])
def test_a_refused_local_login_fits_the_screen(visitors: Visitors, by_provider: User, screen: str) -> None:
    by_provider.set_password(builders.PASSWORD)
    by_provider.save()
    visitors.session = ""
    page = visitors.come(screen).open("/login/")
    page.get_by_label("User name").fill(LONG)
    page.get_by_label("Password").fill(builders.PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_role("heading", name="No local login").wait_for()
    page.screenshot(path=f"var/screenshots/door/no-local-login-{screen}.png", full_page=True)
    width = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert width <= 0


@pytest.mark.nightly
@pytest.mark.parametrize("reason", [*REASONS, "disabled"])
def test_every_refusal_of_a_login_looks_well(visitors: Visitors, reason: str) -> None:
    act, _ = events.PROVIDER_REFUSALS.get(reason, ("login", ""))
    remedy = f"opens it for a time: manage.py account open {LONG} --minutes 60"
    html = page(
        REFUSALS,
        None if act == "login" else LONG,
        reason=reason,
        name=LONG,
        provider="the single sign-on of the Example University",
        closed={"reason": WHY, "ways": ["the single sign-on", "the proxy in front"], "remedy": remedy},
        local_login=True,
        refusal={"has_account": False, "reason": WHY, "remedy": f"An administrator {remedy}."},
    )
    assert look(visitors, "/login/", f"refused/{reason}", html=html) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["due", "roles", "available", "role-gone", "busy", "changed"])
def test_pages_beside_the_account_look_well(visitors: Visitors, name: str) -> None:
    provider = IdentityProvider("https://id", "x", "x", "Example Grid login", ("openid",), "groups", ())
    duty = {"roles": ["administrator", "operator"], "until": timezone.now()}
    html = {
        "due": page("pages/second_factor_due.html", LONG, duty=duty, provider=provider),
        "roles": page("403.html", LONG, is_about_roles=True, may_read=True),
        "available": page("403.html", LONG, exception=f"The password of your account is inactive: {WHY}."),
        "role-gone": page("pages/login.html", None, without_roles=LONG, why=WHY, provider=provider),
        "busy": page("login_busy.html", None),
        "changed": page("pages/conflict.html", LONG, reason=f"Nothing is changed: {WHY}."),
    }
    assert look(visitors, "/login/", f"beside/{name}", html=html[name]) == []


def page(template: str, user: str | None, **context: Any) -> str:
    """Return *template*, as the user called so sees it; None: as a stranger does."""
    request = RequestFactory().get("/login/")
    request.user = AnonymousUser() if user is None else User(username=user)
    return render(request, template, context).content.decode()
