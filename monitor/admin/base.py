"""What the admin pages share: the visibility and roles of pages and API, and notes for the audit record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models.signals import post_save
from django.dispatch import receiver

from monitor.analysis.alerts.concealed_urls import concealed_channels
from monitor.depot.access.audit_trail import note
from monitor.models import Series, Site
from monitor.models.site import may_manage_everywhere, may_manage_somewhere
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.db import models
    from django.forms import ModelForm
    from django.http import HttpRequest

    ModelAdminBase = admin.ModelAdmin[Any]
else:
    ModelAdminBase = admin.ModelAdmin


class VisibleObjects(ModelAdminBase):
    """Base class that shows the objects that the user may see, and notes what a form changes.

    Attributes:
        series_lookup: the lookup of the series of a row, for models whose querysets have no ``visible_to``.
    """

    series_lookup: ClassVar[str] = ""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows: Any = super().get_queryset(request)
        if hasattr(rows, "visible_to"):
            visible: models.QuerySet[Any] = rows.visible_to(request.user)
            return visible
        if self.series_lookup and not sees_all(request.user):
            return rows.filter(**{f"{self.series_lookup}__in": Series.objects.visible_to(request.user)})  # type: ignore[no-any-return]
        return rows  # type: ignore[no-any-return]

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Note the values before and after; Django's message has only the names of the fields."""
        for changed in [form, *(row for formset in formsets or () for row in formset.forms)]:
            if changed.changed_data:
                note_form(changed)
        return super().construct_change_message(request, form, formsets, add)


def note_form(form: ModelForm[Any]) -> None:
    """Note the fields that the valid *form* changed."""
    kind, names = str(form.instance._meta.verbose_name), form.changed_data  # noqa: SLF001  # Django's API of models
    before = {name: _noted(name, form.initial.get(name)) for name in names}
    after = {
        name: _noted(name, form.cleaned_data.get(name)) for name in names if hasattr(form, "cleaned_data")
    }
    note(kind, str(form.instance), before=before, after=after)


def _noted(name: str, value: Any) -> Any:
    """Return *value* of the field *name* for the record: channels without the paths of their URLs."""
    is_channels = name == "notify" and isinstance(value, list)
    return _shown(list(concealed_channels(value)) if is_channels else value)


def _shown(value: Any) -> Any:
    """Return *value* for the record: names instead of objects."""
    if hasattr(value, "all") or isinstance(value, list | tuple | set):
        return [_shown(each) for each in value]
    return value if isinstance(value, str | int | float | bool | dict | None) else str(value)


class ReadOnly(VisibleObjects):
    """Base class for objects that only the service writes: users can view but not change them."""

    show_full_result_count = False  # counting millions of rows takes longer than reading a page

    def has_add_permission(self, _request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _object: Any = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _object: Any = None) -> bool:
        return False


class SiteManaged(VisibleObjects):
    """Base class for objects with ``sites``, of which a site admin manages those of its own sites.

    Attributes:
        permission: the permission to change such objects at every site.
        closed_fields: the fields that reach beyond a site.
    """

    permission: ClassVar[str]
    closed_fields: ClassVar[tuple[str, ...]] = ()

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Return what the user may see; to a site admin, what it manages: others name further sites."""
        rows: Any = super().get_queryset(request)
        return rows.manageable_by(request.user) if self._is_site_admin(request) else rows  # type: ignore[no-any-return]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) or may_manage_somewhere(request.user, self.permission)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_view = super().has_view_permission(request, obj)
        return may_view or may_manage_somewhere(request.user, self.permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) or self._is_site_admin(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) or self._is_own(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) or self._is_own(request, obj)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Return the filters of the list; that by site would name every site to a site admin."""
        filters = list(super().get_list_filter(request))
        return [each for each in filters if each != "sites" or not self._is_site_admin(request)]

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.closed_fields if self._is_site_admin(request) else super().get_exclude(request, obj)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        """Return the form; a site admin has to name sites, because no sites means all of them."""
        form = super().get_form(request, obj, change, **options)
        if self._is_site_admin(request) and "sites" in form.base_fields:
            form.base_fields["sites"].required = True
        return form

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "sites":
            options["queryset"] = Site.objects.manageable_by(request.user, self.permission)
        return super().formfield_for_manytomany(db_field, request, **options)

    def _is_site_admin(self, request: HttpRequest) -> bool:
        """Return whether the user has the rights of a site admin, and no more."""
        user = request.user
        is_limited = not may_manage_everywhere(user, self.permission)
        return is_limited and may_manage_somewhere(user, self.permission)

    def _is_own(self, request: HttpRequest, obj: Any) -> bool:
        if not self._is_site_admin(request):
            return False
        rows: Any = VisibleObjects.get_queryset(self, request)
        return obj is None or rows.manageable_by(request.user).filter(pk=obj.pk).exists()


@receiver(post_save, sender=LogEntry)
def _note_entry(instance: LogEntry, **_: Any) -> None:
    """Note each entry of the log of the admin site."""
    kind = instance.content_type.name if instance.content_type else "object"
    note(
        kind, instance.object_repr, after=instance.get_change_message() or instance.get_action_flag_display()
    )
