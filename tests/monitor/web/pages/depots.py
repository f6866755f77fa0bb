"""Depots for tests in a browser: full, empty, huge, stale and broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from monitor.analysis.alerts import evaluate
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.storage.compute import refresh_verdicts
from monitor.models import Alert, AlertRule, MaintenanceWindow, Resource, Series, Site
from monitor.models.run import State
from monitor.runs.ledger import heartbeats
from reporters import report as wire
from tests.monitor import reporter_rows
from tests.monitor.analysis.storage import measured
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.visits import FilledDepot

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def full() -> FilledDepot:
    """Gather has failed twice, also in its last run; Circle has no runs.

    A site is in maintenance, another window is planned. One alert is open, another is resolved.
    """
    resources = builders.sites(4)
    gather = builders.gather("gather-main", resources)
    builders.circle("circle-ring", resources[:3])
    trouble = builders.Trouble(
        "transfer_data", "site2-login", "cannot connect to site2.example.org:22: Connection refused " * 3
    )
    until = timezone.now() - MINUTE / 2
    runs = builders.history(gather, 9, until=until, troubles={4: trouble, 8: trouble})
    builders.not_run(gather, until - MINUTE, State.MISSED, "no reporter claimed it within 120 s")
    title = "new disks for all users' home directories " * 4
    here = MaintenanceWindow.objects.create(
        name="disks", title=title, schedule="* * * * *", duration_seconds=60
    )
    here.sites.set(Site.objects.filter(name__in=["site4"]))
    MaintenanceWindow.objects.create(name="network", schedule="0 8 * * tue", duration_seconds=14400)
    AlertRule.objects.create(name="every-failure", everything=True, condition="failures_in_row", threshold=1)
    classify_runs(timezone.now())
    evaluate.evaluate(timezone.now())
    update_incidents(timezone.now())
    opened = Alert.objects.get()
    silent = AlertRule.objects.create(name="silent", condition="silent_seconds", threshold=60, enabled=False)
    Alert.objects.create(
        rule=silent,
        series=gather,
        since=until,
        opened_at=until,
        closed_at=until,
        opened_by=runs[-1],
        text=opened.text,
    )
    build_reporter(resources[0].site)
    build_storage(resources[3], resources[2])
    operator = builders.user("operator", may_run=True)
    permissions = Permission.objects.filter(codename__in=["manage_reporters", "manage_signatures"])
    operator.user_permissions.add(*permissions)
    keep_alive()
    return FilledDepot(_session(operator), administrator(), failed=runs[-1], passed=runs[-2])


def empty() -> FilledDepot:
    """Nothing but users."""
    return FilledDepot(_session(builders.user("operator", may_run=True)), administrator())


def huge() -> FilledDepot:
    """More series and sites than an overview has columns for, with long names; a fifth of the series fail."""
    resources = builders.sites(30)
    names = [f"ring-with-a-long-name-{number}" for number in range(60)]
    for number, series in enumerate(builders.circles(names, resources[:7])):
        now = timezone.now() - MINUTE
        sent = builders.report(series, now)
        if number % 5 == 0:
            text = f"cannot connect to site{number % 7 + 1}.example.org:22: Connection refused"
            sent = builders.failed(sent, "transfer_ring", f"site{number % 7 + 1}-login", text)
        builders.delivered(replace(sent, slot=now - MINUTE, run=wire.run_id(series.name, now - MINUTE)))
        builders.delivered(sent)
    for number, resource in enumerate(resources[7:]):
        builders.gather(f"gather-{number}", [resource, *resources[:3]])
    classify_runs(timezone.now())
    update_incidents(timezone.now())
    keep_alive()
    return FilledDepot(_session(builders.user("operator", may_run=True)), administrator())


def stale() -> FilledDepot:
    """All results are three days old; one series has never run, another was imported."""
    resources = builders.sites(4)
    gather = builders.gather("gather-main", resources)
    builders.circle("circle-ring", resources[:3])
    until = timezone.now() - timedelta(days=3)
    runs = builders.history(gather, 6, until=until, with_forecasts=False)
    imported = builders.series("imported", {"hosts": resources[:1]}, probe="import-lines", schedule="")
    passed = builders.report(gather, until - HOUR)
    builders.delivered(replace(passed, series=imported.name, run=wire.run_id(imported.name, passed.slot)))
    return FilledDepot(_session(builders.user("operator", may_run=True)), administrator(), passed=runs[-1])


def broken() -> FilledDepot:
    """The scheduler is silent, the home reporter was never seen, and runs ended in every state but passed."""
    resources = builders.sites(3)
    circles = builders.circles([f"ring-{state}" for state in State.values], resources)
    now = timezone.now() - MINUTE
    for state, series in zip(State, circles, strict=True):
        builders.not_run(series, now, state, f"{state}: {'a-word-that-does-not-end' * 6}")
    Series.objects.update(created_at=now - HOUR)
    heartbeats.record("beat", now - 3 * HOUR)
    return FilledDepot(_session(builders.user("operator", may_run=True)), administrator())


def keep_alive() -> None:
    """Record heartbeats that last for all tests of a module: a banner comes with none of them."""
    for component in (heartbeats.SCHEDULER, heartbeats.HOME_REPORTER):
        heartbeats.record(component, timezone.now() + HOUR)


BUILDERS: Mapping[str, Callable[[], FilledDepot]] = {
    "full": full,
    "empty": empty,
    "huge": huge,
    "stale": stale,
    "broken": broken,
}


def administrator() -> str:
    """Return the cookie of a user who may open every page."""
    return _session(builders.user("administrator", is_superuser=True, is_staff=True))


def _session(user: User) -> str:
    browser = Client()
    browser.force_login(user)
    return browser.cookies["sessionid"].value


def build_storage(disks: Resource, flash: Resource) -> None:
    """Make two storage areas: one with a sweep and streams, and one that is new; the first got slower."""
    now = timezone.now()
    for resource, rates, last in ((disks, measured.DISKS, 0.5), (flash, measured.FLASH, 1.0)):
        series = measured.storage_series(f"{resource.name}-disk", "disk", resource)
        measured.disk_history(series, rates, now - HOUR, last=last)
    parts = {"count": 6, "resource": flash.name}
    storage = {"medium": "six disks, RAID 5", "capacity_gb": 1800.0, "price": 4000.0, "parts": parts}
    Resource.objects.filter(pk=disks.pk).update(storage=storage)
    Resource.objects.filter(pk=flash.pk).update(storage=measured.STORAGE)
    began = now - timedelta(days=1)
    measured.sweep_passes(measured.storage_series(f"{disks.name}-sweep", "storage_sweep", disks), began)
    measured.stream_passes(measured.storage_series(f"{disks.name}-streams", "streams", disks), began)
    refresh_verdicts(now, within_seconds=60.0)


def build_reporter(site: Site) -> None:
    """Create an agent that has something to say in every field, at length."""
    now, long = timezone.now(), "a-word-that-does-not-end" * 10
    reporter = reporter_rows.enrolled("site1-login-with-a-long-name", now - 90 * MINUTE, site=site.name)
    reporter_rows.key(reporter, now - 200 * MINUTE, revoked_at=now - 90 * MINUTE, revoked_by=long[:150])
    rules = {"probes": {"forbid": ["madbench", "gather"]}, "hours": {"forbid": ["mon-fri 08:00-18:00"]}}
    rules["caps"] = {"concurrent_runs": 1, "scratch_bytes": 10**10}  # type: ignore[dict-item]
    reporter_rows.status(
        reporter,
        now - MINUTE,
        hostname=long[:200],
        assignment_version=7,
        assignment_error=long,
        policy_status="in_force",
        policy_sha256="cafe" * 16,
        policy_error=long,
        policy_summary={"disclosure": "full", "approval": "ask", "timezone": "Europe/Berlin", "rules": rules},
        pending_approvals=2,
        spool_records=123_456,
        spool_bytes=5 * 10**9,
        spool_oldest_at=now - 200 * MINUTE,
        dropped_records=17,
        clock_offset_seconds=-41.5,
        clock_bound_seconds=0.3,
        messages=[{"at": now.isoformat(), "level": "warning", "text": f"refused assignment 8: {long}"}],
    )
    for _ in range(2):
        reporter_rows.record(reporter_rows.chain(reporter, now, declared=1000), 0, now)
    rule = AlertRule.objects.create(name="lags", condition="lag_seconds", threshold=600, everything=True)
    Alert.objects.create(rule=rule, reporter=reporter, since=now, opened_at=now, text=f"it lags {long}")
