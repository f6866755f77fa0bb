"""Codes: made, used once, expired, withdrawn, guessed; keys: enrolled and revoked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import EnrolmentAttempt, EnrolmentCode, Reporter, ReporterKey
from monitor.models.role import UserRole
from monitor.runs.fleet.enrolment import (
    ATTEMPT_WINDOW,
    MAX_ATTEMPTS,
    MAX_ATTEMPTS_PER_ADDRESS,
    VALIDITY,
    EnrolmentRequest,
    InvalidCode,
    KeyKnown,
    NotRemote,
    TooManyAttempts,
    create_code,
    enrol,
    revoke,
    server_mark,
)
from monitor.runs.fleet.signatures import (
    METHODS,
    InvalidReporterKey,
    InvalidReporterSignature,
    Purpose,
    server_fingerprint,
)
from tests.monitor.runs.fleet.agents import normalised, remote_reporter
from tests.monitor.runs.fleet.site_keys import SiteKey, site_key

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HERE = "192.0.2.1"


@pytest.fixture
def reporter(db: None) -> Reporter:
    return remote_reporter()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SiteKey]:
    directory = tmp_path_factory.mktemp("keys")
    return {method: site_key(directory, method) for method in METHODS}


@pytest.fixture
def key(keys: dict[str, SiteKey]) -> SiteKey:
    return keys["openssl"]


def request(code: str, key: SiteKey, hostname: str = "login1") -> EnrolmentRequest:
    signature = key.sign(Purpose.ENROLMENT, normalised(code))
    return EnrolmentRequest(code, key.method, key.public, signature, hostname)


def guess(number: int, key: SiteKey, address: str = HERE, now: datetime = NOW) -> None:
    with pytest.raises(InvalidCode):
        enrol(request(f"{number:020}", key), address, now)


def test_a_code_names_the_key_of_the_server(reporter: Reporter, admin_user: User) -> None:
    code = create_code(reporter, admin_user, NOW)
    assert [len(group) for group in code.split("-")] == [4] * 5
    assert set(code) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567-")
    assert code.replace("-", "").endswith(server_mark())
    stored = EnrolmentCode.objects.get()
    assert (stored.created_by, stored.expires_at - NOW) == (admin_user, VALIDITY)
    assert code not in str(vars(stored))
    number = int(server_fingerprint(), 16)
    assert server_mark()[0] == "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[number >> 251]


@pytest.mark.parametrize("method", METHODS)
def test_an_agent_enrols_with_a_code(reporter: Reporter, keys: dict[str, SiteKey], method: str) -> None:
    code = create_code(reporter, None, NOW)
    enrolled = enrol(request(code.lower().replace("-", ""), keys[method]), HERE, NOW)
    assert enrolled.reporter == reporter
    assert (enrolled.method, enrolled.fingerprint) == (method, keys[method].fingerprint)
    assert list(ReporterKey.objects.active()) == [enrolled]


def test_a_repeated_request_gets_the_same_key(reporter: Reporter, key: SiteKey) -> None:
    asked = request(create_code(reporter, None, NOW), key)
    first = enrol(asked, HERE, NOW)
    assert enrol(asked, HERE, NOW + VALIDITY / 2) == first
    assert ReporterKey.objects.count() == 1
    with pytest.raises(InvalidCode):
        enrol(asked, HERE, NOW + VALIDITY)


def test_a_code_is_used_once(reporter: Reporter, key: SiteKey, tmp_path: Path) -> None:
    code = create_code(reporter, None, NOW)
    enrol(request(code, key), HERE, NOW)
    with pytest.raises(InvalidCode):
        enrol(request(code, site_key(tmp_path, "ssh")), HERE, NOW)
    assert ReporterKey.objects.active().get().fingerprint == key.fingerprint


def test_unknown_used_and_expired_codes_get_the_same_message(
    reporter: Reporter, key: SiteKey, tmp_path: Path
) -> None:
    used = create_code(reporter, None, NOW)
    enrol(request(used, key), HERE, NOW)
    expired = create_code(remote_reporter("sdsc"), None, NOW - VALIDITY)
    other = site_key(tmp_path, "openssl", "other")
    messages = set()
    for code in (used, expired, "A" * 20, "\ud800", ""):
        with pytest.raises(InvalidCode) as error:
            enrol(request(code, other), HERE, NOW)
        messages.add(str(error.value))
    assert len(messages) == 1


def test_a_code_is_refused_once_its_maker_may_not_manage_the_reporter(
    reporter: Reporter, key: SiteKey
) -> None:
    maker = User.objects.create_user("bob")
    roles.grant(maker, Grant(UserRole.SITE_ADMIN, str(reporter.site)))
    asked = request(create_code(reporter, maker, NOW), key)
    roles.revoke(maker, Grant(UserRole.SITE_ADMIN, str(reporter.site)))
    with pytest.raises(InvalidCode):
        enrol(asked, HERE, NOW)
    roles.grant(maker, Grant(UserRole.SITE_ADMIN, str(reporter.site)))
    assert enrol(asked, HERE, NOW).reporter == reporter
    asked = request(create_code(reporter, maker, NOW), key)
    maker.delete()
    with pytest.raises(InvalidCode):
        enrol(asked, HERE, NOW)


def test_a_later_code_withdraws_the_earlier_one(reporter: Reporter, key: SiteKey) -> None:
    first, second = (create_code(reporter, None, NOW) for _ in range(2))
    with pytest.raises(InvalidCode):
        enrol(request(first, key), HERE, NOW)
    enrol(request(second, key), HERE, NOW)


def test_a_later_enrolment_revokes_the_earlier_key(reporter: Reporter, keys: dict[str, SiteKey]) -> None:
    for minute, method in enumerate(METHODS):
        code = create_code(reporter, None, NOW + timedelta(minutes=minute))
        enrol(request(code, keys[method]), HERE, NOW + timedelta(minutes=minute))
    active = ReporterKey.objects.active().get()
    revoked = ReporterKey.objects.exclude(pk=active.pk).get()
    assert (active.method, revoked.method) == (METHODS[1], METHODS[0])
    assert (revoked.revoked_at, revoked.revoked_by) == (NOW + timedelta(minutes=1), "a later enrolment")


def test_a_revoked_key_never_comes_back(reporter: Reporter, key: SiteKey) -> None:
    code = create_code(reporter, None, NOW)
    enrol(request(code, key), HERE, NOW)
    pending = create_code(reporter, None, NOW)
    assert revoke(reporter, "ada", NOW) == 1
    for withdrawn in (code, pending):
        with pytest.raises(InvalidCode):
            enrol(request(withdrawn, key), HERE, NOW)
    with pytest.raises(KeyKnown):
        enrol(request(create_code(reporter, None, NOW), key), HERE, NOW)
    assert ReporterKey.objects.get().revoked_by == "ada"


def test_a_key_of_another_reporter_is_not_enrolled(reporter: Reporter, key: SiteKey) -> None:
    enrol(request(create_code(reporter, None, NOW), key), HERE, NOW)
    with pytest.raises(KeyKnown):
        enrol(request(create_code(remote_reporter("sdsc"), None, NOW), key), HERE, NOW)


def test_the_agent_must_hold_the_private_key(reporter: Reporter, keys: dict[str, SiteKey]) -> None:
    code = create_code(reporter, None, NOW)
    stolen = EnrolmentRequest(
        code, "openssl", keys["openssl"].public, keys["openssl"].sign(Purpose.TOKEN, normalised(code))
    )
    with pytest.raises(InvalidReporterSignature):
        enrol(stolen, HERE, NOW)
    with pytest.raises(InvalidReporterKey):
        enrol(EnrolmentRequest(code, "openssl", "no key", stolen.signature), HERE, NOW)
    assert not ReporterKey.objects.exists()


def test_a_celery_worker_gets_no_code(db: None) -> None:
    with pytest.raises(NotRemote, match="Celery worker"):
        create_code(Reporter.objects.create(name="worker"), None, NOW)


def test_codes_cannot_be_guessed_from_one_address(reporter: Reporter, key: SiteKey) -> None:
    valid = request(create_code(reporter, None, NOW), key)
    for number in range(MAX_ATTEMPTS_PER_ADDRESS):
        guess(number, key)
    with pytest.raises(TooManyAttempts) as error:
        enrol(valid, HERE, NOW + timedelta(minutes=5))
    assert error.value.retry_seconds == 600
    assert enrol(valid, "192.0.2.2", NOW).reporter == reporter
    guess(0, key, now=NOW + ATTEMPT_WINDOW)
    assert EnrolmentAttempt.objects.count() == 1


def test_addresses_of_one_ipv6_network_are_one_client(db: None, key: SiteKey) -> None:
    for number in range(MAX_ATTEMPTS_PER_ADDRESS):
        guess(number, key, f"2001:db8::{number}")
    with pytest.raises(TooManyAttempts):
        enrol(request("A" * 20, key), "2001:db8::ffff:0:1", NOW)
    guess(0, key, "2001:db8:0:1::1")


def test_codes_cannot_be_guessed_from_many_addresses(reporter: Reporter, key: SiteKey) -> None:
    valid = request(create_code(reporter, None, NOW), key)
    attempts = [EnrolmentAttempt(at=NOW, address=f"10.0.{n // 250}.{n % 250}") for n in range(MAX_ATTEMPTS)]
    EnrolmentAttempt.objects.bulk_create(attempts)
    with pytest.raises(TooManyAttempts):
        enrol(valid, "192.0.2.77", NOW)


def test_texts_of_the_agent_are_stored_within_their_bounds(reporter: Reporter, key: SiteKey) -> None:
    code = create_code(reporter, None, NOW)
    hostname = "<script>\x00" + "x" * 1_000
    assert len(enrol(request(code, key, hostname), HERE, NOW).hostname) == 253
