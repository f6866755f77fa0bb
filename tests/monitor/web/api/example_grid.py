"""A grid in which the examples of the OpenAPI document are true: a series with runs and forecasts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from monitor.analysis.availability.refresh import refresh as refresh_availability
from monitor.analysis.forecasts.refresh import refresh_all
from monitor.models import AlertRule, ApiToken, Reporter, Resource, SeriesDeletion, Site, Suite
from monitor.models.reporter import HOME
from monitor.models.token import SCOPES
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report

SERIES = "circle-main"
MARCH = datetime(2026, 3, 2, tzinfo=UTC)  # of the example of a recomputation


def example_grid() -> str:
    """Create the grid; return a token with all scopes of a superuser."""
    hosts = [ResourceConfig(f"{site}-login", site, f"/{site}") for site in ("ncsa", "sdsc")]
    ring = {"ring": ["ncsa-login", "sdsc-login"]}
    define(hosts, [SeriesDefinition(SERIES, "circle", ring, {"file_bytes": 1000}, "* * * * *")])
    minutes = [timezone.now() - timedelta(minutes=number) for number in range(6, 0, -1)]
    for slot in (MARCH, *minutes):
        ingest(wire.to_json(circle_report(slot, series=SERIES, bindings=ring)))
    Resource.objects.filter(name="ncsa-login").update(storage={"medium": "disk", "capacity_gb": 1000.0})
    refresh_all(timezone.now())
    refresh_availability(timezone.now())
    home, _ = Reporter.objects.get_or_create(name=HOME)
    Reporter.objects.create(name="sdsc-agent", site=Site.objects.get(name="sdsc"))
    rule = AlertRule.objects.create(
        name="main-failures", condition="failures_in_row", threshold=3, notify=[{"kind": "log"}]
    )
    main, now = Suite.objects.get(name="main"), timezone.now()
    rule.suites.add(main)
    SeriesDeletion.objects.create(  # of an earlier series of this name
        name=SERIES, suite=main, requested_at=now, requested_by="root", runs=0, ended_at=now
    )
    root = User.objects.create_superuser("root")
    return ApiToken.objects.issue(root, "everything", list(SCOPES), home)
