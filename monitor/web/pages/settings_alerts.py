"""Alert rules: listed, defined by a form of their condition, previewed on stored runs, and tried."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Prefetch, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from monitor.analysis.alerts import conditions, reporter_conditions, try_channel
from monitor.analysis.alerts.disabled_channels import disabled_channels
from monitor.analysis.alerts.evaluate_reporters import reporters_in_alert, watched_reporters
from monitor.analysis.alerts.listing import NotificationState, notification_states
from monitor.analysis.alerts.replay import DAYS, replay_rule, watched_series
from monitor.analysis.alerts.try_channel import CannotTry
from monitor.models import Alert, AlertRule, Notification, Reporter, Series, Site, Suite, WebhookReceiver
from monitor.models.alert import CHANGE_RULES
from monitor.models.role import identity_of
from monitor.models.site import may_manage_everywhere
from monitor.models.visibility import sees_all
from monitor.operations.gridfile import entries as grid_entries
from monitor.operations.gridfile.alert_entries import CONDITIONS, AlertRuleEntry
from monitor.operations.gridfile.definition import AlertDefinition
from monitor.web.pages.http import alert_form, entry_form
from monitor.web.pages.http.access import check_manageable, managers_only, members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.read_form import accepts_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from monitor.operations.gridfile.planning import Change
    from monitor.web.pages.http.entry_form import SubmittedForm

MOST_DELIVERIES = 20
_METHODS = ["GET", "HEAD", "POST"]
_FORM = "pages/settings_alerts_form.html"


@members_only
def page(request: HttpRequest) -> HttpResponse:
    context = {
        "crumbs": crumbs_of("settings"),
        **(compute(request, "rules", lambda: _rules(request)) or {}),
        "may_add": _may_add(request),
    }
    return render(request, "pages/settings_alerts.html", context)


def _rules(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the list of rules: each with what it watches, and which the user may change."""
    user = request.user
    watched: Mapping[str, QuerySet[Any]] = {
        "suites": Suite.objects.visible_to(user),
        "sites": Site.objects.visible_to(user),
        "series": Series.objects.visible_to(user),
        "reporters": Reporter.objects.manageable_or_visible_to(user),
    }
    named = [Prefetch(noun, rows.only("name")) for noun, rows in watched.items()]
    visible = Alert.objects.visible_to(user).open().order_by().values("pk")
    is_open = Count("alerts", filter=Q(alerts__in=visible), distinct=True)
    manageable = AlertRule.objects.manageable_by(user).values_list("pk", flat=True)
    rules = AlertRule.objects.visible_to(user).prefetch_related(*named).annotate(open_alerts=is_open)
    return {
        "rules": [_listed(rule, watched) for rule in rules],
        "disabled_channels": disabled_channels(rules),
        "manageable": set(manageable),
    }


@accepts_form(entry_form.most_bytes(AlertRuleEntry))
@members_only
@managers_only(CHANGE_RULES)
@require_http_methods(_METHODS)
def new(request: HttpRequest) -> HttpResponse:
    """Let the user choose a condition, then show its form, or define the rule."""
    if not _may_add(request):
        raise PermissionDenied("Your roles do not permit this.")
    condition = request.GET.get("condition", "")
    if condition not in CONDITIONS:
        crumbs = crumbs_of("settings", "settings-alerts")
        context = {"crumbs": crumbs, "choices": alert_form.condition_choices()}
        return render(request, "pages/settings_alerts_condition.html", context)
    return _edited(request, None, condition)


@accepts_form(entry_form.most_bytes(AlertRuleEntry))
@members_only
@managers_only(CHANGE_RULES)
@require_http_methods(_METHODS)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    rule = _manageable(request, name)
    condition = request.GET.get("condition", "")
    return _edited(request, rule, condition if condition in CONDITIONS else rule.condition)


@accepts_form(entry_form.most_bytes(AlertRuleEntry))
@members_only
@managers_only(CHANGE_RULES)
@require_http_methods(_METHODS)
def delete(request: HttpRequest, name: str) -> HttpResponse:
    rule = _manageable(request, name)
    error = entry_form.remove(request, "alerts", name) if request.method == "POST" else ""
    if request.method == "POST" and not error:
        messages.success(request, f"Alert rule {name} is deleted.")
        return redirect("settings-alerts")
    opened = Alert.objects.visible_to(request.user).filter(rule=rule)

    def losses() -> list[str]:
        alerts, is_open = opened.count(), opened.open().count()
        return [
            "The rule with its channels.",
            f"The alerts that it opened, with their messages: {alerts:,}, of which {is_open:,} open."
            " To keep them, disable the rule instead.",
        ]

    context = {
        "noun": "alert rule",
        "name": name,
        "crumbs": crumbs_of("settings", "settings-alerts"),
        "list_url": "settings-alerts",
        "losses": compute(request, "losses", losses),
        "hindrance": "The service makes it again: disable it instead." if rule.is_default else "",
        "seen": entry_form.seen_token("alerts", name),
        "error": error,
    }
    return render(request, "pages/settings_delete.html", context, status=409 if error else 200)


@members_only
@require_POST
@managers_only(CHANGE_RULES)
def test(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Ask the control worker to send a test message to a channel of the rule."""
    rule = _manageable(request, name)
    try:
        key = try_channel.request(rule, number)
    except CannotTry as error:
        messages.error(request, f"Not sent: {error}.")
        return redirect("settings-alert-edit", name)
    address = reverse("settings-alert-edit", args=[name])
    return redirect(f"{address}?tried={key}#channels")


def _manageable(request: HttpRequest, name: str) -> AlertRule:
    rule = get_object_or_404(AlertRule.objects.visible_to(request.user), name=name)
    check_manageable(rule, AlertRule.objects.manageable_by(request.user))
    return rule


def _may_add(request: HttpRequest) -> bool:
    """Return whether the user may define rules about something."""
    return Site.objects.manageable_by(request.user, CHANGE_RULES).exists() or may_manage_everywhere(
        request.user, CHANGE_RULES
    )


def _listed(rule: AlertRule, nouns: Iterable[str]) -> dict[str, Any]:
    """Return *rule* with its condition and what it watches in words, by *nouns*."""
    registry = reporter_conditions if rule.condition in reporter_conditions.names() else conditions
    condition = rule.condition
    if rule.condition in CONDITIONS:
        plug_in = registry.load(rule.condition)
        condition = f"{plug_in.label}: {alert_form.threshold_text(rule.threshold, plug_in.unit)}"
    watched = [
        f"{noun} {', '.join(row.name for row in rows)}"
        for noun in nouns
        if (rows := list(getattr(rule, noun).all()))
    ]
    watched += [f"probes {', '.join(rule.probes)}"] if rule.probes else []
    return {
        "rule": rule,
        "condition": condition,
        "watches": ["everything"] if rule.everything else watched,
        "channels": [str(channel.get("kind", "")) for channel in rule.notify],
    }


def _edited(request: HttpRequest, rule: AlertRule | None, condition: str) -> HttpResponse:
    """Show, preview or save the form of *rule* with *condition*; None: of a new rule."""
    name = rule.name if rule else ""
    definition = grid_entries.find("alerts", name) if name else None
    entry = grid_entries.as_entry("alerts", grid_entries.readable(definition, request.user))
    if rule is not None and entry is None:
        raise Http404
    posted = request.POST if request.method == "POST" else None
    channel_set = alert_form.channel_fields((entry or {}).get("notify", ()), posted)
    fields = partial(alert_form.rule_fields, condition, request.user, channel_set, is_new=rule is None)
    context: dict[str, Any] = {
        "crumbs": crumbs_of("settings", "settings-alerts"),
        "rule": rule,
        "condition": condition,
        "channel_kinds": channel_set.kinds[: channel_set.present],
        "cancel": "settings-alerts",
        "days": DAYS,
        **(_of_saved(request, rule) if rule else {}),
    }
    if posted is None:
        values = alert_form.as_form(entry or {"enabled": True})
        seen = grid_entries.seen_entry("alerts", definition)
        form = compute(request, "form", lambda: entry_form.opened("alerts", fields(), values, seen))
        return render(request, _FORM, {**context, "form": form})
    manageable = AlertRule.objects.manageable_by(request.user)
    result = entry_form.submitted(
        request,
        "alerts",
        name,
        fields(),
        complete=lambda submitted: alert_form.as_entry(submitted, channel_set),
        is_permitted=lambda saved: manageable.filter(name=saved).exists(),
        must_review=lambda change: _new_author(request, rule, change),
        place=lambda path, submitted: alert_form.place(path, submitted, channel_set),
    )
    if result.is_saved and result.change is not None:
        WebhookReceiver.objects.welcome(channel.get("url", "") for channel in (rule.notify if rule else ()))
        messages.success(request, f"Alert rule {result.change.name} {'changed' if name else 'defined'}.")
        return redirect("settings-alerts")
    preview = compute(request, "preview", lambda: _preview(request, result))
    context |= {"form": result.form, "submission": result, "preview": preview}
    return render(request, _FORM, context, status=409 if result.form.has_faults else 200)


def _new_author(request: HttpRequest, rule: AlertRule | None, change: Change) -> Sequence[str]:
    """Return what the user should know before it becomes the author of a rule of another one, or identity."""
    present, acting = rule.authorship if rule else "", (request.user.pk, identity_of(request.user))
    is_same = rule is None or rule.acting == acting
    if is_same or (not present and sees_all(request.user)):
        return ()
    kinds = ", ".join(sorted({str(channel["kind"]) for channel in getattr(change.after, "notify", ())}))
    of = f"of {present}" if present else "of a grid file, which sees everything"
    return [
        f"The rule was {of}. Saved by you, it watches what you may see,"
        f" and its channels ({kinds or 'none'}) get it."
    ]


def _of_saved(request: HttpRequest, rule: AlertRule) -> dict[str, Any]:
    """Return what is shown of a saved rule: its channels, a test of one of them, and its messages."""
    tried = request.GET.get("tried", "")
    return {
        "disabled_channels": compute(request, "channels", lambda: disabled_channels([rule])),
        "tried": compute(request, "channels", lambda: try_channel.answer(tried, rule)),
        "deliveries": compute(request, "messages", lambda: _deliveries(request, rule)),
        "most_deliveries": MOST_DELIVERIES,
        "now": timezone.now(),
    }


def _deliveries(request: HttpRequest, rule: AlertRule) -> list[tuple[Notification, NotificationState]]:
    """Return the last messages of *rule*, each with its state."""
    visible = Alert.objects.visible_to(request.user).filter(rule=rule).order_by().values("pk")
    rows = Notification.objects.filter(alert__in=visible)
    rows = rows.select_related("alert__series", "alert__reporter")
    latest = list(rows[:MOST_DELIVERIES])
    states = {row.pk: state for row in latest for state in notification_states([row])}
    return [(row, states[row.pk]) for row in latest]


def _preview(request: HttpRequest, result: SubmittedForm) -> Any:
    """Return what the submitted rule would have opened in the last days; of reporters, what it would open."""
    definition = result.change.after if result.change else None
    if not isinstance(definition, AlertDefinition):
        return None
    kind, now = definition.condition, timezone.now()
    if kind in reporter_conditions.names():
        condition = reporter_conditions.condition(kind, definition.threshold)
        visible = Reporter.objects.manageable_or_visible_to(request.user)
        watched = watched_reporters(visible, definition.watches)
        return {"reporters": reporters_in_alert(watched, condition, kind, now)}
    series = watched_series(Series.objects.visible_to(request.user), definition.watches)
    return {"replay": replay_rule(series, conditions.condition(kind, definition.threshold), now)}


_FORMS = ("settings-alert-new", "settings-alert-edit", "settings-alert-delete")

entries = [NavigationEntry("Operations", "Alert rules and channels", "settings-alerts", pages=_FORMS)]
urlpatterns = [
    path("settings/alerts/", page, name="settings-alerts"),
    path("settings/alerts/new/", new, name="settings-alert-new"),
    path("settings/alerts/edit/<slug:name>/", edit, name="settings-alert-edit"),
    path("settings/alerts/delete/<slug:name>/", delete, name="settings-alert-delete"),
    path("settings/alerts/test/<slug:name>/<int:number>/", test, name="settings-alert-test"),
]
