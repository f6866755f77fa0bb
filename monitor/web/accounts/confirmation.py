"""Whether the user of a session has shown, within the last minutes, that it is the owner of the account."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import get_authentication_records

if TYPE_CHECKING:
    from django.http import HttpRequest


CONFIRMED_SECONDS = 300
PASSWORD, CODE, PASSKEY, AT_PROVIDER = (  # the ids of the ways; the first three are allauth's
    *("reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate:webauthn"),
    "provider",
)


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether password, second factor or passkey were entered again within the last five minutes.

    An account that has none of these is not confirmed; allauth's own function takes it for confirmed. Nor is
    one whose confirmation lies in the future: the clock was set back.
    """
    user: Any = request.user
    records = get_authentication_records(request, user if user.is_authenticated else None)
    times = [record["at"] for record in records if record.get("reauthenticated")]
    return bool(times) and 0 <= time.time() - times[-1] < CONFIRMED_SECONDS


def ways_to_confirm(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the ways in which the user can confirm, the usual one first, each with ``id`` and ``url``.

    A further way is added in ``AccountAdapter.get_reauthentication_methods``, which the pages that confirm
    ask, too, and ends with ``record_authentication(..., reauthenticated=True)``.
    """
    ways: list[dict[str, Any]] = get_adapter(request).get_reauthentication_methods(request.user)
    return ways


def is_offered(request: HttpRequest, way: str) -> bool:
    """Return whether the user can confirm by *way*, the id of one, now.

    Each page that confirms asks for it when it is opened and when its form is sent, and the way at the
    provider again when the browser comes back: factors or settings may have changed meanwhile.
    """
    return any(each["id"] == way for each in ways_to_confirm(request))
