"""Equal codes, and additions of factors, that arrive at once: exactly one counts, and none is an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from monitor.web.accounts import codes
from tests.monitor.web.accounts.logins import add_app, code_of, confirm, is_logged_in, log_in
from tests.monitor.web.accounts.test_second_factors import STEP, recovery_codes

Browsers = Callable[[], Client]
pytestmark = pytest.mark.django_db(transaction=True)


def at_once(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run *acts* in a thread each, which begin together; return their answers."""
    begin = Barrier(len(acts))

    def act(each: Callable[[], Any]) -> Any:
        begin.wait(60)
        try:
            return each()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(act, acts))


def waiting(browsers: Browsers, reader: User, number: int) -> list[Client]:
    """Browsers in which the password was entered, and the second factor was not."""
    opened = [browsers() for _ in range(number)]
    for browser in opened:
        log_in(browser, reader)
    return opened


def posts(browsers: Sequence[Client], code: str) -> list[Callable[[], Any]]:
    return [partial(browser.post, STEP, {"code": code}) for browser in browsers]


@pytest.mark.parametrize(("kind", "number"), [("app", 20), ("recovery code", 6)])
def test_of_equal_codes_at_once_one_is_accepted(
    browser: Client, reader: User, kind: str, number: int
) -> None:
    log_in(browser, reader)
    secret = add_app(browser)
    code = code_of(secret) if kind == "app" else recovery_codes(browser)[0]

    def use() -> bool:
        try:
            codes.use(reader, code)
        except codes.UsedCode:
            return False
        return True

    assert Counter(at_once([use] * number)) == {True: 1, False: number - 1}


def test_of_two_apps_added_at_once_one_is_stored(browser: Client, reader: User) -> None:
    log_in(browser, reader)
    confirm(browser)
    browser.get("/account/app/")
    code = code_of(str(browser.session["mfa.totp.secret"]))
    twins = [browser, Client()]
    twins[1].cookies = browser.cookies
    answers = at_once([partial(twin.post, "/account/app/", {"code": code}) for twin in twins])
    assert sorted(answer.status_code for answer in answers) in ([200, 302], [302, 302])
    kinds = Authenticator.objects.filter(user=reader).values_list("type", flat=True)
    assert sorted(kinds) == ["recovery_codes", "totp"]
    app = Authenticator.objects.get(user=reader, type="totp")
    assert len(app.data["used_counters"]) == 1


def test_a_first_view_of_recovery_codes_brings_no_used_code_back(
    browser_elsewhere: Browsers, reader: User
) -> None:
    first = browser_elsewhere()
    log_in(first, reader)
    add_app(first)
    factor = Authenticator.objects.get(user=reader, type="recovery_codes")
    code = factor.wrap().get_unused_codes()[0]
    [guest] = waiting(browser_elsewhere, reader, 1)
    at_once([*posts([guest], code), lambda: first.get("/account/recovery-codes/")])
    assert is_logged_in(guest)
    with pytest.raises(codes.UsedCode):
        codes.use(reader, code)


@pytest.mark.parametrize(("kind", "number"), [("app", 20), ("recovery code", 6)])
def test_of_equal_codes_sent_at_once_one_logs_in(
    browser_elsewhere: Browsers, reader: User, kind: str, number: int
) -> None:
    first = browser_elsewhere()
    log_in(first, reader)
    secret = add_app(first)
    code = code_of(secret) if kind == "app" else recovery_codes(first)[0]
    browsers = waiting(browser_elsewhere, reader, number)
    answers = at_once(posts(browsers, code))
    assert sum(map(is_logged_in, browsers)) == 1
    assert {answer.status_code for answer in answers} <= {302, 200, 429, 503}
