"""A second factor that fails is told with the step that was right before it: password, or provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from monitor.models import AccountMail
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import code_of, log_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.accounts.provider.test_waiting_logins import STEP, give_app

pytestmark = pytest.mark.django_db
Browsers = Callable[[], Client]
STEPS: Mapping[str, tuple[str, str]] = {
    "password": ("password", "change the password"),
    "provider": ("login at Grid Login", "secure your account there"),
}


@pytest.mark.parametrize("step", STEPS)
def test_page_and_mail_name_the_step_that_was_right_and_what_helps(
    step: str,
    reader: User,
    browser_elsewhere: Browsers,
    op: OpenIdProvider,
    settings: Settings,
) -> None:
    """An account of the provider has no password, which could be right or changed."""
    settings.EMAIL_HOST = "mail.example.org"
    User.objects.filter(pk=reader.pk).update(email="ada@example.org")
    if step == "provider":
        User.objects.filter(pk=reader.pk).update(password=make_password(None))
        identity_of(reader, "viewer", issuer=op.issuer, subject=op.claims["sub"], is_verified=True)
    secret = give_app(reader)
    thief, own = browser_elsewhere(), browser_elsewhere()
    for browser, code in ((thief, "000000"), (own, code_of(secret))):
        first = op.log_in(browser) if step == "provider" else log_in(browser, reader)
        assert first["Location"] == STEP
        browser.post(STEP, {"code": code})
    texts = [own.get("/account/").content.decode(), AccountMail.objects.get().text]
    for each, (right, remedy) in STEPS.items():
        assert [f"{right} was right" in texts[0], f"The {right} of your account" in texts[1]] == [
            each == step
        ] * 2
        assert [f"If it was not you, {remedy}." in text for text in texts] == [each == step] * 2
