"""Every request of a viewer of the wide grid that reads, with names that exist there.

They are the pages with their filters, the downloads in every format, and the operations of the API, each as
it is, at its widest and with each value of its enumerations. A route whose argument has no value here fails
the benchmark, and so does a candidate that is answered as if its object did not exist (``unexpected``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import Group, User
from django.db import connection
from django.urls import URLPattern, URLResolver
from django.utils import timezone

from monitor.analysis.forecasts.scoreboard_csv import PARTS
from monitor.analysis.storage.compute import refresh_verdicts
from monitor.depot.samples import formats
from monitor.depot.series.current_segment import store_current_segments
from monitor.depot.series.segments import next_identities
from monitor.models import (
    Alert,
    ApiToken,
    Forecast,
    Hold,
    Incident,
    Outcome,
    OwnSignature,
    Recomputation,
    Resource,
    Run,
    Series,
    SeriesDeletion,
    Site,
    Suite,
)
from monitor.models.token import READ
from monitor.runs.ingest.service import ingest
from monitor.web import pages as all_pages
from monitor.web.api.outcomes import MOST_OUTCOMES
from monitor.web.api.rank import MOST_CANDIDATES
from monitor.web.charts.chart_table import FILES
from monitor.web.pages.http.guides import guide_files
from reporters import report as wire
from tests.bench import long_series, pages, wide_grid
from tests.bench.attackers import HttpRequest
from tests.monitor.analysis.storage import measured
from tests.monitor.web.api.operations import ApiOperation, alternatives, operations
from tests.monitor.web.pages import builders

API = "/api/v1"
JSON = "application/json"
LONG, OTHER = "site-7-login-11", "site-8-login-11"  # the series with long histories
METRIC = "total.seconds"
HOST, SUITE, DELETED = f"host-of-{wide_grid.OWN_SITE}", "suite-2", "site-9-login-3"
REPORTED, DISK, SWEEP, OWN_CAUSE = "reported-circle", "measured-disk", "measured-sweep", "own-cause"
CLOSED = "suite-1"  # hidden from the viewer by ``wide_grid``
UNKNOWN = {f"k{number:06}": 1 for number in range(180_000)}  # keys of a body that is refused: 2.5 MB
# No object of the depot: steps of a login, ways to log in of an account, keys of pings, and no route at all.
ABSENT = re.compile(r"/(login|account|admin)/|/api/v1/ping/|(/api/v1)?/nothing/?$")
ABSENT_STATUSES = {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}
# Without a forecast, for example of 60,000 values that no worker has read: none runs.
NO_FORECAST_STATUSES = {HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE}
UNKNOWN_KEY = re.compile('"(unknown|k000000)"')
REFUSED_STATUSES = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
_COMPARED = f"series={LONG}&with={OTHER}"
# Query strings of downloads by route, beside those of ``pages``.
DOWNLOADS: Mapping[str, Sequence[str]] = {
    "audit/audit.csv": ("q=holds",),
    "compare/": (f"{_COMPARED}&range=all",),
    "compare/pairs.<slug:form>": (_COMPARED, f"{_COMPARED}&range=all"),
    "forecasts/accuracy/<slug:part>.csv": ("range=90d", "by=series"),
    "runs/runs.csv": ("range=90d", "range=all", f"series={LONG}&range=all", "outcome=failed&range=90d"),
    "schedule.csv": ("text=site-7",),
    "series/<slug:name>/samples.<slug:form>": ("range=all",),
    "series/<slug:name>/chart.<slug:form>": ("range=all", "range=all&interval=run"),
}
NO_QUERY_ALONE = {"compare/pairs.<slug:form>"}
# Query strings of operations by route, beside those that their parameters give.
QUERIES: Mapping[str, Sequence[str]] = {
    "/availability": (f"month={timezone.now():%Y-%m}",),
    "/forecasts": (f"series={LONG}", f"application=login&resources=host-of-{wide_grid.OWN_SITE}"),
    "/forecasts/{forecast}/outcome": ("job=job-0",),
    "/pairs": (
        f"series={LONG}&predictor_series={OTHER}",
        f"series={LONG}&predictor_series={OTHER}&metric=stage.run.seconds",
    ),
    "/series/{series}/export": tuple(f"format={each}" for each in formats.names()),
}
_OF_WEBHOOK = ("delete", "edit", "secret", "test")
WIDEST = ("limit", "newest", "points", "bins")  # parameters that make an answer longer
ABOUT = {"series": LONG, "site": wide_grid.OWN_SITE, "suite": SUITE}  # filters of lists
# How candidates of a ranking name the resource that they run on.
_WAYS: Mapping[str, Callable[[str], object]] = {
    "resources": lambda host: [host],
    "roles": lambda host: {"target": [host]},
    "role": lambda host: [f"target:{host}"],
}


def load(sites: int, series: int) -> User:
    """Load a wide grid, two of whose series have long histories, into an empty depot; return a viewer.

    All sites, and all suites but the one that is closed, are public.
    """
    viewer = wide_grid.load(sites, series)["viewer"]
    settle()
    long_series.load([LONG, OTHER])
    fill(viewer)
    return viewer


def settle() -> None:
    """Make the segments of the wide grid those of the next runs: its series can then be ranked."""
    identities = next_identities(Series.objects.filter(probe="login"))
    rows: list[Sequence[Any]] = [
        (
            identity.fingerprint,
            identity.probe_version,
            json.dumps(identity.parameters),
            json.dumps(identity.bindings),
            series,
        )
        for series, identity in identities.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE monitor_segment SET fingerprint = %s, probe_version = %s, parameters = %s, bindings = %s"
            " WHERE series_id = %s",
            rows,
        )
    store_current_segments(identities)


def fill(viewer: User) -> None:
    """Add what the wide grid lacks: reports, storage areas, outcomes of *viewer*, a signature, a deletion."""
    now = timezone.now()
    hosts = list(Resource.objects.filter(name__in=[HOST, "host-of-site-8"]))
    circle = builders.circle(REPORTED, hosts)
    report = builders.report(circle, now - timedelta(minutes=9))
    builders.delivered(report)
    ingest(wire.to_json(replace(report, seconds=report.seconds + 1.0)))  # a conflict
    disk = measured.storage_series(DISK, "disk", hosts[0])
    measured.disk_history(disk, measured.DISKS, now - timedelta(hours=1))
    sweep = measured.storage_series(SWEEP, "storage_sweep", hosts[0])
    measured.sweep_passes(sweep, now - timedelta(days=1))
    refresh_verdicts(now, within_seconds=60.0)
    OwnSignature.objects.create(
        name=OWN_CAUSE, title="Own cause", category="storage", severity="major", patterns=["zzz"]
    )
    deleted = Series.objects.get(name=DELETED)
    SeriesDeletion.objects.create(
        name=deleted.name, suite=deleted.suite, series=deleted, requested_at=now, requested_by="ada", runs=9
    )
    scored = Forecast.objects.visible_to(viewer).order_by("pk")[:MOST_OUTCOMES]
    Outcome.objects.bulk_create(
        Outcome(
            forecast=forecast, metric_id=forecast.metric_id, consumer=viewer, job=f"job-{number}",
            passed=True, seconds=1.4, started_at=now, ended_at=now, received_at=now,
        )
        for number, forecast in enumerate(scored)
    )  # fmt: skip
    ApiToken.objects.issue(viewer, "reader", [READ])
    Site.objects.update(is_public=True)
    Suite.objects.exclude(name=CLOSED).update(is_public=True)


@dataclass(frozen=True)
class Names:
    """Names that exist and that a viewer may see.

    Attributes:
        arguments: the values of arguments of pages, by the part of a route that has them.
        parameters: the values of parameters in paths of the API, by name, or by route and name.
    """

    arguments: Mapping[str, Sequence[object]]
    parameters: Mapping[str, object]

    @classmethod
    def of(cls, viewer: User) -> Names:
        return cls(_arguments(viewer), _parameters(viewer))

    def filled(self, route: str) -> list[str]:
        """Return *route* of a page with each value of its arguments."""
        if "<" not in route:
            return [route]
        part = max((each for each in self.arguments if route.startswith(each)), key=len, default="")
        rest = route.removeprefix(part)
        if not part or "<" in rest:
            raise AssertionError(f"{route}: no value of its argument in tests/bench/candidates.py")
        return [f"{part.partition('<')[0]}{value}{rest}" for value in self.arguments[part]]

    def path_of(self, operation: ApiOperation) -> str:
        """Return the path of *operation*."""
        route = operation.route.removeprefix(API)

        def value(match: re.Match[str]) -> str:
            name = match[1]
            known = self.parameters.get(f"{route} {name}", self.parameters.get(name))
            if known is None:
                raise AssertionError(f"{operation}: no value of {name} in tests/bench/candidates.py")
            return str(known)

        return re.sub(r"{(\w+)}", value, operation.route)


def of_viewer(viewer: User) -> Iterator[HttpRequest]:
    """Yield the requests of *viewer*: ``fill`` has added what they are about."""
    names = Names.of(viewer)
    yield from (HttpRequest(address) for address in pages.addresses())
    yield from of_pages(names)
    yield from _of_operations(names)
    yield from _rankings(viewer)


def of_pages(names: Names) -> Iterator[HttpRequest]:
    """Yield the pages and the downloads; those without a form of their own only once."""
    for route in sorted(routes()):
        queries = [f"?{query}" for query in DOWNLOADS.get(route, ())]
        for address in names.filled(route):
            alone = [] if route in NO_QUERY_ALONE else [""]
            yield from (HttpRequest(f"/{address}{query}") for query in (*alone, *queries))


def _of_operations(names: Names) -> Iterator[HttpRequest]:
    for operation in operations():
        if operation.method == "GET" and not operation.route.startswith(f"{API}/ping/"):
            path = names.path_of(operation)
            yield from (HttpRequest(f"{path}?{query}") for query in sorted(_queries(operation)))


def _queries(operation: ApiOperation) -> set[str]:
    """Return the query strings of *operation*: its own, the widest, and with each value of enumerations."""
    own = QUERIES.get(operation.route.removeprefix(API)) or [urlencode(operation.query)]
    limits: dict[str, object] = {
        each["name"]: each["schema"]["maximum"] for each in operation.parameters if each["name"] in WIDEST
    }
    about = {name: value for name, value in ABOUT.items() if name in _names_of(operation)}
    queries = set(own)
    for query in own:
        queries.add("&".join(filter(None, (query, urlencode(limits)))))
        for each in operation.parameters:
            for value in _enumeration(each["schema"]):
                chosen = urlencode({**limits, each["name"]: value})
                queries.add("&".join(filter(None, (_without(query, each["name"]), chosen))))
    if not QUERIES.get(operation.route.removeprefix(API)):
        queries |= {urlencode({**operation.query, **limits, name: value}) for name, value in about.items()}
    return queries


def _names_of(operation: ApiOperation) -> set[str]:
    return {each["name"] for each in operation.parameters}


def _without(query: str, name: str) -> str:
    return "&".join(each for each in query.split("&") if each.partition("=")[0] != name)


def _enumeration(schema: Mapping[str, Any]) -> Iterator[str]:
    for each in alternatives(dict(schema)):
        yield from map(str, each.get("enum", ()))


def _rankings(viewer: User) -> Iterator[HttpRequest]:
    """Yield the only POST of a viewer that reads: by series, by paths, and one that is refused."""
    visible = Series.objects.visible_to(viewer).filter(probe="login").order_by("pk")
    names = list(visible.values_list("name", flat=True)[:MOST_CANDIDATES])
    yield _rank({"candidates": [{"series": name} for name in names]})
    hosts = Resource.objects.filter(name__startswith="host-of-").values_list("name", flat=True)
    for key, value in _WAYS.items():
        candidates = [{key: value(host)} for host in hosts[:MOST_CANDIDATES]]
        yield _rank({"application": "login", "candidates": candidates})
    yield _rank(UNKNOWN)


def _rank(body: Mapping[str, Any]) -> HttpRequest:
    return HttpRequest(f"{API}/forecasts/rank", "POST", json.dumps(body), {"Content-Type": JSON})


def unexpected(answers: Iterable[tuple[int, HttpRequest]]) -> list[str]:
    """Return which requests were answered as if their object did not exist, or with an error."""
    accepted = {HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER}
    accepted |= {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED}
    return [
        f"{status} {request.method} {request.path[:100]}"
        for status, request in answers
        if status not in accepted
        and not (status in ABSENT_STATUSES and ABSENT.match(request.path))
        and not (status in NO_FORECAST_STATUSES and request.path.startswith(f"{API}/forecasts?"))
        and not (status in REFUSED_STATUSES and UNKNOWN_KEY.search(request.body))
    ]


def routes() -> set[str]:
    """Return the routes of all pages and downloads."""
    return set(_routes(each for patterns in all_pages.load_all().values() for each in patterns))


def _routes(patterns: Iterable[URLPattern | URLResolver], begin: str = "") -> Iterator[str]:
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from _routes(each.url_patterns, f"{begin}{each.pattern}")
        else:
            yield f"{begin}{each.pattern}"


def _arguments(viewer: User) -> Mapping[str, Sequence[object]]:
    reported = Run.objects.filter(series__name=REPORTED).latest("slot").pk
    token = ApiToken.objects.latest("pk").pk
    return {
        **{part: [value] for part, value in pages.arguments().items()},
        "access/groups/<int:pk>": [Group.objects.latest("pk").pk],
        "access/users/<int:pk>": [viewer.pk],
        "account/identities/<int:pk>": [1],
        "account/passkeys/<int:pk>": [1],
        "account/tokens/<int:pk>": [token],
        "compare/pairs.<slug:form>": list(FILES),
        "failures/signatures/edit/<slug:name>": [OWN_CAUSE],
        "failures/signatures/withdraw/<slug:name>": [OWN_CAUSE],
        "forecasts/accuracy/<slug:part>": list(PARTS),
        "help/files/<path:file>": list(guide_files())[:1],
        "maintenance/windows/<slug:name>": ["window-200"],
        "public/badges/sites/<slug:name>": [wide_grid.OWN_SITE],
        "public/badges/suites/<slug:name>": [SUITE],
        "runs/<uuid:pk>/": [f"{reported}/"],
        "runs/<uuid:pk>/conflicts/<int:number>": [f"{reported}/conflicts/1"],
        "series/<slug:name>/samples.<slug:form>": [f"{LONG}/samples.{each}" for each in formats.names()],
        "series/<slug:name>/chart.<slug:form>": [f"{LONG}/chart.{each}" for each in FILES],
        "series/<slug:name>/sweep.csv": [f"{SWEEP}/sweep.csv"],
        "settings/alerts/test/<slug:name>/<int:number>": ["rule-7/0"],
        "settings/ping-keys/<slug:name>/<int:pk>": [f"{LONG}/1"],
        "settings/webhooks/redeliver/<int:pk>": [1],
        **{
            f"settings/webhooks/{verb}/<slug:name>": ["hook"] for verb in ("delete", "edit", "secret", "test")
        },
        "storage/<slug:name>": [HOST],
    }


def _parameters(viewer: User) -> Mapping[str, object]:
    incident = Incident.objects.open().latest("pk")
    events = incident.events.visible_to(viewer)
    forecasts = Forecast.objects.visible_to(viewer)
    return {
        "alert": Alert.objects.latest("pk").pk,
        "delivery": 1,
        "event": events.latest("pk").pk,
        "/audit/{event} event": 1,
        "forecast": forecasts.filter(outcomes__consumer=viewer).earliest("pk").pk,
        "hold": Hold.objects.latest("pk").pk,
        "incident": incident.pk,
        "key": 1,
        "kind": "site",
        "method": "blend",
        "metric": METRIC,
        "/grid/alerts/{name} name": "rule-7",
        "/grid/resources/{name} name": HOST,
        "/grid/series/{name} name": LONG,
        "/grid/suites/{name} name": SUITE,
        "name": wide_grid.OWN_SITE,
        "number": 0,
        "part": PARTS[0],
        "probe": "login",
        "recomputation": Recomputation.objects.latest("pk").pk,
        "reporter": "agent-20",
        "resource": HOST,
        "rule": "rule-7",
        "run": Run.objects.filter(series__name=REPORTED).latest("slot").pk,
        "series": LONG,
        "/series/{series}/deletion series": DELETED,
        "signal": "start",
        "signature": OWN_CAUSE,
        "site": wide_grid.OWN_SITE,
        "suite": SUITE,
        "test": "x",
        "token": ApiToken.objects.filter(user=viewer).latest("pk").pk,
        "webhook": "hook",
        "window": "window-200",
    }
