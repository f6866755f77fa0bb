"""The pages that refuse a login or a confirmation, on each screen, light and dark."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.accounts.environment import IdentityProvider
from monitor.accounts.sessions import IDENTITY_KEY
from monitor.models import DoorOpening
from tests.monitor.accounts.identities import identity_of
from tests.monitor.pages import builders
from tests.monitor.pages.chromium import CHROMIUM
from tests.monitor.pages.visits import Visitors, look

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
LONG = "a.name-of-an-institution-without-end@students.physics.example.org"
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
