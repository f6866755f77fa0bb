"""One depot with a row of every kind, and the identities that look at it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import models
from django.test import Client
from django.utils import timezone

from monitor import tasks
from monitor.analysis.alerts import evaluate
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.storage.compute import refresh_verdicts
from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import (
    Attribution,
    ConflictingReport,
    FailureSignature,
    Hold,
    Incident,
    IncidentEvent,
    MaintenanceWindow,
    Notification,
    RawReport,
    RecomputedPeriod,
    Run,
    Series,
    Suite,
)
from monitor.models.incident import IncidentAction
from monitor.models.role import UserRole
from monitor.models.run import State
from tests.monitor.analysis.storage import measured
from tests.monitor.cross.values import value_of
from tests.monitor.cross.variants import Variants
from tests.monitor.depot.access import world as access_world
from tests.monitor.depot.access.world import OTHER, OWN, Identity, World
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.pages import builders, depots

MOST_IN_SUITE = 30  # series: with more, the overview has no column for each
HOUR = timedelta(hours=1)


@dataclass
class CrowdedDepot:
    world: World
    variants: Variants
    identities: list[Identity] = field(default_factory=list)

    @property
    def administrator(self) -> Identity:
        return next(each for each in self.identities if each.name == "session of administrator")


def build(draw: random.Random) -> CrowdedDepot:
    depot = CrowdedDepot(access_world.build(), Variants(draw))
    _examples(depot.world)
    for model in varied_models():
        for example in examples_of(model):
            depot.variants.make(example)
    _run_each_series()
    count()
    # A token of one scope sees the rows of one that has more; the tables of access have each scope.
    depot.identities = [
        each
        for each in depot.world.identities
        if not each.is_program or (each.role is not None and len(each.scopes or ()) != 1)
    ]
    depot.identities += _readers_of_suites()
    return depot


def varied_models() -> list[type[models.Model]]:
    """Return the models with stored rows, those that others refer to first."""
    from tests.monitor.cross.left_out import LEFT_OUT

    found = [each for each in apps.get_app_config("monitor").get_models() if each.__name__ not in LEFT_OUT]
    ordered: list[type[models.Model]] = []
    while found:
        ready = [each for each in found if not _parents(each) & set(found) - {each}]
        ordered += ready or found
        found = [each for each in found if each not in ordered]
    return ordered


def examples_of(model: type[models.Model]) -> Iterator[models.Model]:
    """Yield the rows that variants are copied from: the newest, and one of each other shape."""
    rows = model._base_manager.order_by("-pk")
    if model is MaintenanceWindow:
        yield from (rows.filter(schedule="")[0], rows.exclude(schedule="")[0])
    elif model is Series:
        yield Series.objects.get(name=f"{OWN}-ring")
    elif model is Run:
        yield from (rows.filter(state=state)[0] for state in (State.FAILED, State.PASSED))
    elif (row := rows.first()) is not None:
        yield row


def _parents(model: type[models.Model]) -> set[type[models.Model]]:
    return {each.related_model for each in model._meta.concrete_fields if each.is_relation}  # type: ignore[misc]


def _examples(world: World) -> None:
    """Make an example of what the world of the table of access has not."""
    now = world.now
    series, other = world.series[OWN], world.series[OTHER]
    refused = builders.REFUSED.format(resource=f"{OWN}-0")
    for seconds in (20, 10):
        sent = builders.report(series, now - timedelta(seconds=seconds))
        builders.delivered(builders.failed(sent, "transfer_ring", f"{OWN}-0", refused))
    classify_runs(now)
    update_incidents(now)
    evaluate.evaluate(now)
    signature = FailureSignature.objects.exclude(runs=None)[0]
    incident = Incident.objects.create(
        signature=signature, kind="at", name=OTHER, since=now, opened_at=now, acknowledged_at=now,
        acknowledged_by="chief", silenced_until=now + HOUR, silenced_by="chief",
    )  # fmt: skip
    IncidentEvent.objects.create(
        incident=incident, at=now, action=IncidentAction.AFFECTED, series=other, user="chief", text="x"
    )
    provided = User.objects.create_user("of the provider")
    identity_of(provided, "viewer", f"site_admin:{OWN}")
    for kind in Authenticator.Type.values:
        Authenticator.objects.create(user=provided, type=kind, data={"name": "key"})
    Notification.objects.create(alert=world.alerts[OWN], event="opened", channel={"kind": "log"}, due_at=now)
    Attribution.objects.create(
        kind="site",
        name=OTHER,
        probability=0.97,
        failed=9,
        total=10,
        since=now,
        latest_at=now,
        decided_at=now,
    )
    MaintenanceWindow.objects.create(name="nightly", schedule="* * * * *", duration_seconds=60)
    Hold.objects.create(
        kind="site", name=OTHER, mode="drain", who="chief", why="x", began_at=now - HOUR, until=now + HOUR
    )
    depots.build_reporter(world.reporters[OWN].site)  # type: ignore[arg-type]
    disk = measured.storage_series(f"{OWN}-disk", "disk", series.bindings.all()[0].resource)
    measured.disk_history(disk, measured.DISKS, now - HOUR, runs=3)
    refresh_verdicts(now, within_seconds=60.0)
    depots.keep_alive()
    _requested(world)
    count()
    compute()
    _made_up(world)


def _requested(world: World) -> None:
    """Do by the API what leaves a record: windows, recomputations, codes."""
    (session,) = (each.client for each in world.identities if each.name == "session of administrator")
    month, ends_at = f"{world.now:%Y-%m}", (world.now + HOUR).isoformat()
    for method, path, body in (
        ("POST", "availability/recomputations", {"sites": [OWN], "month": month, "reason": "x"}),
        (
            "POST",
            "maintenance",
            {
                "name": "asked",
                "sites": [OWN],
                "reason": "x",
                "starts_at": world.now.isoformat(),
                "ends_at": ends_at,
            },
        ),
        ("PATCH", "maintenance/asked", {"title": "new disks", "reason": "x"}),
        ("POST", f"reporters/{OTHER}-agent/codes", {}),
        ("PUT", "grid/sites/own", {"entry": {"title": "the own site"}}),
    ):
        answer = session.generic(method, f"/api/v1/{path}", json.dumps(body), content_type="application/json")
        assert answer.status_code < 300, (path, answer.content)


def count() -> None:
    """Let the workers count the latest states and the outcomes, as they do every few seconds."""
    for task in (tasks.gather_dirty_hours, tasks.roll_up, tasks.count_outcomes):
        task()


def compute() -> None:
    """Let the workers compute forecasts, verdicts and days; what waits for them afterwards has nulls."""
    for task in (tasks.update_forecasts, tasks.refresh_storage, tasks.refresh_availability):
        task()


def _made_up(world: World) -> None:
    """Make a row of each model that has none yet, whose values are those of their columns' types."""
    report = RawReport.objects.first()
    assert report is not None
    given = {
        ConflictingReport: {
            "packing": report.packing,
            "packed": report.packed,
            "run": report.run_id,
            "slot": report.slot,
        },
        RecomputedPeriod: {},
    }
    for model in varied_models():
        if not model._base_manager.exists():
            values = {
                each.attname: each.get_default() if each.has_default() else value_of(each)
                for each in model._meta.concrete_fields
                if not isinstance(each, models.AutoField) and not getattr(each, "generated", False)
            }
            model._base_manager.create(**{**values, **given.get(model, {})})


def _run_each_series() -> None:
    """Report a passed run for half of the copies, and put the copies into suites of their own."""
    copies = list(Series.objects.filter(name__startswith=f"{OWN}-ring-").order_by("pk"))
    for number, series in enumerate(copies):
        suite, _ = Suite.objects.get_or_create(name=f"crowd-{number // MOST_IN_SUITE}")
        suite.viewers.add(Group.objects.get_or_create(name=suite.name)[0])
        Series.objects.filter(pk=series.pk).update(suite=suite)
        if number % 2 and series.enabled and series.probe == "circle" and not series.runs.exists():
            builders.passed(series, timezone.now() - timedelta(minutes=1))


def _readers_of_suites() -> Iterator[Identity]:
    """Yield a viewer, or a site admin, for each suite that is not visible to all."""
    for number, suite in enumerate(Suite.objects.exclude(viewers=None).order_by("pk")):
        role = UserRole.SITE_ADMIN if number % 2 else UserRole.VIEWER
        grants = [Grant(role, OWN if role == UserRole.SITE_ADMIN else None)]
        yield _user(f"reader-of-{suite.name}", grants, [each.name for each in suite.viewers.all()])


def _user(name: str, grants: list[Grant], groups: list[str] = []) -> Identity:  # noqa: B006
    user = User.objects.create_user(name)
    for grant in grants:
        roles.grant(user, grant)
    user.groups.add(*Group.objects.filter(name__in=groups))
    browser = Client()
    browser.force_login(user)
    return Identity(f"session of {name}", grants[0].role if grants else None, browser)
