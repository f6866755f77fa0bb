"""Discovery and keys lie in the depot: logins go on while they cannot be fetched, and few threads wait."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor import tasks
from monitor.models import ProviderMetadata
from monitor.web.accounts.environment import AUTH_TIME
from monitor.web.accounts.provider import metadata
from monitor.web.accounts.provider.exchange import MOST_WAITING, waiting_place
from tests.monitor.web.accounts.logins import as_confirmed, is_logged_in
from tests.monitor.web.accounts.provider.openid_provider import (
    HANGS,
    TRICKLES,
    OpenIdProvider,
    public_jwk,
    signed,
)

LOGOUT = "/login/sso/backchannel-logout/"
DISCOVERY = "/realm/.well-known/openid-configuration"
IN_TRANSACTION = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()"""
Browsers = Callable[[], Client]


def test_documents_are_fetched_once_for_many_logins(browser_elsewhere: Browsers, op: OpenIdProvider) -> None:
    for _ in range(3):
        assert op.log_in(browser_elsewhere())["Location"] == "/"
    assert (op.asked[DISCOVERY], op.asked["/keys"], op.asked["/token"]) == (1, 1, 3)


def test_documents_are_served_while_the_provider_gives_others(
    browser_elsewhere: Browsers, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    op.log_in(browser_elsewhere())
    op.answers[DISCOVERY] = 500, b"<html>down</html>"
    later = timezone.now() + metadata.VALID + timedelta(seconds=1)
    with caplog.at_level(logging.WARNING):
        assert not metadata.refresh_metadata(op.issuer, later)
    assert "cannot refresh the metadata of the identity provider: discovery document" in caplog.text
    assert ProviderMetadata.objects.get().fault != ""
    assert op.log_in(browser_elsewhere())["Location"] == "/"


def test_documents_are_refreshed_when_they_are_old(op: OpenIdProvider) -> None:
    now = timezone.now()
    assert metadata.refresh_metadata(op.issuer, now)
    assert not metadata.refresh_metadata(op.issuer, now + metadata.VALID - timedelta(seconds=1))
    op.changes["keys"] = lambda honest: {"keys": [{**honest["keys"][0], "kid": "second"}]}
    assert metadata.refresh_metadata(op.issuer, now + metadata.VALID)
    published = metadata.published_metadata(op.issuer, now)
    assert [key["kid"] for key in published.keys.keys] == ["second"]


def test_the_task_refreshes_the_configured_provider(op: OpenIdProvider, settings: Settings) -> None:
    ProviderMetadata.objects.create(issuer="https://former.example.org", discovery="{}", keys="{}")
    tasks.refresh_provider()
    assert [row.issuer for row in ProviderMetadata.objects.all()] == [op.issuer]
    settings.GRIDCAST_IDENTITY_PROVIDER = None
    tasks.refresh_provider()
    assert op.asked[DISCOVERY] == 1
    assert tasks.refresh_provider.name in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


@pytest.mark.parametrize(("configured", "published"), [("", "/"), ("/", "")])
def test_the_issuer_may_differ_by_one_slash_at_its_end(
    configured: str, published: str, browser: Client, op: OpenIdProvider, settings: Settings
) -> None:
    op.slash = published
    provider = settings.GRIDCAST_IDENTITY_PROVIDER
    url = f"{op.origin}/realm{configured}"
    settings.GRIDCAST_IDENTITY_PROVIDER = type(provider)(**{**vars(provider), "url": url})
    assert op.log_in(browser)["Location"] == "/"


def test_a_new_key_is_fetched_when_a_token_names_it(browser: Client, op: OpenIdProvider) -> None:
    metadata.fetch_metadata(op.issuer, timezone.now())
    rotate(op)
    assert op.log_in(browser)["Location"] == "/"
    assert op.asked["/keys"] == 2


def test_tokens_with_unknown_keys_have_the_keys_fetched_now_and_then_only(
    browser_elsewhere: Browsers, op: OpenIdProvider
) -> None:
    rotate(op, is_published=False)
    for _ in range(4):
        assert op.log_in(browser_elsewhere()).status_code == 502
    assert op.asked["/keys"] == 2, "with discovery, and once for the unknown key"
    ProviderMetadata.objects.update(keys_asked_at=timezone.now() - metadata.KEYS_PAUSE * 2)
    op.log_in(browser_elsewhere())
    assert op.asked["/keys"] == 3


def test_a_clock_that_was_ahead_keeps_no_document_from_being_fetched(op: OpenIdProvider) -> None:
    now = timezone.now()
    metadata.fetch_metadata(op.issuer, now + timedelta(days=365))
    assert metadata.refresh_metadata(op.issuer, now)


def test_a_clock_that_was_ahead_keeps_no_new_key_from_being_fetched(
    browser: Client, op: OpenIdProvider
) -> None:
    now = timezone.now()
    metadata.fetch_metadata(op.issuer, now)
    ProviderMetadata.objects.update(keys_asked_at=now + timedelta(days=365))
    rotate(op)
    assert op.log_in(browser)["Location"] == "/"


def test_a_clock_that_was_ahead_lets_no_visitor_wait_after_a_failure(
    browser: Client, op: OpenIdProvider
) -> None:
    ProviderMetadata.objects.create(issuer=op.issuer, failed_at=timezone.now() + timedelta(days=365))
    assert op.log_in(browser)["Location"] == "/"


def rotate(op: OpenIdProvider, *, is_published: bool = True) -> None:
    """Let the provider sign with a new key from now on."""
    new = public_jwk(op.key(1), op.algorithm, kid="second")
    if is_published:
        op.changes["keys"] = lambda honest: {"keys": [*honest["keys"], new]}
    head = {"alg": op.algorithm, "kid": "second"}
    op.changes["id_token"] = lambda claims: signed(head, json.dumps(claims).encode(), op.key(1))


@contextmanager
def busy() -> Iterator[None]:
    """Let as many threads as permitted wait for the provider during the block."""
    with ExitStack() as places:
        for _ in range(MOST_WAITING):
            places.enter_context(waiting_place())
        yield


def test_a_further_visitor_is_told_that_the_provider_is_busy(browser: Client, op: OpenIdProvider) -> None:
    with busy():
        answer = browser.get("/login/sso/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "Grid Login is busy" in answer.content.decode()
    assert op.asked.total() == 0


def test_a_login_goes_on_after_others_have_waited(browser: Client, op: OpenIdProvider) -> None:
    metadata.fetch_metadata(op.issuer, timezone.now())
    with busy():
        start = browser.get("/login/sso/")
        assert start.status_code == 302, "the documents are stored"
        back = op.authorize(start["Location"])
        assert browser.get(back).status_code == 503
        assert op.asked["/token"] == 0
    assert browser.get(back)["Location"] == "/"


def test_an_answer_without_a_login_takes_no_place(browser: Client, op: OpenIdProvider) -> None:
    metadata.fetch_metadata(op.issuer, timezone.now())
    with busy():
        assert (
            browser.get("/login/sso/callback/", {"code": "a", "state": "b", "iss": op.issuer}).status_code
            == 401
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "fault"),
    [
        (DISCOVERY, HANGS),
        ("/token", TRICKLES),
        pytest.param("/keys", TRICKLES, marks=pytest.mark.nightly),
        pytest.param("/userinfo", HANGS, marks=pytest.mark.nightly),
    ],
)
def test_a_provider_that_hangs_keeps_two_threads_and_the_others_are_answered(
    path: str, fault: str, browser_elsewhere: Browsers, op: OpenIdProvider
) -> None:
    op.userinfo = {"sub": op.claims["sub"]}
    op.answers[path] = fault
    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(lambda _: status_of_login(op, browser_elsewhere()), range(6)))
    assert statuses == [502, 502, 503, 503, 503, 503]


def status_of_login(op: OpenIdProvider, browser: Client) -> int:
    try:
        return int(op.log_in(browser).status_code)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_forged_logout_tokens_keep_no_thread_waiting(op: OpenIdProvider) -> None:
    metadata.fetch_metadata(op.issuer, timezone.now())
    op.answers["/keys"] = HANGS
    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(lambda number: status_of_logout(op, f"key {number}"), range(6)))
    assert statuses.count(502) == 1, "one waits, and no other has to"
    assert set(statuses) <= {400, 502, 503}
    assert op.asked["/keys"] == 2, "with discovery, and once for the unknown keys"


def status_of_logout(op: OpenIdProvider, key_id: str) -> int:
    try:
        return forged_logout(op, key_id)
    finally:
        connection.close()


def forged_logout(op: OpenIdProvider, key_id: str) -> int:
    """Send a logout token that names an unknown key."""
    text = signed({"alg": op.algorithm, "kid": key_id}, b"{}", op.key(1))
    return int(Client().post(LOGOUT, {"logout_token": text}).status_code)


def test_a_logout_token_needs_a_place_to_wait(op: OpenIdProvider) -> None:
    metadata.fetch_metadata(op.issuer, timezone.now())
    with busy():
        assert forged_logout(op, "unknown") == 503


@pytest.mark.parametrize("path", ["/account/connect/", "/account/confirm/provider/", "/logout/"])
def test_no_form_keeps_a_transaction_open_while_the_provider_is_asked(
    path: str, browser: Client, op: OpenIdProvider, settings: Settings
) -> None:
    """What is asked is stored by a durable transaction: within another one, Django raises."""
    provider = replace(settings.GRIDCAST_IDENTITY_PROVIDER, confirm=AUTH_TIME, most_identities=2)
    settings.GRIDCAST_IDENTITY_PROVIDER = provider
    op.log_in(browser)
    as_confirmed(browser, User.objects.get(username=op.claims["preferred_username"]))
    ProviderMetadata.objects.all().delete()
    assert browser.post(path).status_code == 200
    assert ProviderMetadata.objects.exists() == (path != "/logout/"), "a logout asks the depot only"


def test_what_failed_a_moment_ago_is_not_tried_again_by_each_visitor(
    browser_elsewhere: Browsers, op: OpenIdProvider
) -> None:
    op.answers[DISCOVERY] = 500, b""
    for _ in range(3):
        answer = browser_elsewhere().get("/login/sso/")
        assert (answer.status_code, "has a fault" in answer.content.decode()) == (502, True)
    assert op.asked[DISCOVERY] == 1
    ProviderMetadata.objects.update(failed_at=timezone.now() - metadata.FAILURE_PAUSE)
    op.answers.clear()
    assert browser_elsewhere().get("/login/sso/").status_code == 302


def test_a_place_is_free_again_after_a_failure(browser_elsewhere: Browsers, op: OpenIdProvider) -> None:
    op.answers["/token"] = 500, b""
    for _ in range(MOST_WAITING + 1):
        assert op.log_in(browser_elsewhere()).status_code == 502
    op.answers.clear()
    browser = browser_elsewhere()
    assert op.log_in(browser)["Location"] == "/"
    assert is_logged_in(browser)
    assert User.objects.filter(username=op.claims["preferred_username"]).exists()


def test_the_provider_is_not_asked_by_other_pages(browser: Client, op: OpenIdProvider) -> None:
    assert browser.get("/login/").status_code == 200
    assert op.asked.total() == 0


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_the_provider_is_asked(browser: Client, op: OpenIdProvider) -> None:
    open_transactions: list[bool] = []
    metadata.fetch_metadata(op.issuer, timezone.now())
    start = browser.get("/login/sso/")

    def look(honest: object) -> object:
        """Runs in a thread of the provider, with a connection of its own."""
        try:
            with connection.cursor() as cursor:
                cursor.execute(IN_TRANSACTION)
                open_transactions.append(bool(cursor.fetchone()[0]))
        finally:
            connection.close()
        return honest

    op.changes["token"] = look
    assert browser.get(op.authorize(start["Location"]))["Location"] == "/"
    assert open_transactions == [False]


@pytest.mark.django_db(transaction=True)
def test_a_fault_of_the_provider_uses_the_login_up(browser: Client, op: OpenIdProvider) -> None:
    op.answers["/token"] = 500, b""
    path = op.authorize(browser.get("/login/sso/")["Location"])
    assert browser.get(path).status_code == 502
    op.answers.clear()
    assert browser.get(path).status_code == 401, "its state is gone"


def test_a_header_authenticates_the_client_where_no_method_is_announced(
    browser: Client, op: OpenIdProvider
) -> None:
    op.changes["discovery"] = lambda honest: {
        name: value for name, value in honest.items() if name != "token_endpoint_auth_methods_supported"
    }
    assert op.log_in(browser)["Location"] == "/"
    assert op.refused == []
