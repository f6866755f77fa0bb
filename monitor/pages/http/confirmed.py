"""Ask the user to confirm that it is the owner of the account, before a page that changes who can come in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone

from monitor.accounts import door_reasons
from monitor.accounts.confirmation import is_confirmed, ways_to_confirm

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Arguments = ParamSpec("Arguments")


def confirmed(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
    """Ask for confirmation before *view*, a page with a form, is opened; and before its form is accepted.

    A form is opened and sent within five minutes, or sent again: no password that was typed into it waits in
    the session meanwhile.
    """

    @wraps(view)
    def guarded(
        request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> HttpResponseBase:
        if is_confirmed(request):
            return view(request, *args, **kwargs)
        return ask_to_confirm(request, request.get_full_path())

    return guarded


def ask_to_confirm(request: HttpRequest, page: str) -> HttpResponseBase:
    """Lead to the confirmation, and from there to *page*, with the form that was opened or sent."""
    ways = ways_to_confirm(request)
    if not ways:
        context = _what_is_missing(request.user)  # type: ignore[arg-type]  # only called for users
        return render(request, "pages/account_confirm_impossible.html", context, status=HTTPStatus.FORBIDDEN)
    if request.method == "POST":
        request.is_unconfirmed = True  # type: ignore[attr-defined]  # nothing is done, so nothing is recorded
        messages.warning(request, "Not changed yet: confirm that it is you, then send the form again.")
    return redirect(f"{ways[0]['url']}?{urlencode({REDIRECT_FIELD_NAME: page})}")


def _what_is_missing(user: User) -> dict[str, Any]:
    """Return what the page needs to say why *user* has no way to confirm, and what helps."""
    provider = settings.GRIDCAST_IDENTITY_PROVIDER
    could_confirm = provider is not None and not provider.confirm and user.identities.exists()
    return {
        "name": user.get_username(),
        "has_password": user.has_usable_password(),
        "closed": door_reasons.closed_door(user, timezone.now()),
        "provider_could_confirm": provider.name if provider is not None and could_confirm else "",
    }
