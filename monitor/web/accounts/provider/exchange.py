"""Ask the provider: within the bounds of its purpose, and by few threads at once."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_plus, urlencode

from monitor.core.clipping import clipped, printable
from monitor.core.egress.bounds import PROVIDER
from monitor.core.egress.client import EgressAnswer, EgressClient
from monitor.core.egress.errors import EgressError, Unanswered
from monitor.core.egress.target import parse_target
from monitor.web.accounts.provider.documents import TokenRefusal, TokenResponse, parse, parse_object
from monitor.web.accounts.provider.faults import (
    LoginRefused,
    ProviderBusy,
    ProviderFault,
    ProviderUnreachable,
    ProviderUnusable,
)

MOST_WAITING = 2  # threads of a process that wait for the provider; the others serve everything else
_HEADERS = {"User-Agent": "gridcast", "Accept": "application/json"}
_places = threading.BoundedSemaphore(MOST_WAITING)


@contextmanager
def waiting_place() -> Iterator[None]:
    """Hold one of the places of the threads that may wait for the provider.

    Raises:
        ProviderBusy: there is none.
    """
    if not _places.acquire(blocking=False):
        raise ProviderBusy(f"{MOST_WAITING} threads wait for the provider already")
    try:
        yield
    finally:
        _places.release()


def fetch(url: str, what: str, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the body of *url*; a message of an error names it *what*.

    Raises:
        ProviderUnreachable: there is no answer.
        ProviderUnusable: the answer is another than 200, too large, or a redirect to another server.
    """
    answer = _send("GET", url, what, {**_HEADERS, **(headers or {})})
    if answer.status != HTTPStatus.OK:
        raise ProviderUnusable(f"{what}: the provider answered {answer.status}{_beginning(answer)}")
    return answer.body


def redeem_code(
    url: str, form: Mapping[str, str], client_id: str, secret: str, *, is_basic: bool
) -> TokenResponse:
    """Return the tokens for the code in *form*; *is_basic*: the client is authenticated by a header.

    Raises:
        LoginRefused: the code is used, too old, or was not issued for this login.
        ProviderFault: as in ``fetch``; also if the provider does not accept the client.
    """
    headers, what = dict(_HEADERS), "token endpoint"
    if is_basic:
        pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"  # RFC 6749, section 2.3.1
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form = {**form, "client_id": client_id, "client_secret": secret}
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    answer = _send("POST", url, what, headers, urlencode(form).encode())
    if answer.status != HTTPStatus.OK:
        raise _refusal(answer, what)
    response = parse(TokenResponse, parse_object(answer.body, what), what)
    if (response.token_type or "Bearer").lower() != "bearer":
        raise ProviderUnusable(f"{what}: expected a bearer token, got {response.token_type!r}")
    return response


def fetch_userinfo(url: str, access_token: str) -> Mapping[str, Any]:
    what = "userinfo"
    if not access_token.isascii() or not access_token.isprintable():
        raise ProviderUnusable("token endpoint: access_token: expected printable ASCII")
    return parse_object(fetch(url, what, {"Authorization": f"Bearer {access_token}"}), what)


def _refusal(answer: EgressAnswer, what: str) -> ProviderFault:
    text = f"{what}: the provider answered {answer.status}{_beginning(answer)}"
    try:
        refusal = parse(TokenRefusal, parse_object(answer.body, what), what)
    except ProviderUnusable:
        return ProviderUnusable(text)
    return LoginRefused(text) if refusal.error == "invalid_grant" else ProviderUnusable(text)


def _send(
    method: str, url: str, what: str, headers: Mapping[str, str], content: bytes | None = None
) -> EgressAnswer:
    try:
        return EgressClient(PROVIDER).send(method, parse_target(url), headers, content)
    except Unanswered as error:
        raise ProviderUnreachable(f"{what}: {printable(str(error), 400)}") from None
    except EgressError as error:
        raise ProviderUnusable(f"{what}: {printable(str(error), 400)}") from None


def _beginning(answer: EgressAnswer) -> str:
    text = answer.body[:400].decode(errors="replace")
    return f": {clipped(text)!r}" if text.strip() else ""
