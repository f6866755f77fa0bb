"""Faults between gridcast and a certified provider: a page says what happened, and no login slips through."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.models import ProviderMetadata
from monitor.web.accounts.provider import metadata
from tests.monitor.web.accounts.logins import is_logged_in
from tests.monitor.web.accounts.provider.certified.certified_provider import (
    CertifiedProvider,
    ProviderBrowser,
)
from tests.monitor.web.accounts.provider.certified.fault_proxy import (
    CUT,
    HANGS,
    RESETS,
    TRICKLES,
    Fault,
    changed,
    delivered,
    instead,
    with_members,
)
from tests.monitor.web.accounts.provider.openid_provider import encoded, private_key, public_jwk

Browsers = Callable[[], Client]
Json = dict[str, Any]
DISCOVERY, KEYS, TOKEN, USERINFO = "/.well-known/openid-configuration", "/jwks", "/token", "/me"
PATHS = (DISCOVERY, KEYS, TOKEN, USERINFO)
UNREACHABLE, FAULTY, FAILED = "Grid Login is unreachable", "Grid Login has a fault", "Login failed"
ELSEWHERE = "http://127.0.0.1:1/"

ANSWERS: Mapping[str, tuple[Fault, str]] = {  # each with what the page says
    "cut": (delivered(CUT), UNREACHABLE),
    "reset": (delivered(RESETS), UNREACHABLE),
    "500": (instead(500, b"Internal Server Error"), FAULTY),
    "503": (instead(503, b"", **{"Retry-After": "60"}), FAULTY),
    "HTML": (instead(200, b"<html><body>Welcome</body></html>", **{"Content-Type": "text/html"}), FAULTY),
    "an empty object": (instead(200, b"{}"), FAULTY),
    "too much": (instead(200, b" " * (1 << 20) + b"{}"), FAULTY),
    "a redirect to another host": (instead(302, b"", Location=ELSEWHERE), FAULTY),
    "a redirect without end": (instead(302, b"", Location="?again"), FAULTY),
}


def forget_pauses() -> None:
    """Let the time pass in which a fault is not tried again."""
    past = timezone.now() - timedelta(hours=1)
    ProviderMetadata.objects.update(failed_at=past, keys_asked_at=past)


def assert_refused(answer: Any, status: int, words: str, browser: Client) -> None:
    page = answer.content.decode()
    assert (answer.status_code, words in page) == (status, True), page[-2000:]
    assert not is_logged_in(browser)
    assert not User.objects.exists()


def assert_works(browser: Client, certified: CertifiedProvider, there: ProviderBrowser) -> None:
    """Log in after the faults have gone."""
    certified.proxy.faults.clear()
    forget_pauses()
    assert there.log_in(browser).status_code == 302
    assert is_logged_in(browser)


@pytest.mark.parametrize("name", ANSWERS)
def test_another_answer_is_a_page_and_the_next_login_works(
    name: str,
    browser: Client,
    certified: CertifiedProvider,
    there: ProviderBrowser,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fault, words = ANSWERS[name]
    for path in PATHS:
        certified.proxy.faults = {path: fault}
        with caplog.at_level(logging.WARNING):
            assert_refused(there.log_in(browser), 502, words, browser)
        assert certified.proxy.asked[path] > 0, path
        forget_pauses()
    assert "Traceback" not in caplog.text
    assert_works(browser, certified, there)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "delivery"),
    [
        pytest.param(
            path, delivery, marks=[] if (path, delivery) == (USERINFO, HANGS) else pytest.mark.nightly
        )
        for path in PATHS
        for delivery in (HANGS, TRICKLES)
    ],
)
def test_an_answer_that_does_not_come_is_a_page(
    path: str, delivery: str, browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    certified.proxy.faults[path] = delivered(delivery)
    assert_refused(there.log_in(browser), 502, UNREACHABLE, browser)
    assert_works(browser, certified, there)


def with_other_keys(honest: Json) -> Json:
    """Publish another key under the name of each key of RSA."""
    modulus = public_jwk(private_key("RS256", 1), "RS256")["n"]
    return {"keys": [{**key, "n": modulus} if key["kty"] == "RSA" else key for key in honest["keys"]]}


def with_id_token(change: Callable[[str, str, str], str]) -> Fault:
    """Send what *change* makes of the header, the payload and the signature of the ID token."""
    return changed(lambda honest: {**honest, "id_token": change(*honest["id_token"].split("."))})


def altered_signature(header: str, payload: str, signature: str) -> str:
    return f"{header}.{payload}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"


def altered_claims(header: str, payload: str, signature: str) -> str:
    claims = json.loads(base64.urlsafe_b64decode(f"{payload}=="))
    return f"{header}.{encoded(json.dumps({**claims, 'sub': 'another'}).encode())}.{signature}"


def unsigned(_: str, payload: str, __: str) -> str:
    return f"{encoded(json.dumps({'alg': 'none', 'kid': 'rsa'}).encode())}.{payload}."


# By path: changes of an answer, and why each is refused.
CHANGES: Mapping[str, tuple[tuple[Fault, str], ...]] = {
    DISCOVERY: (
        (with_members(issuer="https://evil.example.org"), "issuer: expected that of GRIDCAST_OIDC_URL"),
        (with_members(token_endpoint="http://evil.example.org/token"), "token_endpoint: expected https"),
        (with_members(jwks_uri=None), "jwks_uri: Field required"),
        (
            with_members(id_token_signing_alg_values_supported=["ES256"]),
            "the algorithm 'RS256' is not permitted",
        ),
    ),
    KEYS: (
        (changed(with_other_keys), "Signature verification failed"),
        (with_members(keys=[]), "publishes no key 'rsa'"),
    ),
    TOKEN: (
        (with_members(id_token=None), "id_token: Field required"),
        (with_id_token(altered_signature), "Signature verification failed"),
        (with_id_token(altered_claims), "Signature verification failed"),
        (with_id_token(unsigned), "the algorithm 'none' is not permitted"),
        (with_members(access_token="another"), "userinfo: the provider answered 401"),
    ),
    USERINFO: (
        (with_members(sub="another"), "sub is not that of the ID token"),
        (with_members(sub=None), "sub: Field required"),
        (with_members(email=["a", "b"]), "email: Input should be a valid string"),
    ),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_changed_message_is_refused_and_the_next_login_works(
    path: str,
    browser: Client,
    certified: CertifiedProvider,
    there: ProviderBrowser,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for fault, reason in CHANGES[path]:
        certified.proxy.faults = {path: fault}
        ProviderMetadata.objects.all().delete()  # it may have what the fault before has changed
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert_refused(there.log_in(browser), 502, FAULTY, browser)
        assert reason in caplog.text
        assert "Traceback" not in caplog.text
    ProviderMetadata.objects.all().delete()
    assert_works(browser, certified, there)


def with_parameter(url: str, name: str, value: str | None) -> str:
    """Return *url* with another value of a parameter of its query; None leaves it out."""
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items() if key != name}
    return parts._replace(query=urlencode(query | ({} if value is None else {name: value}))).geturl()


REQUESTS = {
    "the nonce": ("nonce", "its nonce is of another login"),
    "the challenge": ("code_challenge", "invalid_grant"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_changed_on_its_way_is_refused(
    name: str,
    browser: Client,
    certified: CertifiedProvider,
    there: ProviderBrowser,
    caplog: pytest.LogCaptureFixture,
) -> None:
    parameter, reason = REQUESTS[name]
    url = with_parameter(browser.get("/login/sso/")["Location"], parameter, "x" * 43)
    with caplog.at_level(logging.WARNING):
        assert_refused(browser.get(there.authorize(url)), 401, FAILED, browser)
    assert reason in caplog.text
    assert_works(browser, certified, there)


@pytest.mark.parametrize("issuer", [None, "https://evil.example.org"])
def test_an_answer_of_another_issuer_is_not_accepted(
    issuer: str | None, browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    back = there.authorize(browser.get("/login/sso/")["Location"])
    assert_refused(browser.get(with_parameter(back, "iss", issuer)), 401, FAILED, browser)
    assert certified.proxy.asked[TOKEN] == 0, "the code is not sent anywhere"
    assert_works(browser, certified, there)


def test_a_code_of_another_login_is_not_accepted(
    browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    first, second = (there.authorize(browser.get("/login/sso/")["Location"]) for _ in range(2))
    [code] = parse_qs(urlsplit(first).query)["code"]
    assert_refused(browser.get(with_parameter(second, "code", code)), 401, FAILED, browser)
    assert_works(browser, certified, there)


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("id_token", 401, "its nonce is of another login"),
        ("access_token", 502, "sub is not that of the ID token"),
    ],
)
def test_tokens_of_an_earlier_login_are_not_accepted(
    name: str,
    status: int,
    reason: str,
    browser: Client,
    browser_elsewhere: Browsers,
    certified: CertifiedProvider,
    there: ProviderBrowser,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tokens: list[Json] = []

    def kept(honest: Json) -> Json:
        tokens.append(honest)
        return honest

    certified.proxy.faults[TOKEN] = changed(kept)
    there.log_in(browser_elsewhere())
    thief = ProviderBrowser(f"{there.subject}-thief")
    certified.knows(thief.subject, groups=["/grid/users"])
    certified.proxy.faults[TOKEN] = changed(lambda honest: {**honest, name: tokens[0][name]})
    with caplog.at_level(logging.WARNING):
        assert thief.log_in(browser).status_code == status
    assert reason in caplog.text
    assert not is_logged_in(browser)
    assert User.objects.count() == 1
    assert_works(browser, certified, thief)


def test_a_new_key_is_fetched_when_a_token_names_it(
    browser: Client, certified: CertifiedProvider, there: ProviderBrowser
) -> None:
    certified.proxy.faults[KEYS] = changed(
        lambda honest: {"keys": [key for key in honest["keys"] if key["kid"] != "rsa"]}
    )
    metadata.fetch_metadata(certified.issuer, timezone.now())
    certified.proxy.faults.clear()
    assert there.log_in(browser).status_code == 302
    assert certified.proxy.asked[KEYS] == 2
