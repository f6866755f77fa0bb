"""The documentation of the API: a list of operations, and a page for each with a form that calls it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from monitor.web.api import api
from monitor.web.api.http.documentation import DocumentedOperation, documented_operations, matching
from monitor.web.pages.http.navigation import NavigationEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

SCOPE_WORDS = {
    "read": "read measurements and forecasts",
    "run": "start runs, pause and resume, acknowledge alerts",
    "report": "send reports and pings",
    "outcome": "report job outcomes",
    "manage": "manage reporters, signatures, webhooks and tokens",
}


def index(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "")[:200]
    found = matching(operations(), text)
    context = {"groups": _by_tag(found), "q": text, "count": len(found), "scopes": SCOPE_WORDS.items()}
    return render(request, "pages/api_documentation.html", context)


def operation(request: HttpRequest, operation: str) -> HttpResponse:
    chosen = next((each for each in operations() if each.id == operation), None)
    if chosen is None:
        raise Http404(f"The API has no operation {operation}.")
    listing = reverse("api-documentation")
    context = {
        "operation": chosen,
        "groups": _by_tag(operations()),
        "crumbs": [("API", listing), (chosen.tag.capitalize(), f"{listing}#{chosen.tag.replace(' ', '-')}")],
    }
    return render(request, "pages/api_operation.html", context)


@functools.cache
def operations() -> tuple[DocumentedOperation, ...]:
    """Return the operations of the API; the first call of a process reads the OpenAPI document."""
    return documented_operations(api.document())


def _by_tag(shown: Sequence[DocumentedOperation]) -> dict[str, list[DocumentedOperation]]:
    groups: dict[str, list[DocumentedOperation]] = {}
    for each in shown:
        groups.setdefault(each.tag, []).append(each)
    return groups


entries = [
    NavigationEntry("Tools", "API", "api-documentation", pages=("api-operation",), permits=lambda _user: True)
]
urlpatterns = [
    path("help/api/", index, name="api-documentation"),
    path("help/api/<slug:operation>/", operation, name="api-operation"),
]
