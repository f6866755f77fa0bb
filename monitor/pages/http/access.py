"""Access to pages: logged-in users only. Querysets decide which objects a user sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django_htmx.http import HttpResponseClientRefresh

Arguments = ParamSpec("Arguments")


def members_only(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
    """Send anonymous users to the login page; answer an htmx request so that the browser reloads the page.

    Answers are private and depend on ``HX-Request``: no cache may store them.
    """

    @wraps(view)
    def guarded(
        request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> HttpResponseBase:
        if request.user.is_authenticated:
            response = view(request, *args, **kwargs)
            patch_vary_headers(response, ["HX-Request"])
            add_never_cache_headers(response)
            return response
        if wants_part(request):
            return HttpResponseClientRefresh()
        return redirect_to_login(request.get_full_path())

    return guarded


def wants_part(request: HttpRequest) -> bool:
    """Return whether htmx requests only a part of an open page, to update it."""
    return bool(request.htmx)  # type: ignore[attr-defined]  # set by django-htmx's middleware
