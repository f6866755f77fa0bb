"""Every reader of a client's address sees the same one: that which a named proxy adds, else the peer's."""

from __future__ import annotations

import ipaddress
import itertools
import logging

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from monitor.models import ApiToken, AuditEvent
from monitor.models.token import READ
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts import events, throttle
from monitor.web.pages.http import proxies as middleware
from tests.monitor.web.accounts.logins import is_logged_in, log_in

PROXY, FORGED = "192.0.2.80", "198.51.100.1"
_clients = (f"203.0.113.{number}" for number in itertools.count(1))


@pytest.fixture(params=[True, False], ids=["named", "not named"])
def is_named(request: pytest.FixtureRequest, settings: Settings) -> bool:
    settings.GRIDCAST_PROXIES = Proxies(
        (ipaddress.ip_network(PROXY),) if request.param else (), is_unix=False
    )
    return bool(request.param)


def behind_proxy(client: str) -> Client:
    """Return a browser at the address *client*, which forges another one."""
    return Client(REMOTE_ADDR=PROXY, headers={"X-Forwarded-For": f"{FORGED}, {client}"})


@pytest.fixture
def client_at() -> str:
    return next(_clients)


def test_log_audit_record_and_session_have_the_same_address(
    is_named: bool, reader: User, client_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected = client_at if is_named else PROXY
    browser = behind_proxy(client_at)
    with caplog.at_level(logging.INFO, logger=events.__name__):
        log_in(browser, reader)
    assert caplog.messages[-1] == f"login: user {str(reader)!r} from {expected}"
    assert AuditEvent.objects.get(user=str(reader)).address == expected
    assert UserSession.objects.get(user=reader).ip == expected


def test_a_token_was_used_from_the_same_address(is_named: bool, reader: User, client_at: str) -> None:
    token = ApiToken.objects.issue(reader, "program", [READ])
    behind_proxy(client_at).get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
    assert ApiToken.objects.get().last_used_from == (client_at if is_named else PROXY)


def test_metrics_are_open_to_the_same_address(
    is_named: bool, db: None, settings: Settings, client_at: str
) -> None:
    allowed = {address: (ipaddress.ip_network(address),) for address in (client_at, PROXY, FORGED)}
    statuses = {}
    for address, networks in allowed.items():
        settings.GRIDCAST_METRICS_ALLOW = networks
        statuses[address] = behind_proxy(client_at).get("/metrics?collect[]=requests").status_code
    assert {address for address, status in statuses.items() if status != 401} == {
        client_at if is_named else PROXY
    }


def test_limits_and_budgets_count_the_same_address(is_named: bool, reader: User, client_at: str) -> None:
    expected = client_at if is_named else PROXY
    counted = [(throttle.ADDRESS, address) for address in (expected, FORGED)]
    throttle.limits().forget(counted)
    browser = behind_proxy(client_at)
    answer = log_in(browser, reader, "wrong")
    assert throttle.limits().forget(counted) == [1, 0]
    assert answer.wsgi_request.budget_caller == f"address:{expected}"


def test_one_client_locks_out_the_others_only_behind_a_proxy_that_is_not_named(
    is_named: bool, reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    throttle.limits().forget([(throttle.ADDRESS, PROXY)])
    clumsy, owner = (behind_proxy(next(_clients)) for _ in range(2))
    with caplog.at_level(logging.WARNING, logger=middleware.__name__):
        for _ in range(throttle.USER_AT_ADDRESS.failures):
            log_in(clumsy, reader, "wrong")
    status = log_in(owner, reader).status_code
    assert (status, is_logged_in(owner)) == ((302, True) if is_named else (429, False))
    lines = [line for line in caplog.messages if f"set GRIDCAST_PROXIES={PROXY}" in line]
    assert bool(lines) != is_named, "the log says how to end that"
