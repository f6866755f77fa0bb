"""What the provider sends has a type before anything reads it: a fault ends with words, not a traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.signals import pre_social_login
from django.contrib.auth.models import User
from django.test import Client

from monitor.web.accounts.provider import documents
from monitor.web.accounts.provider.faults import ProviderUnusable
from monitor.web.accounts.provider.login import VerifiedLogin
from monitor.web.accounts.provider.tenants import tenant_fault
from tests.monitor.web.accounts.logins import is_logged_in
from tests.monitor.web.accounts.provider.openid_provider import Json, OpenIdProvider

LONGEST_LINE = 2_000  # characters of the log


def merged(**changed: Any) -> Callable[[Any], Any]:
    return lambda honest: {name: value for name, value in {**honest, **changed}.items() if value != "ABSENT"}


def sent(body: bytes) -> Callable[[Any], bytes]:
    return lambda _: body


Faults = Mapping[str, tuple[str, Callable[[Any], Any]]]  # why it is refused, and what is sent instead
DISCOVERY: Faults = {
    "no JSON": ("expected value", sent(b"<html>")),
    "no object": ("expected a JSON object", sent(b"[]")),
    "a list of levels": ("recursion limit", sent(b"[" * 100_000)),
    "half a surrogate pair": ("discovery document", sent(b'{"issuer": "\\ud800"}')),
    "not UTF-8": ("discovery document", sent(b'{"issuer": "\xff"}')),
    "too large": ("more than 1,048,576 bytes", sent(b" " * (1 << 20) + b"{}")),
    "no token endpoint": ("token_endpoint: Field required", merged(token_endpoint="ABSENT")),
    "no keys": ("jwks_uri: Field required", merged(jwks_uri="ABSENT")),
    "no login": ("authorization_endpoint: Field required", merged(authorization_endpoint="ABSENT")),
    "an endpoint that is an object": ("token_endpoint: Input should be", merged(token_endpoint={})),
    "a plain endpoint": ("expected https", merged(token_endpoint="http://id.example.org/token")),
    "a plain login": ("expected https", merged(authorization_endpoint="http://id.example.org/")),
    "plain keys": ("expected https", merged(jwks_uri="http://id.example.org/keys")),
    "a plain userinfo": ("expected https", merged(userinfo_endpoint="http://id.example.org/u")),
    "an endpoint of a script": ("expected a URL", merged(authorization_endpoint="javascript:alert(1)")),
    "a file": ("expected a URL", merged(jwks_uri="file:///etc/passwd")),
    "a fragment": ("without a fragment", merged(authorization_endpoint="https://id.example.org/#a")),
    "a password": ("without a password", merged(token_endpoint="https://a:b@id.example.org/")),
    "a long endpoint": ("at most 2048", merged(token_endpoint="https://id.example.org/" + "a" * 3000)),
    "another issuer": ("issuer: expected that of", merged(issuer="https://evil.example.org")),
    "no issuer": ("issuer: Field required", merged(issuer="ABSENT")),
    "an issuer with two slashes": (
        "issuer: expected that of",
        lambda honest: {**honest, "issuer": f"{honest['issuer']}//"},
    ),
    "a placeholder": (
        "placeholder for tenants",
        merged(issuer="https://login.microsoftonline.com/{tenantid}/v2.0"),
    ),
    "algorithms that are numbers": (
        "id_token_signing_alg_values_supported.0",
        merged(id_token_signing_alg_values_supported=[256]),
    ),
    "many algorithms": ("at most 100", merged(id_token_signing_alg_values_supported=["RS256"] * 101)),
}
KEYS: Faults = {
    "no JSON": ("keys: expected value", sent(b"\0")),
    "no keys": ("keys: keys: Field required", merged(keys="ABSENT")),
    "no list": ("keys: keys: Input should be", merged(keys={})),
    "many keys": ("at most 100", merged(keys=[{}] * 101)),
    "keys of other types": ("publishes no key", merged(keys=[{"kty": {}, "use": [], "kid": 1, "alg": {}}])),
    "a key that is none": (
        "key 'first'",
        merged(keys=[{"kty": "RSA", "kid": "first", "n": "!", "e": {"a": "\n"}}]),
    ),
    "two keys of one id": ("publishes no key", lambda honest: {"keys": honest["keys"] * 2}),
}
TOKEN: Faults = {
    "no JSON": ("token endpoint: expected value", sent(b"access_token=a")),
    "no ID token": ("id_token: Field required", merged(id_token="ABSENT")),
    "no access token": ("access_token: Field required", merged(access_token="ABSENT")),
    "an ID token that is an object": ("id_token: Input should be", merged(id_token={})),
    "an access token that is a number": ("access_token: Input should be", merged(access_token=1)),
    "an access token with a line": ("without control characters", merged(access_token="a\r\nX: y")),
    "another kind": ("expected a bearer token", merged(token_type="mac")),
    "too large": ("more than 1,048,576 bytes", sent(b"x" * (150 << 20))),
}
USERINFO: Faults = {
    "no JSON": ("userinfo: expected value", sent(b"eyJhbGciOiJub25lIn0.e30.")),
    "another user": ("userinfo: sub is not that", merged(sub="another")),
    "no user": ("userinfo: sub: Field required", merged(sub="ABSENT")),
    "a user that is a number": ("userinfo: sub: Input should be", merged(sub=1)),
    "a name that is a number": ("claims: given_name: Input should be", merged(given_name=7)),
    "a name that is an object": ("claims: name: Input should be", merged(name={"a": 1})),
    "a name with NUL": ("without control characters", merged(family_name="a\0")),
    "a long name": ("at most 255 characters", merged(given_name="x" * 300)),
    "a mail address of objects": ("claims: email: Input should be", merged(email=[{}])),
    "too large": ("more than 1,048,576 bytes", sent(b"x" * (2 << 20))),
}
MESSAGES = {"discovery": DISCOVERY, "keys": KEYS, "token": TOKEN, "userinfo": USERINFO}


@pytest.mark.parametrize(
    ("message", "fault"), [(message, fault) for message, faults in MESSAGES.items() for fault in faults]
)
def test_a_fault_of_the_provider_is_said_in_words(
    message: str, fault: str, browser: Client, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    op.userinfo = {"sub": op.claims["sub"]}
    reason, op.changes[message] = MESSAGES[message][fault]
    with caplog.at_level(logging.WARNING):
        answer = op.log_in(browser)
    assert answer.status_code == 502
    assert "Grid Login has a fault" in answer.content.decode()
    assert not is_logged_in(browser)
    assert reason in caplog.text
    assert "Traceback" not in caplog.text
    assert max(map(len, caplog.text.splitlines())) < LONGEST_LINE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("preferred_username", 7),
        ("preferred_username", {"a": "b"}),
        ("preferred_username", "x" * 151),
        ("preferred_username", "a\x1b[31m"),
        ("given_name", ["a"]),
        ("auth_time", "yesterday"),
        ("auth_time", -1),
        ("auth_time", 1e30),
        ("amr", {"pwd": True}),
        ("amr", [1]),
        ("acr", 1),
    ],
)
def test_claims_of_another_type_are_refused(
    name: str, value: object, browser: Client, op: OpenIdProvider
) -> None:
    op.claims[name] = value
    assert op.log_in(browser).status_code == 502
    assert not is_logged_in(browser)


@pytest.mark.parametrize("value", [None, 7, {}, [{}], [None, ["a"]], "", "\0", ["a\0"]])
def test_groups_of_another_type_give_no_role(value: object, browser: Client, op: OpenIdProvider) -> None:
    op.claims["groups"] = value
    assert op.log_in(browser).status_code == 403
    assert not is_logged_in(browser)


def test_claims_that_are_null_are_absent(browser: Client, op: OpenIdProvider) -> None:
    op.claims |= {"email": None, "given_name": None, "auth_time": None, "amr": None, "acr": None}
    op.userinfo = {"sub": op.claims["sub"], "given_name": "Ada"}
    assert op.log_in(browser)["Location"] == "/"
    assert User.objects.get(username=op.claims["preferred_username"]).first_name == "Ada"


def test_userinfo_completes_the_token_and_does_not_replace_it(browser: Client, op: OpenIdProvider) -> None:
    op.claims |= {"given_name": "Ada", "groups": ["a"]}
    op.userinfo = {"sub": op.claims["sub"], "given_name": "Eve", "family_name": "Lovelace", "groups": ["b"]}
    assert op.log_in(browser)["Location"] == "/"
    user = User.objects.get(username=op.claims["preferred_username"])
    assert (user.first_name, user.last_name) == ("Ada", "Lovelace")


def test_a_provider_without_userinfo_logs_in(browser: Client, op: OpenIdProvider) -> None:
    assert "userinfo_endpoint" not in op.discovery()
    assert op.log_in(browser)["Location"] == "/"


def test_the_depot_keeps_of_a_login_no_more_than_pages_show(browser: Client, op: OpenIdProvider) -> None:
    op.claims["a_secret_claim"] = "x"
    op.log_in(browser)
    [account] = SocialAccount.objects.filter(identity__subject=op.claims["sub"])
    assert account.extra_data == {"issuer": op.issuer, "username": op.claims["preferred_username"]}


@pytest.mark.parametrize("subject", ["x" * 192, "x" * 255, "sha256:" + "0" * 64])
def test_a_subject_that_the_column_cannot_hold_is_stored_whole_beside_a_digest(
    subject: str, browser: Client, op: OpenIdProvider
) -> None:
    op.claims["sub"] = subject
    op.log_in(browser)
    browser.post("/logout/")
    assert op.log_in(browser)["Location"] == "/"
    [account] = SocialAccount.objects.filter(user__username=op.claims["preferred_username"])
    assert account.uid.startswith("sha256:")
    assert account.uid != subject


def test_a_verified_login_is_handed_on(browser: Client, op: OpenIdProvider) -> None:
    logins: list[VerifiedLogin] = []

    def note(sociallogin: SocialLogin, **_: object) -> None:
        logins.append(sociallogin.verified_login)

    pre_social_login.connect(note)
    try:
        op.claims |= {"auth_time": 1_700_000_000, "amr": ["pwd", "otp"], "acr": "urn:example:mfa"}
        op.log_in(browser)
    finally:
        pre_social_login.disconnect(note)
    [login] = logins
    assert (login.issuer, login.subject) == (op.issuer, op.claims["sub"])
    assert (login.auth_time, login.amr, login.acr) == (1_700_000_000, ("pwd", "otp"), "urn:example:mfa")
    assert login.claims["groups"] == ["a"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("access_denied", 401),
        ("login_required", 401),
        ("server_error", 502),
        ("invalid_scope", 502),
        ("temporarily_unavailable", 503),
        ("\0<b>" + "x" * 9000, 401),
    ],
)
def test_an_error_of_authorization_is_said_in_words(
    error: str, status: int, browser: Client, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    op.changes["callback"] = lambda honest: {"state": honest["state"], "iss": honest["iss"], "error": error}
    answer = op.log_in(browser)
    assert answer.status_code == status
    assert max(map(len, caplog.text.splitlines()), default=0) < LONGEST_LINE


def test_a_provider_without_a_choice_of_accounts_is_asked_for_a_login(
    browser: Client, op: OpenIdProvider
) -> None:
    op.changes["callback"] = lambda honest: {
        **{name: honest[name] for name in ("state", "iss")},
        "error": "invalid_request",
    }
    again = op.log_in(browser, "/login/sso/?choose=1")["Location"]
    assert "prompt=login" in browser.get(again)["Location"]
    assert op.log_in(browser, again).status_code == 502, "it is asked once"
    op.changes.clear()
    assert op.log_in(browser, again)["Location"] == "/"


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, b'{"error": "invalid_grant"}', 401),
        (400, b'{"error": "invalid_client"}', 502),
        (401, b"", 502),
        (500, b"x" * (1 << 20), 502),
        (204, b"", 502),
        (302, b"", 502),
    ],
)
def test_a_refusal_of_the_token_endpoint_is_said_in_words(
    status: int,
    body: bytes,
    expected: int,
    browser: Client,
    op: OpenIdProvider,
    caplog: pytest.LogCaptureFixture,
) -> None:
    op.answers["/token"] = status, body
    with caplog.at_level(logging.WARNING):
        assert op.log_in(browser).status_code == expected
    assert f"token endpoint: the provider answered {status}" in caplog.text
    assert max(map(len, caplog.text.splitlines())) < LONGEST_LINE


@pytest.mark.parametrize("issuer", ["https://id.example.org/{tenantid}/v2.0", "https://id.example.org/{0}"])
def test_an_issuer_with_a_placeholder_is_refused_by_name(issuer: str) -> None:
    document = f'{{"issuer": "{issuer}"}}'.encode()
    with pytest.raises(ProviderUnusable):
        documents.parse_discovery(document, issuer)
    assert "placeholder" in tenant_fault(issuer)


def test_the_form_of_a_document_is_frozen() -> None:
    keys: Json = {"keys": []}
    parsed = documents.parse(documents.KeySet, keys, "keys")
    with pytest.raises(ValueError, match="frozen"):
        parsed.keys = ()
