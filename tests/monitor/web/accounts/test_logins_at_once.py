"""Many logins at once, over HTTP at a server with threads: only failures refuse."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from monitor.models import AuditEvent
from monitor.operations.web_server.proxies import ON_THIS_HOST
from monitor.web.accounts import attempts, throttle
from tests.monitor.web.accounts.hashers import CountingArgon2
from tests.monitor.web.pages import builders

AT_ONCE = 16
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


@pytest.fixture
def owner(transactional_db: None, settings: Settings) -> Iterator[User]:
    settings.PASSWORD_HASHERS = [f"{CountingArgon2.__module__}.CountingArgon2"]
    settings.GRIDCAST_PROXIES = ON_THIS_HOST
    user = builders.user("owner-of-many", password=builders.PASSWORD)
    yield user
    attempts.unlock(str(user))


def logged_in_at_once(server: LiveServer, address: str, user: User, password: str) -> list[httpx.Response]:
    """Send the form in so many browsers at the same moment; return the answers."""
    barrier = threading.Barrier(AT_ONCE)

    def log_in(_: int) -> httpx.Response:
        headers = {"X-Forwarded-For": address}
        with httpx.Client(base_url=server.url, headers=headers, timeout=300) as browser:
            token = TOKEN.search(browser.get("/login/").text)
            assert token is not None
            form = {"login": str(user), "password": password, "csrfmiddlewaretoken": token[1]}
            barrier.wait(300)
            return browser.post("/login/", data=form)

    CountingArgon2.checked.clear()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(log_in, range(AT_ONCE)))


def test_sixteen_right_passwords_give_logins_and_503_and_no_429(live_server: LiveServer, owner: User) -> None:
    answers = logged_in_at_once(live_server, "203.0.113.21", owner, builders.PASSWORD)
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {302, 503}
    assert statuses[302] >= throttle.USER_AT_ADDRESS.failures
    assert len(CountingArgon2.checked) == statuses[302], "what is answered with 503 was not checked"
    for answer in answers:
        if answer.status_code == 503:
            assert int(answer.headers["Retry-After"]) > 0
            assert "does not count as failed" in answer.text
    assert not AuditEvent.objects.exclude(outcome="done").exists(), "no denial is recorded"
    assert set(attempts.unlock(str(owner)).values()) == {0}


def test_sixteen_wrong_passwords_are_checked_at_most_five_times(live_server: LiveServer, owner: User) -> None:
    answers = logged_in_at_once(live_server, "203.0.113.22", owner, "wrong")
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 429, 503}
    assert len(CountingArgon2.checked) == statuses[200] == throttle.USER_AT_ADDRESS.failures
    assert attempts.unlock(str(owner))[throttle.USER] == throttle.USER_AT_ADDRESS.failures
