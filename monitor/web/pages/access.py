"""The users: listed with their roles and identities, found by name, and created by administrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from monitor.depot.access import roles
from monitor.models import Identity
from monitor.models.role import is_administrator
from monitor.web.accounts import users
from monitor.web.pages import access_groups, access_user
from monitor.web.pages.http.access import administrators_only
from monitor.web.pages.http.account_change import METHODS, ChangeForm, answer_form
from monitor.web.pages.http.confirmed import confirmed
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.filter_field import FilterField
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.user_changes import NewPassword, ProfileFields, role_choices, site_choices

if TYPE_CHECKING:
    from django.db.models import QuerySet

USERS_A_PAGE = 100
MOST_SOUGHT = 150  # characters
STATES: Mapping[str, Callable[[datetime], Q]] = {
    "active": lambda _now: Q(is_active=True),
    "disabled": lambda _now: Q(is_active=False),
    "suspended": lambda now: Q(pk__in=Identity.objects.suspended(now).values("user")),
    "administrator": lambda _now: Q(is_superuser=True) | Q(pk__in=roles.administrators().values("pk")),
}
STATE_LABELS = [
    ("", "all"),
    ("active", "active"),
    ("disabled", "disabled"),
    ("suspended", "with a suspended identity"),
    ("administrator", "administrators"),
]


@administrators_only
@require_safe
def page(request: HttpRequest) -> HttpResponseBase:
    text = request.GET.get("text", "").replace("\x00", "").strip()[:MOST_SOUGHT]
    state = request.GET.get("state", "")
    number = page_number(request.GET.get("page", ""))
    context = {
        **(compute(request, "users", lambda: _listed(_found(text, state), number)) or {}),
        "page": number,
        "fields": [
            FilterField("text", "Name or e-mail", text),
            FilterField("state", "State", state if state in STATES else "", STATE_LABELS),
        ],
        "now": timezone.now(),
    }
    return render(request, "pages/access.html", context)


def _found(text: str, state: str) -> QuerySet[User]:
    """Return the users that have *text* in a name or the address, in *state*; empty: any."""
    rows = User.objects.filter(STATES[state](timezone.now()) if state in STATES else Q())
    fields = ("username", "first_name", "last_name", "email", "identities__subject")
    for word in text.split():
        matches = (Q(**{f"{field}__icontains": word}) for field in fields)
        condition = Q()
        for match in matches:
            condition |= match
        rows = rows.filter(condition)
    return User.objects.filter(pk__in=rows.order_by().values("pk")).order_by("username")


def _listed(found: QuerySet[User], number: int) -> dict[str, Any]:
    total = found.count()
    first = (number - 1) * USERS_A_PAGE
    shown = found.prefetch_related("groups", "administered_sites__site", "identities")
    return {
        "rows": [(user, roles.grants_of(user)) for user in shown[first : first + USERS_A_PAGE]],
        "total": total,
        "pages": max(-(-total // USERS_A_PAGE), 1),
    }


class NewUser(ProfileFields, NewPassword, ChangeForm):
    """An account; its password may be left out, where a proxy logs its user in."""

    verb, title, button = "new", "New user", "Create user"
    name = forms.CharField(
        label="User name",
        max_length=150,
        help_text="Letters a to z, digits and @.+-_; it cannot be changed later.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(
        label="Role", choices=lambda: [("", "none: reads as a viewer"), *role_choices()], required=False
    )
    site = forms.ChoiceField(label="Site (role site_admin)", choices=site_choices, required=False)

    field_order = ("name", "first_name", "last_name", "email", "role", "site", "password1", "password2")

    def set_up(self) -> None:
        for field in ("password1", "password2"):
            self.fields[field].required = False

    def effects(self) -> list[str]:
        return ["Without a password, the user logs in only by a proxy that authenticates."]

    def act(self) -> str:
        values = self.cleaned_data
        named = values["role"] or values["site"]
        grants = [roles.checked_grant(values["role"], values["site"] or None)] if named else []
        profile = {field: values[field] for field in users.PROFILE}
        self.subject = users.create(values["name"], values["password1"] or None, grants, profile)
        return f"User {self.subject} created."


@administrators_only
@require_http_methods(METHODS)
@confirmed
def new(request: HttpRequest) -> HttpResponseBase:
    return answer_form(request, NewUser, User(), crumbs=crumbs_of("access"))


_below = [*access_user.urlpatterns, *access_groups.urlpatterns]
entries = [
    NavigationEntry(
        "Operations",
        "Users and roles",
        "access",
        pages=("access-new", *(str(pattern.name) for pattern in _below)),
        permits=is_administrator,
    ),
]
urlpatterns = [
    path("access/", page, name="access"),
    path("access/users/new/", new, name="access-new"),
]
