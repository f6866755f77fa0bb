"""gridcast with one page, which answers what it knows of the client: for tests with any web server.

It needs no database.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import django
from django.http import HttpRequest, HttpResponse, JsonResponse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monitor.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402 - needs the setup
from django.urls import path  # noqa: E402 - see above

from monitor.operations.web_server.client_address import client_address  # noqa: E402 - see above
from monitor.web.pages.http.utf8 import Utf8Handler  # noqa: E402 - see above

if TYPE_CHECKING:
    from collections.abc import Sequence


def page(request: HttpRequest) -> HttpResponse:
    return JsonResponse(
        {
            "client": client_address(request),
            "scheme": request.scheme,
            "url": request.build_absolute_uri(),
            "headers": sorted(request.headers),
            "remote_user": request.META.get("HTTP_REMOTE_USER"),
        }
    )


urlpatterns: Sequence[object] = [path("", page), path("api/v1/page", page)]
settings.ROOT_URLCONF = __name__
application = Utf8Handler()
