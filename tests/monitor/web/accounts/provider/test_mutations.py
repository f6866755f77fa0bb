"""Whatever a provider sends: the answer is a page, no traceback is logged, and only a proven user logs in."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from random import Random
from typing import Any

import httpx
import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.sessions.models import Session
from django.test import Client

from monitor.models import ProviderMetadata
from tests.monitor.web.accounts.logins import is_logged_in
from tests.monitor.web.accounts.provider.mutations import mutated, mutated_text
from tests.monitor.web.accounts.provider.openid_provider import (
    ACCESS_TOKEN,
    CLIENT_ID,
    Json,
    OpenIdProvider,
    encoded,
    signed,
)
from tests.monitor.web.accounts.provider.test_tokens import at_hash

Browsers = Callable[[], Client]
MESSAGES = ("discovery", "keys", "token", "claims", "header", "id_token", "userinfo")
STATUSES = {302, 401, 403, 502}
LONGEST_RECORD = 3_000


class Mutant:
    """One login whose *message* is mutated; *sent* is what the provider sent in its place."""

    def __init__(self, op: OpenIdProvider, seed: int) -> None:
        self.op, self.random = op, Random(seed)
        self.message = self.random.choice(MESSAGES)
        self.sent: Any = None
        self.honest: Any = None
        self.nonce = ""
        op.claims = {"sub": f"mutant-{seed}", "preferred_username": f"mutant-{seed}", "groups": ["a"]}
        op.userinfo = {"sub": op.claims["sub"], "given_name": "Ada", "email": "ada@example.org"}
        changes = dict.fromkeys(("discovery", "keys", "token", "userinfo"), self._whole)
        op.changes = {self.message: changes[self.message]} if self.message in changes else {}
        if self.message in {"claims", "header", "id_token"}:
            op.changes["id_token"] = getattr(self, f"_{self.message}")

    def _whole(self, honest: Any) -> bytes:
        self.honest, self.sent = honest, mutated(honest, self.random)
        return bytes(self.sent)

    def _claims(self, honest: Json) -> str:
        self.nonce, self.sent = honest["nonce"], mutated(honest, self.random)
        return signed({"alg": "RS256", "kid": "first"}, self.sent, self.op.key())

    def _header(self, honest: Json) -> str:
        head, payload, signature = self._signed(honest).split(".")
        header = mutated({"alg": "RS256", "kid": "first"}, self.random)
        self.honest, self.sent = head, encoded(header)
        return f"{self.sent}.{payload}.{signature}"

    def _id_token(self, honest: Json) -> str:
        self.honest = self._signed(honest)
        self.sent = mutated_text(self.honest, self.random)
        return str(self.sent)

    def _signed(self, honest: Json) -> str:
        return signed({"alg": "RS256", "kid": "first"}, json.dumps(honest).encode(), self.op.key())

    def may_log_in(self) -> bool:
        """Return whether what was sent proves the user, by the rules as they are written here once more."""
        if self.sent is None:
            return True
        if self.message in {"header", "id_token"}:
            return bool(self.sent.rstrip("=") == self.honest.rstrip("="))
        try:
            document = json.loads(self.sent)
        except (ValueError, RecursionError):
            return False
        rules: dict[str, Callable[[Any], bool]] = {
            "discovery": lambda sent: sent["issuer"] == self.honest["issuer"],
            "keys": self._has_key,
            "token": lambda sent: (
                (sent["id_token"], bool(sent["access_token"])) == (self.honest["id_token"], True)
            ),
            "userinfo": lambda sent: sent["sub"] == self.op.claims["sub"],
            "claims": self._proves,
        }
        return rules[self.message](document)

    def _has_key(self, sent: Any) -> bool:
        members = ("n", "e", "kty")
        honest = self.honest["keys"][0]
        return any(all(key.get(name) == honest[name] for name in members) for key in sent["keys"])

    def _proves(self, sent: Any) -> bool:
        now = time.time()
        audiences = sent["aud"] if isinstance(sent["aud"], list) else [sent["aud"]]
        return (
            sent["iss"] == self.op.issuer
            and CLIENT_ID in audiences
            and (sent.get("azp") == CLIENT_ID or (len(audiences) == 1 and sent.get("azp") is None))
            and sent["nonce"] == self.nonce
            and sent["exp"] > now - 61
            and sent["iat"] < now + 61
            and sent["sub"] == self.op.claims["sub"] == self.op.userinfo["sub"]  # type: ignore[index]
            and sent.get("at_hash") in {None, at_hash(ACCESS_TOKEN)}
        )


def log_in(op: OpenIdProvider, browser: Client) -> Any:
    """Log in as far as mutated endpoints lead; return the last answer of gridcast."""
    start = browser.get("/login/sso/")
    if start.status_code != 302:
        return start
    try:
        back = op.authorize(start["Location"])
    except (httpx.HTTPError, KeyError):  # another host, or another path of the provider
        return start
    return browser.get(back)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(200), id="200"),
        pytest.param(range(200, 10_200), id="10000", marks=pytest.mark.nightly),
    ],
)
def test_no_mutated_message_breaks_a_login_or_logs_in_without_proof(
    seeds: range, browser_elsewhere: Browsers, op: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    logged_in = 0
    for seed in seeds:
        ProviderMetadata.objects.all().delete()
        Session.objects.all().delete()
        mutant, browser = Mutant(op, seed), browser_elsewhere()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            answer = log_in(op, browser)
        case = f"seed {seed}: {mutant.message} {str(mutant.sent)[:300]}"
        assert answer.status_code in STATUSES, case
        assert not [record for record in caplog.records if record.exc_info], case
        assert all(len(record.getMessage()) < LONGEST_RECORD for record in caplog.records), case
        if is_logged_in(browser):
            logged_in += 1
            assert mutant.may_log_in(), case
            assert SocialAccount.objects.filter(identity__subject=op.claims["sub"]).exists(), case
    assert 0 < logged_in < len(seeds) / 2, "mutations that change nothing essential, and those that do"
