"""The URLs: the API, the admin site, and the URLs that the pages declare."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from monitor.web import pages
from monitor.web.api import api

urlpatterns = [
    path("api/v1/", api.urls),  # first, because most requests are for the API
    *(pattern for patterns in pages.load_all().values() for pattern in patterns),
    path("admin/", admin.site.urls),
]

handler400 = "monitor.web.pages.http.errors.bad_request"
handler403 = "monitor.web.pages.http.errors.permission_denied"
handler404 = "monitor.web.pages.http.errors.not_found"
handler500 = "monitor.web.pages.http.errors.server_error"
