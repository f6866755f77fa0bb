"""Series with forecasts, and a token, in the depot of a test."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.forecasts.issue import issue
from monitor.depot.series.segments import current_bindings
from monitor.models import ApiToken, Forecast, Metric, Reporter, Series, SuccessState
from monitor.models.reporter import HOME
from monitor.models.token import OUTCOME, READ, REPORT
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from reporters.config import ResourceConfig
from tests.monitor.builders import circle_report

HOSTS = ("alpha", "beta", "gamma")
RINGS = {"quick": ["alpha", "beta"], "slow": ["beta", "gamma"], "new": ["alpha", "gamma"]}
MEDIANS = {"quick": 10.0, "slow": 30.0}


def define_rings() -> None:
    """Define two rings with forecasts that were issued an hour ago, and one, ``new``, without runs."""
    resources = [ResourceConfig(name, f"site-of-{name}", f"/{name}") for name in HOSTS]
    define(
        resources,
        [
            SeriesDefinition(name, "circle", {"ring": ring}, {"file_bytes": 1000})
            for name, ring in RINGS.items()
        ],
    )
    for name, seconds in MEDIANS.items():
        _pass(name, seconds)


def _pass(series: str, seconds: float) -> None:
    """Let four runs of *series* pass in *seconds* each, two hours ago."""
    shown = Series.objects.get(name=series)
    bindings = current_bindings([shown.pk])[shown.pk]
    for number in range(4, 0, -1):
        slot = timezone.now() - timedelta(hours=2, minutes=number)
        ingest(wire.to_json(circle_report(slot, series=series, ring_seconds=seconds - 3, bindings=bindings)))
    issued = issue(Metric.objects.get(segment__series=shown, name="total.seconds"), timezone.now())
    Forecast.objects.filter(pk=issued.pk).update(issued_at=timezone.now() - timedelta(hours=1))
    quantiles = [seconds * (1 + probability) for probability in QUANTILE_LEVELS]
    fields = {"n": 4, "probability": 0.75, "expected_seconds": seconds * 4 / 3, "is_behind": False}
    SuccessState.objects.update_or_create(series=shown, defaults={**fields, "quantiles": quantiles})


def new_token() -> str:
    """Return a token that may read, tell outcomes, and send reports of the home reporter."""
    user = User.objects.create_user("scheduler")
    user.user_permissions.set(Permission.objects.filter(codename__in=["add_outcome", "add_rawreport"]))
    home, _ = Reporter.objects.get_or_create(name=HOME)
    return ApiToken.objects.issue(user, "client", [READ, OUTCOME, REPORT], home)
