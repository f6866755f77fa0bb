"""In a browser, each form leads on to the provider and back: no policy of ours stops it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import Identity
from monitor.models.role import UserRole
from monitor.web.accounts.environment import LOGIN
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM, DEADLINE_MILLISECONDS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
    pytest.mark.django_db(transaction=True),
]
DESKTOP, PHONE = (1440, 900), (390, 844)


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page whose scripts and security policy complain of nothing."""
    width, height = request.param
    context = chromium.new_context(viewport={"width": width, "height": height})
    opened, complaints = context.new_page(), list[str]()
    opened.set_default_timeout(DEADLINE_MILLISECONDS)
    opened.on("console", lambda said: complaints.append(said.text) if _is_complaint(said) else None)
    yield opened
    assert complaints == []
    context.close()


def _is_complaint(said: ConsoleMessage) -> bool:
    """Return whether a script or the policy complains; the status of a page that refuses is no complaint."""
    return said.type == "error" and "(Forbidden)" not in said.text


def is_within_the_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_a_user_of_the_provider_confirms_there(
    page: Page, live_server: LiveServer, op: OpenIdProvider, settings: Settings
) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = replace(settings.GRIDCAST_IDENTITY_PROVIDER, confirm=LOGIN)
    page.goto(f"{live_server.url}/login/")
    page.get_by_role("link", name="Log in with Grid Login").click()
    page.goto(f"{live_server.url}/account/")
    expect(page.get_by_text(op.claims["sub"])).to_be_visible()
    assert is_within_the_window(page)
    page.goto(f"{live_server.url}/account/app/")
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    assert is_within_the_window(page)
    page.get_by_role("button", name="Continue to Grid Login").click()
    expect(page).to_have_url(f"{live_server.url}/account/app/")
    page.goto(f"{live_server.url}/account/")
    page.locator("header summary").last.click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Logged out")).to_be_visible()


def test_a_local_user_connects_an_identity_and_disconnects_it(
    page: Page, live_server: LiveServer, op: OpenIdProvider
) -> None:
    user = builders.user("ada", password=builders.PASSWORD)
    roles.grant(user, Grant(UserRole.OPERATOR))
    page.goto(f"{live_server.url}/login/?next=/account/connect/")
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill(builders.PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_label("Password").fill(builders.PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Continue to Grid Login").click()
    expect(page).to_have_url(f"{live_server.url}/account/")
    expect(page.get_by_text("Connected: you can log in there from now on.")).to_be_visible()
    page.get_by_role("link", name="Disconnect").click()
    assert is_within_the_window(page)
    page.get_by_role("button", name="Disconnect").click()
    expect(page).to_have_url(f"{live_server.url}/login/?next=/account/")
    assert not Identity.objects.exists()


def test_a_refused_user_can_choose_another_account(
    page: Page, live_server: LiveServer, op: OpenIdProvider
) -> None:
    op.claims["groups"] = ["chess"]
    page.goto(f"{live_server.url}/login/sso/")
    expect(page.get_by_role("heading", name="No access")).to_be_visible()
    assert is_within_the_window(page)
    op.claims["groups"] = ["a"]
    page.get_by_role("link", name="Log in with another account of Grid Login").click()
    expect(page).to_have_url(f"{live_server.url}/")
    assert User.objects.filter(username=op.claims["preferred_username"]).exists()
