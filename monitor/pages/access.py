"""Who may see a page: people who are logged in. What they may see on it, the querysets decide."""

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
    """Send others to the login page; a part of a page that asks for news reloads its whole page for that.

    What members see is for them alone, and a part is no page: no cache keeps either.
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
    """Whether htmx asks, for a part of a page that it has already."""
    return bool(request.htmx)  # type: ignore[attr-defined]  # set by django-htmx's middleware
