"""The provider's name of a new user is accepted unless it looks like another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.web.accounts import users
from tests.monitor.web.accounts.logins import is_logged_in
from tests.monitor.web.accounts.provider.openid_provider import OpenIdProvider
from tests.monitor.web.accounts.test_factor_races import at_once

TAKEN, REFUSED = "The name is taken", "The name is not accepted"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grace@example.org", ""),
        ("gr\N{LATIN SMALL LETTER A WITH DIAERESIS}ce-1", ""),
        ("\N{CYRILLIC SMALL LETTER DE}\N{CYRILLIC SMALL LETTER A}", ""),
        ("Chief", TAKEN),
        ("\N{CYRILLIC SMALL LETTER ES}hief", REFUSED),
        ("\N{FULLWIDTH LATIN SMALL LETTER C}hief", REFUSED),
        ("chief\N{GREEK SMALL LETTER OMICRON}", REFUSED),
        ("\N{CYRILLIC SMALL LETTER ES}\N{CYRILLIC SMALL LETTER O}" * 2, REFUSED),  # looks like coco
        ("\N{CYRILLIC SMALL LETTER A}-1", REFUSED),
        ("\N{CJK UNIFIED IDEOGRAPH-5C71}", ""),
        ("wei\N{LATIN SMALL LETTER SHARP S}", TAKEN),
        ("WEISS", TAKEN),
        ("gr\N{LATIN SMALL LETTER A WITH RING ABOVE}ce ada", REFUSED),
        ("gra\N{ZERO WIDTH JOINER}ce", REFUSED),
    ],
)
def test_a_name_that_looks_like_another_makes_no_account(
    browser: Client, op: OpenIdProvider, name: str, words: str
) -> None:
    User.objects.create_user("chief")
    User.objects.create_user("weiss")
    op.claims["preferred_username"] = name
    answer = op.log_in(browser)
    assert is_logged_in(browser) == (not words)
    if words:
        assert (answer.status_code, words in answer.content.decode()) == (403, True)
        assert User.objects.count() == 2


@pytest.mark.parametrize(
    ("claims", "made"),
    [
        ({"preferred_username": "grace", "email": "g@example.org"}, "grace"),
        ({"email": "g@example.org", "given_name": "Grace"}, "g@example.org"),
        ({"email": "g@example.org", "email_verified": True}, "g@example.org"),
        ({"preferred_username": "g h", "email": "g@example.org", "name": "Grace Hopper"}, "g@example.org"),
        ({"email": "g@example.org", "email_verified": False}, None),
        ({"email": "g@example.org", "email_verified": "false"}, None),
        ({"email": "grace hopper", "given_name": "Grace"}, None),
        ({"email": f"{'g' * 150}@example.org"}, None),
        ({"given_name": "Grace", "family_name": "Hopper", "name": "Grace Hopper"}, None),
        ({}, None),
    ],
)
def test_the_user_name_or_the_mail_address_names_the_account_and_no_other_claim(
    claims: dict[str, object], made: str | None, browser: Client, op: OpenIdProvider
) -> None:
    del op.claims["preferred_username"]
    op.claims |= claims
    answer = op.log_in(browser)
    assert list(User.objects.values_list("username", flat=True)) == ([made] if made else [])
    if made is None:
        assert (answer.status_code, REFUSED in answer.content.decode()) == (403, True)
        assert "neither by a user name nor by an e-mail address" in answer.content.decode()


def test_the_page_does_not_show_the_other_spelling(
    browser: Client, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    User.objects.create_user("cHIEf")
    op.claims["preferred_username"] = "chief"
    assert "cHIEf" not in op.log_in(browser).content.decode()
    assert "there is an account 'cHIEf' already" in caplog.text


def test_a_local_account_is_not_named_like_one_of_the_provider(db: None) -> None:
    User.objects.create_user("wei\N{LATIN SMALL LETTER SHARP S}")
    with pytest.raises(users.InvalidName, match="there is an account"):
        users.create("Weiss", None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["grace", None, "g r a c e"])
def test_first_logins_at_once_make_one_account(
    browser_elsewhere: Callable[[], Client], op: OpenIdProvider, name: str | None
) -> None:
    op.claims |= {"preferred_username": name, "email": "grace@example.org"}
    browsers = [browser_elsewhere() for _ in range(4)]
    back = [op.authorize(browser.get("/login/sso/")["Location"]) for browser in browsers]
    answers = at_once([partial(browser.get, path) for browser, path in zip(browsers, back, strict=True)])
    assert {answer.status_code for answer in answers} <= {302, 503}, "503: two wait for the provider"
    assert User.objects.count() == 1
    assert sum(map(is_logged_in, browsers)) == [answer.status_code for answer in answers].count(302) >= 2
