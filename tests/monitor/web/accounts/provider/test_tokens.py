"""An ID token logs in only if the provider has signed it, for us, for this login, now."""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from django.contrib.auth.models import User
from django.test import Client

from monitor.models import AuditEvent
from tests.monitor.web.accounts.logins import is_logged_in
from tests.monitor.web.accounts.provider.openid_provider import (
    ACCESS_TOKEN,
    CLIENT_ID,
    CLIENT_SECRET,
    SHORT,
    Json,
    OpenIdProvider,
    encoded,
    private_key,
    public_jwk,
    signed,
)

Attack = Callable[[OpenIdProvider, Json], Any]  # returns changed claims, or a whole token


def claims(**changed: Any) -> Attack:
    """Change claims; None leaves one out."""

    def attack(_: OpenIdProvider, honest: Json) -> Json:
        return {name: value for name, value in {**honest, **changed}.items() if value is not None}

    return attack


def after(name: str, seconds: float) -> Attack:
    """Move the time in the claim *name*."""
    return lambda _, honest: {**honest, name: int(time.time() + seconds)}


def by_key(number: int, **header: Any) -> Attack:
    """Sign with a key that the provider has not published."""

    def attack(op: OpenIdProvider, honest: Json) -> str:
        head = {"alg": op.algorithm, "kid": "first", **header}
        return signed(head, json.dumps(honest).encode(), op.key(number))

    return attack


def unsigned(op: OpenIdProvider, honest: Json, *, algorithm: str = "none") -> str:
    head = {"alg": algorithm, "kid": "first"}
    return f"{encoded(json.dumps(head).encode())}.{encoded(json.dumps(honest).encode())}."


def with_secret(secret: Callable[[OpenIdProvider], bytes]) -> Attack:
    """Sign with what others know as if it were a shared secret."""

    def attack(op: OpenIdProvider, honest: Json) -> str:
        parts = unsigned(op, honest, algorithm="HS256").rstrip(".")
        return f"{parts}.{encoded(hmac.digest(secret(op), parts.encode(), 'sha256'))}"

    return attack


def public_pem(op: OpenIdProvider) -> bytes:
    return bytes(
        op.key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def with_key_inside(op: OpenIdProvider, honest: Json) -> str:
    """Name the own key in the header, as ``jwk`` and ``jku`` permit."""
    own = public_jwk(op.key(1), op.algorithm, kid="own")
    return str(by_key(1, kid="own", jwk=own, jku=f"{op.origin}/own-keys")(op, honest))


def changed_after_signing(op: OpenIdProvider, honest: Json) -> str:
    head, _, signature = str(by_key(0)(op, honest)).split(".")
    return f"{head}.{encoded(json.dumps({**honest, 'groups': ['a', 'b']}).encode())}.{signature}"


def at_hash(access_token: str, algorithm: str = "sha256") -> str:
    digest = hashlib.new(algorithm, access_token.encode()).digest()
    return encoded(digest[: len(digest) // 2])


ATTACKS: Mapping[str, tuple[str, Attack]] = {  # each with why it is refused
    "no signature": ("the algorithm 'none' is not permitted", unsigned),
    "algorithm None": (
        "the algorithm 'None' is not permitted",
        lambda op, honest: unsigned(op, honest, algorithm="None"),
    ),
    "an empty signature": (
        "Signature verification failed",
        lambda op, honest: unsigned(op, honest, algorithm="RS256"),
    ),
    "the public key as secret": ("the algorithm 'HS256' is not permitted", with_secret(public_pem)),
    "the client's secret": (
        "the algorithm 'HS256' is not permitted",
        with_secret(lambda _: CLIENT_SECRET.encode()),
    ),
    "another key": ("Signature verification failed", by_key(1)),
    "an unknown key": ("publishes no key 'unknown'", by_key(1, kid="unknown")),
    "the id of the key is a list": ("must be a string", by_key(0, kid=["first"])),
    "a key in the header": ("publishes no key 'own'", with_key_inside),
    "an extension that must be understood": (
        "Unsupported critical extension",
        by_key(0, crit=["exp"], exp=1),
    ),
    "an algorithm that is not announced": (
        "'RS384' is not permitted",
        lambda op, honest: signed({"alg": "RS384", "kid": "first"}, json.dumps(honest).encode(), op.key()),
    ),
    "changed after signing": ("Signature verification failed", changed_after_signing),
    "another audience": ("Audience doesn't match", claims(aud="other")),
    "no audience": ('missing the "aud" claim', claims(aud=None)),
    "an audience of objects": ("Invalid claim format", claims(aud=[{"id": CLIENT_ID}])),
    "several audiences without azp": ("issued to another client", claims(aud=[CLIENT_ID, "other"])),
    "several audiences for another": (
        "issued to another client",
        claims(aud=[CLIENT_ID, "other"], azp="other"),
    ),
    "azp of another": ("issued to another client", claims(azp="other")),
    "another issuer": ("Invalid issuer", claims(iss="https://evil.example.org")),
    "the issuer with a slash": ("Invalid issuer", lambda op, honest: {**honest, "iss": f"{op.issuer}/"}),
    "no issuer": ('missing the "iss" claim', claims(iss=None)),
    "an issuer that is a list": ("(iss) must be a string", lambda op, honest: {**honest, "iss": [op.issuer]}),
    "no nonce": ('missing the "nonce" claim', claims(nonce=None)),
    "another nonce": ("its nonce is of another login", claims(nonce="of another login")),
    "an empty nonce": ("its nonce is of another login", claims(nonce="")),
    "a nonce that is a number": ("nonce: Input should be a valid string", claims(nonce=1)),
    "expired": ("Signature has expired: compare the clocks", after("exp", -61)),
    "no end": ('missing the "exp" claim', claims(exp=None)),
    "an end that is no number": ("(exp) must be an integer", claims(exp="never")),
    "an end beyond all numbers": ("expected value", claims(exp=float("inf"))),
    "issued in the future": ("not yet valid (iat): compare the clocks", after("iat", 120)),
    "not issued": ('missing the "iat" claim', claims(iat=None)),
    "valid later": ("not yet valid (nbf)", after("nbf", 120)),
    "at_hash of another token": ("at_hash is of another access token", claims(at_hash=at_hash("another"))),
    "an empty at_hash": ("at_hash is of another access token", claims(at_hash="")),
    "at_hash is a number": ("at_hash: Input should be a valid string", claims(at_hash=1)),
    "no subject": ('missing the "sub" claim', claims(sub=None)),
    "an empty subject": ("at least 1 character", claims(sub="")),
    "a subject that is a number": ("Subject must be a string", claims(sub=1)),
    "a subject of 256 characters": ("at most 255 characters", claims(sub="x" * 256)),
    "a subject with NUL": ("without control characters", claims(sub="a\0b")),
    "no object": (
        "expected a JSON object",
        lambda op, _: signed({"alg": op.algorithm, "kid": "first"}, b"[1]", op.key()),
    ),
    "no JSON": (
        "expected value",
        lambda op, _: signed({"alg": op.algorithm, "kid": "first"}, b"\xff{", op.key()),
    ),
    "many levels": (
        "recursion limit",
        lambda op, _: signed(
            {"alg": op.algorithm, "kid": "first"}, b'{"a":' * 5000 + b"1" + b"}" * 5000, op.key()
        ),
    ),
    "not a token": ("Invalid header", lambda *_: "not.a.token"),
    "five parts": ("Invalid header", lambda *_: "a.b.c.d.e"),
    "not ASCII": ("Invalid header", lambda *_: "ä.ö.ü"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_forged_or_foreign_token_logs_in(
    name: str, browser: Client, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    reason, attack = ATTACKS[name]
    op.changes["id_token"] = lambda honest: attack(op, honest)
    with caplog.at_level(logging.WARNING):
        answer = op.log_in(browser)
    assert answer.status_code in {401, 502}
    assert not is_logged_in(browser)
    assert not User.objects.filter(username=op.claims["preferred_username"]).exists()
    assert "login refused" in caplog.text
    assert reason in caplog.text
    assert "Traceback" not in caplog.text


HONEST: Mapping[str, Attack] = {
    "as it is": claims(),
    "several audiences for us": claims(aud=["other", CLIENT_ID], azp=CLIENT_ID),
    "at_hash of our token": claims(at_hash=at_hash(ACCESS_TOKEN)),
    "a clock that is 50 s behind": after("exp", -50),
    "a clock that is 50 s ahead": after("iat", 50),
    "a subject of 255 characters": claims(sub="x" * 255),
    "no id of the key": lambda op, honest: signed(
        {"alg": op.algorithm}, json.dumps(honest).encode(), op.key()
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_a_token_that_holds_the_rules_logs_in(name: str, browser: Client, op: OpenIdProvider) -> None:
    op.changes["id_token"] = lambda honest: HONEST[name](op, honest)
    assert op.log_in(browser)["Location"] == "/"
    assert is_logged_in(browser)
    assert op.refused == []


@pytest.mark.parametrize(
    ("algorithm", "hashed_by"),
    [("PS512", "sha512"), ("ES256", "sha256"), ("ES384", "sha384"), ("EdDSA", "sha512")],
)
def test_algorithms_of_public_keys_are_accepted(
    algorithm: str, hashed_by: str, browser: Client, op: OpenIdProvider
) -> None:
    op.algorithm = algorithm
    op.claims["at_hash"] = at_hash(ACCESS_TOKEN, hashed_by)
    assert op.log_in(browser)["Location"] == "/"


def test_a_shared_secret_is_refused_also_if_the_provider_announces_it(
    browser: Client, op: OpenIdProvider
) -> None:
    algorithms = {"id_token_signing_alg_values_supported": ["HS256", "none", "RS256"]}
    op.changes["discovery"] = lambda honest: {**honest, **algorithms}
    op.changes["keys"] = lambda honest: {
        "keys": [*honest["keys"], {"kty": "oct", "kid": "first", "k": encoded(CLIENT_SECRET.encode())}]
    }
    for name in ("the client's secret", "no signature", "the public key as secret"):
        op.changes["id_token"] = functools.partial(ATTACKS[name][1], op)
        assert op.log_in(browser).status_code == 502


def test_a_key_that_is_too_short_is_refused(browser: Client, op: OpenIdProvider) -> None:
    short = private_key("RS256", SHORT)
    op.changes["keys"] = lambda _: {"keys": [public_jwk(short, "RS256", kid="first")]}
    op.changes["id_token"] = lambda honest: by_key(SHORT)(op, honest)
    assert op.log_in(browser).status_code == 502


@pytest.mark.parametrize("issuers", [[], ["https://evil.example.org"], ["SAME", "SAME"], ["SAME/"], [""]])
def test_an_answer_of_another_issuer_is_not_accepted(
    issuers: list[str], browser: Client, op: OpenIdProvider
) -> None:
    """RFC 9207: else the answer of one provider could be mistaken for that of another."""
    named = [issuer.replace("SAME", op.issuer) for issuer in issuers]
    op.changes["callback"] = lambda honest: {**honest, "iss": named}
    assert op.log_in(browser).status_code == 401
    assert op.asked["/token"] == 0, "the code is not sent anywhere"


def test_an_issuer_in_the_answer_is_compared_also_if_it_is_not_announced(
    browser: Client, op: OpenIdProvider
) -> None:
    op.changes["discovery"] = lambda honest: {
        name: value for name, value in honest.items() if not name.startswith("authorization_response")
    }
    op.changes["callback"] = lambda honest: {**honest, "iss": "https://evil.example.org"}
    assert op.log_in(browser).status_code == 401
    op.changes["callback"] = lambda honest: {k: v for k, v in honest.items() if k != "iss"}
    assert op.log_in(browser)["Location"] == "/"


def test_a_code_of_another_login_is_not_accepted(browser: Client, op: OpenIdProvider) -> None:
    """An attacker's code in a victim's answer would log the victim in as the attacker."""
    theirs = op.authorize(browser.get("/login/sso/")["Location"])
    op.changes["callback"] = lambda honest: {**honest, "code": next(iter(op.codes))}
    ours = op.authorize(browser.get("/login/sso/")["Location"])
    assert theirs != ours
    assert browser.get(ours).status_code == 401
    assert op.refused == ["verifier"]
    assert not is_logged_in(browser)


@pytest.mark.parametrize(
    ("changed", "change", "status"),
    [
        ("callback", lambda query: {**query, "iss": "https://evil.example"}, 401),
        ("callback", lambda query: {**query, "code": [], "error": "access_denied"}, 401),
        ("callback", lambda query: {**query, "code": [], "error": "server_error"}, 502),
        ("id_token", lambda claims: {**claims, "nonce": "of another login"}, 401),
        ("id_token", lambda claims: {**claims, "aud": "another"}, 502),
        ("id_token", lambda claims: {**claims, "groups": ["another"]}, 403),
    ],
)
def test_every_refused_login_is_in_the_audit_record(
    changed: str, change: Callable[[Any], Any], status: int, browser: Client, op: OpenIdProvider
) -> None:
    op.changes[changed] = change
    assert op.log_in(browser).status_code == status
    event = AuditEvent.objects.get(outcome="denied")
    assert (event.target, event.status) == ("/login/sso/callback/", status)


def test_a_code_that_is_sent_again_is_in_the_audit_record(browser: Client, op: OpenIdProvider) -> None:
    back = op.authorize(browser.get("/login/sso/")["Location"])
    browser.get(back)
    browser.post("/logout/")
    assert browser.get(back).status_code == 401
    assert AuditEvent.objects.filter(outcome="denied", status=401).exists()
