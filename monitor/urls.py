"""Where everything is."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import path

from monitor.api import api
from monitor.pages import alerts, health, holds, overview, run, scoreboard, series

# In the order in which they are asked for: Django tries one after the other, and keeps what it has tried.
urlpatterns = [
    path("api/v1/", api.urls),
    path("", overview.page, name="overview"),
    path("series/<slug:name>/", series.page, name="series"),
    path("series/<slug:name>/run-now/", series.run_now, name="run-now"),
    path("series/<slug:name>/samples.<slug:form>", series.samples, name="samples"),
    path("runs/<uuid:pk>/", run.page, name="run"),
    path("runs/<uuid:pk>/report.json", run.raw_report, name="raw-report"),
    path("holds/", holds.page, name="holds"),
    path("holds/<slug:kind>/<slug:name>/", holds.scope, name="hold"),
    path("holds/<slug:kind>/<slug:name>/act/", holds.act, name="hold-act"),
    path("alerts/", alerts.page, name="alerts"),
    path("scoreboard/", scoreboard.page, name="scoreboard"),
    path("scoreboard/<slug:part>.csv", scoreboard.table, name="scoreboard-table"),
    path("banner/", health.news, name="banner"),
    path("login/", auth.LoginView.as_view(template_name="pages/login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
]

handler400 = "monitor.pages.errors.bad_request"
handler404 = "monitor.pages.errors.not_found"
handler500 = "monitor.pages.errors.server_error"
