"""Health of the service: for load balancers, and for the banner of open pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from monitor import health
from monitor.health import HealthProblem
from monitor.web.pages.http.access import accounts_only
from monitor.web.pages.http.parts import compute


def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer that this process is alive, without checking database and broker.

    Our web server answers GET and HEAD itself (``monitor.operations.web_server.liveness``).
    """
    return HttpResponse("alive\n", content_type="text/plain")


def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 if database and broker are reachable, otherwise 503; the body lists the state of both."""
    parts = {"depot": health.depot_problem(), "broker": health.broker_problem()}
    is_ready = not any(parts.values())
    answer = {name: problem.text if problem else "ok" for name, problem in parts.items()}
    return JsonResponse({"ready": is_ready, **answer}, status=200 if is_ready else 503)


@accounts_only
def banner(request: HttpRequest) -> HttpResponse:
    """Return the banner of an open page; checks the broker as well."""

    def problems() -> list[HealthProblem]:
        broker = health.broker_problem()
        return [*health.problems(timezone.now()), *([broker] if broker else [])]

    return render(request, "parts/banner.html", {"service_problems": compute(request, "banner", problems)})


urlpatterns = [
    path("banner/", banner, name="banner"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
