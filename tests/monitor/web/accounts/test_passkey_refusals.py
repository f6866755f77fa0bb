"""Each check of passkeys, both ways: an answer that is accepted, and one that is refused with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib import import_module
from ipaddress import ip_network
from typing import Any

import hypothesis
import pytest
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from fido2.utils import websafe_decode, websafe_encode
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pytest_django import Settings

from monitor.models import AuditEvent, PasskeyChallenge, PasskeyHandle
from monitor.models.passkey import MOST_OF_BROWSER, MOST_OF_USER
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts.environment import LocalLogin
from tests.monitor.web.accounts.device import Device, login_options, options_of
from tests.monitor.web.accounts.logins import code_of, confirm, is_logged_in, log_in
from tests.monitor.web.accounts.test_factor_races import at_once
from tests.monitor.web.pages import builders

Browsers = Callable[[], Client]
Case = tuple[dict[str, Any], dict[str, Any], str]
ADD, LOGIN, STEP = "/account/passkeys/add/", "/login/passkey/", "/login/second-factor/"
MIGRATION = import_module("monitor.migrations.0011_passkeys")
OLD = "too old, or its passkey was used already"


@pytest.fixture
def browser(browser_elsewhere: Browsers) -> Client:
    return at_localhost(browser_elsewhere())


def at_localhost(browser: Client) -> Client:
    browser.defaults["SERVER_NAME"] = "localhost"  # passkeys need a name
    return browser


def post_new(
    browser: Client, device: Device, *, name: str = "Key", passwordless: bool = True, **more: Any
) -> str:
    """Add *device* on the page; return the errors that the page shows, empty if it is added."""
    confirm(browser)
    answer = device.register(options_of(browser, ADD), **more)
    return post(browser, ADD, answer, name=name, **({"passwordless": "on"} if passwordless else {}))


def post(browser: Client, path: str, answer: str, **fields: str) -> str:
    """Send a browser's *answer*; return the errors of the page that follows."""
    response = browser.post(path, {"credential": answer, **fields})
    assert response.status_code in {200, 302}
    page = browser.get(response["Location"]) if response.status_code == 302 else response
    return "" if 'class="error"' not in page.content.decode() else page.content.decode()


def added(browser: Client, reader: User, device: Device, **options: Any) -> Device:
    """Add *device* to the account of *reader*, and log out."""
    log_in(browser, reader)
    assert post_new(browser, device, **options) == ""
    browser.post("/logout/")
    return device


def log_in_by(browser: Client, device: Device, **client_data: Any) -> str:
    return post(browser, LOGIN, device.authenticate(login_options(browser), **client_data))


CASES: list[Case] = [
    ({}, {}, ""),
    ({}, {"crossOrigin": None}, "inside a page of another site"),
    ({}, {"crossOrigin": True}, "inside a page of another site"),
    ({}, {"crossOrigin": False, "topOrigin": "https://evil.example"}, "inside a page of another site"),
    ({}, {"origin": "http://localhost:8000"}, "by http://localhost:8000, not by http://localhost"),
    ({}, {"origin": "http://sub.localhost"}, "by http://sub.localhost"),
    ({}, {"origin": "https://localhost"}, "by https://localhost"),
    ({}, {"origin": 7}, "by 7"),
    ({}, {"type": "webauthn.other"}, "is not valid"),
    ({}, {"challenge": "AAAA"}, OLD),
    ({}, {"challenge": 7}, "is no passkey"),
    ({"host": "sub.localhost"}, {}, "is not valid"),
    ({"is_verified": False}, {}, "did not confirm that it is you"),
]


@pytest.mark.parametrize(("device", "client_data", "reason"), CASES)
def test_a_registration_is_checked(
    browser: Client, reader: User, device: dict[str, Any], client_data: dict[str, Any], reason: str
) -> None:
    log_in(browser, reader)
    page = post_new(browser, Device(**device), **client_data)
    assert reason in page
    assert Authenticator.objects.filter(user=reader, type="webauthn").exists() == (not reason)


@pytest.mark.parametrize(("device", "client_data", "reason"), CASES)
def test_a_login_is_checked(
    browser: Client, reader: User, device: dict[str, Any], client_data: dict[str, Any], reason: str
) -> None:
    key = added(browser, reader, Device())
    for name, value in device.items():
        setattr(key, name, value)
    assert reason in log_in_by(browser, key, **client_data)
    assert is_logged_in(browser) == (not reason)


def serve(browser: Client, settings: Settings, url: str, origin: str) -> None:
    """Let gridcast, with *url* as ``GRIDCAST_URL``, be reached at *origin*, behind a proxy."""
    scheme, _, host = origin.partition("://")
    settings.GRIDCAST_URL, settings.ALLOWED_HOSTS = url, ["*"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.GRIDCAST_PROXIES = Proxies(
        (ip_network("198.18.0.0/15"),), is_unix=False
    )  # the browsers of tests
    browser.defaults |= {"HTTP_HOST": host, "HTTP_X_FORWARDED_PROTO": scheme}


@pytest.mark.parametrize(
    ("url", "origin", "words"),
    [
        ("", "http://localhost", ""),
        ("", "http://localhost:8000", ""),
        ("", "http://grid.localhost", ""),
        ("", "http://127.0.0.1:8000", "open gridcast at localhost"),
        ("", "http://[::1]:8000", "open gridcast at localhost"),
        ("", "https://grid.example.org", "need the variable GRIDCAST_URL"),
        ("https://grid.example.org/x", "https://grid.example.org", ""),
        ("https://GRID.example.org:443", "https://grid.example.org", ""),
        ("http://localhost:8000", "http://localhost:8000", ""),
        ("http://localhost:8000", "http://localhost:8001", "work at http://localhost:8000 only"),
        ("https://grid.example.org", "http://grid.example.org", "work at https://grid.example.org only"),
        ("https://grid.example.org", "https://sub.grid.example.org", "work at https://grid.example.org only"),
        (
            "https://grid.example.org:8443",
            "https://grid.example.org",
            "at https://grid.example.org:8443 only",
        ),
        ("http://grid.example.org", "http://grid.example.org", "need HTTPS"),
        ("https://192.0.2.1", "https://192.0.2.1", "names the address 192.0.2.1"),
    ],
)
def test_pages_say_why_they_offer_no_passkeys(
    browser: Client, reader: User, settings: Settings, url: str, origin: str, words: str
) -> None:
    serve(browser, settings, url, origin)
    login_page = browser.get("/login/").content.decode()
    answer = browser.get(LOGIN, headers={"Accept": "application/json"})
    assert answer.status_code == (403 if words else 200)
    log_in(browser, reader)
    confirm(browser)
    for page in (login_page, browser.get("/account/").content.decode(), browser.get(ADD).content.decode()):
        assert words in page
        assert words or "asskeys work" not in page


def test_the_origin_is_that_of_the_configured_url(browser: Client, reader: User, settings: Settings) -> None:
    serve(browser, settings, "https://grid.example.org", "https://grid.example.org")
    key = added(browser, reader, Device("grid.example.org", "https://grid.example.org"))
    for origin in (
        "https://sub.grid.example.org",
        "https://grid.example.org:8443",
        "http://grid.example.org",
    ):
        assert f"by {origin}, not by" in log_in_by(browser, key, origin=origin)
    assert log_in_by(browser, key) == ""
    assert is_logged_in(browser)


@pytest.mark.parametrize(
    ("registered", "used", "is_accepted"),
    [(0, 0, True), (0, 1, True), (5, 6, True), (5, 5, False), (5, 4, False), (5, 0, False)],
)
def test_a_signature_counter_must_increase_unless_it_is_always_zero(
    browser: Client, reader: User, registered: int, used: int, is_accepted: bool
) -> None:
    key = added(browser, reader, Device(counter=registered))
    page = post(browser, LOGIN, key.authenticate(login_options(browser), counter=used))
    assert is_logged_in(browser) == is_accepted
    if not is_accepted:
        assert f"did not increase ({used} after {registered}): there may be a copy" in page
        changes = AuditEvent.objects.filter(changes__0__kind="passkey").latest("pk").changes[0]
        assert changes["after"] == f"refused: signature counter {used} after {registered}"


def test_the_counter_of_each_use_is_remembered(browser: Client, reader: User) -> None:
    key = added(browser, reader, Device(counter=1))
    assert log_in_by(browser, key) == ""
    browser.post("/logout/")
    key.counter -= 1  # a copy, made before this use
    assert "(2 after 2)" in log_in_by(browser, key)


def test_only_a_passkey_of_that_kind_logs_in_without_the_password(browser: Client, reader: User) -> None:
    key = added(browser, reader, Device(), passwordless=False, rk=True)
    assert "is a second factor only" in log_in_by(browser, key)
    assert not is_logged_in(browser)
    log_in(browser, reader)
    assert post(browser, STEP, key.authenticate(options_of(browser, STEP))) == ""
    assert is_logged_in(browser)


def test_a_device_that_keeps_no_passkeys_is_not_added_as_one_that_needs_no_password(
    browser: Client, reader: User
) -> None:
    log_in(browser, reader)
    assert "cannot log in without the password" in post_new(browser, Device(), rk=False)
    assert post_new(browser, Device(), rk=None) == ""


def test_new_passkeys_have_a_random_handle_and_those_of_before_keep_theirs(
    browser: Client, reader: User
) -> None:
    key = added(browser, reader, Device())
    assert len(websafe_decode(key.handle)) == 64
    assert bytes(PasskeyHandle.objects.get(user=reader).handle) == websafe_decode(key.handle)
    key.handle = websafe_encode(user_pk_to_url_str(reader).encode())
    assert log_in_by(browser, key) == ""
    browser.post("/logout/")
    other = builders.user(f"{reader}-other", password=builders.PASSWORD)
    for handle in (user_pk_to_url_str(other).encode(), b"zzzzzz", b"\xff\x00", b"9" * 64):
        key.handle = websafe_encode(handle)
        assert log_in_by(browser, key) != ""
    key.handle = ""
    assert "did not say whose passkey it is" in log_in_by(browser, key)


@pytest.mark.parametrize(("rk", "is_passwordless"), [(True, True), (None, True), (False, False)])
def test_a_passkey_from_before_the_upgrade_goes_on_working(
    browser: Client, reader: User, rk: bool | None, is_passwordless: bool
) -> None:
    key = Device(counter=3)
    handle = websafe_encode(user_pk_to_url_str(reader).encode())
    credential = json.loads(key.register({"publicKey": {"user": {"id": handle}, "challenge": "AAAA"}}, rk=rk))
    data = {"name": "Old", "credential": credential}
    Authenticator.objects.create(user=reader, type="webauthn", data=data)
    for _ in range(2):  # the second time, there is nothing left to do
        with connection.cursor() as cursor:
            cursor.execute(MIGRATION.STORE_PASSWORDLESS)
    refusal = log_in_by(browser, key)
    assert is_logged_in(browser) == is_passwordless
    assert is_passwordless or "is a second factor only" in refusal
    browser.post("/logout/")
    log_in(browser, reader)
    assert post(browser, STEP, key.authenticate(options_of(browser, STEP))) == ""
    assert is_logged_in(browser)
    assert Authenticator.objects.get(user=reader).data["counter"] == key.counter


def test_a_challenge_is_answered_once_by_the_browser_that_got_it(
    browser: Client, browser_elsewhere: Browsers, reader: User
) -> None:
    key = added(browser, reader, Device())
    answer = key.authenticate(login_options(browser))
    thief = at_localhost(browser_elsewhere())
    login_options(thief)
    assert OLD in post(thief, LOGIN, answer)
    assert post(browser, LOGIN, answer) == ""
    browser.post("/logout/")
    assert OLD in post(browser, LOGIN, answer)


def test_a_challenge_expires_and_is_deleted(browser: Client, reader: User) -> None:
    key = added(browser, reader, Device())
    answer = key.authenticate(login_options(browser))
    PasskeyChallenge.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert OLD in post(browser, LOGIN, answer)
    PasskeyChallenge.objects.expire(timezone.now())
    assert not PasskeyChallenge.objects.exists()


def test_a_challenge_of_another_ceremony_is_refused(browser: Client, reader: User) -> None:
    key = added(browser, reader, Device())
    of_login = login_options(browser)
    log_in(browser, reader)
    assert OLD in post(browser, STEP, key.authenticate(of_login))
    assert not is_logged_in(browser)


def test_a_browser_has_a_bounded_number_of_challenges(browser: Client, reader: User) -> None:
    key = added(browser, reader, Device())
    options = [login_options(browser) for _ in range(MOST_OF_BROWSER + 2)]
    assert PasskeyChallenge.objects.count() == MOST_OF_BROWSER
    assert OLD in post(browser, LOGIN, key.authenticate(options[0]))
    assert post(browser, LOGIN, key.authenticate(options[2])) == ""


def test_a_user_has_a_bounded_number_of_challenges(
    browser: Client, browser_elsewhere: Browsers, reader: User
) -> None:
    added(browser, reader, Device())
    for _ in range(MOST_OF_USER + 1):
        other = at_localhost(browser_elsewhere())
        log_in(other, reader)
        options_of(other, STEP)
    assert PasskeyChallenge.objects.filter(user=reader).count() == MOST_OF_USER


def test_another_person_with_the_password_takes_no_challenge_from_a_known_browser(
    browser: Client, browser_elsewhere: Browsers, reader: User
) -> None:
    key = added(browser, reader, Device())
    log_in(browser, reader)
    options = options_of(browser, STEP)
    for _ in range(MOST_OF_USER + 1):
        other = at_localhost(browser_elsewhere())
        log_in(other, reader)
        options_of(other, STEP)
    assert post(browser, STEP, key.authenticate(options)) == ""
    assert is_logged_in(browser)


def test_a_login_that_is_refused_for_another_reason_uses_the_challenge_up(
    browser: Client, reader: User, settings: Settings
) -> None:
    key = added(browser, reader, Device(counter=5))
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(frozenset())
    answer = key.authenticate(login_options(browser))
    assert browser.post(LOGIN, {"credential": answer}).status_code == 403
    assert Authenticator.objects.get(user=reader, type="webauthn").data["counter"] == key.counter
    settings.GRIDCAST_LOCAL_LOGIN = LocalLogin(None)
    assert OLD in post(browser, LOGIN, answer)
    assert not is_logged_in(browser)


@pytest.mark.django_db(transaction=True)
def test_of_two_logins_or_enrolments_with_one_challenge_one_succeeds(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    options = options_of(browser, ADD)
    keys = [Device(), Device()]
    forms = [{"credential": key.register(options), "name": "Key", "passwordless": "on"} for key in keys]
    answers = at_once([partial(browser_like(browser).post, ADD, form) for form in forms])
    assert sorted(answer.status_code for answer in answers) == [200, 302]
    stored = Authenticator.objects.get(user=reader, type="webauthn")
    [key] = [each for each in keys if websafe_encode(each.credential_id) == stored.data["credential"]["id"]]
    browser.post("/logout/")
    form = {"credential": key.authenticate(login_options(browser))}
    twins = [browser_like(browser) for _ in range(6)]
    at_once([partial(twin.post, LOGIN, form) for twin in twins])
    assert sum(map(is_logged_in, twins)) == 1


@pytest.mark.django_db(transaction=True)
def test_an_app_and_a_passkey_added_at_once_bring_recovery_codes_once(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    browser.get("/account/app/")
    code = code_of(str(browser.session["mfa.totp.secret"]))
    passkey = {"credential": Device().register(options_of(browser, ADD)), "name": "Key"}
    app, key = browser_like(browser), browser_like(browser)
    acts = [partial(app.post, "/account/app/", {"code": code}), partial(key.post, ADD, passkey)]
    assert [answer.status_code for answer in at_once(acts)] == [302, 302]
    kinds = Authenticator.objects.filter(user=reader).values_list("type", flat=True)
    assert sorted(kinds) == ["recovery_codes", "totp", "webauthn"]


def browser_like(browser: Client) -> Client:
    """Another window of *browser*, with the same session."""
    twin = Client()
    twin.defaults = browser.defaults
    twin.cookies.load({name: morsel.value for name, morsel in browser.cookies.items()})
    return twin


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Laptop", "Laptop"),
        ("", "Passkey"),
        ("Schlüssel 🔑 1", "Schlüssel 🔑 1"),
        ("u\u0308ber", "über"),
        ("x" * 60, "x" * 60),
        ("x" * 61, None),
        ("a\u202eb", None),
        ("a\u200bb", None),
        ("a\tb", None),
        ("---", None),
    ],
)
def test_names_of_passkeys_are_bounded(browser: Client, reader: User, name: str, stored: str | None) -> None:
    log_in(browser, reader)
    post_new(browser, Device(), name=name)
    kept = [str(passkey) for passkey in Authenticator.objects.filter(user=reader, type="webauthn")]
    assert kept == ([] if stored is None else [stored])
    if stored and name:
        passkey = Authenticator.objects.get(user=reader, type="webauthn")
        renamed = browser.post(f"/account/passkeys/{passkey.pk}/rename/", {"name": "a\u202eb"})
        assert "visible characters" in renamed.content.decode()


def test_a_refused_confirmation_stays_on_its_page(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    key = Device()
    post_new(browser, key)
    path = "/account/confirm/passkey/"
    assert "inside a page of another site" in post(
        browser, path, key.authenticate(options_of(browser, path), crossOrigin=True)
    )
    good = browser.post(
        path, {"credential": key.authenticate(options_of(browser, path)), "next": "/account/"}
    )
    assert good["Location"] == "/account/"


def test_the_depot_keeps_only_what_was_checked(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    answer = json.loads(Device().register(options_of(browser, ADD)))
    answer["clientExtensionResults"]["more"] = "x\x00" * 1000
    answer["more"] = "\x00"
    assert post(browser, ADD, json.dumps(answer), name="Key", passwordless="on") == ""
    credential = Authenticator.objects.get(user=reader, type="webauthn").data["credential"]
    assert set(credential) == {"id", "rawId", "type", "response"}


MUTATIONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.binary(max_size=80).map(websafe_encode),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@hypothesis.settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(data=st.data())
def test_mutated_answers_are_refused_in_words(
    data: st.DataObject, browser_elsewhere: Browsers, reader: User
) -> None:
    browser = at_localhost(browser_elsewhere())
    answer = json.loads(Device(handle="AAAA").authenticate(login_options(browser)))
    target = data.draw(st.sampled_from([answer, answer["response"]]))
    key = data.draw(st.sampled_from(sorted(target)))
    if data.draw(st.booleans()):
        del target[key]
    else:
        target[key] = data.draw(MUTATIONS)
    assert post(browser, LOGIN, json.dumps(answer)) != ""


@pytest.mark.parametrize(
    "text", ["", "[" * 10_000, "null", "7", "{}", "x" * 20_000, '{"response": null}', "\x00"]
)
def test_answers_that_are_no_passkeys_are_refused(browser: Client, reader: User, text: str) -> None:
    login_options(browser)
    assert browser.post(LOGIN, {"credential": text})["Location"] == "/login/"
    log_in(browser, reader)
    confirm(browser)
    answer = browser.post(ADD, {"credential": text, "name": "Key"})
    assert answer.status_code == 200
    assert not Authenticator.objects.filter(user=reader).exists()
