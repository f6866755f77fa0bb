"""Access to pages: logged-in users only. Querysets decide which objects a user sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django_htmx.http import HttpResponseClientRefresh

from monitor.models.role import is_administrator, reads_measurements
from monitor.models.site import OPERATE, may_manage_somewhere

Arguments = ParamSpec("Arguments")
AnyUser: TypeAlias = AbstractBaseUser | AnonymousUser


class NotAvailable(PermissionDenied):
    """The page is refused for another reason than roles; the message says which, and what helps."""


def members_only(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
    """As ``accounts_only``; refuse users whose roles permit forecasts only."""
    refusal = "Your role scheduler permits forecasts by the API only."
    return accounts_only(_guarded(view, reads_measurements, refusal))


def accounts_only(
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


def administrators_only(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
    """As ``members_only``; refuse all users but administrators."""
    return members_only(_guarded(view, is_administrator, "Only administrators see and change accounts."))


def managers_only(
    permission: str = OPERATE,
) -> Callable[
    [Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]],
    Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
]:
    """Refuse users who have *permission* at no site; ``check_manageable`` then decides about the object."""

    def guard(
        view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
        def is_manager(user: AnyUser) -> bool:
            return may_manage_somewhere(user, permission)

        return _guarded(view, is_manager, "Your roles do not permit this.")

    return guard


def _guarded(
    view: Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase],
    permits: Callable[[AnyUser], bool],
    refusal: str,
) -> Callable[Concatenate[HttpRequest, Arguments], HttpResponseBase]:
    """Return *view* for users of whom *permits* is true; others are refused with the sentence *refusal*."""

    @wraps(view)
    def guarded(
        request: HttpRequest, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> HttpResponseBase:
        if not permits(request.user):
            raise PermissionDenied(refusal)
        return view(request, *args, **kwargs)

    return guarded


def check_manageable(found: Model, manageable: QuerySet[Any]) -> None:
    """Refuse users that may see *found*, which is not among the *manageable* objects."""
    if not manageable.filter(pk=found.pk).exists():
        raise PermissionDenied(f"Your roles do not permit this for {found}.")


def wants_part(request: HttpRequest) -> bool:
    """Return whether htmx requests only a part of an open page, to update it."""
    return bool(request.htmx)  # type: ignore[attr-defined]  # set by django-htmx's middleware
