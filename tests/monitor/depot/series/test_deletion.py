"""A series with many runs is deleted in the background, in steps that a kill does not harm."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection, models
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor.core.yamlfile.problems import InvalidYamlFile
from monitor.depot.rollups.worker import gather, roll
from monitor.depot.series import deletion
from monitor.depot.series.deletion import StepSize, prune_deletions
from monitor.models import (
    AuditEvent,
    Metric,
    RawReport,
    Run,
    Sample,
    Segment,
    Series,
    SeriesDeletion,
    Transition,
)
from monitor.operations.gridfile.applying import apply
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE = timedelta(minutes=1)
RUNS = 7


def delete_requested(within_seconds: float = 60.0) -> int:
    """Let the worker delete, two runs in a transaction."""
    return deletion.delete_requested(within_seconds, StepSize(runs=2, rows=2))


@pytest.fixture
def ring(db: None, settings: Settings) -> Series:
    """A series with more runs than a request deletes itself, beside another one."""
    settings.GRIDCAST_DELETED_AT_ONCE_RUNS = RUNS - 2
    ring, other = builders.circles(["ring", "other"], builders.sites(2))
    now = timezone.now()
    for number in range(RUNS):
        builders.passed(ring, now - (RUNS - number) * MINUTE)
    builders.passed(other, now - MINUTE)
    gather()
    roll(now)
    return ring


@pytest.fixture
def operator(ring: Series) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada"))
    return client


def requested(client: Client) -> SeriesDeletion:
    answer = client.delete("/api/v1/grid/series/ring")
    assert answer.status_code == 202, answer.content
    assert answer["Location"] == "/api/v1/series/ring/deletion"
    return SeriesDeletion.objects.get()


def test_the_request_returns_at_once_and_shows_its_progress(operator: Client, ring: Series) -> None:
    under_way = requested(operator)
    assert Run.objects.filter(series=ring).count() == RUNS, "nothing is deleted in the request"
    assert not Series.objects.get(pk=ring.pk).enabled, "no run starts any more"
    assert delete_requested(within_seconds=0.0) == 0, "a step, and the time is over"
    shown = operator.get("/api/v1/series/ring/deletion").json()
    assert (shown["percent"], shown["deleted_runs"], shown["runs"], shown["ended_at"]) == (28, 2, RUNS, None)
    for page in ("/settings/series/", "/series/ring/", "/settings/series/retire/ring/"):
        assert "being deleted: 28 %" in operator.get(page).content.decode(), page
    assert requested(operator) == under_way, "asked again, it goes on"


def test_the_worker_deletes_everything_of_the_series_and_nothing_else(operator: Client, ring: Series) -> None:
    requested(operator)
    assert delete_requested() == 1
    assert [series.name for series in Series.objects.all()] == ["other"]
    left = {model: model.objects.count() for model in (Run, RawReport, Segment)}
    assert left == {Run: 1, RawReport: 1, Segment: 1}
    metrics = set(Metric.objects.values_list("pk", flat=True))
    assert set(Sample.objects.values_list("metric", flat=True)) == metrics
    assert not Transition.objects.exclude(run__in=Run.objects.all()).exists()
    shown = operator.get("/api/v1/series/ring/deletion").json()
    assert (shown["percent"], shown["deleted_runs"]) == (100, RUNS)
    assert shown["ended_at"] is not None
    assert operator.get("/series/ring/").status_code == 404
    (event,) = AuditEvent.objects.filter(user="ada")
    assert (event.outcome, [change["name"] for change in event.changes]) == ("done", ["ring"]), event.action
    assert prune_deletions(timezone.now() + timedelta(days=31)) == 1


class Killed(BaseException):
    """The worker is killed."""


def killed_after(statements: int) -> AbstractContextManager[None]:
    """Let so many statements through, then end the worker."""
    left = statements

    def count(execute: object, sql: object, params: object, many: object, context: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return execute(sql, params, many, context)  # type: ignore[operator]

    return connection.execute_wrapper(count)


@pytest.mark.parametrize("statements", [3, 9, 14, 23, 40, 70])
def test_a_worker_that_is_killed_loses_no_work_and_the_next_one_goes_on(
    operator: Client, ring: Series, statements: int
) -> None:
    requested(operator)
    with pytest.raises(Killed), killed_after(statements):
        delete_requested()
    row = SeriesDeletion.objects.get()
    assert row.deleted_runs == RUNS - Run.objects.filter(series=ring).count(), "counted as it was done"
    connection.close()
    assert delete_requested() == (1 if row.ended_at is None else 0)
    assert [series.name for series in Series.objects.all()] == ["other"]


def test_a_report_that_arrives_meanwhile_is_deleted_too(operator: Client, ring: Series) -> None:
    requested(operator)
    delete_requested(within_seconds=0.0)
    builders.passed(ring, timezone.now())
    assert delete_requested() == 1
    assert Run.objects.count() == 1


def test_the_name_is_free_when_the_series_is_gone(operator: Client, ring: Series, tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    call_command("grid", "export", str(grid))
    requested(operator)
    with pytest.raises(InvalidYamlFile, match="it is being deleted: use another name, or wait"):
        apply(str(grid), prune=False)
    entry = operator.get("/api/v1/grid/series/ring").json()["entry"]
    refused = operator.put("/api/v1/grid/series/ring", {"entry": entry}, "application/json")
    assert refused.status_code == 422
    assert "it is being deleted" in refused.content.decode()
    delete_requested()
    apply(str(grid), prune=False)
    assert Series.objects.filter(name="ring").exists()


def test_followers_hinder_the_deletion(operator: Client, ring: Series) -> None:
    other = Series.objects.get(name="other")
    Series.objects.filter(pk=other.pk).update(leader=ring, follows="with", schedule="")
    refused = operator.delete("/api/v1/grid/series/ring")
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    Series.objects.filter(pk=other.pk).update(leader=None, follows="")
    requested(operator)
    Series.objects.filter(pk=other.pk).update(leader=ring, follows="with", schedule="")
    assert delete_requested() == 0
    assert operator.get("/api/v1/series/ring/deletion").json()["hindrance"] == "in use by other"
    Series.objects.filter(pk=other.pk).update(leader=None, follows="")
    assert delete_requested() == 1


def test_a_deletion_is_as_visible_as_its_series(operator: Client, ring: Series) -> None:
    requested(operator)
    ring.suite.viewers.add(Group.objects.create(name="owners"))
    stranger = Client()
    stranger.force_login(User.objects.create_user("bob"))
    assert stranger.get("/api/v1/series/ring/deletion").status_code in (403, 404)
    assert stranger.get("/api/v1/series/other/deletion").status_code in (403, 404)


def test_a_small_series_is_deleted_at_once(operator: Client, ring: Series) -> None:
    assert operator.delete("/api/v1/grid/series/other").status_code == 204
    assert not SeriesDeletion.objects.exists()


# What a series has few of, however many runs it has.
FEW = {
    "monitor.Series.leader",
    "monitor.FormerReporter.series",
    "monitor.Binding.series",
    "monitor.IncidentSeries.series",
    "monitor.IncidentEvent.series",
    "monitor.AlertRule_series.series",
    "monitor.AlertRule.series",
    "monitor.Segment.series",
    "monitor.CurrentSegment.series",
    "monitor.CurrentSegment.segment",
    "monitor.ForecastPredictor.series",
    "monitor.ForecastPredictor.metric",
    "monitor.SuccessState.series",
    "monitor.LatestRun.series",
    "monitor.PingKey.series",
    "monitor.RetentionCutoff.series",
    "monitor.StorageVerdict.series",
    "monitor.SeriesDeletion.series",
    "monitor.Metric.segment",
    "monitor.ForecastState.metric",
    # Rows that workers read and delete within seconds.
    "monitor.Recheck.series",
    "monitor.PendingChange.series",
    "monitor.DirtyHour.series",
    "monitor.DirtyDay.series",
    "monitor.DirtyOutcome.series",
    "monitor.ReportedStart.series",
    # Retention deletes the rows of metrics that are gone, in steps of its own.
    "monitor.HourRollup.metric",
    "monitor.DayRollup.metric",
}


def test_whatever_a_series_may_have_many_of_is_deleted_in_steps() -> None:
    numerous = {f"{model._meta.label}.{path.partition('__')[0]}" for model, path in deletion.NUMEROUS.items()}
    in_steps = numerous | {"monitor.Run.series", "monitor.Sample.metric"}
    relations = {
        f"{relation.related_model._meta.label}.{relation.field.name}"
        for model in (Series, Segment, Metric)
        for relation in model._meta.get_fields(include_hidden=True)
        if isinstance(relation, models.ForeignObjectRel)
    }
    assert relations - in_steps - FEW == set(), "say whether a series may have thousands of them"
    assert (in_steps | FEW) - relations == set()
