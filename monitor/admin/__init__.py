"""The admin site: users can edit the configuration, but only view measured data."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError
from django.utils import timezone

import probes
from monitor.admin import access, recorded  # noqa: F401 - register what is not configured here
from monitor.admin.base import ReadOnly, SiteManaged, VisibleObjects
from monitor.analysis.alerts import channels, conditions, reporter_conditions
from monitor.analysis.alerts.concealed_urls import concealed_channels, sees_urls
from monitor.analysis.alerts.conditions.base import ConditionError
from monitor.depot.series.deletion import remove_series
from monitor.models import (
    Alert,
    AlertRule,
    Binding,
    MaintenanceWindow,
    Notification,
    Reporter,
    Resource,
    Series,
    Site,
    Suite,
)
from monitor.models.alert import CHANGE_RULES
from monitor.models.author import by
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.series import IMPORTED, REPORTED_PROBE
from monitor.runs.imports import formats
from monitor.runs.maintenance.times import WindowTimes, time_errors
from probes.base import InvalidParameters, ProbeError, checked_parameters
from reporters import config, resolve
from reporters.schedule import InvalidSchedule, parse_schedule

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser
    from django.http import HttpRequest

    InlineResource = admin.StackedInline[Resource, Site]
    InlineBinding = admin.TabularInline[Binding, Series]
    BindingFormSetBase = forms.BaseInlineFormSet[Binding, Series, forms.ModelForm[Binding]]
    AlertRuleFormBase = forms.ModelForm[AlertRule]
    MaintenanceWindowFormBase = forms.ModelForm[MaintenanceWindow]
    ResourceFormBase = forms.ModelForm[Resource]
    SeriesFormBase = forms.ModelForm[Series]
else:
    InlineResource = admin.StackedInline
    InlineBinding = admin.TabularInline
    BindingFormSetBase = forms.BaseInlineFormSet
    AlertRuleFormBase = forms.ModelForm
    MaintenanceWindowFormBase = forms.ModelForm
    ResourceFormBase = forms.ModelForm
    SeriesFormBase = forms.ModelForm


class ResourceForm(ResourceFormBase):
    """Refuses access methods that do not exist or have invalid options."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        ways = ("shell", "transfer", "batch")
        if {"name", "scratch", *ways} <= cleaned.keys():
            objects = {way: cleaned[way] for way in ways if isinstance(cleaned[way], dict)}
            for way in set(ways) - objects.keys():
                self.add_error(way, 'Expected an object, such as {"kind": "ssh"}.')
            if len(objects) == len(ways):
                self._check(
                    config.ResourceConfig(
                        cleaned["name"], "", cleaned["scratch"], address=cleaned.get("address", ""), **objects
                    )
                )
        self._check_storage(cleaned.get("storage"))
        return cleaned

    def _check_storage(self, storage: Any) -> None:
        from monitor.operations.gridfile.storage_entries import storage_faults  # noqa: PLC0415  # loads pydantic

        for fault in storage_faults(storage) if storage else ():
            self.add_error("storage", fault)

    def _check(self, resource: config.ResourceConfig) -> None:
        try:
            resolve.check(resource)
        except InvalidParameters as error:
            self.add_error(None, str(error))


class ResourceInline(InlineResource):
    model = Resource
    form = ResourceForm
    extra = 0


class BindingFormSet(BindingFormSetBase):
    """Refuses bindings of an agent's series without a resource of the agent's site."""

    def clean(self) -> None:
        super().clean()
        reporter = Reporter.objects.select_related("site").filter(pk=self.instance.reporter_id).first()
        if reporter is None or reporter.site is None or any(self.errors):
            return
        rows = [form.cleaned_data for form in self.forms if form not in self.deleted_forms]
        if all(row["resource"].site_id != reporter.site_id for row in rows if row.get("resource")):
            raise ValidationError(
                f"Reporter {reporter} runs at site {reporter.site}: expected a resource of this site."
            )


class BindingInline(InlineBinding):
    model = Binding
    formset = BindingFormSet
    extra = 1
    autocomplete_fields = ("resource",)


@admin.register(Site)
class SiteAdmin(VisibleObjects):
    list_display = ("name", "title", "is_public")
    search_fields = ("name", "title")
    inlines = (ResourceInline,)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, list[str]]:
        """Refuse to delete the only site of a maintenance window: without sites, it applies to all sites."""
        deleted, counts, missing, protected = super().get_deleted_objects(objs, request)
        keys = [site.pk for site in objs]
        windows = MaintenanceWindow.objects.filter(sites__in=keys).exclude(
            sites__in=Site.objects.exclude(pk__in=keys)
        )
        named = [
            f"Maintenance window: {window.name}, which is at no other site" for window in windows.distinct()
        ]
        return deleted, counts, missing, [*protected, *named]


@admin.register(Resource)
class ResourceAdmin(VisibleObjects):
    form = ResourceForm
    list_display = ("name", "site", "scratch")
    list_select_related = ("site",)
    list_filter = ("site",)
    search_fields = ("name", "site__name")


@admin.register(Reporter)
class ReporterAdmin(VisibleObjects):
    list_display = ("name", "site", "capacity")
    list_select_related = ("site",)

    def get_readonly_fields(self, _request: HttpRequest, obj: Reporter | None = None) -> tuple[str, ...]:
        """Make the name immutable: the keys of agents and their records are of this name."""
        return () if obj is None else ("name",)


_TIMES = {field.name for field in dataclasses.fields(WindowTimes)}


class MaintenanceWindowForm(MaintenanceWindowFormBase):
    """Refuses invalid times, with each error at the invalid field."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        values = {key: cleaned[key] for key in _TIMES & cleaned.keys()}
        for key, message in time_errors(WindowTimes(**values)) if len(values) == len(_TIMES) else ():
            self.add_error(key, message)
        return cleaned


@admin.register(MaintenanceWindow)
class MaintenanceWindowAdmin(SiteManaged):
    permission = CHANGE_WINDOWS
    form = MaintenanceWindowForm
    list_display = ("name", "title", "starts_at", "ends_at", "schedule", "timezone", "source")
    list_filter = ("sites",)
    search_fields = ("name", "title")
    filter_horizontal = ("sites",)


RETENTION_FIELDS = ("keep_reports_days", "keep_samples_days", "keep_hourly_days", "keep_daily_days")


@admin.register(Suite)
class SuiteAdmin(VisibleObjects):
    list_display = ("name", "title", *RETENTION_FIELDS)
    filter_horizontal = ("viewers",)
    fieldsets = (
        (None, {"fields": ("name", "title", "viewers", "is_public")}),
        ("Retention", {"fields": RETENTION_FIELDS}),
    )


def probe_choices() -> list[tuple[str, str]]:
    """List the probes and what other series have instead, so that a new file needs no migration."""
    imported = (f"{IMPORTED}{kind}" for kind in formats.names())
    return [(name, name) for name in (*probes.names(), REPORTED_PROBE, *imported)]


class SeriesForm(SeriesFormBase):
    """Refuses parameters and schedules that no run could use."""

    probe = forms.ChoiceField(choices=probe_choices)

    def clean_parameters(self) -> dict[str, Any]:
        parameters = self.cleaned_data["parameters"]
        if parameters is not None and not isinstance(parameters, dict):
            raise ValidationError('Expected an object, such as {"file_bytes": 1000000}.')
        return parameters or {}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        has_no_file = cleaned.get("probe", "").startswith((IMPORTED, REPORTED_PROBE))
        if "probe" in cleaned and "parameters" in cleaned and not has_no_file:
            try:
                checked_parameters(probes.load(cleaned["probe"]), cleaned["parameters"])
            except ProbeError as error:
                self.add_error("parameters", str(error))
        for field in ("schedule", "retry_schedule"):
            self._check_schedule(field, cleaned)
        return cleaned

    def _check_schedule(self, field: str, cleaned: dict[str, Any]) -> None:
        if not cleaned.get(field):
            return
        try:
            parse_schedule(
                cleaned[field],
                self.instance.name or "a new series",
                zone=cleaned.get("timezone", "UTC"),
                starts_at=cleaned.get("starts_at"),
                ends_at=cleaned.get("ends_at"),
            )
        except InvalidSchedule as error:
            self.add_error(field, str(error))


@admin.register(Series)
class SeriesAdmin(VisibleObjects):
    list_display = ("name", "suite", "probe", "schedule", "reporter", "enabled")
    list_select_related = ("suite", "reporter")
    list_filter = ("enabled", "probe", "suite")
    search_fields = ("name",)
    inlines = (BindingInline,)
    form = SeriesForm

    def get_readonly_fields(self, _request: HttpRequest, obj: Series | None = None) -> tuple[str, ...]:
        """Make the name immutable: runs, slots and reports refer to it."""
        return () if obj is None else ("name",)

    def delete_model(self, request: HttpRequest, obj: Series) -> None:
        self.delete_queryset(request, Series.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        remove_series(queryset, who=request.user.get_username(), now=timezone.now())


class AlertRuleForm(AlertRuleFormBase):
    """Refuses a threshold out of bounds, an unknown channel, and invalid options or foreign secrets of one.

    *user* sends the form.
    """

    user: ClassVar[AbstractBaseUser | AnonymousUser] = AnonymousUser()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.instance.pk and not sees_urls(self.user, self.instance.name):
            self.initial["notify"] = list(concealed_channels(self.instance.notify))

    condition = forms.ChoiceField(
        choices=lambda: [
            ("of series", [(name, name) for name in conditions.names()]),
            ("of reporters", [(name, name) for name in reporter_conditions.names()]),
        ]
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        kind = cleaned.get("condition", "")
        is_about_reporters = kind in reporter_conditions.names()
        if kind and "threshold" in cleaned:
            registry = reporter_conditions if is_about_reporters else conditions
            try:
                registry.condition(kind, cleaned["threshold"])
            except ConditionError as error:
                self.add_error("threshold", str(error))
        if is_about_reporters and (cleaned.get("suites") or cleaned.get("series") or cleaned.get("probes")):
            self.add_error(
                "condition", f"{kind} judges reporters: name sites or reporters, or watch everything."
            )
        return cleaned

    def clean_notify(self) -> list[Any]:
        notify = self.cleaned_data["notify"]
        if not isinstance(notify, list):
            raise ValidationError('Expected a list of channels, such as [{"kind": "log"}].')
        for channel in notify:
            for path, message in channels.faults(channel):
                raise ValidationError(": ".join((*path, message)))
            for path, message in channels.foreign_secrets(channel, self.user):
                raise ValidationError(": ".join((*path, message)))
        return notify


@admin.register(AlertRule)
class AlertRuleAdmin(SiteManaged):
    permission = CHANGE_RULES
    closed_fields = ("everything", "suites", "series", "probes", "reporters")
    form = AlertRuleForm
    list_display = (
        *("name", "title", "condition", "threshold", "everything", "enabled", "is_default"),
        *("author_name", "suspended"),
    )
    list_filter = ("enabled",)
    filter_horizontal = ("suites", "sites", "series", "reporters")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)  # a class of this request
        form.user = request.user
        return form

    def save_model(self, request: HttpRequest, obj: AlertRule, form: Any, change: bool) -> None:
        """Make the user the author: the rule acts with the rights of the user that saved it."""
        for column, value in by(request.user).items():
            setattr(obj, column, value)
        super().save_model(request, obj, form, change)


@admin.register(Alert)
class AlertAdmin(ReadOnly):
    list_display = (
        "rule",
        "subject",
        "since",
        "opened_at",
        "acknowledged_by",
        "closed_at",
        "text",
        "closed_text",
    )
    list_select_related = ("rule", "series", "reporter")
    list_filter = ("rule",)


@admin.register(Notification)
class NotificationAdmin(ReadOnly):
    series_lookup = "alert__series"
    list_display = ("__str__", "event", "kind", "attempts", "sent_at", "due_at", "withheld", "error")
    list_select_related = ("alert__rule", "alert__series", "alert__reporter", "incident__signature")
    list_filter = ("event",)
    exclude = ("channel",)
    readonly_fields = ("sent_to",)

    @admin.display(description="channel")
    def sent_to(self, notification: Notification) -> str:
        """Show the channel without the path of its URL."""
        return json.dumps(concealed_channels([notification.channel])[0], ensure_ascii=False)
