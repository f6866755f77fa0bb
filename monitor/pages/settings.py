"""The index of settings: what the user may see or change of the configuration, with the number of each."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from monitor.models import AlertRule, Series, Suite, Webhook
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.series import REPORTED_PROBE
from monitor.models.site import may_manage_everywhere, may_manage_somewhere
from monitor.models.webhook import MANAGE_WEBHOOKS
from monitor.pages.http.access import members_only
from monitor.pages.http.navigation import NavigationEntry


class Subject(NamedTuple):
    """A page of settings: its address, its title, what it is about, and how many there are."""

    url: str
    title: str
    text: str
    total: int


@members_only
def page(request: HttpRequest) -> HttpResponse:
    user = request.user
    subjects = [
        Subject(
            reverse("settings-series"),
            "Series",
            "Probes with parameters and resources, on a schedule.",
            Series.objects.visible_to(user).count(),
        ),
        Subject(
            reverse("settings-suites"),
            "Suites",
            "Groups of series, their viewers, and for how long their data are kept.",
            Suite.objects.visible_to(user).count(),
        ),
        Subject(
            reverse("settings-alerts"),
            "Alert rules",
            "Conditions that open alerts, and the channels that are notified.",
            AlertRule.objects.visible_to(user).count(),
        ),
    ]
    if may_manage_somewhere(user, MANAGE_REPORTERS):
        reported = Series.objects.manageable_by(user, MANAGE_REPORTERS).filter(probe=REPORTED_PROBE)
        text = "Secrets by which programs outside of gridcast report the runs of a series."
        subjects.append(Subject(reverse("ping-keys"), "Ping keys", text, reported.count()))
    if may_manage_everywhere(user, MANAGE_WEBHOOKS):
        text = "Receivers of signed messages about runs and sites, and their deliveries."
        subjects.append(Subject(reverse("webhooks"), "Webhooks", text, Webhook.objects.count()))
    return render(request, "pages/settings.html", {"subjects": subjects})


_SERIES = ("settings-series", "settings-series-new", "settings-series-edit", "settings-series-retire")
_SUITES = ("settings-suites", "settings-suite-new", "settings-suite-edit", "settings-suite-delete")
_KEYS = ("ping-keys", "ping-keys-of-series")

entries = [NavigationEntry("Operations", "Settings", "settings", pages=(*_SERIES, *_SUITES, *_KEYS))]
urlpatterns = [path("settings/", page, name="settings")]
