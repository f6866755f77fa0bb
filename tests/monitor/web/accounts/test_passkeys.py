"""Passkeys in Chromium, whose virtual authenticator stands for the device of a user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from playwright.sync_api import Browser, CDPSession, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests.monitor.web.pages import builders
from tests.monitor.web.pages.chromium import CHROMIUM, DEADLINE_MILLISECONDS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]
DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Visitor:
    """A browser with a device; *complaints* are errors of the pages' scripts and of their security policy."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url.replace("127.0.0.1", "localhost")  # passkeys need a name
        self.complaints: list[str] = []
        page.set_default_timeout(DEADLINE_MILLISECONDS)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: self.complaints.append(message.text) if message.type == "error" else None,
        )
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("WebAuthn.enable")
        self._device = self.plug_in(DEVICE)

    def plug_in(self, device: dict[str, object]) -> dict[str, str]:
        """Give the browser another *device*; return what names it."""
        answer = self._session.send("WebAuthn.addVirtualAuthenticator", {"options": device})
        return {"authenticatorId": answer["authenticatorId"]}

    def lose(self) -> None:
        """Take away the first device."""
        self._session.send("WebAuthn.removeVirtualAuthenticator", self._device)

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def log_in(self, user: User) -> None:
        self.open("/login/")
        self.page.get_by_label("User name").fill(str(user))
        self.page.get_by_label("Password").fill(builders.PASSWORD)
        self.press("Log in")

    def add_passkey(self, user: User, *, passwordless: bool) -> None:
        self.log_in(user)
        self.open("/account/passkeys/add/")
        self.page.get_by_label("Password").fill(builders.PASSWORD)
        self.press("Continue")
        self.page.get_by_label("Name").fill("Laptop")
        self.page.get_by_label("It logs in without the password").set_checked(passwordless)
        self.press("Add")
        expect(self.page.get_by_role("heading", name="Recovery codes")).to_be_visible()
        self.open("/account/")

    def verifies(self, *, user: bool) -> None:
        """Let the device recognise its user, or not."""
        self._session.send("WebAuthn.setUserVerified", {**self._device, "isUserVerified": user})


@pytest.fixture
def visitor(chromium: Browser, live_server: LiveServer) -> Iterator[Visitor]:
    context = chromium.new_context()
    arrived = Visitor(context.new_page(), live_server.url)
    yield arrived
    context.close()
    assert arrived.complaints == []


def test_a_passkey_logs_in_without_the_password(visitor: Visitor, reader: User) -> None:
    visitor.add_passkey(reader, passwordless=True)
    visitor.page.locator("header summary").last.click()
    visitor.press("Log out")
    visitor.open("/login/?next=/account/")
    visitor.press("Log in with a passkey")
    expect(visitor.page.get_by_role("heading", name="Second factors")).to_be_visible()
    expect(visitor.page.get_by_text("Laptop")).to_be_visible()
    assert Authenticator.objects.get(user=reader, type="webauthn").last_used_at is not None


def test_a_security_key_is_the_second_factor(visitor: Visitor, reader: User) -> None:
    visitor.add_passkey(reader, passwordless=False)
    visitor.page.locator("header summary").last.click()
    visitor.press("Log out")
    visitor.log_in(reader)
    expect(visitor.page.get_by_role("heading", name="Second factor")).to_be_visible()
    visitor.press("Use a passkey")
    expect(visitor.page).to_have_url(f"{visitor.url}/")


@pytest.mark.nightly
def test_a_device_that_does_not_recognise_its_user_does_not_log_in(visitor: Visitor, reader: User) -> None:
    visitor.add_passkey(reader, passwordless=True)
    visitor.page.locator("header summary").last.click()
    visitor.press("Log out")
    visitor.verifies(user=False)
    visitor.press("Log in with a passkey")
    expect(visitor.page.get_by_text("The device did not confirm")).to_be_visible()
    visitor.open("/account/")
    expect(visitor.page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.nightly
def test_a_passkey_is_renamed_confirmed_by_and_removed(visitor: Visitor, reader: User) -> None:
    visitor.add_passkey(reader, passwordless=True)
    visitor.page.get_by_role("link", name="Rename").click()
    visitor.page.get_by_label("Name").fill("Old laptop")
    visitor.press("Rename")
    expect(visitor.page.get_by_text("Old laptop")).to_be_visible()
    visitor.page.locator("header summary").last.click()
    visitor.press("Log out")
    visitor.press("Log in with a passkey")
    expect(visitor.page).to_have_url(f"{visitor.url}/")
    visitor.open("/account/confirm/passkey/?next=/account/recovery-codes/")
    visitor.press("Use a passkey")
    expect(visitor.page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    visitor.open("/account/")
    visitor.page.get_by_role("link", name="Remove").click()
    visitor.press("Remove")
    expect(visitor.page.get_by_text("the password alone opens the account")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1440, 390])
def test_a_user_adds_a_second_key_and_loses_the_first(visitor: Visitor, reader: User, width: int) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.add_passkey(reader, passwordless=True)
    visitor.open("/account/passkeys/add/")
    visitor.press("Add")
    expect(visitor.page.get_by_text("This device has a passkey of this account already.")).to_be_visible()
    visitor.plug_in({**DEVICE, "transport": "usb"})
    visitor.lose()
    visitor.page.get_by_label("Name").fill("---")
    visitor.press("Add")
    expect(visitor.page.get_by_text("visible characters with a letter or a digit")).to_be_visible()
    visitor.page.get_by_label("Name").fill("Key on the ring")
    visitor.press("Add")
    expect(visitor.page.get_by_text("Key on the ring")).to_be_visible()
    visitor.page.context.clear_cookies()
    visitor.open("/login/?next=/account/")
    visitor.press("Log in with a passkey")
    expect(visitor.page.get_by_text("Laptop")).to_be_visible()
    Authenticator.objects.filter(user=reader, type="webauthn").delete()
    visitor.page.context.clear_cookies()
    visitor.open("/login/")
    visitor.press("Log in with a passkey")
    expect(visitor.page.get_by_text("belongs to no account here")).to_be_visible()
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert visitor.page.evaluate(overflow) == 0


@pytest.mark.parametrize("width", [1440, 390])
def test_a_passkey_of_which_there_is_a_copy_is_refused(visitor: Visitor, reader: User, width: int) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.add_passkey(reader, passwordless=True)
    passkey = Authenticator.objects.get(user=reader, type="webauthn")
    passkey.data["counter"] = 1000  # of the copy
    passkey.save()
    visitor.page.context.clear_cookies()
    visitor.open("/login/")
    visitor.press("Log in with a passkey")
    expect(visitor.page.get_by_text("did not increase")).to_be_visible()
    visitor.log_in(reader)
    visitor.press("Use a passkey")
    expect(visitor.page.get_by_text("did not increase")).to_be_visible()
    code = Authenticator.objects.get(user=reader, type="recovery_codes").wrap().get_unused_codes()[0]
    visitor.page.get_by_label("Recovery code").fill(f"{code[:4]} {code[4:]}")
    visitor.press("Log in")
    expect(visitor.page).to_have_url(f"{visitor.url}/")


@pytest.mark.nightly
def test_where_browsers_offer_no_passkeys_the_pages_say_so(visitor: Visitor, reader: User) -> None:
    visitor.url = visitor.url.replace("localhost", "127.0.0.1")
    visitor.log_in(reader)
    visitor.open("/account/passkeys/add/")
    visitor.page.get_by_label("Password").fill(builders.PASSWORD)
    visitor.press("Continue")
    expect(visitor.page.get_by_text("open gridcast at localhost")).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Add")).not_to_be_visible()
