"""Every page and every reading operation, with each row that it can be about, as requests.

A route without parameters is a list. What the parameters of another route name is in ``ROWS``; the few of
``USUAL`` have one value, from the table of access.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, User

import probes
from forecasting import methods
from monitor.analysis.alerts import conditions, reporter_conditions
from monitor.analysis.forecasts.scoreboard_csv import PARTS
from monitor.depot.samples import formats
from monitor.models import (
    Alert,
    AlertRule,
    ApiToken,
    AuditEvent,
    ConflictingReport,
    FailureSignature,
    Forecast,
    Hold,
    Incident,
    IncidentEvent,
    MaintenanceWindow,
    Metric,
    OwnSignature,
    PingKey,
    Recomputation,
    Reporter,
    Resource,
    Run,
    Series,
    Site,
    Suite,
    Webhook,
    WebhookDelivery,
)
from monitor.models import (
    Identity as StoredIdentity,
)
from monitor.models.series import REPORTED_PROBE
from monitor.web.charts.chart_table import FILES
from monitor.web.pages.api_documentation import operations
from monitor.web.pages.http.guides import guide_files, guide_titles
from tests.monitor.cross.crowded import CrowdedDepot
from tests.monitor.depot.access.decisions import OPERATIONS, PAGES
from tests.monitor.depot.access.requests_sent import API, filled, query_of
from tests.monitor.depot.access.world import OWN

LINKS = re.compile(rb'href="(\?[^"#]+)')
MOST_LISTED = 100  # rows of one answer of the API


@dataclass(frozen=True)
class Visit:
    """A request, by GET: *route* as in the tables of access; *is_list*: it names no row."""

    route: str
    path: str
    is_list: bool

    @property
    def is_operation(self) -> bool:
        return self.route.startswith("GET ")


def _rows(queryset: Any, *names: str, **parameters: str) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that returns the values of *parameters*, names of columns, in each row."""
    columns = [parameters[name] for name in parameters]
    return lambda: [
        dict(zip(parameters, row, strict=True)) for row in queryset.order_by("pk").values_list(*columns)
    ]


def _values(parameter: str, values: Callable[[], Iterable[Any]]) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that returns each of *values* of *parameter*."""
    return lambda: [{parameter: value} for value in values()]


def _in_turn(
    rows: Callable[[], list[dict[str, Any]]], parameter: str, values: Callable[[], Iterable[Any]]
) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that returns *rows*, each with the next of *values*: every form meets many rows."""
    return lambda: [{**row, parameter: each} for row, each in zip(rows(), itertools.cycle(values()))]


_SERIES = _rows(Series.objects.all(), name="name")
# By the beginning of a route, the longest first: what its parameters name in each row.
ROWS: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
    "GET /alert-rules/{rule}": _rows(AlertRule.objects.all(), rule="name"),
    "GET /alert-rules/{rule}/tests/": _rows(AlertRule.objects.all(), rule="name"),
    "GET /alerts/": _rows(Alert.objects.all(), alert="pk"),
    "GET /audit/": _rows(AuditEvent.objects.all(), event="pk"),
    "GET /availability/recomputations/": _rows(Recomputation.objects.all(), recomputation="pk"),
    "GET /availability/sites/": _rows(Site.objects.all(), site="name"),
    "GET /failures/own-signatures/": _rows(OwnSignature.objects.all(), signature="name"),
    "GET /forecasts/{forecast}": _rows(Forecast.objects.all(), forecast="pk"),
    "GET /grid/alerts/": _rows(AlertRule.objects.all(), name="name"),
    "GET /grid/resources/": _rows(Resource.objects.all(), name="name"),
    "GET /grid/series/": _rows(Series.objects.all(), name="name"),
    "GET /grid/sites/": _rows(Site.objects.all(), name="name"),
    "GET /grid/suites/": _rows(Suite.objects.all(), name="name"),
    "GET /holds/": _rows(Hold.objects.all(), hold="pk"),
    "GET /incidents/{incident}": _rows(Incident.objects.all(), incident="pk"),
    "GET /incidents/{incident}/events/": _rows(
        IncidentEvent.objects.all(), incident="incident_id", event="pk"
    ),
    "GET /maintenance/": _rows(MaintenanceWindow.objects.all(), window="name"),
    "GET /methods/": _values("method", methods.names),
    "GET /probes/": _values("probe", probes.names),
    "GET /reporters/": _rows(Reporter.objects.all(), reporter="name"),
    "GET /resources/": _rows(Resource.objects.all(), resource="name"),
    "GET /runs/": _rows(Run.objects.all(), run="pk"),
    "GET /scoreboard/": _values("part", lambda: PARTS),
    "GET /series/{series}/metrics/": _rows(
        Metric.objects.all(), series="segment__series__name", metric="name"
    ),
    "GET /series/{series}/ping-keys": _rows(Series.objects.filter(probe=REPORTED_PROBE), series="name"),
    "GET /series/{series}/ping-keys/": _rows(PingKey.objects.all(), series="series__name", key="pk"),
    "GET /series/": _rows(Series.objects.all(), series="name"),
    "GET /sites/": _rows(Site.objects.all(), site="name"),
    "GET /storage/": _rows(Resource.objects.all(), resource="name"),
    "GET /suites/": _rows(Suite.objects.all(), suite="name"),
    "GET /tokens/": _rows(ApiToken.objects.all(), token="pk"),
    "GET /webhooks/{webhook}/deliveries/": _rows(
        WebhookDelivery.objects.all(), webhook="webhook__name", delivery="pk"
    ),
    "GET /webhooks/": _rows(Webhook.objects.all(), webhook="name"),
    "access/groups/": _rows(Group.objects.all(), pk="pk"),
    "access/users/": _rows(User.objects.all(), pk="pk"),
    "account/identities/": _rows(StoredIdentity.objects.all(), pk="pk"),
    "account/passkeys/": _rows(Authenticator.objects.all(), pk="pk"),
    "availability/sites/": _rows(Site.objects.all(), name="name"),
    "compare/pairs.": _values("form", lambda: FILES),
    "failures/causes/": _rows(FailureSignature.objects.all(), name="name"),
    "failures/signatures/edit/": _rows(OwnSignature.objects.all(), name="name"),
    "forecasts/accuracy/": _values("part", lambda: PARTS),
    "help/api/": _values("operation", lambda: [each.id for each in operations()]),
    "help/files/": _values("file", guide_files),
    "help/guides/": _values("guide", guide_titles),
    "holds/": _rows(Hold.objects.all(), kind="kind", name="name"),
    "incidents/": _rows(Incident.objects.all(), pk="pk"),
    "maintenance/windows/": _rows(MaintenanceWindow.objects.all(), name="name"),
    "public/badges/sites/": _rows(Site.objects.all(), name="name"),
    "public/badges/suites/": _rows(Suite.objects.all(), name="name"),
    "reporters/": _rows(Reporter.objects.all(), name="name"),
    "runs/<uuid:pk>": _rows(Run.objects.all(), pk="pk"),
    "runs/<uuid:pk>/conflicts/": _rows(ConflictingReport.objects.all(), pk="run", number="pk"),
    "series/<slug:name>": _SERIES,
    "series/<slug:name>/chart.": _in_turn(_SERIES, "form", lambda: FILES),
    "series/<slug:name>/samples.": _in_turn(_SERIES, "form", formats.names),
    "settings/alerts/": _rows(AlertRule.objects.all(), name="name"),
    "settings/ping-keys/": _rows(Series.objects.filter(probe=REPORTED_PROBE), name="name"),
    "settings/series/": _rows(Series.objects.all(), name="name"),
    "settings/suites/": _rows(Suite.objects.all(), name="name"),
    "settings/webhooks/": _rows(Webhook.objects.all(), name="name"),
    "sites/<slug:name>": _rows(Site.objects.all(), name="name"),
    "sites/<slug:site>/": _rows(Resource.objects.all(), site="site__name", name="name"),
    "storage/": _rows(Resource.objects.all(), name="name"),
}
# Parameters with one value, and why.
USUAL: Mapping[tuple[str, str], str] = {
    ("GET /alert-rules/{rule}/tests/{test}", "test"): "the broker keeps it for a while",
    ("GET /ping/{key}", "key"): "the depot has its digest only",
    ("GET /ping/{key}/{signal}", "key"): "the depot has its digest only",
    ("GET /ping/{key}/{signal}", "signal"): "each is a report, not a page",
    ("reports/<slug:period>/", "period"): "a span of time, which names no row",
    ("reports/<slug:period>/report.csv", "period"): "a span of time, which names no row",
    ("reports/<slug:period>/report.pdf", "period"): "a span of time, which names no row",
}
# Lists whose content depends on a parameter that a registry or an enumeration lists.
CHOSEN: Mapping[str, Callable[[], list[str]]] = {
    "settings/alerts/new/": lambda: [
        f"condition={each}" for each in (*conditions.names(), *reporter_conditions.names())
    ],
}


def all_visits(depot: CrowdedDepot) -> list[Visit]:
    operations = [operation for operation in OPERATIONS if operation.startswith("GET ")]
    pages = [route for route, (shown, _) in PAGES.items() if shown is not None]
    cached = {begin: rows() for begin, rows in ROWS.items()}
    return [visit for route in (*operations, *pages) for visit in _visits(depot, route, cached)]


def admin_visits() -> Iterator[Visit]:
    """Yield the lists of the admin pages, and the page of each row."""
    from django.contrib import admin

    for model in admin.site._registry:
        route = f"admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield Visit(route, f"/{route}", True)
        for key in model._base_manager.values_list("pk", flat=True):
            yield Visit(f"{route}change/", f"/{route}{key}/change/", False)


def _visits(
    depot: CrowdedDepot, route: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[Visit]:
    path = (
        route.removeprefix("GET ")
        if route.startswith("GET ")
        else "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)
    )
    base = API if route.startswith("GET ") else ""
    if "{" not in path:
        for query in (query_of(route, OWN), *(f"?{each}" for each in CHOSEN.get(route, list)())):
            yield Visit(route, base + path + query, True)
        return
    usual = filled(depot.world, path, OWN, depot.administrator)
    begin = beginning(route, rows)
    if not begin:
        yield Visit(route, base + usual + query_of(route, OWN), False)
    for values in rows.get(begin, ()):
        yield Visit(route, base + _named(path, values, usual) + query_of(route, OWN), False)


def beginning(route: str, rows: Collection[str]) -> str:
    """Return the longest of *rows* with which *route* begins; empty if there is none."""
    return max((each for each in rows if route.startswith(each)), key=len, default="")


def _named(path: str, values: Mapping[str, Any], usual: str) -> str:
    """Return *path* with *values*; parameters without a value have the one of *usual*."""
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+?)", re.escape(path))
    match = re.fullmatch(pattern, usual)
    assert match is not None, (path, usual)
    return path.format(**{**match.groupdict(), **values})


def links(content: bytes) -> list[str]:
    """Return the query strings that a page leads to on itself: its filters, tabs and further pages."""
    return sorted({html.unescape(each.decode()) for each in LINKS.findall(content)})
