"""Pages that change one account or group: each says what it does, asks for confirmation, and has a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.models import Permission
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from monitor.depot.access.permissions import ASKED_FOR
from monitor.depot.access.roles import RoleError
from monitor.web.accounts import users
from monitor.web.accounts.identities import NoDoorLeft
from monitor.web.accounts.users import AccountError
from monitor.web.pages.http.access import administrators_only
from monitor.web.pages.http.confirmed import confirmed
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.parts import compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from django.contrib.auth.models import Group, User
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponseBase
    from django.urls import URLPattern

    PermissionChoice = forms.ModelChoiceField[Permission]
else:
    PermissionChoice = forms.ModelChoiceField

REFUSALS = (AccountError, RoleError, NoDoorLeft)
METHODS = ["GET", "HEAD", "POST"]


class ChangeForm(forms.Form):
    """A change of *subject*, a user or a group, by *administrator*.

    Attributes:
        verb: the end of its address.
        title: in which ``{}`` is the subject.
        presets: the fields whose values the query string of the page may choose.
        is_danger: whether what is lost does not come back.
        is_for_others: whether an administrator may not do so with its own account.
    """

    verb: ClassVar[str]
    title: ClassVar[str]
    button: ClassVar[str]
    presets: ClassVar[Sequence[str]] = ()
    is_danger: ClassVar[bool] = False
    is_for_others: ClassVar[bool] = False

    def __init__(self, subject: Any, administrator: User, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.subject, self.administrator = subject, administrator
        self.set_up()

    def set_up(self) -> None:
        """Give the fields the choices and values that depend on the subject."""

    def offer(self, field: str, rows: QuerySet[Any]) -> None:
        """Let *field* choose among *rows*."""
        choice: Any = self.fields[field]
        choice.queryset = rows

    def effects(self) -> list[str]:
        """Return in sentences what the change does beside what its title says."""
        return []

    def hindrance(self) -> str:
        """Return why the change cannot be made; empty if it can."""
        if self.is_for_others and self.subject == self.administrator:
            return "This is your own account: use the page Account, or let another administrator do it."
        for field in self.fields.values():
            choices: Any = getattr(field, "queryset", getattr(field, "choices", None))
            if field.required and choices is not None and not choices:
                return "There is none to choose."
        return ""

    def act(self) -> str:
        """Make the change; return what has changed, as a sentence. Raises what ``REFUSALS`` lists."""
        raise NotImplementedError

    def destination(self) -> tuple[Any, ...]:
        """Return the name of the URL of the page that is shown afterwards, and its arguments."""
        return (f"access-{self.subject._meta.model_name}", self.subject.pk)  # noqa: SLF001  # Django's API


class PermissionField(PermissionChoice):
    """Offers permissions, by the names that the documentation uses."""

    def label_from_instance(self, obj: Permission) -> str:
        return f"{users.label(obj)}: {obj.name}"


def own_permissions(holder: User | Group) -> QuerySet[Permission]:
    """Return the single permissions of *holder*, by name."""
    rows: QuerySet[Permission] = users.permissions(holder).select_related("content_type").order_by("codename")
    return rows


def permission_labels(holder: User | Group) -> list[tuple[int, str]]:
    """Return the key and the label of each single permission of *holder*."""
    return [(permission.pk, users.label(permission)) for permission in own_permissions(holder)]


def permissions_of_the_service() -> QuerySet[Permission]:
    """Return the permissions that pages and API ask for."""
    codenames = [permission.removeprefix("monitor.") for permission in ASKED_FOR]
    ours = Permission.objects.filter(content_type__app_label="monitor", codename__in=codenames)
    return ours.select_related("content_type").order_by("codename")


class Permit(ChangeForm):
    verb, title, button = "permit", "Grant a permission to {}", "Grant"
    permission = PermissionField(Permission.objects.none(), label="Permission", empty_label="choose")

    def set_up(self) -> None:
        own = users.permissions(self.subject).values("pk")
        self.offer("permission", permissions_of_the_service().exclude(pk__in=own))

    def act(self) -> str:
        users.permit(self.subject, self.cleaned_data["permission"])
        return f"{users.label(self.cleaned_data['permission'])} granted to {self.subject}."


class Forbid(ChangeForm):
    verb, title, button, presets = "forbid", "Revoke a permission of {}", "Revoke", ("permission",)
    permission = PermissionField(Permission.objects.none(), label="Permission", empty_label=None)

    def set_up(self) -> None:
        self.offer("permission", users.permissions(self.subject))

    def effects(self) -> list[str]:
        return ["What roles and other groups permit stays."]

    def act(self) -> str:
        users.forbid(self.subject, self.cleaned_data["permission"])
        return f"{users.label(self.cleaned_data['permission'])} revoked from {self.subject}."


def change_routes(
    prefix: str, changes: Iterable[type[ChangeForm]], subjects: Callable[[], QuerySet[Any]], *crumbs: str
) -> list[URLPattern]:
    """Return the routes of *changes* of one of *subjects*, below *prefix*, which has the key as ``pk``."""
    noun = subjects().model._meta.model_name  # noqa: SLF001  # Django's API of models
    return [
        path(
            f"{prefix}{change.verb}/",
            _change_page(change, subjects, crumbs),
            name=f"access-{noun}-{change.verb}",
        )
        for change in changes
    ]


def _change_page(
    change: type[ChangeForm], subjects: Callable[[], QuerySet[Any]], crumbs: Sequence[str]
) -> Callable[..., HttpResponseBase]:
    @administrators_only
    @require_http_methods(METHODS)
    @confirmed
    def page(request: HttpRequest, pk: int) -> HttpResponseBase:
        subject = get_object_or_404(subjects(), pk=pk)
        own_page = reverse(f"access-{subject._meta.model_name}", args=[pk])  # noqa: SLF001  # Django's API
        above = [*crumbs_of(*crumbs), (str(subject), own_page)]
        return answer_form(request, change, subject, crumbs=above)

    return page


def answer_form(
    request: HttpRequest, change: type[ChangeForm], subject: Any, *, crumbs: Sequence[tuple[str, str]]
) -> HttpResponseBase:
    """Show the form of *change*, or make the change and lead on; a refused one is shown with the reason."""
    administrator: User = request.user  # type: ignore[assignment]  # administrators only
    if request.method == "POST":
        form = change(subject, administrator, request.POST)
        if not form.hindrance() and form.is_valid():
            try:
                done = form.act()
            except REFUSALS as error:
                form.add_error(None, f"{str(error)[:1].upper()}{str(error)[1:]}.")
            else:
                messages.success(request, done)
                return redirect(*form.destination())
    else:
        chosen = {name: request.GET[name] for name in change.presets if name in request.GET}
        form = change(subject, administrator, initial=chosen)
    context = {
        "crumbs": crumbs,
        "title": change.title.format(subject),
        "form": form,
        "hindrance": compute(request, "change", form.hindrance),
        "effects": compute(request, "change", form.effects),
        "cancel": crumbs[-1][1],
        "now": timezone.now(),
    }
    status = 409 if request.method == "POST" else 200
    return render(request, "pages/access_change.html", context, status=status)
