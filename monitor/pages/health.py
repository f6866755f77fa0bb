"""Is the service well? For load balancers, and for the banner on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone

from monitor import health
from monitor.pages.access import members_only

if TYPE_CHECKING:
    from monitor.health import HealthProblem


def healthz(_request: HttpRequest) -> HttpResponse:
    """This process is alive. Says nothing about what it needs."""
    return HttpResponse("alive\n", content_type="text/plain")


def readyz(_request: HttpRequest) -> HttpResponse:
    """Whether this process has what it needs: 200 or 503, with every part by name."""
    parts = {"depot": health.depot_problem(), "broker": health.broker_problem()}
    ready = not any(parts.values())
    answer = {name: problem.text if problem else "ok" for name, problem in parts.items()}
    return JsonResponse({"ready": ready, **answer}, status=200 if ready else 503)


def banner(request: HttpRequest) -> dict[str, Any]:
    """Context of every template: ``problems``, asked for only where a template shows them."""

    def problems() -> list[HealthProblem]:
        return health.problems(timezone.now()) if request.user.is_authenticated else []

    return {"problems": problems}


@members_only
def news(request: HttpRequest) -> HttpResponse:
    """The banner's content, for a page that is open already; asks the broker as well."""
    broker = health.broker_problem()
    found = [*health.problems(timezone.now()), *([broker] if broker else [])]
    return render(request, "parts/banner.html", {"problems": found})
