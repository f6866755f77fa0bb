"""Groups of users that are no roles: listed, created, renamed, deleted, with members and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import Group, User
from django.db.models import Count
from django.shortcuts import get_object_or_404, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from monitor.web.accounts import groups
from monitor.web.pages.http.access import administrators_only
from monitor.web.pages.http.account_change import (
    METHODS,
    ChangeForm,
    Forbid,
    Permit,
    answer_form,
    change_routes,
    permission_labels,
)
from monitor.web.pages.http.confirmed import confirmed
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.paging import page_number
from monitor.web.pages.http.parts import compute

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

    UserChoice = forms.ModelChoiceField[User]
else:
    UserChoice = forms.ModelChoiceField

MEMBERS_A_PAGE = 100


@administrators_only
@require_safe
def listed(request: HttpRequest) -> HttpResponseBase:
    counted = groups.without_roles().annotate(
        members=Count("user", distinct=True), suites=Count("suite", distinct=True)
    )
    context = {
        "crumbs": crumbs_of("access"),
        "groups": compute(request, "groups", lambda: list(counted)),
        "now": timezone.now(),
    }
    return render(request, "pages/access_groups.html", context)


@administrators_only
@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponseBase:
    group = get_object_or_404(groups.without_roles(), pk=pk)
    number = page_number(request.GET.get("page", ""))
    context: dict[str, Any] = {
        "crumbs": crumbs_of("access", "access-groups"),
        "group": group,
        **(compute(request, "members", lambda: _members(group, number)) or {}),
        "page": number,
        "suites": compute(request, "suites", lambda: list(group.suite_set.order_by("sort_name"))),
        "permissions": compute(request, "permissions", lambda: permission_labels(group)),
        "now": timezone.now(),
    }
    return render(request, "pages/access_group.html", context)


def _members(group: Group, number: int) -> dict[str, Any]:
    rows, first = group.user_set.order_by("username"), (number - 1) * MEMBERS_A_PAGE
    total = rows.count()
    return {
        "members": list(rows[first : first + MEMBERS_A_PAGE]),
        "total": total,
        "pages": max(-(-total // MEMBERS_A_PAGE), 1),
    }


class GroupName(ChangeForm):
    name = forms.CharField(
        label="Name",
        max_length=groups.MOST_NAME_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class NewGroup(GroupName):
    verb, title, button = "new", "New group", "Create group"

    def effects(self) -> list[str]:
        return ["A group can be the viewers of suites (Settings, Suites), and hold single permissions."]

    def act(self) -> str:
        self.subject = groups.create(self.cleaned_data["name"])
        return f"Group {self.subject} created."


class Rename(GroupName):
    verb, title, button = "rename", "Rename the group {}", "Rename"

    def set_up(self) -> None:
        self.initial = {"name": self.subject.name}

    def effects(self) -> list[str]:
        return ["Grid files name the viewers of a suite: change them, too, before they are applied again."]

    def act(self) -> str:
        before = self.subject.name
        groups.rename(self.subject, self.cleaned_data["name"])
        return f"The group {before} is called {self.subject.name}."


class DeleteGroup(ChangeForm):
    verb, title, button, is_danger = "delete", "Delete the group {}?", "Delete group", True

    def effects(self) -> list[str]:
        return [f"Its members, {self.subject.user_set.count():,}, lose what only this group permits."]

    def act(self) -> str:
        groups.delete(self.subject)
        return f"The group {self.subject} is deleted."

    def destination(self) -> tuple[Any, ...]:
        return ("access-groups",)


class AddMember(ChangeForm):
    verb, title, button = "add", "Add a member to {}", "Add"
    user = forms.CharField(
        label="User name",
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_user(self) -> User:
        name = self.cleaned_data["user"]
        found = User.objects.filter(username=name).first()
        if found is None:
            raise forms.ValidationError(f"There is no user {name!r}.")
        return found

    def act(self) -> str:
        groups.add_member(self.subject, self.cleaned_data["user"])
        return f"{self.cleaned_data['user']} is a member of {self.subject}."


class RemoveMember(ChangeForm):
    verb, title, button, presets = "remove", "Remove a member of {}", "Remove", ("user",)
    user = UserChoice(User.objects.none(), label="User", empty_label=None)

    def set_up(self) -> None:
        self.offer("user", self.subject.user_set.order_by("username"))

    def act(self) -> str:
        groups.remove_member(self.subject, self.cleaned_data["user"])
        return f"{self.cleaned_data['user']} is no member of {self.subject} any more."


@administrators_only
@require_http_methods(METHODS)
@confirmed
def new(request: HttpRequest) -> HttpResponseBase:
    return answer_form(request, NewGroup, Group(), crumbs=crumbs_of("access", "access-groups"))


CHANGES = (Rename, DeleteGroup, AddMember, RemoveMember, Permit, Forbid)
urlpatterns = [
    path("access/groups/", listed, name="access-groups"),
    path("access/groups/new/", new, name="access-group-new"),
    path("access/groups/<int:pk>/", page, name="access-group"),
    *change_routes("access/groups/<int:pk>/", CHANGES, groups.without_roles, "access", "access-groups"),
]
