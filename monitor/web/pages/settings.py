"""The index of settings: what the user may see or change of the configuration, with the number of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from monitor.models import AlertRule, Series, Suite, Webhook
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.series import REPORTED_PROBE
from monitor.models.site import may_manage_everywhere, may_manage_somewhere
from monitor.models.webhook import MANAGE_WEBHOOKS
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute

if TYPE_CHECKING:
    from django.db.models import QuerySet


class Subject(NamedTuple):
    """A page of settings: its address, its title, what it is about, and how many there are (None: failed)."""

    url: str
    title: str
    text: str
    total: int | None


@members_only
def page(request: HttpRequest) -> HttpResponse:
    user = request.user
    reported = Series.objects.manageable_by(user, MANAGE_REPORTERS).filter(probe=REPORTED_PROBE)
    pages: list[tuple[str, str, str, QuerySet[Any]]] = [
        (
            "settings-series",
            "Series",
            "Probes with parameters and resources, on a schedule.",
            Series.objects.visible_to(user),
        ),
        (
            "settings-suites",
            "Suites",
            "Groups of series, their viewers, and for how long their data are kept.",
            Suite.objects.visible_to(user),
        ),
        (
            "settings-alerts",
            "Alert rules",
            "Conditions that open alerts, and the channels that are notified.",
            AlertRule.objects.visible_to(user),
        ),
    ]
    if may_manage_somewhere(user, MANAGE_REPORTERS):
        text = "Secrets by which programs outside of gridcast report the runs of a series."
        pages.append(("ping-keys", "Ping keys", text, reported))
    if may_manage_everywhere(user, MANAGE_WEBHOOKS):
        text = "Receivers of signed messages about runs and sites, and their deliveries."
        pages.append(("webhooks", "Webhooks", text, Webhook.objects.all()))
    subjects = [
        Subject(reverse(name), title, text, compute(request, "totals", rows.count))
        for name, title, text, rows in pages
    ]
    return render(request, "pages/settings.html", {"subjects": subjects})


_SERIES = ("settings-series", "settings-series-new", "settings-series-edit", "settings-series-retire")
_SUITES = ("settings-suites", "settings-suite-new", "settings-suite-edit", "settings-suite-delete")
_KEYS = ("ping-keys", "ping-keys-of-series")

entries = [NavigationEntry("Operations", "Settings", "settings", pages=(*_SERIES, *_SUITES, *_KEYS))]
urlpatterns = [path("settings/", page, name="settings")]
