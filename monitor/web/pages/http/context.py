"""Context processors: values of every template, computed only where a template shows them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from monitor import health
from monitor.analysis.alerts import open_alerts_sql
from monitor.models.role import identity_of, is_administrator, opens_admin, reads_measurements
from monitor.models.site import may_manage_somewhere
from monitor.web import pages as all_pages
from monitor.web.accounts import identities
from monitor.web.pages.http import reader
from monitor.web.pages.http.navigation import Navigation
from monitor.web.pages.http.navigation import navigation as navigation_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from monitor.health import HealthProblem


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Provide ``navigation``, and the reader's time zone as ``zone`` and ``zone_name``."""

    def shown() -> Navigation:
        match = request.resolver_match
        duty = getattr(request, "factor_duty", None)
        user = AnonymousUser() if duty is not None and duty.is_over else request.user
        return navigation_of(all_pages.entries(), user, match.url_name if match else None)

    return {
        "navigation": SimpleLazyObject(shown),
        "zone": reader.zone(request),
        "zone_name": reader.zone_name(request),
    }


def open_alerts(request: HttpRequest) -> dict[str, Any]:
    """Provide ``open_alerts``: the number of open alerts without acknowledgement that the user may see."""

    return {"open_alerts": functools.cache(lambda: open_alerts_sql.open_alerts(request.user))}


def rights(request: HttpRequest) -> dict[str, Any]:
    """Provide whether the user may open pages about measurements (``may_read``), start and stop runs at some
    site (``may_operate``), and open the admin pages and the page of roles; and, if it is near, the end of its
    roles by the provider (``identity_ends``)."""
    return {
        "may_read": lambda: reads_measurements(request.user),
        "may_operate": lambda: may_manage_somewhere(request.user),
        "may_open_admin": lambda: opens_admin(request.user),
        "identity_ends": lambda: identities.ends_soon(identity_of(request.user), timezone.now()),
        "may_grant_roles": lambda: is_administrator(request.user),
    }


def service_problems(request: HttpRequest) -> dict[str, Any]:
    """Provide ``service_problems``: the problems of the service itself; an empty list for anonymous users."""

    def problems() -> list[HealthProblem]:
        return health.problems(timezone.now()) if request.user.is_authenticated else []

    return {"service_problems": problems}
