"""Builders of sites, series and runs, whose reports go through ingest."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.contrib.auth.models import Permission, User
from django.db import models
from django.test import Client

import probes
from monitor.analysis.forecasts import refresh
from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.depot.rollups import mark_dirty
from monitor.depot.series.segments import current_bindings
from monitor.models import Binding, Reporter, Resource, Run, Series, Site, Suite, UserRole
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from probes.base import checked_parameters
from reporters import report as wire

Row = TypeVar("Row", bound=models.Model)

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
PASSWORD = "correct horse battery"

# Typical seconds of each stage of a scaled-down Gather and of Circle.
GATHER = {
    "init": ("setup", 1.9),
    "stage_data": ("setup", 1.6),
    "build_executable": ("setup", 0.8),
    "transfer_data": ("transfer", 0.9),
    "queue_wait": ("queue", 3.6),
    "compute": ("compute", 1.1),
    "transfer_results": ("transfer", 0.8),
    "cleanup": ("cleanup", 0.5),
}
CIRCLE = {
    "init": ("setup", 1.4),
    "stage_data": ("setup", 0.5),
    "transfer_ring": ("transfer", 4.2),
    "compare": ("compute", 0.3),
    "cleanup": ("cleanup", 0.4),
}


def site(name: str, *, title: str = "") -> Resource:
    """Create a site with one resource, ``<name>-login``."""
    return _logins([Site(name=name, title=title)])[0]


def sites(count: int) -> list[Resource]:
    return _logins([Site(name=f"site{number}") for number in range(1, count + 1)])


def suite(name: str = "main") -> Suite:
    return _ensure([Suite(name=name)])[0]


def _logins(sites: Sequence[Site]) -> list[Resource]:
    ways = {"shell": {"kind": "local"}, "transfer": {"kind": "local"}, "batch": {"kind": "fork"}}
    logins = [
        Resource(name=f"{site.name}-login", site=site, scratch="/scratch/probes", **ways)
        for site in _ensure(sites)
    ]
    return _ensure(logins)


def _ensure(rows: Sequence[Row]) -> list[Row]:
    """Create *rows* in one statement. Rows of the same name stay as they are; only their ids are returned."""
    return type(rows[0])._default_manager.bulk_create(
        rows, update_conflicts=True, unique_fields=["name"], update_fields=["name"]
    )


def series(
    name: str, bindings: Mapping[str, Sequence[Resource]], *, probe: str = "gather", **fields: Any
) -> Series:
    """Create a scheduled series of *probe* at the home reporter."""
    return many_series([name], bindings, probe=probe, **fields)[0]


def many_series(
    names: Iterable[str],
    bindings: Mapping[str, Sequence[Resource]],
    *,
    probe: str,
    in_suite: str = "main",
    **fields: Any,
) -> list[Series]:
    """Create series that differ only in their names."""
    (home,) = _ensure([Reporter(name="home")])
    fields = {"suite": suite(in_suite), "reporter": home, "schedule": "H/2 * * * *", **fields}
    created = Series.objects.bulk_create(Series(name=name, probe=probe, **fields) for name in names)
    Binding.objects.bulk_create(
        Binding(series=each, role=role, position=position, resource=resource)
        for each in created
        for role, resources in bindings.items()
        for position, resource in enumerate(resources)
    )
    return created


def gather(name: str, resources: Sequence[Resource], **fields: Any) -> Series:
    """Gather: the last two of *resources* compute and receive, the others send."""
    *sources, compute, destination = resources
    bindings = {"sources": sources, "compute": [compute], "destination": [destination]}
    return series(name, bindings, parameters={"file_bytes": 1_000_000, "result_bytes": 5_000_000}, **fields)


def circle(name: str, resources: Sequence[Resource], **fields: Any) -> Series:
    return circles([name], resources, **fields)[0]


def circles(names: Iterable[str], resources: Sequence[Resource], **fields: Any) -> list[Series]:
    parameters = {"file_bytes": 1_000_000}
    return many_series(names, {"ring": resources}, probe="circle", parameters=parameters, **fields)


def report(
    series: Series, slot: datetime, *, outcome: str = "passed", slowness: float = 1.0, version: str = ""
) -> wire.Report:
    """Return a report whose stages took *slowness* times their typical duration."""
    stages, probe = (
        _stages(GATHER if series.probe == "gather" else CIRCLE, slowness),
        probes.load(series.probe),
    )
    seconds = sum(stage.seconds for stage in stages)
    return wire.Report(
        run=wire.run_id(series.name, slot),
        series=series.name,
        slot=slot,
        reporter="home",
        probe=wire.ProbeIdentity(series.probe, version or probe.version, "ab" * 32),
        parameters=checked_parameters(probe, series.parameters),
        started_at=slot + timedelta(seconds=0.4),
        seconds=seconds,
        outcome=outcome,
        reason="",
        stages=stages,
        metrics=_rates(series, slowness),
        failure=None,
        log=_log(stages),
        environment=wire.Environment("ui1.example.org", "Linux 6.1.0", "3.11.2", {"ssh": "OpenSSH_9.2p1"}),
        clock=wire.Clock(sent_at=slot + timedelta(seconds=seconds + 0.5), synchronised=True),
        bindings=current_bindings([series.pk])[series.pk],
        usage={},
    )


def failed(sent: wire.Report, stage: str, resource: str, message: str, **more: Any) -> wire.Report:
    """Return the report of a run that failed in *stage*: later stages were not started, except cleanup."""
    names = [timing.name for timing in sent.stages]
    reached = sent.stages[: names.index(stage) + 1]
    cleanup = [timing for timing in sent.stages if timing.name == "cleanup" and timing not in reached]
    failure = wire.Failure(stage, resource, message, **more)
    line = wire.LogLine("error", sum(timing.seconds for timing in reached), message)
    log = [*(entry for entry in sent.log if entry.seconds <= line.seconds), line]
    reason = f"{stage} at {resource}: {message}"
    stages = _renumbered([*reached, *cleanup])
    return replace(
        sent, outcome="failed", reason=reason, failure=failure, stages=stages, metrics=(), log=tuple(log),
        seconds=sum(timing.seconds for timing in stages),
    )  # fmt: skip


def delivered(sent: wire.Report) -> Run:
    """Ingest a report; return its run."""
    receipt = ingest(wire.to_json(sent))
    assert receipt.accepted, receipt.error
    return Run.objects.get(pk=sent.run, slot=sent.slot)


def passed(series: Series, slot: datetime, *, slowness: float = 1.0) -> Run:
    return delivered(report(series, slot, slowness=slowness))


def not_run(series: Series, slot: datetime, state: State, reason: str) -> Run:
    """Create a run without a report."""
    mark_dirty.mark([(series.pk, slot)])
    return Run.objects.create(
        id=wire.run_id(series.name, slot), series=series, slot=slot, due_at=slot, state=state, reason=reason
    )


@dataclass(frozen=True)
class Trouble:
    """The failure of a run."""

    stage: str
    resource: str
    message: str
    stderr_tail: str = ""
    exit_status: int | None = 255


REFUSED = "cannot connect to {resource}.example.org:22: Connection refused"


def history(
    series: Series,
    count: int,
    *,
    until: datetime,
    every: timedelta = timedelta(minutes=2),
    troubles: Mapping[int, Trouble] | None = None,
    seed: int = 1,
    with_forecasts: bool = True,
) -> list[Run]:
    """Ingest *count* runs until *until*; *troubles* are failures by number of the run.

    Durations are right-skewed and autocorrelated.
    """
    draw = random.Random(seed)
    slowness, runs = 1.0, []
    for number in range(count):
        slot = until - every * (count - 1 - number)
        slowness = 0.75 * slowness + 0.25 * draw.lognormvariate(0.0, 0.45)
        sent = report(series, slot, slowness=slowness * draw.lognormvariate(0.0, 0.08))
        trouble = (troubles or {}).get(number)
        if trouble is not None:
            sent = failed(
                sent, trouble.stage, trouble.resource, trouble.message,
                stderr_tail=trouble.stderr_tail, exit_status=trouble.exit_status,
            )  # fmt: skip
        runs.append(delivered(sent))
        if with_forecasts:
            refresh.refresh_all(sent.slot + timedelta(seconds=sent.seconds + 1))
    return runs


def user(name: str = "reader", *, may_run: bool = False, password: str | None = None, **fields: Any) -> User:
    """Create a user; without a *password*, whose hashing is slow, only ``force_login`` works."""
    user = User.objects.create_user(name, password=password, **fields)
    if may_run:
        user.user_permissions.add(Permission.objects.get(codename="run_series"))
    return user


def browser_of(name: str, role: UserRole, site: str | None = None) -> Client:
    """Create a user with *role*, everywhere or at *site*, and return a browser with that login."""
    account, browser = user(name), Client()
    roles.grant(account, Grant(role, site))
    browser.force_login(account)
    return browser


def _stages(typical: Mapping[str, tuple[str, float]], slowness: float) -> tuple[wire.StageTiming, ...]:
    return _renumbered(
        wire.StageTiming(name, category, seconds * slowness, 0.0)
        for name, (category, seconds) in typical.items()
    )


def _renumbered(stages: Iterable[wire.StageTiming]) -> tuple[wire.StageTiming, ...]:
    """Place stages one after the other."""
    begun, placed = 0.0, []
    for stage in stages:
        placed.append(replace(stage, started_after_seconds=begun))
        begun += stage.seconds
    return tuple(placed)


def _rates(series: Series, slowness: float) -> tuple[wire.MetricValue, ...]:
    if series.probe != "gather":
        return (wire.MetricValue("ring.bytes_per_second", 1.7e6 / slowness, "bytes_per_second"),)
    sources = series.bindings.filter(role="sources").values_list("resource__name", flat=True)
    return tuple(
        wire.MetricValue(
            f"transfer.{name}.bytes_per_second", (1 + 0.4 * i) * 9e6 / slowness, "bytes_per_second"
        )
        for i, name in enumerate(sources)
    )


def _log(stages: Sequence[wire.StageTiming]) -> tuple[wire.LogLine, ...]:
    return tuple(wire.LogLine("info", stage.started_after_seconds, f"stage {stage.name}") for stage in stages)
