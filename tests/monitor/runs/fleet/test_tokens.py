"""Tokens of agents: expired, replayed, of other keys, purposes, reporters and servers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from monitor.models import Reporter
from monitor.runs.fleet.enrolment import EnrolmentRequest, create_code, enrol, revoke
from monitor.runs.fleet.signatures import METHODS, Purpose
from monitor.runs.fleet.tokens import (
    InvalidToken,
    RevokedKey,
    TokenExpired,
    TokenNotYetValid,
    TokenRefused,
    authenticate,
)
from tests.monitor.runs.fleet.agents import normalised, remote_reporter
from tests.monitor.runs.fleet.site_keys import SiteKey, site_key, url64

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW_SECONDS = int(NOW.timestamp())


@pytest.fixture
def reporter(db: None) -> Reporter:
    return remote_reporter()


@pytest.fixture(params=METHODS)
def key(request: pytest.FixtureRequest, reporter: Reporter, tmp_path: Path) -> SiteKey:
    """An enrolled key of the reporter ncsa."""
    made = site_key(tmp_path, request.param)
    enrol_key(reporter, made)
    return made


def enrol_key(reporter: Reporter, key: SiteKey) -> None:
    code = create_code(reporter, None, NOW)
    signature = key.sign(Purpose.ENROLMENT, normalised(code))
    enrol(EnrolmentRequest(code, key.method, key.public, signature), "192.0.2.1", NOW)


def test_a_token_authenticates_its_reporter_with_one_query(
    reporter: Reporter, key: SiteKey, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    token = key.token("ncsa", NOW_SECONDS)
    with django_assert_num_queries(1):
        assert authenticate(token, NOW).reporter == reporter
    assert authenticate(token, NOW + timedelta(seconds=599)).reporter == reporter


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"issued_at": NOW_SECONDS - 601, "expires_at": NOW_SECONDS - 1}, TokenExpired),
        ({"expires_at": NOW_SECONDS}, TokenExpired),
        ({"issued_at": NOW_SECONDS + 3_600, "expires_at": NOW_SECONDS + 4_000}, TokenNotYetValid),
        ({"expires_at": NOW_SECONDS + 901}, InvalidToken),
        ({"expires_at": 1e308}, InvalidToken),
        ({"expires_at": "never"}, InvalidToken),
        ({"reporter": "sdsc"}, InvalidToken),
        ({"reporter": None}, InvalidToken),
        ({"server": "0" * 64}, InvalidToken),
        ({"server": "é"}, InvalidToken),
        ({"key": "0" * 64}, InvalidToken),
    ],
)
def test_a_token_with_other_contents_is_refused(
    key: SiteKey, changes: dict[str, Any], refusal: type[TokenRefused]
) -> None:
    remote_reporter("sdsc")
    with pytest.raises(refusal):
        authenticate(key.token("ncsa", NOW_SECONDS, **changes), NOW)


def test_a_clock_that_is_a_little_fast_does_no_harm(reporter: Reporter, key: SiteKey) -> None:
    assert authenticate(key.token("ncsa", NOW_SECONDS + 20), NOW).reporter == reporter


def test_a_token_signed_by_another_key_is_refused(reporter: Reporter, key: SiteKey, tmp_path: Path) -> None:
    other = site_key(tmp_path, key.method, "other")
    with pytest.raises(InvalidToken, match="another"):
        authenticate(other.token("ncsa", NOW_SECONDS, key=key.fingerprint), NOW)
    with pytest.raises(InvalidToken, match="not one of this reporter"):
        authenticate(other.token("ncsa", NOW_SECONDS), NOW)


def test_a_signature_for_another_purpose_is_no_token(key: SiteKey) -> None:
    payload = key.token("ncsa", NOW_SECONDS).split(".")[1]
    signature = key.sign(Purpose.ENROLMENT, payload.encode())
    with pytest.raises(InvalidToken):
        authenticate(f"gcrep.{payload}.{url64(signature.encode())}", NOW)


def test_a_changed_payload_is_refused(key: SiteKey) -> None:
    _, _, signature = key.token("ncsa", NOW_SECONDS).split(".")
    _, payload, _ = key.token("ncsa", NOW_SECONDS + 1).split(".")
    with pytest.raises(InvalidToken):
        authenticate(f"gcrep.{payload}.{signature}", NOW)


def test_revocation_takes_effect_with_the_next_request(reporter: Reporter, key: SiteKey) -> None:
    token = key.token("ncsa", NOW_SECONDS)
    authenticate(token, NOW)
    revoke(reporter, "ada", NOW)
    with pytest.raises(RevokedKey):
        authenticate(token, NOW)


def test_a_later_enrolment_ends_the_tokens_of_the_earlier_key(
    reporter: Reporter, key: SiteKey, tmp_path: Path
) -> None:
    token = key.token("ncsa", NOW_SECONDS)
    enrol_key(reporter, site_key(tmp_path, key.method, "later"))
    with pytest.raises(RevokedKey):
        authenticate(token, NOW)


def test_a_reporter_without_a_site_is_no_agent(reporter: Reporter, key: SiteKey) -> None:
    token = key.token("ncsa", NOW_SECONDS)
    Reporter.objects.update(site=None)
    with pytest.raises(RevokedKey):
        authenticate(token, NOW)


def test_a_server_with_another_secret_refuses_every_token(key: SiteKey, settings: LazySettings) -> None:
    token = key.token("ncsa", NOW_SECONDS)
    settings.SECRET_KEY = "another secret"
    with pytest.raises(InvalidToken, match="another server"):
        authenticate(token, NOW)


payloads = st.dictionaries(
    st.sampled_from(["reporter", "key", "server", "issued_at"]), st.text() | st.floats()
)
texts = st.text() | st.builds(
    lambda payload, signature: f"gcrep.{url64(json.dumps(payload).encode())}.{url64(signature)}",
    payloads,
    st.binary(),
)


@pytest.mark.django_db
@given(token=texts)
def test_no_other_text_is_a_token(token: str) -> None:
    with pytest.raises(InvalidToken):
        authenticate(token, NOW)
    with pytest.raises(InvalidToken):
        authenticate("gcrep." + token, NOW)
