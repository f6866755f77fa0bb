"""Attempts to log in, counted by what a request says.

Too many failures are answered with 429, too many attempts at once with 503.
"""

from __future__ import annotations

import unicodedata
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from allauth.core.exceptions import ImmediateHttpResponse
from django.shortcuts import render

from monitor.operations.web_server.client_address import client_address
from monitor.web.accounts import events, known_browsers, throttle
from monitor.web.accounts.sessions import START_KEY
from monitor.web.accounts.throttle import CountedAct, TooManyAtOnce, TooManyFailures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest, HttpResponse

    from monitor.web.accounts.throttle import Attempt, Counted, FailureLimit

RETRY_SECONDS = 2  # an attempt is checked within a second
_OF_CODES = (
    throttle.SECOND_FACTOR,
    throttle.SECOND_FACTOR_IN_KNOWN_BROWSER,
    throttle.SECOND_FACTOR_IN_ALL,
)


def password_attempt(request: HttpRequest, username: str) -> AbstractContextManager[Attempt]:
    """Count an attempt to log in as *username* with a password, which the block checks.

    Raises:
        ImmediateHttpResponse: too many attempts have failed, or are under way; allauth's middleware sends
            the answer.
    """
    name, address = normalised(username), client_address(request)
    if browser := known_browsers.browser_of(request, name):
        at_account: list[Counted] = [(throttle.KNOWN_BROWSER, browser)]
    else:
        at_account = [(throttle.USER_AT_ADDRESS, f"{name} {_narrowest(address)}"), (throttle.USER, name)]
    return _attempt(request, username, [*throttle.networks(address), *at_account])


def code_attempt(request: HttpRequest, user: AbstractBaseUser) -> AbstractContextManager[Attempt]:
    """Count an attempt to enter a code of a second factor of *user*, which the block checks.

    An attacker who knows the password uses up only what unknown browsers may fail.

    Raises:
        ImmediateHttpResponse: as in ``password_attempt``.
    """
    name, browser = normalised(user.get_username()), known_browser(request, user)
    at_browser = (
        (throttle.SECOND_FACTOR_IN_KNOWN_BROWSER, browser) if browser else (throttle.SECOND_FACTOR, name)
    )
    return _attempt(request, user.get_username(), [at_browser, (throttle.SECOND_FACTOR_IN_ALL, name)])


def anonymous_attempt(request: HttpRequest) -> AbstractContextManager[Attempt]:
    """Count an attempt to log in that names no account yet, such as with a passkey.

    Raises:
        ImmediateHttpResponse: as in ``password_attempt``.
    """
    return _attempt(request, "", throttle.networks(client_address(request)))


def start(request: HttpRequest) -> None:
    """Count the start of a login by passkey or identity provider, which stores a session for any visitor.

    Raises:
        ImmediateHttpResponse: as in ``password_attempt``.
    """
    try:
        act = throttle.limits().count(throttle.START, _narrowest(client_address(request)))
    except TooManyFailures as error:
        raise _refusal(request, "", error) from error
    request.session[START_KEY] = [act.key, act.ends]


def take_back_start(request: HttpRequest) -> None:
    """Count the start of this session's login no longer: it has succeeded, or has confirmed or connected."""
    if started := request.session.pop(START_KEY, None):
        throttle.limits().take_back(CountedAct(*started))


def unlock(username: str) -> dict[FailureLimit, int]:
    """Forget the failed attempts at the account *username*, from unknown browsers; return how many.

    Raises:
        redis.RedisError: Valkey is unreachable; each web process has counts of its own.
    """
    name = normalised(username)
    unlocked = (throttle.USER, throttle.SECOND_FACTOR, throttle.SECOND_FACTOR_IN_ALL)
    forgotten = throttle.limits().forget([(limit, name) for limit in unlocked])
    return dict(zip(unlocked, forgotten, strict=True))


def known_browser(request: HttpRequest, user: AbstractBaseUser) -> str | None:
    """Return what identifies the browser of *request* if *user* has logged in there before."""
    return known_browsers.browser_of(request, normalised(user.get_username()))


def normalised(username: str) -> str:
    """Return *username* as it is counted: as the login form reads it.

    Upper and lower case differ, as they do for the accounts: a login as ``weiß`` must not forget the failures
    of ``weiss``.
    """
    return unicodedata.normalize("NFKC", username).strip()


def _narrowest(address: str) -> str:
    return throttle.networks(address)[-1][1]


@contextmanager
def _attempt(request: HttpRequest, username: str, counted: Sequence[Counted]) -> Iterator[Attempt]:
    with ExitStack() as stack:
        try:
            attempt = stack.enter_context(throttle.limits().attempt(counted))
        except TooManyFailures as error:
            raise _refusal(request, username, error) from error
        except TooManyAtOnce as error:
            raise ImmediateHttpResponse(_busy(request)) from error
        yield attempt


def _refusal(request: HttpRequest, username: str, error: TooManyFailures) -> ImmediateHttpResponse:
    if error.is_news:  # one line a window: refusals must not fill the log
        events.refuse(request, username, str(error))
    context = {
        "minutes": -(-error.retry_seconds // 60),
        "is_second_factor": error.limit in _OF_CODES,
        "is_address": error.limit in {throttle.ADDRESS, throttle.NETWORK, throttle.START},
    }
    response = render(request, "429.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    return ImmediateHttpResponse(_not_stored(response, error.retry_seconds))


def _busy(request: HttpRequest) -> HttpResponse:
    response = render(request, "login_busy.html", status=HTTPStatus.SERVICE_UNAVAILABLE)
    return _not_stored(response, RETRY_SECONDS)


def _not_stored(response: HttpResponse, retry_seconds: int) -> HttpResponse:
    response["Retry-After"] = str(retry_seconds)
    response["Cache-Control"] = "no-store"
    return response
