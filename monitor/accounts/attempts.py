"""Attempts to log in, counted by what a request says; too many are answered with 429."""

from __future__ import annotations

import unicodedata
from http import HTTPStatus
from typing import TYPE_CHECKING

from allauth.core.exceptions import ImmediateHttpResponse
from django.core.cache import cache
from django.shortcuts import render

from monitor.accounts import events, known_browsers, throttle
from monitor.accounts.throttle import TooManyFailures
from monitor.web.client_address import client_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest, HttpResponse

    from monitor.accounts.throttle import Attempt, Counted


def password_attempt(request: HttpRequest, username: str) -> Attempt:
    """Count an attempt to log in as *username* with a password.

    Raises:
        ImmediateHttpResponse: too many attempts have failed; allauth's middleware sends the answer.
    """
    name, address = normalised(username), client_address(request)
    if browser := known_browsers.browser_of(request, name):
        at_account: list[Counted] = [(throttle.KNOWN_BROWSER, browser)]
    else:
        at_account = [(throttle.USER_AT_ADDRESS, f"{name} {_narrowest(address)}"), (throttle.USER, name)]
    return _begin(request, username, [*throttle.networks(address), *at_account])


def code_attempt(request: HttpRequest, user: AbstractBaseUser) -> Attempt:
    """Count an attempt to enter a code of a second factor of *user*.

    Raises:
        ImmediateHttpResponse: as in ``password_attempt``.
    """
    name = user.get_username()
    return _begin(request, name, [(throttle.SECOND_FACTOR, normalised(name))])


def start(request: HttpRequest) -> None:
    """Count the start of a login by passkey or identity provider, which stores a session for any visitor.

    Raises:
        ImmediateHttpResponse: as in ``password_attempt``.
    """
    _begin(request, "", [(throttle.START, _narrowest(client_address(request)))])


def anonymous_attempt(request: HttpRequest) -> Attempt:
    """Count an attempt to log in that names no account yet, such as with a passkey.

    Raises:
        ImmediateHttpResponse: as in ``password_attempt``.
    """
    return _begin(request, "", throttle.networks(client_address(request)))


def unlock(username: str) -> None:
    """Forget the failed attempts at the account *username* of the current window, from unknown browsers."""
    name = normalised(username)
    throttle.forgive(cache, [(throttle.USER, name), (throttle.SECOND_FACTOR, name)])


def normalised(username: str) -> str:
    """Return *username* as it is counted: other spellings of a name must not have counts of their own."""
    return unicodedata.normalize("NFKC", username).strip().casefold()


def _narrowest(address: str) -> str:
    return throttle.networks(address)[-1][1]


def _begin(request: HttpRequest, username: str, counted: Sequence[Counted]) -> Attempt:
    try:
        return throttle.begin(cache, counted)
    except TooManyFailures as error:
        if error.is_news:  # one line a window: refusals must not fill the log
            events.refuse(request, username, str(error))
        raise ImmediateHttpResponse(_too_many(request, error)) from error


def _too_many(request: HttpRequest, error: TooManyFailures) -> HttpResponse:
    context = {
        "minutes": -(-error.retry_seconds // 60),
        "is_second_factor": error.limit == throttle.SECOND_FACTOR,
        "is_address": error.limit in {throttle.ADDRESS, throttle.NETWORK, throttle.START},
    }
    response = render(request, "429.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(error.retry_seconds)
    response["Cache-Control"] = "no-store"
    return response
