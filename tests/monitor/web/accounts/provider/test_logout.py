"""A logout at the provider ends what its user does here; a logout here leads on to the provider."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.models import AuditEvent, Identity, ProviderMetadata
from monitor.models.identity import MOST_PROVIDER_SESSIONS
from monitor.web.accounts import identities
from monitor.web.accounts.provider.tokens import LOGOUT_EVENT
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import is_logged_in
from tests.monitor.web.accounts.provider.openid_provider import CLIENT_ID, Json, OpenIdProvider, signed
from tests.monitor.web.accounts.provider.test_waiting_logins import give_app

Browsers = Callable[[], Client]
PATH = "/login/sso/backchannel-logout/"


def logout_claims(op: OpenIdProvider, **changed: Any) -> Json:
    """Return the claims of a logout token; None leaves one out."""
    claims = {
        "iss": op.issuer,
        "aud": CLIENT_ID,
        "iat": int(time.time()),
        "exp": int(time.time()) + 120,
        "jti": f"logout of {op.claims['sub']}",
        "events": {LOGOUT_EVENT: {}},
        "sub": op.claims["sub"],
    }
    return {name: value for name, value in {**claims, **changed}.items() if value is not None}


def token(op: OpenIdProvider, key: int = 0, **changed: Any) -> str:
    payload = json.dumps(logout_claims(op, **changed)).encode()
    return signed({"alg": op.algorithm, "kid": "first", "typ": "logout+jwt"}, payload, op.key(key))


def send(text: str) -> Any:
    return Client(enforce_csrf_checks=True).post(PATH, {"logout_token": text})


def test_a_logout_at_the_provider_ends_sessions_until_the_next_login(
    browser_elsewhere: Browsers, op: OpenIdProvider
) -> None:
    browser = browser_elsewhere()
    op.log_in(browser)
    assert is_logged_in(browser)
    answer = send(token(op))
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert not is_logged_in(browser)
    assert Identity.objects.get().suspended.startswith("logged out at ")
    kinds = [change["kind"] for change in AuditEvent.objects.get(target=PATH, outcome="done").changes]
    assert kinds == ["sessions", "identity"]
    op.log_in(browser)
    assert is_logged_in(browser)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"iss": "https://evil.example"}, "Invalid issuer"),
        ({"aud": "another"}, "Audience"),
        ({"iat": 1_000_000_000}, "it was issued"),
        ({"iat": None}, "iat"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"jti": None}, "jti"),
        ({"events": None}, "events"),
        ({"events": {"https://example.org/other": {}}}, "not the event of a logout"),
        ({"events": "x"}, "events"),
        ({"nonce": "x"}, "it has a nonce"),
        ({"sub": None}, "expected sub or sid"),
        ({"sub": None, "sid": ["x"]}, "sid"),
        ({"sub": "x" * 300}, "sub"),
        ({"key": 1}, "Signature verification failed"),
    ],
    ids=str,
)
def test_another_token_ends_nothing(
    change: dict[str, Any], reason: str, browser: Client, op: OpenIdProvider
) -> None:
    op.log_in(browser)
    answer = send(token(op, **change))
    assert answer.status_code == 400
    assert reason in answer.json()["error_description"]
    assert is_logged_in(browser)


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "\0", "ä" * 9000])
def test_a_text_that_is_no_token_is_refused(text: str, op: OpenIdProvider) -> None:
    assert send(text).status_code == 400


def test_what_opens_an_account_after_a_logout_there_is_a_login_there(
    browser_elsewhere: Callable[[], Client], op: OpenIdProvider
) -> None:
    op.log_in(browser_elsewhere())
    user, printed = User.objects.get(username=op.claims["preferred_username"]), io.StringIO()
    give_app(user)
    send(token(op))
    call_command("account", "remove-second-factors", str(user), stdout=printed)
    assert settings.GRIDCAST_IDENTITY_PROVIDER is not None
    name = settings.GRIDCAST_IDENTITY_PROVIDER.name
    assert f"{name} (if it names a group with a role) alone opens the account" in printed.getvalue()
    browser = browser_elsewhere()
    op.log_in(browser)
    assert is_logged_in(browser)


def test_a_token_ends_sessions_once(browser: Client, op: OpenIdProvider) -> None:
    op.log_in(browser)
    text = token(op)
    assert send(text).status_code == 200
    op.log_in(browser)
    answer = send(text)
    assert (answer.status_code, "used before" in answer.json()["error_description"]) == (400, True)
    assert is_logged_in(browser)


@pytest.mark.django_db(transaction=True)
def test_a_logout_that_failed_here_may_be_sent_again(browser: Client, op: OpenIdProvider) -> None:
    op.log_in(browser)
    text = token(op)
    with refused_updates("monitor_identity"):
        answer = Client(raise_request_exception=False).post(PATH, {"logout_token": text})
    assert answer.status_code == 500
    assert is_logged_in(browser)
    assert send(text).status_code == 200
    assert not is_logged_in(browser)


@contextmanager
def refused_updates(table: str) -> Iterator[None]:
    """Let the database refuse updates of *table* during the block."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'refused'; END $$;"
            f"CREATE TRIGGER refused BEFORE UPDATE ON {table} EXECUTE FUNCTION refuse();"
        )
        try:
            yield
        finally:
            cursor.execute(f"DROP TRIGGER refused ON {table}; DROP FUNCTION refuse;")


def test_a_provider_that_changes_the_slash_of_its_name_keeps_its_users(
    browser_elsewhere: Browsers, op: OpenIdProvider
) -> None:
    before, after = browser_elsewhere(), browser_elsewhere()
    op.claims["sid"] = "of a laptop"
    op.log_in(before)
    op.slash = "/"
    ProviderMetadata.objects.all().delete()
    assert op.log_in(after)["Location"] == "/"
    assert Identity.objects.get().issuer == op.issuer
    assert send(token(op)).status_code == 200
    assert (is_logged_in(before), is_logged_in(after)) == (False, False)


@pytest.mark.parametrize("named", [{}, {"sub": None, "sid": "of a laptop"}], ids=str)
def test_a_logout_under_the_new_name_of_the_provider_ends_sessions_of_before(
    named: dict[str, Any], browser: Client, op: OpenIdProvider
) -> None:
    op.claims["sid"] = "of a laptop"
    op.log_in(browser)
    op.slash = "/"
    ProviderMetadata.objects.all().delete()
    assert send(token(op, **named)).status_code == 200
    assert not is_logged_in(browser)


@pytest.mark.parametrize("unknown", [{"sub": "a stranger"}, {"sub": None, "sid": "another"}], ids=str)
def test_a_logout_of_an_unknown_user_or_session_changes_nothing(
    unknown: dict[str, Any], browser: Client, op: OpenIdProvider
) -> None:
    op.claims["sid"] = "of a laptop"
    op.log_in(browser)
    assert send(token(op, **unknown)).status_code == 200
    assert is_logged_in(browser)


def test_a_logout_may_name_the_session_of_a_login_instead_of_the_user(
    browser: Client, op: OpenIdProvider
) -> None:
    for session in ("of a laptop", "of a phone"):
        op.claims["sid"] = session
        op.log_in(browser)
        browser.post("/logout/")
    op.log_in(browser)
    assert send(token(op, sub=None, sid="of a laptop")).status_code == 200
    assert not is_logged_in(browser)
    assert Identity.objects.get().suspended.startswith("logged out at ")


def test_the_sessions_of_the_latest_logins_are_known(reader: User) -> None:
    identity = identity_of(reader, "viewer")
    for number in (*range(MOST_PROVIDER_SESSIONS + 1), 7):
        identities.admit(
            identity.account, identity.issuer, identity.subject, ["viewer"], timezone.now(), str(number)
        )
    identity.refresh_from_db()
    assert len(identity.provider_sessions) == MOST_PROVIDER_SESSIONS
    assert (identity.provider_sessions[0], identity.provider_sessions[-1]) == ("1", "7")


def test_a_logout_here_leads_on_to_the_provider(browser: Client, op: OpenIdProvider) -> None:
    endpoint = f"{op.origin}/end?tenant=grid"
    op.changes["discovery"] = lambda document: {**document, "end_session_endpoint": endpoint}
    ProviderMetadata.objects.all().delete()
    op.log_in(browser)
    page = browser.post("/logout/").content.decode()
    assert f"{endpoint}&amp;client_id={CLIENT_ID}&amp;post_logout_redirect_uri=" in page
    assert not is_logged_in(browser)


def test_a_logout_here_says_so_where_the_provider_has_none(browser: Client, op: OpenIdProvider) -> None:
    op.log_in(browser)
    page = browser.post("/logout/").content.decode()
    assert "may still know you in this browser" in page
    assert "Log out at" not in page


def test_without_a_provider_there_is_no_such_page(db: None, settings: Settings) -> None:
    settings.GRIDCAST_IDENTITY_PROVIDER = None
    assert send("x").status_code == 404
