"""Arrays of a row that belong together have equal lengths: unequal ones would end the worker that counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import IntegrityError, connection, transaction
from django.db.models import CharField, CheckConstraint
from django.utils import timezone

from monitor.depot.rollups import worker
from monitor.models import (
    DirtyHour,
    ForecastState,
    Identity,
    LatestRun,
    Metric,
    OutcomeCount,
    RecomputedPeriod,
    Run,
    Segment,
    Series,
    SeriesStanding,
)
from monitor.models.run import State
from monitor.web.status import standings
from monitor.web.status.latest import latest
from reporters.report import run_id
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
MIGRATION = import_module("monitor.migrations.0006_equal_lengths")
# Models with several arrays that need no constraint.
INDEPENDENT = {
    Identity: "roles of the provider, and roles of which an upgrade did not know the origin",
    RecomputedPeriod: "four numbers each, written by one function; a record that none computes with",
}


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def series(db: None, now: datetime) -> Series:
    """A series with two failed runs, whose latest state is stored and counted."""
    row = builders.circle("ring", [builders.site("own")])
    for minutes in (2, 1):
        slot = now - timedelta(minutes=minutes)
        ended: dict[str, Any] = {"due_at": slot, "ended_at": slot, "state": State.FAILED}
        Run.objects.create(
            id=run_id("ring", slot), series=row, slot=slot, failed_resource="own-login", **ended
        )
        DirtyHour.objects.create(series=row, hour=slot.replace(minute=0, second=0))
    settled(now)
    return row


def settled(now: datetime) -> None:
    while worker.gather():
        pass
    standings.recount_due(now)


def shown(series: Series, now: datetime) -> tuple[str, list[tuple[str, int]]]:
    """Return the latest state of *series*, and the counts of outcomes."""
    state = latest(Series.objects.filter(pk=series.pk), now)
    return repr(state), list(OutcomeCount.objects.order_by("outcome").values_list("outcome", "n"))


@pytest.mark.parametrize(
    "changes",
    [{"outcomes": ""}, {"slots": []}, {"outcomes": "ff", "failed_resources": ["own-login"]}],
    ids=", ".join,
)
def test_a_latest_run_has_as_many_slots_as_outcomes(series: Series, changes: dict[str, Any]) -> None:
    assert LatestRun.objects.get().outcomes == "ff"
    with pytest.raises(IntegrityError, match="latestrun_equal_lengths"), transaction.atomic():
        LatestRun.objects.update(**changes)


def test_a_standing_has_as_many_slots_as_outcomes(series: Series) -> None:
    with pytest.raises(IntegrityError, match="standing_equal_lengths"), transaction.atomic():
        SeriesStanding.objects.update(outcomes="f")


def test_a_forecast_has_both_counts_of_each_level(series: Series, now: datetime) -> None:
    with pytest.raises(IntegrityError, match="forecaststate_equal_lengths"), transaction.atomic():
        forecast_state(series, now, less=[1], most=[])


def forecast_state(series: Series, now: datetime, **values: Any) -> ForecastState:
    segment = Segment.objects.create(
        series=series, number=0, probe="circle", probe_version="1", fingerprint="x", began_at=now
    )
    metric = Metric.objects.create(segment=segment, name="total.seconds", unit="seconds")
    return ForecastState.objects.create(metric=metric, record_n=1, **values)


def test_the_migration_mends_rows_of_unequal_lengths(series: Series, now: datetime) -> None:
    before = shown(series, now)
    named = {
        model: next(each for each in model._meta.constraints if each.name.endswith("_equal_lengths"))
        for model in (LatestRun, SeriesStanding, ForecastState)
    }
    with connection.schema_editor() as editor:
        for model, constraint in named.items():
            editor.remove_constraint(model, constraint)
    LatestRun.objects.update(outcomes="", failed_resources=["own-login"])
    SeriesStanding.objects.update(outcomes="fff")  # the third, without a slot, was never counted
    state = forecast_state(series, now, less=[1], most=[])
    with connection.cursor() as cursor:
        cursor.execute(MIGRATION.MEND)
    with connection.schema_editor() as editor:
        for model, constraint in named.items():
            editor.add_constraint(model, constraint)
    assert shown(series, now)[0] == before[0]  # readers compute it again, before the worker does
    settled(now)
    assert LatestRun.objects.get().outcomes == "ff"
    assert shown(series, now) == before
    state.refresh_from_db()
    assert (state.record_n, state.less, state.most) == (0, [], [])


def test_models_with_several_arrays_bound_their_lengths() -> None:
    def is_array(field: Any) -> bool:
        """Texts of letters are arrays, too."""
        return isinstance(field, ArrayField) or (isinstance(field, CharField) and field.name == "outcomes")

    several = {
        model
        for model in apps.get_app_config("monitor").get_models()
        if sum(map(is_array, model._meta.get_fields())) > 1
    }
    bounded = {
        model
        for model in several
        if any(isinstance(each, CheckConstraint) and "__len" in str(each) for each in model._meta.constraints)
    }
    assert several - bounded == set(INDEPENDENT)
